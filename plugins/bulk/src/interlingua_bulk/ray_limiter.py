"""The rates, pauses and budget that the actors of a cluster share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import attrs
import orjson

from interlingua.limits import Bucket
from interlingua_bulk.answers import replace_file

_NOTHING = Decimal(0)


@attrs.frozen
class Account:
    """The money of one actor.

    Attributes:
        spent: USD of its answers.
        reserved: USD that its requests without an answer may cost.
        granted: USD that it may spend in all.
    """

    spent: Decimal = _NOTHING
    reserved: Decimal = _NOTHING
    granted: Decimal = _NOTHING


class Limiter:
    """Rates, requested pauses and a budget, shared by all actors. A Ray actor.

    Actors call it now and then and get a slice of the rates and of the budget, never once a row. Its grants are in
    a file, because it starts again on another machine when its own is lost. An actor that is lost keeps its grant: its
    requests may have been paid for.

    Args:
        requests_per_minute: limit of all actors together; None for no limit.
        tokens_per_minute: as for `arun`.
        budget_usd: of all actors together; None for no limit.
        file: where the accounts are stored, on a disk that all machines share.
    """

    def __init__(
        self,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        budget_usd: Decimal | None,
        file: str,
    ) -> None:
        now = time.monotonic()
        self._buckets = (Bucket(requests_per_minute, now), Bucket(tokens_per_minute, now))
        self._closed_until = 0.0
        self._budget, self._file = budget_usd, Path(file)
        self._accounts: dict[str, Account] = {}
        if self._file.exists():
            stored = orjson.loads(self._file.read_bytes())
            self._accounts = {name: Account(*map(Decimal, amounts)) for name, amounts in stored.items()}
            for bucket in self._buckets:  # what was granted just before the loss is not known
                bucket.take(max(bucket.level, 0.0))

    def lease(self, wanted: Sequence[float], closed_for: float) -> tuple[list[float], float]:
        """Return how many requests and tokens an actor may use, and for how many seconds nothing is sent.

        Args:
            wanted: how many of each it can use until it calls again.
            closed_for: seconds of the pause that the service asked this actor for; 0 for none.
        """
        now = time.monotonic()
        self._closed_until = max(self._closed_until, now + closed_for)
        granted = []
        for bucket, amount in zip(self._buckets, wanted, strict=True):
            bucket.wait(0, now)  # fills it
            given = amount if bucket.rate is None else max(min(amount, bucket.level), 0.0)
            bucket.take(given)
            granted.append(given)
        return granted, max(self._closed_until - now, 0.0)

    def grant(self, actor: str, spent: Decimal, reserved: Decimal) -> tuple[Decimal, bool]:
        """Return the USD that an actor may spend in all, and whether the budget is used up for its next request.

        Args:
            actor: name of the actor.
            spent: USD of its answers.
            reserved: USD that its other requests, sent and waiting, may cost.
        """
        assert self._budget is not None  # noqa: S101
        others = [account for name, account in self._accounts.items() if name != actor]
        least = sum((each.spent + each.reserved for each in others), _NOTHING)
        is_used_up = self._budget - least < spent + reserved
        if is_used_up:  # its requests under way keep their part
            granted = min(self._accounts.get(actor, Account()).granted, spent + reserved)
        else:
            wanted = spent + 2 * reserved
            if least + sum((each.reserved for each in others), wanted) > self._budget:
                wanted = spent + reserved
            granted = min(wanted, self._budget - sum((each.granted for each in others), _NOTHING))
        self._accounts[actor] = Account(spent, reserved, max(granted, spent))
        stored = {name: list(map(str, attrs.astuple(each))) for name, each in self._accounts.items()}
        replace_file(self._file, orjson.dumps(stored))
        return spent if is_used_up else self._accounts[actor].granted, is_used_up
