"""The rules, by subject; importing this room registers them all.

Never imported by an adapter, and no rule knows a provider or a wire.
The runner, the suite and the reference page come in.
"""

from __future__ import annotations

from interlingua_contract.rule import RULES, Rule
from interlingua_contract.rules import (
    arrival,
    calls,
    cassettes,
    completeness,
    connection,
    decoding,
    errors,
    estimates,
    evidence,
    faults,
    foreign,
    installed,
    isolation,
    keeping,
    losses,
    options,
    ordering,
    prefix,
    processes,
    purity,
    refused,
    returning,
    roads,
    secrets,
    steadiness,
    stopping,
    usage,
)

__all__ = ["ALL"]

_MODULES = (
    purity, processes, prefix, steadiness, calls, completeness, ordering, arrival, losses, foreign, returning, options,
    refused, roads, decoding, keeping, isolation, faults, stopping, usage, errors, evidence, estimates, connection,
    installed, cassettes, secrets,
)  # fmt: skip


ALL: tuple[Rule, ...] = tuple(RULES[number] for number in sorted(RULES))


"""Every rule, by number."""
