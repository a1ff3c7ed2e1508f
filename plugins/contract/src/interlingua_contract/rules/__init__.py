"""The rules, by subject; importing this package registers them all."""

from __future__ import annotations

from interlingua_contract.rule import RULES, ContractRule
from interlingua_contract.rules import (
    answer_metadata,
    approved,
    arrival,
    auxiliary,
    cassettes,
    changes,
    content,
    decisions,
    declared,
    errors,
    evidence,
    facts,
    faults,
    follow_ups,
    independence,
    installation,
    losses,
    lossless_response,
    options,
    ordering,
    prefix,
    processes,
    replay_state,
    requests,
    served_requests,
    serving,
    stream_parity,
    tool_calls,
)

__all__ = ["ALL"]

_MODULES = (  # imported because each registers its rules
    requests, processes, prefix, tool_calls, ordering, content, losses, replay_state, options, stream_parity,
    lossless_response, faults, declared, answer_metadata, errors, evidence, cassettes, installation, serving, facts,
    served_requests, auxiliary, changes, decisions, independence, approved, arrival, follow_ups,
)  # fmt: skip

ALL: tuple[ContractRule, ...] = tuple(RULES[number] for number in sorted(RULES, key=lambda number: int(number[1:])))
"""Every rule, by number."""
