"""The gateway's database: hashed keys, what they used and reserved, states, recorded sessions."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

import attrs
import sqlalchemy as sa

from interlingua.errors import OverloadedError
from interlingua.types import new_ulid
from interlingua_gateway.database import (
    ANSWERS,
    CHANGES,
    KEYS,
    MINUTES,
    RESERVED,
    SESSIONS,
    STATES,
    TEAMS,
    USED,
    GatewayDatabase,
)

_PREFIX = "ilg"
_TIMES = ("created", "expires", "revoked")
_LISTS = ("models", "passes")
_PATIENCE = 12.0  # seconds that a request waits for the database; SQLite waits for its lock for 10
_Result = TypeVar("_Result")


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
        admin: True if the key may read the gateway's metrics, and use `/admin`.
        passes: patterns of the paths whose requests are passed unchanged to the service of their API.
        team: the name of its team, whose budget its requests share; empty for none.
        keep_answers: True if the gateway keeps its answers, so that callers can retrieve and continue them by their id.
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
    passes: tuple[str, ...] = ()
    admin: bool = False
    team: str = ""
    keep_answers: bool = False

    @property
    def is_limited(self) -> bool:
        """True if the key may not use every model, or has a budget or a team, which may have one."""
        return bool(self.models or self.team) or self.budget_usd is not None


@attrs.frozen(kw_only=True)
class Team:
    """Several keys that share a budget.

    Attributes:
        name: its name.
        created: when it was made.
        budget_usd: the most that the requests of its keys may cost in a period; None means no limit.
        budget_days: the length of a period, as for a key.
    """

    name: str
    created: datetime
    budget_usd: Decimal | None = None
    budget_days: int | None = None


@attrs.frozen(kw_only=True)
class Spent:
    """The use of a key in a period."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)


@attrs.frozen(kw_only=True)
class Balance:
    """The budget of a key or a team, and the tokens of the key.

    Attributes:
        owner: `key` or `team`.
        budget: the budget; None means no limit.
        spent: the cost of the requests that have ended in this period.
        reserved: the most that requests in progress may cost.
        token_limit: the most tokens of the key in a minute; None means no limit.
        tokens: the tokens of its requests that have ended in this minute, and the most that those in progress may use.
    """

    owner: str = "key"
    budget: Decimal | None
    spent: Decimal
    reserved: Decimal
    token_limit: int | None = None
    tokens: int = 0

    @property
    def left(self) -> Decimal | None:
        """The amount that is neither spent nor reserved; None means no limit."""
        return None if self.budget is None else self.budget - self.spent - self.reserved

    @property
    def tokens_left(self) -> int | None:
        """The tokens that are neither used nor reserved; None means no limit."""
        return None if self.token_limit is None else self.token_limit - self.tokens

    def has(self, most: Use) -> bool:
        """Return True if the cost and the tokens of a request are left."""
        left, tokens = self.left, self.tokens_left
        if tokens is not None and most.tokens > tokens:
            return False
        return left is None or (left > 0 and most.cost_usd <= left)


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

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens


