"""The rates, pauses, budget and stop that the actors of a cluster share."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from pathlib import Path

import attrs
import orjson

from interlingua.errors import CallerError
from interlingua.limits import Bucket
from interlingua_bulk.answers import replace_file
from interlingua_bulk.budget import STEP_USD

_NOTHING = Decimal(0)
_LOST_S = 15.0  # without a call, after which an actor, which calls each 0.25 s, counts with all that it was granted


@attrs.frozen
class Account:
    """The money of one actor.

    Attributes:
        spent: USD of its answers.
        reserved: USD that its requests under way may cost.
        granted: USD that it may spend in all.
    """

    spent: Decimal = _NOTHING
    reserved: Decimal = _NOTHING
    granted: Decimal = _NOTHING


@attrs.frozen
class ModelRates:
    """The rates and the pause of one model.

    As what an actor asks for: amounts that it can use until its next call, and the pause that the service asked it for.
    As the reply: amounts that it may use, and for how long nothing is sent.

    Attributes:
        amounts: requests and tokens.
        closed_for: seconds; 0 for no pause.
    """

    amounts: Sequence[float]
    closed_for: float


@attrs.define
class _Shared:
    buckets: tuple[Bucket, Bucket]
    closed_until: float = 0.0


class Limiter:
    """Rates, requested pauses, a budget and a stop, shared by all actors. A Ray actor.

    Actors call it now and then and get a slice of the rates and of the budget, never once a row. Its grants are in
    a file, because it starts again on another machine when its own is lost. An actor that is lost keeps its grant: its
    requests may have been paid for.

    Args:
        requests_per_minute: limit of all actors together for one model; None for no limit.
        tokens_per_minute: as for `arun`.
        budget_usd: of all actors together; None for no limit.
        file: where the accounts are stored, on a disk that all machines share.
        clock: seconds, monotonic.

    Raises:
        CallerError: of `lease` and `grant`: the file cannot be read or written.
    """

    def __init__(
        self,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        budget_usd: Decimal | None,
        file: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rates = (requests_per_minute, tokens_per_minute)
        self._budget, self._file, self._clock = budget_usd, Path(file), clock
        self._models: dict[str | None, _Shared] = {}
        self._accounts: dict[str, Account] = {}
        self._called: dict[str, float] = {}  # when each actor called last
        self._began = clock()
        self._stopped: str | None = None
        self._is_restarted = False
        self._error: Exception | None = None
        try:
            self._read_accounts()
        except (CallerError, OSError, ValueError) as error:  # Ray's own error would not say which machine and file
            self._error = CallerError(f"{platform.node()}: {error}")

    def lease(
        self, wanted: Mapping[str | None, ModelRates], stopped: str | None = None
    ) -> tuple[dict[str | None, ModelRates], str | None]:
        """Return what an actor may use of each model until it calls again, and why nothing more is sent, if so.

        Args:
            wanted: what it asks for.
            stopped: why no actor may send any more.
        """
        if self._error is not None:
            raise self._error
        now = self._clock()
        self._stopped = self._stopped or stopped
        return {model: self._lease(model, asked, now) for model, asked in wanted.items()}, self._stopped

    def _lease(self, model: str | None, asked: ModelRates, now: float) -> ModelRates:
        if (shared := self._models.get(model)) is None:
            requests, tokens = (Bucket(rate, now) for rate in self._rates)
            shared = self._models[model] = _Shared((requests, tokens))
            if self._is_restarted:  # what was granted just before the loss is not known
                for bucket in shared.buckets:
                    bucket.take(bucket.level)
        shared.closed_until = max(shared.closed_until, now + asked.closed_for)
        granted = []
        for bucket, amount in zip(shared.buckets, asked.amounts, strict=True):
            bucket.wait(0, now)  # fills it
            given = amount if bucket.rate is None else max(min(amount, bucket.level), 0.0)
            bucket.take(given)
            granted.append(given)
        return ModelRates(granted, max(shared.closed_until - now, 0.0))

    def grant(self, actor: str, spent: Decimal, reserved: Decimal, waiting: Sequence[Decimal]) -> tuple[Decimal, bool]:
        """Return the USD that an actor may spend in all, and whether the budget is used up for its next request.

        An actor gets at most an equal share of what is left, for twice of what it asks, because it asks now and then.

        Args:
            actor: name of the actor.
            spent: USD of its answers.
            reserved: USD that its requests under way may cost.
            waiting: USD that each of its requests that wait for money may cost.
        """
        assert self._budget is not None  # noqa: S101
        now = self._called[actor] = self._clock()
        others = [self._account(name, now) for name in self._accounts if name != actor]
        least = min(waiting, default=_NOTHING)
        is_used_up = bool(waiting) and self._budget - sum((each.spent for each in others), spent) < least
        left = self._budget - sum((each.granted for each in others), spent + reserved)
        more = _NOTHING
        if left >= least:  # less would keep it from the others, and nothing would be sent
            actors = sum(name == actor or now - called <= _LOST_S for name, called in self._called.items())
            share = (left / (actors + 1)).quantize(STEP_USD, ROUND_DOWN)  # one part is for an actor that starts later
            more = min(2 * sum(waiting, _NOTHING) + reserved, max(share, least))
        self._accounts[actor] = Account(spent, reserved, spent + reserved + more)
        self._write_accounts()
        return self._accounts[actor].granted, is_used_up

    def _read_accounts(self) -> None:
        if self._file.exists():
            self._is_restarted = True
            stored = orjson.loads(self._file.read_bytes())
            self._accounts = {name: Account(*map(Decimal, amounts)) for name, amounts in stored.items()}
        else:
            self._write_accounts()

    def _write_accounts(self) -> None:
        stored = {name: list(map(str, attrs.astuple(each))) for name, each in self._accounts.items()}
        replace_file(self._file, orjson.dumps(stored))

    def _account(self, name: str, now: float) -> Account:
        """Return an actor's account; a lost actor may have spent all of its grant, and frees nothing."""
        account = self._accounts[name]
        if now - self._called.get(name, self._began) > _LOST_S:
            return Account(account.granted, _NOTHING, account.granted)
        return account
