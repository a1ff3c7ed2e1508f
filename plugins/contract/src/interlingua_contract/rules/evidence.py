"""The rule that each declared capability is shown by a cassette, and the support table made from the same evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from interlingua.errors import InterlinguaError
from interlingua.types import ContentBlock, Message, ModelCapabilities, ToolChoice, assistant, system, user
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.facts import SCHEMA
from interlingua_contract.json_paths import Shape, leaves, nodes, shape, strings
from interlingua_contract.recordings import ReadResult, read_answer
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.scenes import (
    READ,
    capability_probes,
    offered_tools,
    text_document_probes,
    with_cache_hint,
)
from interlingua_contract.subject import Aim, Subject


@attrs.frozen(kw_only=True)
class Support:
    """One row of the support table.

    Attributes:
        api: the wire format.
        capability: the field of ModelCapabilities.
        declared: True if any of its models declares it.
        evidence: cassettes that show it.
        excuse: why there can be none (quirks.unevidenced).
    """

    api: str
    capability: str
    declared: bool
    evidence: tuple[str, ...]
    excuse: str = ""


_Shows = Callable[[RecordedExchange, ReadResult], bool]


def _blocks_of(found: ReadResult, *kinds: str) -> list[ContentBlock]:
    return [block for block in found.message.content if block.type in kinds] if found.message else []


def _has_cache_read(_: RecordedExchange, found: ReadResult) -> bool:
    usage = found.message.metadata.usage if found.message else None
    return usage is not None and bool(usage.cached_input_tokens)


IN_ANSWERS: dict[str, _Shows] = {
    "supports_streaming": lambda exchange, found: exchange.streamed and found.error is None,
    "supports_tools": lambda _, found: len(_blocks_of(found, "tool_use")) >= 1,
    "supports_parallel_tool_calls": lambda _, found: len(_blocks_of(found, "tool_use")) >= 2,
    "supports_streaming_tool_calls": lambda _, found: any(one.type == "tool_use_input_delta" for one in found.events),
    "supports_thinking": lambda _, found: bool(_blocks_of(found, "thinking", "redacted_thinking")),
    "supports_citations": lambda _, found: any(getattr(block, "citations", ()) for block in _blocks_of(found, "text")),
    "supports_prompt_caching": _has_cache_read,
}

_OPTIONS: dict[str, dict[str, Any]] = {
    "supports_structured_output": {"response_schema": SCHEMA},
    "supports_tool_choice": {"tool_choice": "required"},
    "supports_named_tool_choice": {"tool_choice": ToolChoice(READ.name)},
}

_BY_ITSELF = (
    "supports_thinking", "supports_citations", "supports_prompt_caching", "supports_streaming_tool_calls",
)  # fmt: skip
"""Features that a service may use unrequested, although nothing of them can be sent back."""

_BESIDE_SCHEMAS: dict[str, Callable[[RecordedExchange, set[Shape]], bool]] = {
    "structured_output_with_tools": lambda exchange, tools: bool(tools & _shapes_of(exchange.request)),
    "structured_output_streams": lambda exchange, _: exchange.streamed,
}
"""Features beside a response schema; each function reads a request that has one, and the shapes of tools."""

FLAGS = (
    *(field.name for field in attrs.fields(ModelCapabilities) if field.name.startswith("supports_")),
    *_BESIDE_SCHEMAS,
)


def support_table(subject: Subject) -> list[Support]:
    """Return every capability of every API with the cassettes that show it."""
    rows = []
    read_once = {id(exchange): read_answer(subject, exchange) for exchange in subject.exchanges if exchange.good}
    for api in subject.apis:
        aims = [aim for aim in subject.aims if aim.api == api]
        mine = [exchange for exchange in subject.exchanges if exchange.good and subject.api_of(exchange) == api]
        for flag in FLAGS:
            declaring = [aim for aim in aims if getattr(aim.capabilities, flag)]
            if flag in _BESIDE_SCHEMAS:  # without schemas it is about the JSON mode, which only words ask for
                declaring = [aim for aim in declaring if aim.capabilities.supports_structured_output]
            probed = "supports_structured_output" if flag in _BESIDE_SCHEMAS else flag
            shapes = {one for aim in declaring for one in _shapes(subject, aim, probed)}
            beside = _BESIDE_SCHEMAS.get(flag)
            tools = _tool_shapes(subject, declaring) if flag in _BESIDE_SCHEMAS else set()
            first = 2 if flag == "supports_system_messages_in_list" else 0
            shown = [
                exchange.cassette
                for exchange in mine
                if (flag in IN_ANSWERS and IN_ANSWERS[flag](exchange, read_once[id(exchange)]))
                or (
                    shapes
                    and shapes & _shapes_of(exchange.request, first)
                    and (beside is None or beside(exchange, tools))
                )
            ]
            rows.append(
                Support(
                    api=api,
                    capability=flag,
                    declared=bool(declaring),
                    evidence=tuple(dict.fromkeys(shown)),
                    excuse=subject.quirks.unevidenced.get(flag, ""),
                )
            )
    return rows


@rule(
    "C51",
    "A declared capability has a cassette that shows it, and a capability that answers show is declared.",
    source="format.md, Options and capabilities",
    fix="""Record an exchange that uses the capability (or write one from the documentation and have the provider's
    SDK read it), or declare it False. Use quirks.unevidenced, with the reason, for what cannot be recorded.""",
    needs=("unevidenced",),
)
def capabilities_have_evidence(subject: Subject) -> Iterator[RuleFinding]:
    """Every flag of every API."""
    if subject.unwritten:
        raise NotApplicable("evidence is read when every function is written; record what is declared until then")
    table = support_table(subject)
    excusable = {row.capability for row in table if row.declared and not row.evidence}
    for row in table:
        if row.declared and not row.evidence and not row.excuse:
            yield RuleFinding(f"{row.capability} is declared, and no cassette shows it", row.api)
        if row.evidence and not row.declared and row.capability in IN_ANSWERS and row.capability not in _BY_ITSELF:
            yield RuleFinding(f"{row.capability} is not declared, and {row.evidence[0]} shows it", row.api)
        if row.excuse and row.capability not in excusable:
            yield RuleFinding(f"quirks.unevidenced excuses {row.capability}, which needs no excuse", row.api)


def _shapes(subject: Subject, aim: Aim, flag: str) -> set[Shape]:
    """Return the shapes that only a request using the capability has."""
    try:
        if flag in _OPTIONS:
            offered = offered_tools(aim) if "tool_choice" in flag else []  # some services take no schema with tools
            without = _shapes_of(subject.body(aim, [user("q")], offered))
            used = _shapes_of(subject.body(aim, [user("q")], offered, **_OPTIONS[flag]))
            return {one for one in used - without if "mkq1q" not in "".join(one) and "required" not in one}
        if flag == "supports_prompt_caching":
            return _shapes_of(subject.body(aim, with_cache_hint())) - _shapes_of(subject.body(aim, [user("q")]))
        if flag == "supports_system_messages_in_list":
            return _later_system(subject, aim)
        probes = dict(capability_probes())
        accepted = aim.capabilities.accepted_document_media_types
        if accepted and "application/pdf" not in accepted:
            probes |= text_document_probes()
        history, payload = probes.get(flag, ((), ""))
        body = subject.body(aim, history, [READ] if flag.startswith("supports_tool_result") else []) if history else {}
    except InterlinguaError:
        return set()
    held = [(shape(body, path), bool(payload) and payload in leaf) for path, leaf in strings(body)]
    # a document that goes as ordinary text is told from none
    return {one for one, holds in held if holds} - {one for one, holds in held if not holds}


def _tool_shapes(subject: Subject, aims: Sequence[Aim]) -> set[Shape]:
    found: set[Shape] = set()
    for aim in aims:
        body = subject.body(aim, [user("q")], offered_tools(aim))
        found |= _shapes_of(body) - _shapes_of(subject.body(aim, [user("q")]))
    return found


def _later_system(subject: Subject, aim: Aim) -> set[Shape]:
    turn: list[Message] = [user("q"), assistant("a"), user("n")]
    plain = _shapes_of(subject.body(aim, turn))
    found: set[Shape] = set()
    for history in ([*turn, system("mkp1q")], [*turn[:2], system("mkp1q"), turn[2]]):
        body = subject.body(aim, history)
        found |= {shape(body, path) for path, leaf in strings(body) if "mkp1q" in leaf}
    return found - plain


def _shapes_of(body: Any, first: int = 0) -> set[Shape]:
    """Return the shapes of all leaves and empty objects; with `first`, of those in the elements from that one on."""
    paths = [path for path, _ in leaves(body)] if isinstance(body, (dict, list)) else []
    paths += [path for path, node in nodes(body) if path and not node]  # `{"any": {}}` says something
    return {shape(body, path) for path in paths if next((key for key in path if type(key) is int), 0) >= first}
