"""Rules on reading requests of a served API: each option as it was meant, and recorded requests without a loss."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.plugins import WireRequest
from interlingua.types import ToolChoice, user
from interlingua_contract.facts import SCHEMA
from interlingua_contract.json_paths import leaves
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.scenes import offered_tools
from interlingua_contract.served import read_request, served_apis, written_again
from interlingua_contract.subject import Aim, Subject
from interlingua_serving import InboundRequest

_OPTIONS: tuple[Mapping[str, Any], ...] = (
    {"max_tokens": 4321},
    {"temperature": 0.0},
    {"temperature": 0.7},
    {"top_p": 0.5},
    {"top_k": 7},
    {"seed": 0},
    {"seed": 11},
    {"stop": ("mkstop", "mkother")},
    {"user_id": "mkuser"},
    {"stream": True},
    {"parallel_tool_calls": False},
    {"parallel_tool_calls": True},
    {"tool_choice": "auto"},
    {"tool_choice": "none"},
    {"tool_choice": "required"},
    {"tool_choice": ToolChoice("read_file")},
    {"response_schema": SCHEMA},
    {"effort": "low"},
    {"effort": "medium"},
    {"effort": "high"},
    {"thinking": False},
    {"thinking_budget": 2345, "max_tokens": 4321},
)


@rule(
    "C86",
    "An option that is written is read back as the same option with the same value.",
    source="hook from_wire_request; hook to_wire",
    fix="""Read each field with the meaning that `to_wire` writes it with. If the written request is right, the reading
    is wrong, else the writing: one of the two has the name, the unit, the sign or the word of another option.""",
)
def options_are_read_as_written(subject: Subject) -> Iterator[RuleFinding]:
    """Each option alone, for each model: options to the request, and back."""
    served = served_apis(subject)
    for aim in subject.aims:
        if aim.api not in served:
            continue
        for wanted in _OPTIONS:
            request = _write_or_none(subject, aim, wanted)
            if request is None:
                continue
            inbound = read_request(subject, request)
            read = inbound.options
            for name, value in wanted.items():
                if (found := getattr(read, name)) != value and not _says_the_same(name, value, inbound):
                    yield RuleFinding(f"{name}={value!r} is written, and read as {found!r}", aim.name)


def _write_or_none(subject: Subject, aim: Aim, wanted: Mapping[str, Any]) -> WireRequest | None:
    """Write a request with options; None if one is refused, dropped, or changes nothing."""
    offered = offered_tools(aim)
    if not offered and wanted.keys() & {"tool_choice", "parallel_tool_calls"}:
        return None
    try:
        request = subject.write(aim, [user("q")], offered, **wanted)
    except CapabilityError:
        return None
    plain = subject.write(aim, [user("q")], offered)
    silent = (request.body, request.path) == (plain.body, plain.path)
    return None if silent or any(loss.block_type == "option" for loss in request.losses) else request


def _says_the_same(name: str, value: Any, inbound: InboundRequest) -> bool:
    """Return True for options that one field expresses together, and for `none` written as no tools."""
    read = inbound.options
    if name == "tool_choice":
        return bool(value == "none" and not inbound.tools)
    if name == "thinking":
        return bool(value) is not (read.effort == "none") or bool(read.thinking_budget) is value
    return bool(name == "effort" and value == "none" and read.thinking is False)


@rule(
    "C87",
    "A recorded request, read and written again, still has everything that it had.",
    source="hook from_wire_request",
    fix="""Read every field of the requests that clients send. A field that no option or block expresses belongs into
    `extra`, unchanged. A field that is read and not written again is lost to the model that answers.""",
)
def recorded_requests_lose_nothing(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded request of a served API against itself: its numbers, flags and strings, under their names."""
    served = served_apis(subject)
    for exchange in subject.exchanges:
        api = subject.api_of(exchange)
        if not exchange.good or api not in served or not isinstance(exchange.request, dict):
            continue
        model = subject.model_of(exchange)
        request = WireRequest(path=exchange.uri, body=json.dumps(exchange.request).encode(), api=str(api))
        try:
            again = written_again(subject, request, model)
        except InterlinguaError as error:
            yield RuleFinding(str(error), exchange.cassette)
            continue
        if lost := _values_of(exchange.request) - _values_of(json.loads(again.body)):
            (name, value), *others = lost
            more = f", and {len(others)} more" if others else ""
            yield RuleFinding(f"{name} = {value:.80} is lost{more}", exchange.cassette)


def _values_of(body: Any) -> Counter[tuple[str, str]]:
    """Return how often each value occurs under each name; null and the empty string say nothing."""
    found: Counter[tuple[str, str]] = Counter()
    for path, leaf in leaves(body):
        if leaf is not None and leaf != "":
            name = next((str(key) for key in reversed(path) if isinstance(key, str)), "")
            found[name, json.dumps(leaf)] += 1
    return found
