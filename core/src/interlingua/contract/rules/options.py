"""Rules on options: each is said on the wire, dropped with a ledger line, or refused; 0 is a value.

Never asks how an option is said.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.contract.rule import Finding, rule
from interlingua.contract.rules.losses import warnings
from interlingua.contract.scenes import READ
from interlingua.contract.subject import Aim, Subject
from interlingua.errors import CapabilityError
from interlingua.messages import user
from interlingua.options import ToolNamed

SCHEMA = {
    "type": "object",
    "properties": {"mkq1q": {"type": "string"}},
    "required": ["mkq1q"],
    "additionalProperties": False,
}
_ASKED: tuple[Mapping[str, Any], ...] = (
    {"max_tokens": 4321},
    {"temperature": 0.0},
    {"temperature": 0.7},
    {"top_p": 0.5},
    {"top_k": 7},
    {"seed": 0},
    {"stop": ("mkstop",)},
    {"user_id": "mkuser"},
    {"parallel_tool_calls": False},
    {"tool_choice": "required"},
    {"tool_choice": ToolNamed("read_file")},
    {"response_schema": SCHEMA},
    {"stream": True},
    {"provider_options": {"x_contract": {"z": 0, "a": None}}},
)


@rule(
    "C18",
    "Every option is said on the wire, or dropped with a ledger line, or refused with CapabilityError; never ignored.",
    source="DESIGN 7; REGRESSIONS 32",
    fix="""Compare with None, not with truth: 0, 0.0 and False are values. What the wire cannot say: a Loss with
    `block_type="option"` and `path="options.<name>"` when that is harmless, CapabilityError when the caller would be
    deceived (a schema, a forced tool). `provider_options` are laid over the body last.""",
)
def options_are_honoured(subject: Subject) -> Iterator[Finding]:
    """One option at a time against the request without it."""
    for aim in subject.aims:
        offered = [READ] if aim.capabilities.supports_tools else []
        with warnings():
            plain = subject.written(aim, [user("q")], offered)
        for asked in _ASKED:
            (name,) = asked
            if name in ("tool_choice", "parallel_tool_calls") and not offered:
                continue
            try:
                with warnings():
                    request = subject.written(aim, [user("q")], offered, **asked)
            except CapabilityError:
                continue
            said = (request.body, request.path) != (plain.body, plain.path)
            told = any(loss.block_type == "option" and name in loss.path for loss in request.losses)
            if not said and not told:
                yield Finding(why=f"{asked} changes nothing and no loss says so", where=aim.name)


@rule(
    "C19",
    "What is not declared is refused, not promised: schema, forced tool, stream.",
    source="seed 003 §7.2; DESIGN 10",
    fix="""Raise CapabilityError with `path="options.<name>"` for an option whose capability you declare False, or
    drop it with a Loss where that deceives nobody. If the wire can do it, declare it and record a cassette.""",
)
def undeclared_options_are_refused(subject: Subject) -> Iterator[Finding]:
    """Declared False must not be said on the wire in silence; of several forms one refused is enough."""
    named = {"tool_choice": ToolNamed("read_file")}
    asked: dict[str, tuple[Mapping[str, Any], ...]] = {
        "supports_structured_output": ({"response_schema": SCHEMA},),
        "supports_tool_choice": ({"tool_choice": "required"}, named),
        "supports_streaming": ({"stream": True},),
    }
    for aim in subject.aims:
        for flag, forms in asked.items():
            toolless = flag == "supports_tool_choice" and not aim.capabilities.supports_tools
            if getattr(aim.capabilities, flag) or toolless:
                continue
            if not any(_refused(subject, aim, options) for options in forms):
                yield Finding(why=f"{flag} is False, and {next(iter(forms[0]))} is sent without a word", where=aim.name)


def _refused(subject: Subject, aim: Aim, options: Mapping[str, Any]) -> bool:
    offered = [READ] if aim.capabilities.supports_tools else []
    try:
        with warnings():
            request = subject.written(aim, [user("q")], offered, **options)
    except CapabilityError:
        return True
    return any(loss.block_type == "option" for loss in request.losses)


@rule(
    "C20",
    "provider_options stand in the body as they are, over what the adapter would say, in every value.",
    source="DESIGN 4; hook to_wire",
    fix="""Lay `options.provider_options` over the finished body as the last step, value by value, without filtering
    falsy ones.""",
)
def provider_options_come_last(subject: Subject) -> Iterator[Finding]:
    """A field of the adapter's own is overruled, a new one is added."""
    for aim in subject.aims:
        given = {"model": "contract-overruled", "x_contract": {"z": 0, "a": None}}
        body = json.loads(subject.written(aim, [user("q")], provider_options=given).body)
        for name, value in given.items():
            if name == "model" and "model" not in subject.body(aim, [user("q")]):
                continue  # this wire names the model in its path
            if body.get(name) != value:
                yield Finding(why=f"provider_options[{name!r}] is {body.get(name)!r} in the body", where=aim.name)
