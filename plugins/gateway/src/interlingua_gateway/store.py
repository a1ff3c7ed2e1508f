"""The gateway's database: hashed keys, what they used and reserved, states, recorded sessions."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import attrs
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateColumn

from interlingua.errors import CallerError, OverloadedError

_PREFIX = "ilg"
_PATIENCE = 12.0  # seconds that a request waits for the database; SQLite waits for its lock for 10
# libpq's options, in seconds and milliseconds: a server that vanishes is noticed sooner than by the system's defaults
_NOTICE = {
    "connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip
_CREATE_ATTEMPTS = 4
_Result = TypeVar("_Result")
_log = logging.getLogger("interlingua.gateway")
_TABLES = sa.MetaData()
_KEYS = sa.Table(
    "gateway_keys", _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("expires", sa.Float),
    sa.Column("revoked", sa.Float),
    sa.Column("budget_usd", sa.Numeric(18, 6)),
    sa.Column("budget_days", sa.Integer),
    sa.Column("requests_per_minute", sa.Integer),
    sa.Column("tokens_per_minute", sa.Integer),
    sa.Column("models", sa.Text),
    sa.Column("admin", sa.Boolean, nullable=False, server_default=sa.false()),
)  # fmt: skip
_USAGE = sa.Table(
    "gateway_usage", _TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("day", sa.Integer, primary_key=True),  # days since 1970, UTC
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("input_tokens", sa.BigInteger, nullable=False),
    sa.Column("output_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_usd", sa.Numeric(18, 9), nullable=False),
)  # fmt: skip
_MINUTES = sa.Table(
    "gateway_minutes", _TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("minute", sa.BigInteger, primary_key=True),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
)  # fmt: skip
_RESERVED = sa.Table(  # requests in progress, with the most that each may use
    "gateway_reserved", _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, index=True),
    sa.Column("gateway", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("renewed", sa.Float, nullable=False),
    sa.Column("input_tokens", sa.BigInteger, nullable=False),
    sa.Column("output_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_usd", sa.Numeric(18, 9), nullable=False),
)  # fmt: skip
_STATES = sa.Table(
    "gateway_states", _TABLES,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("handle", sa.Text, primary_key=True),
    sa.Column("seal", sa.Text, nullable=False),  # "" once two answers have the same handle
    sa.Column("digest", sa.Text, nullable=False, server_default=""),  # of the state
    sa.Column("created", sa.Float, nullable=False),
)  # fmt: skip
_SESSIONS = sa.Table(
    "gateway_sessions", _TABLES,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),  # of a recorded conversation, up to its end
    sa.Column("session", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
)  # fmt: skip


@attrs.frozen(kw_only=True)
class Key:
    """A key for the gateway, without its secret.

    Attributes:
        id: its name in logs and commands.
        name: its owner, for people.
        created: when the key was made.
        expires: when it expires; None means never.
        revoked: when it was revoked; None means never.
        budget_usd: the most that its requests may cost in a period; None means no limit.
        budget_days: the length of a period in days, counted in UTC; None means that the budget never renews.
        requests_per_minute: the most requests a minute; None means no limit.
        tokens_per_minute: the most tokens a minute, input and output together; None means no limit.
        models: patterns of the models that requests may use: names of routes, or names of models with or without the
            provider; empty allows all.
        admin: True if the key may read the gateway's metrics.
    """

    id: str
    name: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    budget_usd: Decimal | None = None
    budget_days: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    models: tuple[str, ...] = ()
    admin: bool = False


@attrs.frozen(kw_only=True)
class Spent:
    """The use of a key in a period."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)


