"""Rules on options: each is sent, dropped with a ledger row, or refused; 0 is a value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from interlingua.errors import CapabilityError
from interlingua.plugins import WireRequest
from interlingua.types import ToolChoice, user
from interlingua_contract.facts import SCHEMA
from interlingua_contract.json_paths import leaves, strings
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.scenes import offered_tools
from interlingua_contract.subject import Aim, Subject

_ONE_OPTION: tuple[Mapping[str, Any], ...] = (
    *({"max_tokens": limit} for limit in (1, 4321, 9876)),
    *({"temperature": number} for number in (0.0, 0.7, 1.0, 1.5)),
    *({"top_p": number} for number in (0.0, 0.5, 0.99, 1.0)),
    *({"top_k": number} for number in (1, 7, 400)),
    *({"seed": number} for number in (0, 1, 2**31 - 1)),
    *({"stop": words} for words in (("mkstop", "mkother", "mkthird"), ("mkStop \n", "mk\u00e9e\u0301"))),
    {"user_id": "mkuser"},
    {"parallel_tool_calls": False},
    {"tool_choice": "required"},
    {"tool_choice": ToolChoice("read_file")},
    {"response_schema": SCHEMA},
    {"stream": True},
    {"effort": "low"},
    {"thinking_budget": 1234},
    {"provider_options": {"x_contract": {"z": 0, "a": None}}},
)

_THINKING_OPTIONS = ("effort", "thinking", "thinking_budget")
"""A loss of one of these covers the others: a model that does not think takes no option of thinking."""


@rule(
    "C18",
    "Every option is sent with its value, dropped with a ledger row, or rejected; it is never ignored.",
    source="format.md, Options and capabilities; hook to_wire",
    fix="""Compare with None, not by truth: 0, 0.0 and False are values. For an option that the wire cannot express,
    report a Loss with `block_type="option"` and `path="options.<name>"` if dropping it is harmless; raise
    CapabilityError if it would mislead the caller (a schema, a forced tool). Apply `provider_options` to the body
    last.""",
)
def options_are_honoured(subject: Subject) -> Iterator[RuleFinding]:
    """One option at a time against the request without it; its value must be there, and forms of one differ."""
    for aim in subject.aims:
        yield from _check_model(subject, aim)
        yield from _check_distinct(subject, aim)
        offered = offered_tools(aim)
        plain = subject.write(aim, [user("q")], offered)
        for wanted in _ONE_OPTION:
            (name,) = wanted
            if name in ("tool_choice", "parallel_tool_calls") and not offered:
                continue
            request = _write_or_none(subject, aim, wanted)
            names = _THINKING_OPTIONS if name in _THINKING_OPTIONS else (name,)
            if request is None or any(loss.path == f"options.{one}" for loss in request.losses for one in names):
                continue
            if _content_of(request) == _content_of(plain):
                yield RuleFinding(f"{wanted} changes nothing and no loss reports it", aim.name)
            elif missing := _missing_values(wanted[name], request):
                yield RuleFinding(f"{wanted}: {missing} is not in the request and no loss reports it", aim.name)


def _write_or_none(subject: Subject, aim: Aim, options: Mapping[str, Any]) -> WireRequest | None:
    """Write a request with options; None if it is rejected."""
    try:
        return subject.write(aim, [user("q")], offered_tools(aim), **options)
    except CapabilityError:
        return None


def _content_of(request: WireRequest) -> tuple[bytes, str, dict[str, str]]:
    return request.body, request.path, dict(request.headers)


def _missing_values(value: Any, request: WireRequest) -> list[Any]:
    """Return the numbers and marked words of an option's value that are nowhere in the request."""
    wanted = [leaf for _, leaf in leaves(value)] if isinstance(value, (dict, list)) else [value]
    wanted = list(value) if isinstance(value, tuple) else wanted
    there = [leaf for _, leaf in leaves(json.loads(request.body))]
    words = " ".join(map(str, there))
    numbers = [leaf for leaf in there if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)]
    return [
        one
        for one in wanted
        if (isinstance(one, str) and one.startswith("mk") and one not in words)
        or (isinstance(one, (int, float)) and not isinstance(one, bool) and one not in numbers)
    ]


