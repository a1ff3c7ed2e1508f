"""Rules on what the service is known to refuse: requests are held against the plugin's own rule files.

Never knows what a service refuses; those facts are the plugin's data. The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins.wire import WireRequest
from interlingua.request.project import Projector
from interlingua.types.factories import user
from interlingua.types.messages import Message, Role
from interlingua.types.options import AdapterOptions, Effort, ToolChoice
from interlingua_cli.lint import lint_request
from interlingua_contract.generated import Broken, holds, own
from interlingua_contract.rule import Finding, NotApplicable, rule
from interlingua_contract.scenes import FOREIGN, READ, media_scenes, result_image
from interlingua_contract.strategies.conversations import conversations
from interlingua_contract.subject import Aim, Subject

_ASKING = (Role.USER, Role.TOOL)


_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


_WISHES: tuple[Mapping[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.7, "top_p": 0.5, "top_k": 7},
    {"stop": ("a", "b", "c", "d", "e")},
    {"seed": 0, "user_id": "u", "stream": True},
    {"parallel_tool_calls": False},
    *({"tool_choice": choice} for choice in ("auto", "none", "required", ToolChoice("read_file"))),
    {"response_schema": _SCHEMA},
    *({"effort": effort} for effort in get_args(Effort)),
    {"thinking_budget": 2048, "max_tokens": 1024},
    {"effort": "high", "temperature": 0.0, "top_p": 0.5},
    {"effort": "high", "tool_choice": "required"},
    {"effort": "high", "stop": ("a",), "max_tokens": 4321},
    {"thinking_budget": 2048, "temperature": 0.0, "tool_choice": ToolChoice("read_file")},
)


@rule(
    "C52",
    "No request that `to_wire` writes is one that the service is known to refuse.",
    source="DESIGN 10; hook wire_rules",
    fix="""The finding names the wire rule, the place in the body and the section it is from. Write that place as the
    service wants it, or declare less in the capabilities so that core drops it before. If the service has changed,
    change the rule file: it must accept what the real service accepts.""",
)
def nothing_refused_is_written(subject: Subject) -> Iterator[Finding]:
    """Generated histories of own and foreign origin with a tool, a request per declared medium, and one per wish."""
    if not subject.provider.wire_rules:
        raise NotApplicable("the plugin ships no wire rules (hook wire_rules)")

    def law(aim: Aim, history: list[Message]) -> None:
        history = [_without_opaque(message) for message in _ending_with_a_question(history)]
        target = subject.provider.target(AdapterOptions(model=aim.model, api=aim.api))
        projected, _ = Projector().project(history, target)
        if any(message.role is Role.USER for message in projected) and projected[-1].role in _ASKING:
            _refuse(subject, subject.written(aim, history, [READ]))

    def strategy(aim: Aim) -> Any:
        return conversations((own(subject, aim), FOREIGN))

    yield from holds(subject, law, strategy)
    yield from _media(subject)
    yield from _wishes(subject)


def _media(subject: Subject) -> Iterator[Finding]:
    for aim in subject.aims:
        for scene in [*media_scenes(), result_image()]:
            if not scene.declared(aim.capabilities):
                continue
            try:
                _refuse(subject, subject.written(aim, scene.history, scene.tools))
            except CapabilityError:
                continue
            except Broken as error:
                yield Finding(why=f"{scene.name}: {error}", where=aim.name)


def _wishes(subject: Subject) -> Iterator[Finding]:
    """Ask for options, alone and together with what they may exclude."""
    for aim in subject.aims:
        offered = [READ] if aim.capabilities.supports_tools else []
        for asked in _WISHES:
            if not offered and asked.keys() & {"tool_choice", "parallel_tool_calls"}:
                continue
            try:
                _refuse(subject, subject.written(aim, [user("q")], offered, **asked))
            except CapabilityError:
                continue
            except Broken as error:
                yield Finding(why=f"asked for {', '.join(asked)}: {error}", where=aim.name)


def _ending_with_a_question(history: list[Message]) -> list[Message]:
    """Cut off what stands behind the last turn of the user or of a tool: many services continue no answer."""
    last = max((at for at, message in enumerate(history) if message.role in _ASKING), default=-1)
    return history[: last + 1]


def _without_opaque(message: Message) -> Message:
    """Take made-up kinds of block out: what the service has not issued, no rule of its wire can know."""
    content = [block for block in message.content if block.type != "opaque"]
    return message if len(content) == len(message.content) else attrs.evolve(message, content=content)


def _refuse(subject: Subject, request: WireRequest) -> None:
    for finding in lint_request(subject.provider, request):
        raise Broken(str(finding))
