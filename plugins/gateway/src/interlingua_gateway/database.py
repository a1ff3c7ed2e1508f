"""The tables of the gateway's database, its connections, and transactions whose failures are `OverloadedError`."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateColumn

from interlingua.errors import CallerError, OverloadedError

# libpq's options, in seconds and milliseconds: a server that vanishes is noticed sooner than by the system's defaults
_NOTICE = {
    "connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip
_CREATE_ATTEMPTS = 4
_log = logging.getLogger("interlingua.gateway")
_TABLES = sa.MetaData()
KEYS = sa.Table(
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
    sa.Column("passes", sa.Text),
    sa.Column("admin", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("team", sa.Text, nullable=False, server_default=""),
    sa.Column("keep_answers", sa.Boolean, nullable=False, server_default=sa.false()),
)  # fmt: skip
USED = sa.Table(
    "gateway_used", _TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("day", sa.Integer, primary_key=True),  # days since 1970, UTC
    sa.Column("team", sa.Text, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("input_tokens", sa.BigInteger, nullable=False),
    sa.Column("output_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_usd", sa.Numeric(18, 9), nullable=False),
)  # fmt: skip
TEAMS = sa.Table(
    "gateway_teams", _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("budget_usd", sa.Numeric(18, 6)),
    sa.Column("budget_days", sa.Integer),
)  # fmt: skip
MINUTES = sa.Table(
    "gateway_minutes", _TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("minute", sa.BigInteger, primary_key=True),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
)  # fmt: skip
RESERVED = sa.Table(  # requests in progress, with the most that each may use
    "gateway_reserved", _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, index=True),
    sa.Column("gateway", sa.Text, nullable=False),
    sa.Column("team", sa.Text, nullable=False, server_default=""),
    sa.Column("model", sa.Text, nullable=False, server_default=""),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("renewed", sa.Float, nullable=False),
    sa.Column("input_tokens", sa.BigInteger, nullable=False),
    sa.Column("output_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_usd", sa.Numeric(18, 9), nullable=False),
)  # fmt: skip
STATES = sa.Table(
    "gateway_states", _TABLES,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("handle", sa.Text, primary_key=True),
    sa.Column("seal", sa.Text, nullable=False),  # "" once two answers have the same handle
    sa.Column("digest", sa.Text, nullable=False, server_default=""),  # of the state
    sa.Column("created", sa.Float, nullable=False),
)  # fmt: skip
ANSWERS = sa.Table(  # to requests that may be repeated
    "gateway_answers", _TABLES,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("request", sa.Text, primary_key=True),  # a digest
    sa.Column("seal", sa.Text, nullable=False),
    sa.Column("expires", sa.Float, nullable=False, index=True),
)  # fmt: skip
SESSIONS = sa.Table(
    "gateway_sessions", _TABLES,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),  # of a recorded conversation, up to its end
    sa.Column("session", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
)  # fmt: skip
LOGINS = sa.Table(  # sessions of administrators
    "gateway_logins", _TABLES,
    sa.Column("hash", sa.Text, primary_key=True),  # of the token that the browser has
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("email", sa.Text, nullable=False),
    sa.Column("groups", sa.Text, nullable=False),  # JSON
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("expires", sa.Float, nullable=False, index=True),
)  # fmt: skip
CHANGES = sa.Table(  # the audit log
    "gateway_changes", _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("time", sa.Float, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False),  # JSON
)  # fmt: skip
FAILURES = sa.Table(
    "gateway_failures", _TABLES,
    sa.Column("id", sa.Text, primary_key=True),  # of the request
    sa.Column("time", sa.Float, nullable=False, index=True),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("api", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("status", sa.Integer),
)  # fmt: skip


class GatewayDatabase:
    """The connections to a database, which has all tables afterwards.

    Args:
        url: `sqlite:///file` or `postgresql://…`.

    Raises:
        CallerError: the address is of another kind.
        OverloadedError: the database does not respond; so do transactions.
    """

    def __init__(self, url: str) -> None:
        if url.startswith("postgresql://"):
            url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        elif not url.startswith("sqlite:///"):
            raise CallerError(f"store must be sqlite:///file or postgresql://…, not {url.partition(':')[0]}:")
        self.insert: Any = sqlite.insert if url.startswith("sqlite") else postgresql.insert
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

    def begin(self) -> Transaction:
        """Return a transaction."""
        return Transaction(self._engine)

    def add(self, connection: Any, table: sa.Table, place: Mapping[str, Any], amounts: Mapping[str, Any]) -> None:
        """Add amounts to a row, which is made if it does not exist.

        Args:
            connection: the transaction.
            table: the table.
            place: its primary key.
            amounts: the amounts to add, by column.
        """
        statement = self.insert(table).values(**place, **amounts)
        sums = {name: table.c[name] + statement.excluded[name] for name in amounts}
        connection.execute(statement.on_conflict_do_update(index_elements=list(place), set_=sums))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


class Transaction:
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