@attrs.frozen(kw_only=True)
class Balance:
    """The budget of a key.

    Attributes:
        budget: the budget; None means no limit.
        spent: the cost of the requests that have ended in this period.
        reserved: the most that requests in progress may cost.
    """

    budget: Decimal | None
    spent: Decimal
    reserved: Decimal

    @property
    def left(self) -> Decimal | None:
        """The amount that is neither spent nor reserved; None means no limit."""
        return None if self.budget is None else self.budget - self.spent - self.reserved

    def has(self, amount: Decimal) -> bool:
        """Return True if an amount is left."""
        left = self.left
        return left is None or (left > 0 and amount <= left)


@attrs.frozen(kw_only=True)
class Use:
    """The use of a request, or the most that it may use.

    Attributes:
        input_tokens: input tokens.
        output_tokens: output tokens.
        cost_usd: their cost.
        requests: 1, or 0 for an attempt after which another model is asked.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    requests: int = 1


class GatewayStore:
    """The database of one or several gateways. Its methods block: an event loop calls them in a thread.

    Args:
        url: `sqlite:///file` or `postgresql://…`.

    Raises:
        OverloadedError: from every method, if the database does not respond.
    """

    def __init__(self, url: str) -> None:
        if url.startswith("postgresql://"):
            url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        elif not url.startswith("sqlite:///"):
            raise CallerError(f"store must be sqlite:///file or postgresql://…, not {url.partition(':')[0]}:")
        self._insert: Any = sqlite.insert if url.startswith("sqlite") else postgresql.insert
        place = sa.make_url(url)
        more = {} if place.drivername == "sqlite" else {n: v for n, v in _NOTICE.items() if n not in place.query}
        self._engine = sa.create_engine(place, pool_pre_ping=True, connect_args=more)
        if url.startswith("sqlite"):
            _make_private_file(Path(url.removeprefix("sqlite:///")))
            sa.event.listen(self._engine, "connect", _set_up_sqlite)
        self._create_tables()

    def _create_tables(self) -> None:
        for attempt in range(_CREATE_ATTEMPTS):
            try:
                with self._engine.begin() as connection:
                    _TABLES.create_all(connection)
                    _add_new_columns(connection)
                return
            except SQLAlchemyError as error:  # another gateway that starts now may be making the same tables
                if attempt + 1 == _CREATE_ATTEMPTS:
                    raise _no_answer(error) from error
                time.sleep(0.1 * (attempt + 1))

    def _begin(self) -> _Transaction:
        return _Transaction(self._engine)

    def ping(self) -> None:
        """Ask the database for nothing."""
        with self._begin() as connection:
            connection.execute(sa.select(1))

    # -- keys ----------------------------------------------------------------------------------------------------

    def add_key(self, name: str, **limits: Any) -> tuple[Key, str]:
        """Make a key; return it with its secret, which is not stored.

        Args:
            name: its owner.
            **limits: fields of `Key`.
        """
        own, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        key = Key(id=own, name=name, created=datetime.now(UTC), **limits)
        row = {
            "id": own, "name": name, "hash": _hash(secret), "created": key.created.timestamp(),
            "expires": key.expires.timestamp() if key.expires else None, "revoked": None,
            "budget_usd": key.budget_usd, "budget_days": key.budget_days,
            "requests_per_minute": key.requests_per_minute, "tokens_per_minute": key.tokens_per_minute,
            "models": " ".join(key.models), "admin": key.admin,
        }  # fmt: skip
        with self._begin() as connection:
            connection.execute(_KEYS.insert().values(row))
        return key, f"{_PREFIX}-{own}-{secret}"

    def list_keys(self) -> list[Key]:
        """Return all keys, oldest first."""
        with self._begin() as connection:
            return [_key_of(row) for row in connection.execute(_KEYS.select().order_by(_KEYS.c.created)).mappings()]

    def find_key(self, text: str) -> Key | None:
        """Return the key with this secret, even if it is revoked or expired; None if there is no such key.

        Secrets are compared in constant time.
        """
        prefix, _, rest = text.partition("-")
        own, _, secret = rest.partition("-")
        if prefix != _PREFIX or not secret:
            return None
        with self._begin() as connection:
            row = connection.execute(_KEYS.select().where(_KEYS.c.id == own)).mappings().first()
        same = hmac.compare_digest(_hash(secret), row["hash"] if row else _hash(""))
        return _key_of(row) if row and same else None

    def revoke_key(self, own: str) -> bool:
        """Revoke a key; return False if no key has this id."""
        with self._begin() as connection:
            done = connection.execute(_KEYS.update().where(_KEYS.c.id == own).values(revoked=time.time()))
            return done.rowcount == 1

    # -- use -----------------------------------------------------------------------------------------------------

    def spent(self, key: Key, now: datetime | None = None) -> Spent:
        """Return the use of a key in the current period of its budget."""
        first = _first_day(key, now)
        columns = [sa.func.coalesce(sa.func.sum(_USAGE.c[name]), 0) for name in attrs.fields_dict(Spent)]
        with self._begin() as connection:
            row = connection.execute(sa.select(*columns).where(_USAGE.c.key == key.id, _USAGE.c.day >= first)).one()
        return Spent(requests=row[0], input_tokens=row[1], output_tokens=row[2], cost_usd=Decimal(str(row[3])))

    def add_usage(self, key: str, input_tokens: int, output_tokens: int, cost_usd: Decimal) -> None:
        """Add the use of one request."""
        use = Use(input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=cost_usd)
        with self._begin() as connection:
            self._add_use(connection, key, use, None)

    def _add_use(self, connection: Any, key: str, use: Use, when: datetime | None) -> None:
        self._add(connection, _USAGE, {"key": key, "day": _day(when)}, attrs.asdict(use))
        self._add(connection, _MINUTES, _minute(key), {"requests": 0, "tokens": use.input_tokens + use.output_tokens})

    def reserve(self, key: Key, name: str, gateway: str, most: Use) -> Balance:
        """Reserve the most that a request may use, unless the key's budget has less left.

        Args:
            key: the key.
            name: a new name for the reservation.
            gateway: the name of this process; `renew` keeps its reservations alive.
            most: the most that the request may use.

        Returns:
            the budget before the reservation; `most` is reserved if it `has` that amount.
        """
        now = time.time()
        with self._begin() as connection:
            # a write locks the key's row (PostgreSQL) or the file (SQLite), so that two requests cannot pass at once
            mine = _KEYS.c.id == key.id
            connection.execute(_KEYS.update().where(mine).values(revoked=_KEYS.c.revoked))
            # one statement: PostgreSQL shows each its own moment, and what is settled between two is in neither
            spent = _sum_of(_USAGE.c.cost_usd, _USAGE.c.key == key.id, _USAGE.c.day >= _first_day(key))
            others = _sum_of(_RESERVED.c.cost_usd, _RESERVED.c.key == key.id)
            sums = [Decimal(str(one)) for one in connection.execute(sa.select(spent, others)).one()]
            balance = Balance(budget=key.budget_usd, spent=sums[0], reserved=sums[1])
            if balance.has(most.cost_usd):
                row = {"id": name, "key": key.id, "gateway": gateway, "created": now, "renewed": now}
                row |= attrs.asdict(most, filter=lambda field, _value: field.name != "requests")
                connection.execute(_RESERVED.insert().values(row))
            return balance

    def settle(self, name: str, use: Use) -> bool:
        """Replace a reservation by what was used; return False if that was done before."""
        with self._begin() as connection:
            row = self._take(connection, _RESERVED.c.id == name)
            if not row:
                return False
            self._add_use(connection, row[0].key, use, _utc(row[0].created))
            return True

    def settle_abandoned(self, before: float) -> int:
        """Count reservations of gateways that died as used, whole; return how many.

        Args:
            before: the time since the epoch, in seconds, before which they were last renewed.
        """
        with self._begin() as connection:
            rows = self._take(connection, _RESERVED.c.renewed < before)
            for row in rows:
                use = Use(input_tokens=row.input_tokens, output_tokens=row.output_tokens, cost_usd=row.cost_usd)
                self._add_use(connection, row.key, use, _utc(row.created))
            return len(rows)

    def _take(self, connection: Any, where: Any) -> Sequence[Any]:
        """Delete reservations and return them; each is returned to one caller only."""
        return list(connection.execute(_RESERVED.delete().where(where).returning(*_RESERVED.c)).all())

    def renew(self, gateway: str) -> None:
        """Keep the reservations of a running gateway alive."""
        with self._begin() as connection:
            mine = _RESERVED.c.gateway == gateway
            connection.execute(_RESERVED.update().where(mine).values(renewed=time.time()))

    def take_request(self, key: Key) -> float | None:
        """Count a request against the limits of a key for this minute.

        Returns:
            None if the request is allowed, or the seconds until the next minute.
        """
        place = _minute(key.id)
        with self._begin() as connection:
            self._add(connection, _MINUTES, place, {"requests": 1, "tokens": 0})
            row = connection.execute(
                sa.select(_MINUTES.c.requests, _MINUTES.c.tokens).where(
                    _MINUTES.c.key == key.id, _MINUTES.c.minute == place["minute"]
                )
            ).one()
            old = _MINUTES.delete().where(_MINUTES.c.key == key.id, _MINUTES.c.minute < place["minute"] - 1)
            connection.execute(old)
        too_many = key.requests_per_minute is not None and row.requests > key.requests_per_minute
        too_much = key.tokens_per_minute is not None and row.tokens >= key.tokens_per_minute
        return 60 - time.time() % 60 if too_many or too_much else None

    def _add(self, connection: Any, table: sa.Table, place: Mapping[str, Any], amounts: Mapping[str, Any]) -> None:
        statement = self._insert(table).values(**place, **amounts)
        sums = {name: table.c[name] + statement.excluded[name] for name in amounts}
        connection.execute(statement.on_conflict_do_update(index_elements=list(place), set_=sums))

    # -- states --------------------------------------------------------------------------------------------------

    def keep_state(self, tenant: str, handles: Sequence[str], seal: str, digest: str) -> None:
        """Store a sealed state under handles of a tenant.

        If two different states get one handle, neither is found any more: it could be the other conversation's.

        Args:
            tenant: the caller.
            handles: what it is found by.
            seal: the sealed state.
            digest: of the state, by which two states are compared.
        """
        same = {"tenant": tenant, "seal": seal, "digest": digest, "created": time.time()}
        statement = self._insert(_STATES).values([{**same, "handle": handle} for handle in sorted(set(handles))])
        changed = {
            "seal": sa.case((_STATES.c.digest == digest, statement.excluded.seal), else_=""),
            "digest": sa.case((_STATES.c.digest == digest, digest), else_=""),
            "created": same["created"],
        }
        with self._begin() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["tenant", "handle"], set_=changed))

    def find_states(self, tenant: str, handles: Sequence[str]) -> dict[str, str]:
        """Return the stored states among these handles."""
        mine = (_STATES.c.tenant == tenant) & (_STATES.c.seal != "")
        query = sa.select(_STATES.c.handle, _STATES.c.seal).where(mine, _STATES.c.handle.in_(handles))
        with self._begin() as connection:
            return {row.handle: row.seal for row in connection.execute(query)}

    def drop_states(self, before: datetime) -> int:
        """Delete states that were stored before a time; return how many."""
        with self._begin() as connection:
            return connection.execute(_STATES.delete().where(_STATES.c.created < before.timestamp())).rowcount

    # -- recorded sessions ---------------------------------------------------------------------------------------

    def take_session(self, tenant: str, digests: Sequence[str]) -> tuple[str, str] | None:
        """Return the session that ends with one of these digests, and that digest; the last digest has priority.

        No other caller can take the session until `keep_session` stores its new end. Returns None if no session ends
        with one of them.
        """
        ends = _SESSIONS.c.digest.in_(list(dict.fromkeys(digests)))
        with self._begin() as connection:
            rows = connection.execute(_SESSIONS.select().where(_SESSIONS.c.tenant == tenant, ends)).all()
            found = {row.digest: row.session for row in rows}
            last = next((digest for digest in reversed(digests) if digest in found), None)
            if last is None:
                return None
            here = (_SESSIONS.c.tenant == tenant) & (_SESSIONS.c.session == found[last])
            taken = connection.execute(_SESSIONS.delete().where(here))
            return (found[last], last) if taken.rowcount else None

    def keep_session(self, tenant: str, session: str, digests: Sequence[str]) -> None:
        """Store the digests that a recorded session ends with."""
        rows = [{"tenant": tenant, "digest": digest, "session": session, "created": time.time()} for digest in digests]
        with self._begin() as connection:
            for row in rows:
                statement = self._insert(_SESSIONS).values(row)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=["tenant", "digest"], set_={"session": session})
                )

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


async def ask_store(method: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a method of a store in a thread, with a time limit.

    Raises:
        OverloadedError: the database does not respond in time.
    """
    try:
        return await asyncio.wait_for(asyncio.to_thread(method, *arguments), _PATIENCE)
    except TimeoutError:
        raise OverloadedError("the gateway's database does not respond in time; try again later") from None


