"""A conversation, tools and options -> one request of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    FrozenDict,
    Json,
    Loss,
    WireRequest,
    dumps,
    json_array,
    json_array_concat,
    json_object,
    json_object_with,
    message_loss,
    option_loss,
)
from interlingua.types import (
    DocumentBlock,
    ImageBlock,
    Message,
    RequestOptions,
    StopReason,
    ToolChoice,
    ToolDefinition,
    changes_in,
)
from interlingua_anthropic.claude_thinking import (
    BINDING_BETA,
    DROPPING,
    ThinkingPlan,
    is_forced,
    is_taken_while_thinking,
    plan_thinking,
)
from interlingua_anthropic.claude_tools import ECHO, fit_choice, fit_citations, fit_tools, leads_back, rename_calls
from interlingua_anthropic.client_tools import beta_of, to_wire_tool
from interlingua_anthropic.errors import OWN_THINKING
from interlingua_anthropic.messages import (
    MAX_MARKS,
    MessageElements,
    MessagesTurns,
    SpentMarks,
    cache_control,
    encode_messages,
    to_wire_turns,
)
from interlingua_anthropic.models import API, OWN_MODELS, KnownModels, facts_of

SAMPLING_VERSION = "2023-06-01"  # the only live one that still takes temperature, top_p and top_k
# above 21,333 tokens the service requires a stream; an answer that is not streamed stays well below
_UNSTREAMED_DEFAULT = 16_384
_ANSWER_TOKENS = 4096  # above a thinking budget the caller set
_USER_ID_LENGTH = 256
_SAMPLING = ("temperature", "top_p", "top_k")
_TOOL_SEARCH = "tool_search_tool_"  # begins the types of both searches
_NOT_SEARCHED = "the request has no tool search, so the tool is sent whole; provider_options adds one to `tools`"
MAX_BODY = 32 * 1024 * 1024
_HEADERS = {
    "anthropic_version": "anthropic-version",
    "betas": "anthropic-beta",
    "workspace_id": "anthropic-workspace-id",
    "user_profile_id": "anthropic-user-profile-id",
}
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_KEPT = ("type", "properties", "required", "items", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "title",
         "description")  # fmt: skip
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_BYTES_PER_TOKEN = 3.6
_PER_MESSAGE = 8
_PER_IMAGE = 1600  # at most: larger ones are scaled down by default
_BYTES_PER_TOKEN_OF_DOCUMENT = 40


def to_wire(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: RequestOptions,
    known: KnownModels = OWN_MODELS,
) -> WireRequest:
    """Write the request, for a model as `known` says.

    `options.provider_options` are merged over the body, with exceptions: `tools` (the service's own) are appended to
    the declared ones, and `betas` (a list), `anthropic_version`, `workspace_id` and `user_profile_id` become headers
    (WIRE.md, Connection).

    Raises:
        CapabilityError: the model rejects an option or a tool's schema, or the request is too large.
    """
    facts, capable = known.facts_of(options.model), known.capabilities_of(options.model)
    losses: list[Loss] = []
    echo: dict[str, Any] = {}
    if facts.get("forced_tool_choice") is False:
        service_tools = bool(options.provider_options.get("tools"))
        tools, options = fit_choice(tools, options, losses, service_tools=service_tools)
    added = [tool for change in changes_in(messages) for tool in change.tools_added]
    if tools or added:
        names = fit_tools([*tools, *added]).names
        tools, _, rows = fit_tools(tools)
        losses += rows
        if names:
            messages, echo[ECHO] = rename_calls(messages, names), names
    messages = fit_citations(messages, losses, answer_schema=options.response_schema is not None)
    extra: dict[str, Any] = dict(options.provider_options)
    if "thinking" in extra:
        echo[OWN_THINKING] = True
    headers = _headers(extra)
    max_tokens = _max_tokens(options, capable.max_output_tokens)
    fields: dict[str, Json] = {"model": dumps(options.model), "max_tokens": dumps(max_tokens)}
    lost: list[Loss] = []
    plan = plan_thinking(messages, options, facts, max_tokens, lost)
    turns = _conversation(messages, tools, extra.pop("tools", None) or (), options, fields, losses, facts, plan=plan)
    _add_betas(headers, (*turns.betas, *filter(None, [beta_of(tool.extra_of(API)) for tool in tools])))
    losses += lost
    if facts.get("thinking_bound_to_prefix") and "thinking" not in extra and not _has_fixed_thinking(plan):
        plan = plan._replace(thinking={**(plan.thinking or {"type": "adaptive"}), **DROPPING})
        _add_betas(headers, (BINDING_BETA,))
    _output(plan.thinking, plan.effort, options, fields, losses, structured=capable.supports_structured_output)
    _sampling(options, facts, fields, headers, losses, thinks=plan.thinks(facts))
    _others(options, fields, losses)
    for name, value in extra.items():
        fields[name] = dumps(value)
    body = json_object(fields)
    if len(body) > MAX_BODY:
        raise CapabilityError(f"the request has {len(body):,} bytes and this wire takes {MAX_BODY:,}", path="messages")
    return WireRequest(
        path="/v1/messages",
        headers=headers,
        body=body,
        losses=tuple(losses),
        api=API,
        stream=options.stream,
        echo={**echo, "prefix": turns.prefix} if turns.prefix else echo,
    )


def _conversation(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    service_tools: Sequence[Any],
    options: RequestOptions,
    fields: dict[str, Json],
    losses: list[Loss],
    facts: FrozenDict,
    *,
    plan: ThinkingPlan,
) -> MessagesTurns:
    """Write tools, system, messages and the choice."""
    written = to_wire_tools(tools, losses, service_tools) if tools else None
    written = with_service_tools(written, service_tools) if service_tools else written
    if written is not None:
        fields["tools"] = written.sent
    head = written.unmarked if written is not None else b""
    bound = bool(facts.get("thinking_bound_to_prefix"))
    spent = written.spent if written is not None else SpentMarks()
    fixed = _has_fixed_thinking(plan)
    turns = to_wire_turns(messages, head, spent, bound=bound, bare=plan.bare, drops_unverified=fixed)
    if turns.ends_with is None:
        text = "a request must contain a message in addition to the system prompt: add a user message"
        raise CapabilityError(text, path="messages")
    losses.extend(turns.losses)
    if turns.system is not None:
        fields["system"] = turns.system
    fields["messages"] = turns.messages
    _prefill(messages, turns.ends_with, facts, losses)
    check_prefill(messages, turns.ends_with, options)
    if written is None and is_forced(options):
        raise CapabilityError("a call is demanded and there are no tools", path="options.tool_choice")
    if written is not None:
        choice = to_wire_tool_choice(options, facts, losses)
        if choice is not None:
            fields["tool_choice"] = dumps(choice)
    return turns


def _has_fixed_thinking(plan: ThinkingPlan) -> bool:
    """Return whether the request has thinking of a type that takes no `block_binding`."""
    return plan.thinking is not None and plan.thinking["type"] != "adaptive"


def _headers(extra: dict[str, Any]) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    for option, header in _HEADERS.items():
        if (value := extra.pop(option, None)) is not None:
            headers[header] = value if isinstance(value, str) else ",".join(value)
    if not extra.keys().isdisjoint(_SAMPLING):
        headers.setdefault("anthropic-version", SAMPLING_VERSION)
    return headers


def _add_betas(headers: dict[str, str], betas: Sequence[str]) -> None:
    """Request the beta features that blocks belong to, unless the caller does; their dates are not compared."""
    if betas:
        given = list(filter(None, headers.get("anthropic-beta", "").split(",")))
        features = {beta[: -len("-2026-01-01")] for beta in given}
        more = [beta for beta in dict.fromkeys(betas) if beta[: -len("-2026-01-01")] not in features]
        headers["anthropic-beta"] = ",".join(given + more)


def _max_tokens(options: RequestOptions, most: int) -> int:
    """Return `max_tokens`, which is required: by default the model's maximum, or less without streaming."""
    if options.max_tokens is not None:
        return options.max_tokens
    if options.stream:
        return most
    return min(most, max(_UNSTREAMED_DEFAULT, (options.thinking_budget or 0) + _ANSWER_TOKENS))


def _output(
    thinking: Mapping[str, Any] | None,
    effort: str | None,
    options: RequestOptions,
    fields: dict[str, Json],
    losses: list[Loss],
    *,
    structured: bool,
) -> None:
    """Write thinking, effort and the answer's schema."""
    output: dict[str, Any] = {}
    if thinking is not None:
        fields["thinking"] = dumps(thinking)
    if effort is not None:
        output["effort"] = effort
    if options.response_schema is not None:
        if not structured:
            text = f"{options.model} takes no response schema; output= finds another way"
            raise CapabilityError(text, path="options.response_schema")
        if leads_back(options.response_schema):
            text = "an answer's schema may not refer back to itself here; output= finds another way"
            raise CapabilityError(text, path="options.response_schema")
        output["format"] = {"type": "json_schema", "schema": to_wire_schema(options.response_schema, losses)}
    if output:
        fields["output_config"] = dumps(output)


def _sampling(
    options: RequestOptions,
    facts: FrozenDict,
    fields: dict[str, Json],
    headers: dict[str, str],
    losses: list[Loss],
    *,
    thinks: bool,
) -> None:
    """Write sampling for models that honour it, with the version that still accepts it (WIRE.md, Versions)."""
    for name in _SAMPLING:
        value = getattr(options, name)
        if value is None:
            continue
        if not facts.get("sampling", not facts):  # a model this catalogue does not know is given the benefit
            losses.append(option_loss(name, "dropped", "this model refuses sampling parameters"))
        elif headers.get("anthropic-version", SAMPLING_VERSION) != SAMPLING_VERSION:
            losses.append(option_loss(name, "dropped", "the version asked for refuses sampling parameters"))
        elif thinks and not is_taken_while_thinking(name, value):
            losses.append(option_loss(name, "dropped", "sampling parameters are refused while thinking"))
        elif name == "top_p" and "temperature" in fields and facts.get("temperature_with_top_p") is False:
            losses.append(option_loss(name, "dropped", "this model takes temperature or top_p, not both"))
        else:
            if name != "top_k" and not 0 <= value <= 1:
                moved = min(max(value, 0), 1)
                losses.append(
                    option_loss(name, "rewritten", f"it lies between 0 and 1 here; {moved} is sent for {value}")
                )
                value = moved
            fields[name] = dumps(value)
            headers.setdefault("anthropic-version", SAMPLING_VERSION)


def _others(options: RequestOptions, fields: dict[str, Json], losses: list[Loss]) -> None:
    stop = [*filter(str.strip, options.stop)]
    if len(stop) < len(options.stop):
        losses.append(option_loss("stop", "rewritten", "a stop sequence of white space alone is refused here"))
    if stop:
        fields["stop_sequences"] = dumps(stop)
    if options.user_id is not None and len(options.user_id) > _USER_ID_LENGTH:
        losses.append(option_loss("user_id", "dropped", f"longer than {_USER_ID_LENGTH} characters"))
    elif options.user_id is not None:
        fields["metadata"] = dumps({"user_id": options.user_id})
    if options.stream:
        fields["stream"] = b"true"
    if options.seed is not None:
        losses.append(option_loss("seed", "dropped", "this wire has no seed"))


def _prefill(messages: Sequence[Message], ends_with: str | None, facts: FrozenDict, losses: list[Loss]) -> None:
    """Report that this model does not continue assistant text, which the service would reject (WIRE.md, Turns)."""
    if ends_with != "assistant" or facts.get("prefill") is not False:
        return
    if messages[-1].metadata.stop_reason is StopReason.PAUSE_TURN:
        return  # continuing a paused turn is the one case where the history ends so (WIRE.md, Answers)
    reason = "the history ends with an assistant message, which this model answers with 400; add a user message"
    losses.append(message_loss(len(messages) - 1, reason))


def check_prefill(messages: Sequence[Message], ends_with: str | None, options: RequestOptions) -> None:
    """Raise a CapabilityError for a beginning of the answer beside a schema, which Claude refuses on every host."""
    begun = ends_with == "assistant" and messages[-1].metadata.stop_reason is not StopReason.PAUSE_TURN
    if begun and options.response_schema is not None:
        text = "Claude takes no response schema for an answer whose beginning is given; remove the last message or the"
        raise CapabilityError(f"{text} schema", path=f"messages[{len(messages) - 1}]")


class MessagesTools(NamedTuple):
    """Tool definitions: as sent, without cache markers (to compare prefixes), and the markers spent."""

    sent: bytes
    unmarked: bytes
    spent: SpentMarks


def to_wire_tools(
    tools: Sequence[ToolDefinition], losses: list[Loss], service_tools: Sequence[Any] = ()
) -> MessagesTools:
    """Write the definitions, with at most four cache markers; deferred if a search is among the service's tools.

    A deferred tool is not part of the prompt: its marker moves to the last earlier tool that is not deferred.
    """
    made = _definitions(tools, losses, service_tools)
    unmarked = [dumps(each) for each in made]
    sent = unmarked[:]
    used, short = 0, False
    marked = {at: tool.cache for at, tool in enumerate(tools) if tool.cache is not None}
    for asked, hint in marked.items():
        ttl = hint.ttl
        path = f"tools[{asked}]"
        at = next((at for at in range(asked, -1, -1) if not made[at].get("defer_loading")), None)
        if at is None or (at != asked and at in marked):
            reason = "a deferred tool takes no cache marker"
            losses.append(Loss(path=path, block_type="tool", verdict="dropped", reason=reason, severity="form"))
            continue
        if used == MAX_MARKS:
            reason = "more cache hints than the wire takes"
            losses.append(Loss(path=path, block_type="tool", verdict="dropped", reason=reason))
            continue
        if ttl == "1h" and short:
            reason = "a 1h cache marker may not follow a 5m one; sent as 5m"
            losses.append(Loss(path=path, block_type="tool", verdict="rewritten", reason=reason))
            ttl = None
        sent[at] = json_object_with(unmarked[at], "cache_control", cache_control(ttl))
        used, short = used + 1, short or ttl != "1h"
    return MessagesTools(json_array(sent), json_array(unmarked), SpentMarks(used, short))


def _definitions(
    tools: Sequence[ToolDefinition], losses: list[Loss], service_tools: Sequence[Any]
) -> list[dict[str, Any]]:
    kinds = [str(tool.get("type")) for tool in service_tools if isinstance(tool, Mapping)]
    searched = any(kind.startswith(_TOOL_SEARCH) for kind in kinds)
    made = []
    for at, tool in enumerate(tools):
        deferred = tool.deferred and not tool.extra_of(API)
        made.append(to_wire_tool(tool) | ({"defer_loading": True} if deferred and searched else {}))
        if deferred and not searched:
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=_NOT_SEARCHED))
    return made


