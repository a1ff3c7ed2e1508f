"""The money of a run: what a request may cost is reserved before it is sent, until its cost is known."""

from __future__ import annotations

import asyncio
from decimal import ROUND_UP, Context, Decimal

STEP_USD = Decimal("1e-12")
"""All amounts are multiples of it: sums of averages would be rounded, and what is freed would leave a rest."""

_NOTHING = Decimal(0)
_LEAST_USD = Decimal("0.000001")  # of a request whose cost is not known, when nothing is left
_EXACT = Context(prec=100)


def _round_up(amount: Decimal) -> Decimal:
    return amount.quantize(STEP_USD, ROUND_UP, _EXACT)


class BudgetUsedUpError(Exception):
    """The next request may cost more than is left, and none under way can free any."""


class Budget:
    """The most that a run may spend. For one event loop.

    A request reserves the most that it may cost. If that is not known, it reserves the average cost of its model's
    answers so far; before the first answer, it reserves all that is left: others wait until it shows what one costs.

    Args:
        total: USD; None for no limit.
        is_shared: the total is a part of a budget that several processes share, and may change.

    Attributes:
        total: as the argument.
        spent: USD of the answers so far.
        reserved: USD that the requests under way may cost.
        waiting: what each request that waits for money may cost, in USD.
        is_used_up: the shared budget is used up.
    """

    def __init__(self, total: Decimal | None, *, is_shared: bool = False) -> None:
        self.total = total
        self.spent = self.reserved = _NOTHING
        self.waiting: dict[object, Decimal] = {}
        self.is_used_up = False
        self._is_shared = is_shared
        self._costs: dict[str | None, tuple[Decimal, int]] = {}  # by model: USD of its answers, and their number
        self._changed = asyncio.Event()

    async def reserve(self, most: Decimal | None, model: str | None = None) -> Decimal:
        """Wait until a request may be sent, and return the USD that are reserved for it until `free` is called.

        Args:
            most: USD that it may cost; None if that is not known.
            model: the model that it asks.

        Raises:
            BudgetUsedUpError: it may cost more than is left, and more will not be left.
        """
        request = object()
        try:
            while (cost := _round_up(self._estimate(most, model))) > self._left:
                self.waiting[request] = cost
                if self.is_used_up:
                    raise BudgetUsedUpError("used up")
                if not self._is_shared and not self.reserved:
                    left = f"{self._left:.6f} USD are left, the next request may cost {cost:.6f} USD"
                    raise BudgetUsedUpError(f"used up: {left}")
                self._changed.clear()
                await self._changed.wait()
        finally:
            self.waiting.pop(request, None)
        self.reserved += cost
        return cost

    def free(self, reserved: Decimal) -> None:
        """End a reservation: the request has an answer, or failed."""
        self.reserved -= reserved
        self._changed.set()

    def spend(self, cost: Decimal, model: str | None = None) -> None:
        """Count the cost of a model's answer, in USD."""
        self.spent += _round_up(cost)
        before, answers = self._costs.get(model, (_NOTHING, 0))
        self._costs[model] = before + cost, answers + 1

    def change(self, total: Decimal, *, is_used_up: bool = False) -> None:
        """Change the part of a shared budget."""
        self.total, self.is_used_up = total, self.is_used_up or is_used_up
        self._changed.set()

    @property
    def _left(self) -> Decimal:
        return _NOTHING if self.total is None else self.total - self.spent - self.reserved

    def _estimate(self, most: Decimal | None, model: str | None) -> Decimal:
        if self.total is None:
            return _NOTHING
        if most is not None:
            return most
        cost, answers = self._costs.get(model, (_NOTHING, 0))
        return cost / answers if answers else max(self._left, _LEAST_USD)