class GatewayStore:
    """The database of one or several gateways. Its methods block: an event loop calls them in a thread.

    Args:
        url: `sqlite:///file` or `postgresql://…`.

    Raises:
        OverloadedError: from every method, if the database does not respond.
    """

    def __init__(self, url: str) -> None:
        self.database = GatewayDatabase(url)

    def ping(self) -> None:
        """Ask the database for nothing."""
        with self.database.begin() as connection:
            connection.execute(sa.select(1))

    # -- keys ----------------------------------------------------------------------------------------------------

    def add_key(self, name: str, *, actor: str = "program", **limits: Any) -> tuple[Key, str]:
        """Make a key; return it with its secret, which is not stored.

        Args:
            name: its owner.
            actor: the maker, for the audit log.
            **limits: fields of `Key`.
        """
        own, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        key = Key(id=own, name=name, created=datetime.now(UTC), **limits)
        with self.database.begin() as connection:
            connection.execute(KEYS.insert().values(hash=_hash(secret), **_row_of(key)))
            note_change(connection, actor, "make key", own, {"name": name, **limits})
        return key, _text_of(own, secret)

    def change_key(self, own: str, changes: Mapping[str, Any], *, actor: str = "program") -> Key | None:
        """Change fields of a key; return it, or None if no key has this id.

        Args:
            own: its id.
            changes: the new values of fields of `Key`.
            actor: the one who changes it, for the audit log.
        """
        with self.database.begin() as connection:
            row = connection.execute(KEYS.select().where(KEYS.c.id == own)).mappings().first()
            if row is None:
                return None
            before = _key_of(row)
            key = attrs.evolve(before, **changes)
            connection.execute(KEYS.update().where(KEYS.c.id == own).values(_row_of(key)))
            changed = {name: value for name, value in changes.items() if getattr(before, name) != value}
            note_change(connection, actor, "change key", own, changed)
        return key

    def rotate_key(self, own: str, *, actor: str = "program") -> str | None:
        """Replace the secret of a key and return the new key; None if no key has this id."""
        secret = secrets.token_urlsafe(32)
        with self.database.begin() as connection:
            if connection.execute(KEYS.update().where(KEYS.c.id == own).values(hash=_hash(secret))).rowcount != 1:
                return None
            note_change(connection, actor, "rotate key", own, {})
        return _text_of(own, secret)

    def list_keys(self) -> list[Key]:
        """Return all keys, oldest first."""
        with self.database.begin() as connection:
            return [_key_of(row) for row in connection.execute(KEYS.select().order_by(KEYS.c.created)).mappings()]

    def find_key(self, text: str) -> Key | None:
        """Return the key with this secret, even if it is revoked or expired; None if there is no such key.

        Secrets are compared in constant time.
        """
        prefix, _, rest = text.partition("-")
        own, _, secret = rest.partition("-")
        if prefix != _PREFIX or not secret:
            return None
        with self.database.begin() as connection:
            row = connection.execute(KEYS.select().where(KEYS.c.id == own)).mappings().first()
        same = hmac.compare_digest(_hash(secret), row["hash"] if row else _hash(""))
        return _key_of(row) if row and same else None

    def revoke_key(self, own: str, *, actor: str = "program") -> bool:
        """Revoke a key; return False if no key has this id."""
        with self.database.begin() as connection:
            done = connection.execute(KEYS.update().where(KEYS.c.id == own).values(revoked=time.time()))
            if done.rowcount == 1:
                note_change(connection, actor, "revoke key", own, {})
            return done.rowcount == 1

    # -- teams ---------------------------------------------------------------------------------------------------

    def set_team(
        self, name: str, budget_usd: Decimal | None = None, budget_days: int | None = None, *, actor: str = "program"
    ) -> Team:
        """Make a team, or change its budget."""
        budget: dict[str, Any] = {"budget_usd": budget_usd, "budget_days": budget_days}
        statement = self.database.insert(TEAMS).values(name=name, created=time.time(), **budget)
        statement = statement.on_conflict_do_update(index_elements=["name"], set_=budget).returning(*TEAMS.c)
        with self.database.begin() as connection:
            team = _team_of(connection.execute(statement).mappings().one())
            note_change(connection, actor, "set team", name, budget)
        return team

    def list_teams(self) -> list[Team]:
        """Return all teams by name."""
        with self.database.begin() as connection:
            return [_team_of(row) for row in connection.execute(TEAMS.select().order_by(TEAMS.c.name)).mappings()]

    def remove_team(self, name: str, *, actor: str = "program") -> bool:
        """Remove a team; its keys have none then. Return False if there is no such team."""
        with self.database.begin() as connection:
            if connection.execute(TEAMS.delete().where(TEAMS.c.name == name)).rowcount != 1:
                return False
            connection.execute(KEYS.update().where(KEYS.c.team == name).values(team=""))
            note_change(connection, actor, "remove team", name, {})
        return True

    # -- use -----------------------------------------------------------------------------------------------------

    def spent(self, owner: Key | Team, now: datetime | None = None) -> Spent:
        """Return the use of a key or a team in the current period of its budget."""
        mine = USED.c.key == owner.id if isinstance(owner, Key) else USED.c.team == owner.name
        columns = [sa.func.coalesce(sa.func.sum(USED.c[name]), 0) for name in attrs.fields_dict(Spent)]
        recent = USED.c.day >= _first_day(owner.budget_days, now)
        with self.database.begin() as connection:
            row = connection.execute(sa.select(*columns).where(mine, recent)).one()
        return Spent(requests=row[0], input_tokens=row[1], output_tokens=row[2], cost_usd=Decimal(str(row[3])))

    def add_usage(self, key: str, input_tokens: int, output_tokens: int, cost_usd: Decimal, model: str = "") -> None:
        """Add the use of one request."""
        use = Use(input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=cost_usd)
        with self.database.begin() as connection:
            team = connection.execute(sa.select(KEYS.c.team).where(KEYS.c.id == key)).scalar()
            self._add_use(connection, key, team or "", model, use, None)

    def _add_use(self, connection: Any, key: str, team: str, model: str, use: Use, when: datetime | None) -> None:
        place = {"key": key, "day": _day(when), "team": team, "model": model}
        self.database.add(connection, USED, place, attrs.asdict(use))
        self.database.add(connection, MINUTES, _minute(key), {"requests": 0, "tokens": use.tokens})

    def reserve(self, key: Key, name: str, gateway: str, most: Use, model: str = "") -> Balance:
        """Reserve the most that a request may use, unless the budget of the key or its team has less left.

        The tokens of the key for this minute are reserved, too.

        Args:
            key: the key.
            name: a new name for the reservation.
            gateway: the name of this process; `renew` keeps its reservations alive.
            most: the most that the request may use.
            model: the `provider:model` that will be asked.

        Returns:
            the budget with less left, and the tokens, before the reservation; `most` is reserved if it `has` that.
        """
        now = time.time()
        with self.database.begin() as connection:
            # a write locks the rows (PostgreSQL) or the file (SQLite), so that two requests cannot pass at once
            mine = KEYS.update().where(KEYS.c.id == key.id).values(revoked=KEYS.c.revoked)
            columns = KEYS.c.budget_usd, KEYS.c.budget_days, KEYS.c.team, KEYS.c.tokens_per_minute
            own = connection.execute(mine.returning(*columns)).one()
            balances = [_balance(connection, "key", own, key.id)]
            if own.team:
                ours = TEAMS.update().where(TEAMS.c.name == own.team).values(created=TEAMS.c.created)
                team = connection.execute(ours.returning(TEAMS.c.budget_usd, TEAMS.c.budget_days)).one_or_none()
                balances += [] if team is None else [_balance(connection, "team", team, own.team)]
            balance = min(balances, key=lambda one: Decimal("Infinity") if one.left is None else one.left)
            if own.tokens_per_minute is not None:
                tokens = _tokens_in_use(connection, key.id)
                balance = attrs.evolve(balance, token_limit=own.tokens_per_minute, tokens=tokens)
            if balance.has(most):
                row = {"id": name, "key": key.id, "team": own.team, "model": model, "gateway": gateway}
                row |= attrs.asdict(most, filter=lambda field, _value: field.name != "requests")
                connection.execute(RESERVED.insert().values(row | {"created": now, "renewed": now}))
            return balance

    def settle(self, name: str, use: Use) -> bool:
        """Replace a reservation by what was used; return False if that was done before."""
        with self.database.begin() as connection:
            row = self._take(connection, RESERVED.c.id == name)
            if not row:
                return False
            self._add_use(connection, row[0].key, row[0].team, row[0].model, use, _utc(row[0].created))
            return True

    def settle_abandoned(self, before: float) -> int:
        """Count reservations of gateways that died as used, whole; return how many.

        Args:
            before: the time since the epoch, in seconds, before which they were last renewed.
        """
        with self.database.begin() as connection:
            rows = self._take(connection, RESERVED.c.renewed < before)
            for row in rows:
                use = Use(input_tokens=row.input_tokens, output_tokens=row.output_tokens, cost_usd=row.cost_usd)
                self._add_use(connection, row.key, row.team, row.model, use, _utc(row.created))
            return len(rows)

    def _take(self, connection: Any, where: Any) -> Sequence[Any]:
        """Delete reservations and return them; each is returned to one caller only."""
        return list(connection.execute(RESERVED.delete().where(where).returning(*RESERVED.c)).all())

    def renew(self, gateway: str) -> None:
        """Keep the reservations of a running gateway alive."""
        with self.database.begin() as connection:
            mine = RESERVED.c.gateway == gateway
            connection.execute(RESERVED.update().where(mine).values(renewed=time.time()))

    def take_request(self, key: Key) -> float | None:
        """Count a request against the limits of a key for this minute.

        Returns:
            None if the request is allowed, or the seconds until the next minute.
        """
        place = _minute(key.id)
        with self.database.begin() as connection:
            self.database.add(connection, MINUTES, place, {"requests": 1, "tokens": 0})
            row = connection.execute(
                sa.select(MINUTES.c.requests, MINUTES.c.tokens).where(
                    MINUTES.c.key == key.id, MINUTES.c.minute == place["minute"]
                )
            ).one()
            old = MINUTES.delete().where(MINUTES.c.key == key.id, MINUTES.c.minute < place["minute"] - 1)
            connection.execute(old)
        too_many = key.requests_per_minute is not None and row.requests > key.requests_per_minute
        too_much = key.tokens_per_minute is not None and row.tokens >= key.tokens_per_minute
        return 60 - time.time() % 60 if too_many or too_much else None

    # -- states --------------------------------------------------------------------------------------------------

    def keep_state(self, tenant: str, handles: Sequence[str], seal: str, digest: str) -> None:
        """Store a sealed state under handles of a tenant.

        If two different states get one handle, neither is found any more: it could be the other conversation's.

        Args:
            tenant: the caller.
            handles: keys by which it is found.
            seal: the sealed state.
            digest: digest of the state, by which two states are compared.
        """
        same = {"tenant": tenant, "seal": seal, "digest": digest, "created": time.time()}
        statement = self.database.insert(STATES).values([{**same, "handle": handle} for handle in sorted(set(handles))])
        changed = {
            "seal": sa.case((STATES.c.digest == digest, statement.excluded.seal), else_=""),
            "digest": sa.case((STATES.c.digest == digest, digest), else_=""),
            "created": same["created"],
        }
        with self.database.begin() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["tenant", "handle"], set_=changed))

    def find_states(self, tenant: str, handles: Sequence[str]) -> dict[str, str]:
        """Return the stored states among these handles."""
        mine = (STATES.c.tenant == tenant) & (STATES.c.seal != "")
        query = sa.select(STATES.c.handle, STATES.c.seal).where(mine, STATES.c.handle.in_(handles))
        with self.database.begin() as connection:
            return {row.handle: row.seal for row in connection.execute(query)}

    def drop_states(self, before: datetime) -> int:
        """Delete states that were stored before a time; return how many."""
        with self.database.begin() as connection:
            return connection.execute(STATES.delete().where(STATES.c.created < before.timestamp())).rowcount

    # -- answers -------------------------------------------------------------------------------------------------

    def keep_answer(self, tenant: str, request: str, seal: str, expires: float) -> None:
        """Keep a sealed answer.

        Args:
            tenant: the caller.
            request: the name of the request.
            seal: the sealed answer.
            expires: the time since the epoch, in seconds, from which on it is not found.
        """
        changed = {"seal": seal, "expires": expires}
        statement = self.database.insert(ANSWERS).values(tenant=tenant, request=request, **changed)
        with self.database.begin() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["tenant", "request"], set_=changed))

    def find_answer(self, tenant: str, request: str, now: float) -> str | None:
        """Return the sealed answer to a request of a tenant; None if there is no valid answer."""
        mine = (ANSWERS.c.tenant == tenant) & (ANSWERS.c.request == request) & (ANSWERS.c.expires > now)
        with self.database.begin() as connection:
            found: str | None = connection.execute(sa.select(ANSWERS.c.seal).where(mine)).scalar()
            return found

    def forget_answer(self, tenant: str, request: str) -> bool:
        """Delete an answer; return False if it does not exist."""
        mine = (ANSWERS.c.tenant == tenant) & (ANSWERS.c.request == request)
        with self.database.begin() as connection:
            return connection.execute(ANSWERS.delete().where(mine)).rowcount == 1

    def drop_answers(self, now: float) -> int:
        """Delete answers that have expired; return how many."""
        with self.database.begin() as connection:
            return connection.execute(ANSWERS.delete().where(ANSWERS.c.expires <= now)).rowcount

    # -- recorded sessions ---------------------------------------------------------------------------------------

    def take_session(self, tenant: str, digests: Sequence[str]) -> tuple[str, str] | None:
        """Return the session that ends with one of these digests, and that digest; the last digest has priority.

        No other caller can take the session until `keep_session` stores its new end. Returns None if no session ends
        with one of them.
        """
        ends = SESSIONS.c.digest.in_(list(dict.fromkeys(digests)))
        with self.database.begin() as connection:
            rows = connection.execute(SESSIONS.select().where(SESSIONS.c.tenant == tenant, ends)).all()
            found = {row.digest: row.session for row in rows}
            last = next((digest for digest in reversed(digests) if digest in found), None)
            if last is None:
                return None
            here = (SESSIONS.c.tenant == tenant) & (SESSIONS.c.session == found[last])
            taken = connection.execute(SESSIONS.delete().where(here))
            return (found[last], last) if taken.rowcount else None

    def keep_session(self, tenant: str, session: str, digests: Sequence[str]) -> None:
        """Store the digests that a recorded session ends with."""
        rows = [{"tenant": tenant, "digest": digest, "session": session, "created": time.time()} for digest in digests]
        with self.database.begin() as connection:
            for row in rows:
                statement = self.database.insert(SESSIONS).values(row)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=["tenant", "digest"], set_={"session": session})
                )

    def close(self) -> None:
        """Close all connections."""
        self.database.close()