def with_service_tools(written: MessagesTools | None, service_tools: Sequence[Any]) -> MessagesTools:
    """Append the service's own tools, unchanged, to the definitions; their cache markers are counted."""
    before = written or MessagesTools(b"[]", b"[]", SpentMarks())
    more = dumps(service_tools)
    marks = [tool["cache_control"] for tool in service_tools if isinstance(tool, Mapping) and tool.get("cache_control")]
    short = before.spent.short or any(mark.get("ttl") != "1h" for mark in marks)
    spent = SpentMarks(before.spent.used + len(marks), short)
    return MessagesTools(json_array_concat(before.sent, more), json_array_concat(before.unmarked, more), spent)


def to_wire_tool_choice(options: RequestOptions, facts: FrozenDict, losses: list[Loss]) -> dict[str, Any] | None:
    """Write the choice; None if the service's default applies."""
    wanted = options.tool_choice
    choice: dict[str, Any] | None = None
    if isinstance(wanted, ToolChoice):
        choice = {"type": "tool", "name": wanted.name}
    elif wanted is not None:
        choice = {"type": _CHOICES[wanted]}
    if options.parallel_tool_calls is False:
        choice = choice or {"type": "auto"}
        if choice["type"] == "none":
            losses.append(option_loss("parallel_tool_calls", "dropped", "no tool may be called anyway"))
        else:
            choice["disable_parallel_tool_use"] = True
    return choice