class _Transaction:
    """A transaction whose failures are `OverloadedError`."""

    def __init__(self, engine: sa.Engine) -> None:
        self._begun = engine.begin()

    def __enter__(self) -> sa.Connection:
        try:
            return self._begun.__enter__()
        except SQLAlchemyError as error:
            raise _no_answer(error) from error

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            self._begun.__exit__(kind, error, traceback)
        except SQLAlchemyError as failure:
            raise _no_answer(failure) from failure
        if isinstance(error, SQLAlchemyError):
            raise _no_answer(error) from error


def _add_new_columns(connection: sa.Connection) -> None:
    """Add the columns that a database of an earlier version does not have."""
    found = sa.inspect(connection)
    for table in _TABLES.sorted_tables:
        known = {column["name"] for column in found.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                written = CreateColumn(column).compile(dialect=connection.dialect)
                connection.execute(sa.text(f"ALTER TABLE {table.name} ADD COLUMN {written}"))


def _no_answer(error: SQLAlchemyError) -> OverloadedError:
    _log.error("the gateway's database does not respond: %s", type(error).__name__)  # its message may hold stored data
    return OverloadedError("the gateway's database does not respond; try again later")


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=10000"):
        connection.execute(f"PRAGMA {pragma}")


def _make_private_file(path: Path) -> None:
    if str(path) != ":memory:":
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _sum_of(column: Any, *where: Any) -> Any:
    return sa.select(sa.func.coalesce(sa.func.sum(column), 0)).where(*where).scalar_subquery()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()  # the secret is random, 256 bits: nothing to guess slowly


def _day(now: datetime | None) -> int:
    return ((now or datetime.now(UTC)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(days=1)


def _first_day(key: Key, now: datetime | None = None) -> int:
    """Return the first day of the current period of a key's budget."""
    return 0 if key.budget_days is None else _day(now) // key.budget_days * key.budget_days


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _minute(key: str) -> dict[str, Any]:
    return {"key": key, "minute": int(time.time() // 60)}


def _key_of(row: Any) -> Key:
    times: dict[str, Any] = {
        name: row[name] and datetime.fromtimestamp(row[name], UTC) for name in ("created", "expires", "revoked")
    }
    plain = ("id", "name", "budget_usd", "budget_days", "requests_per_minute", "tokens_per_minute", "admin")
    facts: dict[str, Any] = {name: row[name] for name in plain}
    return Key(models=tuple((row["models"] or "").split()), **times, **facts)