async def ask_store(method: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a method of a store in a thread, with a time limit.

    Raises:
        OverloadedError: the database does not respond in time.
    """
    try:
        return await asyncio.wait_for(asyncio.to_thread(method, *arguments), _PATIENCE)
    except TimeoutError:
        raise OverloadedError("the gateway's database does not respond in time; try again later") from None


def _sum_of(column: Any, *where: Any) -> Any:
    return sa.select(sa.func.coalesce(sa.func.sum(column), 0)).where(*where).scalar_subquery()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()  # the secret is random, 256 bits: nothing to guess slowly


def _day(now: datetime | None) -> int:
    return ((now or datetime.now(UTC)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(days=1)


def _first_day(budget_days: int | None, now: datetime | None = None) -> int:
    """Return the first day of the current period of a budget."""
    return 0 if budget_days is None else _day(now) // budget_days * budget_days


def _balance(connection: Any, owner: str, row: Any, name: str) -> Balance:
    used, reserved = USED.c[owner] == name, RESERVED.c[owner] == name
    # one statement: PostgreSQL shows each its own moment, and what is settled between two is in neither
    spent = _sum_of(USED.c.cost_usd, used, USED.c.day >= _first_day(row.budget_days))
    found = connection.execute(sa.select(spent, _sum_of(RESERVED.c.cost_usd, reserved))).one()
    sums = [Decimal(str(one)) for one in found]
    return Balance(owner=owner, budget=row.budget_usd, spent=sums[0], reserved=sums[1])


def _tokens_in_use(connection: Any, key: str) -> int:
    used = MINUTES.c.key == key, MINUTES.c.minute == _minute(key)["minute"]
    reserved = _sum_of(RESERVED.c.input_tokens + RESERVED.c.output_tokens, RESERVED.c.key == key)
    used_or_reserved = sa.select(_sum_of(MINUTES.c.tokens, *used) + reserved)  # one statement, as above
    return int(connection.execute(used_or_reserved).scalar_one())


def note_change(connection: Any, actor: str, action: str, subject: str, details: Mapping[str, Any]) -> None:
    """Add a row to the audit log, in the transaction of the change.

    Args:
        connection: the transaction.
        actor: the one who makes the change.
        action: the action.
        subject: the id of what is changed.
        details: the new values.
    """
    row = {"actor": actor, "action": action, "subject": subject, "details": json.dumps(details, default=str)}
    connection.execute(CHANGES.insert().values(id=new_ulid(), time=time.time(), **row))


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _minute(key: str) -> dict[str, Any]:
    return {"key": key, "minute": int(time.time() // 60)}


def _text_of(own: str, secret: str) -> str:
    return f"{_PREFIX}-{own}-{secret}"


def _row_of(key: Key) -> dict[str, Any]:
    times = {name: None if (moment := getattr(key, name)) is None else moment.timestamp() for name in _TIMES}
    return {**attrs.asdict(key), **times, **{name: " ".join(getattr(key, name)) for name in _LISTS}}


def _key_of(row: Any) -> Key:
    times = {name: row[name] and datetime.fromtimestamp(row[name], UTC) for name in _TIMES}
    plain = {name: row[name] for name in attrs.fields_dict(Key)}
    lists = {name: tuple((row[name] or "").split()) for name in _LISTS}
    return Key(**{**plain, **times, **lists})


def _team_of(row: Any) -> Team:
    return Team(**{**row, "created": datetime.fromtimestamp(row["created"], UTC)})