def to_wire_schema(
    schema: Mapping[str, Any], losses: list[Loss], path: str = "options.response_schema", *, keep_types: bool = False
) -> dict[str, Any]:
    """Return the schema in the subset; keywords outside it move into the description, one loss each.

    `keep_types` keeps the type beside `enum` and `const`, which Anthropic's own transformer removes.
    """
    inner = partial(_inner_schema, losses=losses, keep_types=keep_types)
    out: dict[str, Any] = {}
    words: list[str] = []
    for name, value in schema.items():
        if name in ("properties", "$defs") and isinstance(value, Mapping):
            out[name] = {key: inner(item, path=f"{path}.{name}.{key}") for key, item in value.items()}
        elif name == "items" and isinstance(value, Mapping):
            out[name] = inner(value, path=f"{path}.items")
        elif name in ("anyOf", "allOf", "oneOf") and isinstance(value, (list, tuple)):
            kept = "anyOf" if name == "oneOf" else name
            out[kept] = [inner(item, path=f"{path}.{name}[{at}]") for at, item in enumerate(value)]
        elif name == "additionalProperties":
            if value is not False:
                reason = "objects are closed in structured output; additionalProperties became false"
                losses.append(Loss(path=f"{path}.{name}", block_type="option", verdict="rewritten", reason=reason))
        elif name in _KEPT or (name == "format" and value in _FORMATS) or (name == "minItems" and value in (0, 1)):
            out[name] = value
        else:
            words.append(f"{name}: {dumps(value).decode()}")
            reason = f"{name} is outside the structured-output subset; it moved into the description"
            losses.append(Loss(path=f"{path}.{name}", block_type="option", verdict="rewritten", reason=reason))
    if "properties" in out and out.keys().isdisjoint(("enum", "const", "anyOf", "allOf", "$ref")):
        out.setdefault("type", "object")
    elif not keep_types and ("enum" in out or "const" in out):
        out.pop("type", None)
    if out.get("type") == "object":
        out["additionalProperties"] = False
    if words:
        out["description"] = "; ".join(filter(None, [out.get("description"), *words]))
    return out