def _check_model(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    request = subject.write(aim, [user("q")])
    named = [leaf for _, leaf in strings(json.loads(request.body))]
    if aim.model not in named and aim.model not in unquote(request.path):
        yield RuleFinding(f"the model {aim.model!r} is named neither in the body nor in the path", aim.name)


def _check_distinct(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    """Two values of one option are not the same request, unless a loss reports it."""
    choices: list[Mapping[str, Any]] = [{"tool_choice": one} for one in ("none", "required", ToolChoice("read_file"))]
    rows: list[list[Mapping[str, Any]]] = [
        choices if aim.capabilities.supports_tools else [],
        [{"effort": "low"}, {"effort": "high"}],
        [{"thinking": True}, {"thinking": False}],
    ]
    for row in rows:
        seen: dict[Any, Mapping[str, Any]] = {}
        for wanted in row:
            request = _write_or_none(subject, aim, wanted)
            if request is None or any(loss.block_type == "option" for loss in request.losses):
                continue
            if (same := seen.setdefault(_content_of(request)[:2], wanted)) is not wanted:
                yield RuleFinding(f"{wanted} is sent as {same} is, and no loss reports it", aim.name)


@rule(
    "C19",
    "An undeclared feature is rejected, not ignored: schema, forced tool, streaming.",
    source="format.md, Options and capabilities",
    fix="""Raise CapabilityError with `path="options.<name>"` for an option whose capability you declare False, or
    drop it with a Loss if that misleads no caller. If the service supports the option, declare it and record a
    cassette.""",
)
def undeclared_options_are_refused(subject: Subject) -> Iterator[RuleFinding]:
    """Declared False must not be sent silently; of several forms one refused is enough."""
    named = {"tool_choice": ToolChoice("read_file")}
    wanted: dict[str, tuple[Mapping[str, Any], ...]] = {
        "supports_structured_output": ({"response_schema": SCHEMA},),
        "supports_tool_choice": ({"tool_choice": "required"},),
        "supports_named_tool_choice": (named,),
        "supports_streaming": ({"stream": True},),
    }
    for aim in subject.aims:
        for flag, forms in wanted.items():
            toolless = "tool_choice" in flag and not aim.capabilities.supports_tools
            if getattr(aim.capabilities, flag) or toolless:
                continue
            if not any(_is_refused(subject, aim, options) for options in forms):
                yield RuleFinding(f"{flag} is False, and {next(iter(forms[0]))} is sent silently", aim.name)


def _is_refused(subject: Subject, aim: Aim, options: Mapping[str, Any]) -> bool:
    request = _write_or_none(subject, aim, options)
    return request is None or any(loss.block_type == "option" for loss in request.losses)


@rule(
    "C20",
    "provider_options reach the body unchanged and override what the plugin writes, whatever the value.",
    source="format.md, Options and capabilities; hook to_wire",
    fix="""Merge `options.provider_options` into the finished body as the last step, value by value, without
    filtering falsy values.""",
)
def provider_options_come_last(subject: Subject) -> Iterator[RuleFinding]:
    """A field of the adapter's own is overruled, a new one is added."""
    for aim in subject.aims:
        given = {"model": "contract-overruled", "x_contract": {"z": 0, "a": None}}
        body = json.loads(subject.write(aim, [user("q")], provider_options=given).body)
        for name, value in given.items():
            if name == "model" and "model" not in {**body, **subject.body(aim, [user("q")])}:
                continue  # this API has the model in its path
            if body.get(name) != value:
                yield RuleFinding(f"provider_options[{name!r}] is {body.get(name)!r} in the body", aim.name)
