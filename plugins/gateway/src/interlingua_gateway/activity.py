"""Reports for operators from the gateway's database: spending, requests in progress, failures, the audit log."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from interlingua_gateway.database import CHANGES, FAILURES, RESERVED, USED, GatewayDatabase

DIMENSIONS = ("key", "team", "model", "day")
"""The columns by which spending can be grouped."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Activity:
    """Reports of a gateway's database, as plain values for JSON. Its methods block, as those of `GatewayStore` do.

    Args:
        database: the database.
    """

    def __init__(self, database: GatewayDatabase) -> None:
        self._database = database

    def spending(self, by: Sequence[str], days: int) -> list[dict[str, Any]]:
        """Return requests, tokens and cost of the last days, today included; the largest cost first.

        Args:
            by: some of `DIMENSIONS`.
            days: the number of days, in UTC.
        """
        first = (datetime.now(UTC) - _EPOCH) // timedelta(days=1) - days + 1
        sums = [
            sa.func.sum(USED.c[name]).label(name) for name in ("requests", "input_tokens", "output_tokens", "cost_usd")
        ]
        groups = [USED.c[name] for name in by]
        query = sa.select(*groups, *sums).where(USED.c.day >= first).group_by(*groups)
        with self._database.begin() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            row.update({name: int(row[name] or 0) for name in ("requests", "input_tokens", "output_tokens")})
            row["cost_usd"] = str(Decimal(str(row["cost_usd"] or 0)))
            if "day" in row:
                row["day"] = (_EPOCH + timedelta(days=row["day"])).date().isoformat()
        return sorted(rows, key=lambda row: row.get("day") or Decimal(row["cost_usd"]), reverse=True)

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests in progress in all gateways, oldest first, with the most that each may cost."""
        columns = [RESERVED.c[name] for name in ("id", "key", "team", "model", "created", "cost_usd")]
        with self._database.begin() as connection:
            rows = connection.execute(sa.select(*columns).order_by(RESERVED.c.created).limit(1_000)).mappings()
            return [{**row, "created": _time(row["created"]), "cost_usd": str(row["cost_usd"])} for row in rows]

    def add_failure(self, request: str, key: str, api: str, model: str, error: str, status: int | None) -> None:
        """Store a failure.

        Args:
            request: the id of the request, which its lines in the log have too.
            key: the id of the caller's key.
            api: the key of the provider whose API the caller uses.
            model: the `provider:model` that was asked; empty if no model was.
            error: the class of the failure.
            status: the HTTP status; None if no answer began.
        """
        row = {"id": request, "key": key, "api": api, "model": model, "error": error, "status": status}
        with self._database.begin() as connection:
            connection.execute(FAILURES.insert().values(**row, time=time.time()))

    def failures(self, limit: int = 200) -> list[dict[str, Any]]:
        """Return the last failures, newest first."""
        with self._database.begin() as connection:
            rows = connection.execute(FAILURES.select().order_by(FAILURES.c.time.desc()).limit(limit)).mappings()
            return [{**row, "time": _time(row["time"])} for row in rows]

    def drop_failures(self, before: datetime) -> int:
        """Delete the failures before a time; return how many."""
        with self._database.begin() as connection:
            return connection.execute(FAILURES.delete().where(FAILURES.c.time < before.timestamp())).rowcount

    def changes(self, limit: int = 200) -> list[dict[str, Any]]:
        """Return the last rows of the audit log, newest first."""
        newest = CHANGES.select().order_by(CHANGES.c.time.desc(), CHANGES.c.id.desc()).limit(limit)
        with self._database.begin() as connection:
            rows = connection.execute(newest).mappings()
            return [{**row, "time": _time(row["time"]), "details": json.loads(row["details"])} for row in rows]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