def _inner_schema(schema: Any, losses: list[Loss], path: str, *, keep_types: bool) -> Any:
    """Return a schema in the supported subset; true and false are returned unchanged."""
    return to_wire_schema(schema, losses, path, keep_types=keep_types) if isinstance(schema, Mapping) else schema


def estimate_input_tokens(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
) -> int:
    """Estimate by bytes: 3.6 bytes a token plus 8 a message; within -40 % and +60 % of recorded text requests."""
    bound = options is not None and bool(facts_of(options.model).get("thinking_bound_to_prefix"))
    size = sum(map(_message_tokens, messages, encode_messages(messages, bound=bound)))
    return size + (int(len(to_wire_tools(tools, []).unmarked) / _BYTES_PER_TOKEN) if tools else 0)


def _message_tokens(message: Message, elements: MessageElements) -> int:
    size = len(elements.joined)
    media = 0
    for block in message.content:
        for part in (block, *getattr(block, "content", ())):
            if isinstance(part, (ImageBlock, DocumentBlock)) and part.source.kind == "base64":
                length = len(part.source.data)
                size -= length
                media += _PER_IMAGE if isinstance(part, ImageBlock) else length // _BYTES_PER_TOKEN_OF_DOCUMENT
    return int(max(size, 0) / _BYTES_PER_TOKEN) + media + _PER_MESSAGE
