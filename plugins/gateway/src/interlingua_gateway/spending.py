"""The highest cost of requests, their cost, and the settlements that the database could not take yet."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import attrs

from interlingua import cost_of
from interlingua.errors import OverloadedError
from interlingua.plugins import ModelInfo
from interlingua.types import Usage, new_ulid
from interlingua_gateway.store import Balance, GatewayStore, Key, Use, ask_store

_ABANDONED = 60.0  # seconds without renewal after which a gateway counts as dead
_RESULT_TOKENS = 8_000  # of input that a use of a service's tool adds
_WAITING = 10_000  # most settlements in memory, if there is no folder for them
_log = logging.getLogger("interlingua.gateway")


@attrs.frozen(kw_only=True)
class FurtherCost:
    """The cost of a request in addition to the standard price of its tokens.

    Attributes:
        tiers: True if it chooses a tier: the highest price of the model counts.
        member: a member whose cost the catalogue does not have, such as `tools`; empty without one.
        limit: the most that this member may cost, in USD; None if that is not known.
        uses: how often tools of the service, by the names of their units, may be used at most; "" for those that cost
            tokens only.
    """

    tiers: bool = False
    member: str = ""
    limit: float | None = None
    uses: Mapping[str, int] = attrs.field(factory=dict)

    def of_model(self, info: ModelInfo | None) -> FurtherCost:
        """Return the cost at a model: tools without a price in its entry of the catalogue are of unknown cost."""
        price = None if info is None else info.price_at(datetime.now(UTC))
        known = {"", *(price.units if price is not None else ())}
        unpriced = [unit for unit in self.uses if unit not in known]
        if not unpriced:
            return self
        uses = {unit: count for unit, count in self.uses.items() if unit in known}
        return attrs.evolve(self, uses=uses, member=self.member or unpriced[0])

    @property
    def most(self) -> Decimal:
        """The most that the member may cost, in USD; 0 if that is not known."""
        return Decimal(str(self.limit)) if self.member and self.limit else Decimal(0)


STANDARD = FurtherCost()
"""The cost of a request without such members."""


def highest_use(
    info: ModelInfo | None, input_tokens: int, output_tokens: int, cost: FurtherCost = STANDARD
) -> Use | None:
    """Return the most that a request may use; None if its price is not known.

    Args:
        info: the catalogue's entry of the model.
        input_tokens: the most input that it may have; all of it may be written to a cache, at a higher price.
        output_tokens: the most output that it may have.
        cost: what it may cost in addition.
    """
    now = datetime.now(UTC)
    given = input_tokens + _RESULT_TOKENS * sum(cost.uses.values())
    units = {unit: count for unit, count in cost.uses.items() if unit}
    plain = Usage(input_tokens=given, output_tokens=output_tokens, extra_units=units or None)
    written = attrs.evolve(plain, cache_creation_input_tokens=given)
    longer = attrs.evolve(written, cache_creation_1h_input_tokens=given)
    names = {None, *(price.service_tier for price in info.prices)} if cost.tiers and info else {None}
    usages = [attrs.evolve(usage, service_tier=name) for usage in (plain, written, longer) for name in names]
    costs = [cost_of(usage, info, now).cost_usd for usage in usages]
    known = [one for one in costs if one is not None]
    if not known:
        return None
    return Use(input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=max(known) + cost.most)


class Spending:
    """Reserves and settles what the requests of keys use.

    Args:
        store: the store of the keys.
        folder: the folder for settlements that the database cannot take; None keeps them in memory.
    """

    def __init__(self, store: GatewayStore, folder: Path | None) -> None:
        self._store = store
        self._gateway = new_ulid()
        self._folder = folder
        self._file = folder / f"unwritten-{self._gateway}.jsonl" if folder else None
        self._waiting: list[tuple[str, Use]] = []

    async def reserve(self, key: Key, most: Use, model: str = "") -> tuple[str | None, Balance]:
        """Reserve the most that a request to a model may use.

        Returns:
            the reservation's name, or None if less is left; and the budget with less left before it, of the key or its
            team, with the tokens of the key.

        Raises:
            OverloadedError: the database does not respond.
        """
        name = new_ulid()
        balance = await ask_store(self._store.reserve, key, name, self._gateway, most, model)
        return (name if balance.has(most) else None), balance

    async def settle(self, name: str, use: Use) -> None:
        """Replace a reservation by what was used; it is kept until the database takes it."""
        try:
            await ask_store(self._store.settle, name, use)
        except OverloadedError:
            self._keep(name, use)

    def _keep(self, name: str, use: Use) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                row = {"name": name, **attrs.asdict(use), "cost_usd": str(use.cost_usd)}
                descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with os.fdopen(descriptor, "w") as file:
                    file.write(json.dumps(row) + "\n")
                return
        if len(self._waiting) < _WAITING:
            self._waiting.append((name, use))
        else:
            _log.error("reservation %s: %s is not recorded: too many wait for the database", name, use)

    async def tend(self) -> None:
        """Write what waited for the database, renew reservations, and settle those of dead gateways.

        Raises:
            OverloadedError: the database does not respond.
        """
        await self.write_waiting()
        await ask_store(self._store.renew, self._gateway)
        if count := await ask_store(self._store.settle_abandoned, time.time() - _ABANDONED):
            _log.warning("%d requests of a gateway that ended were counted at their highest cost", count)

    async def write_waiting(self) -> None:
        """Write the settlements that waited for the database, also those that a dead gateway left.

        Raises:
            OverloadedError: the database does not respond; what is not written waits on.
        """
        while self._waiting:
            await ask_store(self._store.settle, *self._waiting[0])
            del self._waiting[0]
        if self._folder is not None:
            for file in await asyncio.to_thread(_unwritten_files, self._folder, self._file):
                while (size := file.stat().st_size) != await self._write_file(file):
                    _log.debug("%s has grown from %d bytes", file.name, size)
                file.unlink(missing_ok=True)

    async def _write_file(self, file: Path) -> int:
        """Write the settlements of a file, which is harmless twice, and return its size in bytes."""
        data = await asyncio.to_thread(file.read_bytes)
        for line in data.splitlines():
            try:
                row = json.loads(line)
                name, use = row.pop("name"), Use(**{**row, "cost_usd": Decimal(row["cost_usd"])})
            except (ValueError, TypeError, KeyError, ArithmeticError):  # the end of a process in the middle of a line
                _log.error("%s: a line cannot be read: %.200r", file.name, line)
                continue
            await ask_store(self._store.settle, name, use)
        return len(data)


def _unwritten_files(folder: Path, own: Path | None) -> list[Path]:
    """Return this gateway's file of settlements and those that no gateway has touched for a while."""
    old = time.time() - _ABANDONED
    return [file for file in folder.glob("unwritten-*.jsonl") if file == own or file.stat().st_mtime < old]
