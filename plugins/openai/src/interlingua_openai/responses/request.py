"""Write a projected conversation as one request of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    FrozenDict,
    Json,
    Loss,
    WireRequest,
    budget_as_effort,
    dumps,
    json_array,
    json_array_concat,
    json_object,
    nearest_effort,
    option_loss,
)
from interlingua.types import DEFAULT_SESSION, Message, RequestOptions, ToolChoice, ToolDefinition
from interlingua_chat_completions.cache_markers import cache_key
from interlingua_chat_completions.object_root import root_losses
from interlingua_chat_completions.options import at_least
from interlingua_chat_completions.tools import (
    STRICT_OPTION,
    StrictTools,
    to_wire_answer_schema,
    to_wire_strict_tools,
)
from interlingua_openai.catalogue import RESPONSES, USER_ID_LENGTH, facts_of
from interlingua_openai.responses.background import set_background
from interlingua_openai.responses.changes import (
    allowed_tools,
    as_it_came,
    merge_updates,
    redefine_tools,
    to_wire_definitions,
    to_wire_function,
)
from interlingua_openai.responses.client_calls import call_type_of
from interlingua_openai.responses.items import CUSTOM_ECHO
from interlingua_openai.responses.messages import to_wire_input

_ABSENT = ("stop", "seed", "top_k")
_LEAST_TOKENS = 16
_THINKS_BY_DEFAULT = ("on", "always")
_ENOUGH = "medium"  # the effort the service itself takes if a model thinks by default
_ENCRYPTED, _PLAIN = "encrypted", "plain"
_STORED = ("previous_response_id", "conversation", "background", "store")  # fields about answers that are stored
_NOT_SEARCHED = "the request has no tool search, so the tool is sent whole; provider_options adds one to `tools`"
_STOPS = 4  # stop sequences that hosts take


def to_wire(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: RequestOptions,
    known: Mapping[str, Any] | None = None,
) -> WireRequest:
    """Write the request: stateless by default (`store` false, reasoning comes back encrypted).

    `options.provider_options` are merged over the body; the objects `reasoning` and `text` are merged one level deep,
    and `tools` (the service's own) are appended to the declared ones. `strict_tools` is not a field: it makes tools
    strict. None leaves a field out.
    """
    facts: Any = facts_of(options.model) if known is None else known  # of a host that a preset describes
    _check_stored(options, facts)
    losses: list[Loss] = []
    messages, tools = redefine_tools(messages, tools, losses)
    messages = merge_updates(messages)
    conversation = to_wire_input(messages, options.model, plain=_form(facts) != _ENCRYPTED)
    losses.extend(conversation.losses)
    fields: dict[str, Any] = {}
    reasoning = to_wire_reasoning(options, facts, losses)
    fields.update(to_wire_sampling(options, facts, reasoning.get("effort"), losses))
    if options.max_tokens is not None:
        fields["max_output_tokens"] = at_least(options.max_tokens, _LEAST_TOKENS, losses)
    if reasoning:
        fields["reasoning"] = reasoning
    if options.response_schema is not None:
        fields["text"] = {"format": to_wire_format(options, losses)}
    _add_tool_options(options, tools, fields, losses)
    if (allowed := allowed_tools(messages, tools)) is not None:
        _allow_tools(allowed, fields)
    _add_other_options(options, facts, fields, losses)
    if (conversation.hinted or any(tool.cache for tool in tools)) and messages[0].session_id != DEFAULT_SESSION:
        fields["prompt_cache_key"] = cache_key(messages[0].session_id)
    strict = to_wire_strict_tools(tools, options.provider_options.get(STRICT_OPTION))
    _lay_over(fields, options.provider_options)
    set_background(fields, options.provider_options)
    fields.pop(STRICT_OPTION, None)
    body: dict[str, Json] = {"model": dumps(options.model)}
    service_tools = fields.pop("tools", None) or []
    own = dumps(service_tools)
    if tools or own != b"[]":
        body["tools"] = json_array_concat(to_wire_tools(tools, strict, service_tools, losses), own)
    if conversation.instructions is not None:
        body["instructions"] = dumps(conversation.instructions)
    body["input"] = conversation.items
    body.update({name: dumps(value) for name, value in fields.items()})
    return WireRequest(
        path="/responses",
        headers={"content-type": "application/json"},
        body=json_object(body),
        losses=tuple(losses),
        api=RESPONSES,
        stream=options.stream,
        echo={**strict.echo, CUSTOM_ECHO: _custom_names([*service_tools, *map(as_it_came, tools)])}
        if service_tools
        else strict.echo,
    )


def _check_stored(options: RequestOptions, facts: Mapping[str, Any]) -> None:
    """Raise a CapabilityError if the request is about stored answers and the service stores none."""
    asked = [name for name in _STORED if options.provider_options.get(name)] if facts.get("stateless") else []
    if asked:
        raise CapabilityError("this service stores no answers", path=f"options.provider_options.{asked[0]}")


def _form(facts: Mapping[str, Any]) -> str:
    """Return how the service's reasoning comes and goes back: encrypted, plain text, or either (mixed)."""
    return str(facts.get("reasoning_form", _ENCRYPTED))


def _custom_names(tools: Any) -> tuple[str, ...]:
    """Return the names of the custom tools among those of the service's own, in namespaces too."""
    listed = [tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, Sequence) else []
    names = [str(tool.get("name")) for tool in listed if tool.get("type") == "custom"]
    return (*names, *[name for tool in listed for name in _custom_names(tool.get("tools") or ())])


def _add_tool_options(
    options: RequestOptions, tools: Sequence[ToolDefinition], fields: dict[str, Any], losses: list[Loss]
) -> None:
    """Add the options about tools; a request without tools may not carry them."""
    for name in ("tool_choice", "parallel_tool_calls"):
        value = getattr(options, name)
        if value is None:
            continue
        if not tools and "tools" not in options.provider_options:
            if value != "none":
                losses.append(option_loss(name, "dropped", "the request has no tools"))
        else:
            fields[name] = to_wire_tool_choice(value, tools) if name == "tool_choice" else value


def _allow_tools(names: Sequence[str], fields: dict[str, Any]) -> None:
    """Forbid the tools that were removed: the choice of tools is not part of what the service caches."""
    choice = fields.get("tool_choice", "auto")
    if not names:
        fields["tool_choice"] = "none"
    elif choice in ("auto", "required"):
        listed = [{"type": "function", "name": name} for name in names]
        fields["tool_choice"] = {"type": "allowed_tools", "mode": choice, "tools": listed}


def _add_other_options(options: RequestOptions, facts: FrozenDict, fields: dict[str, Any], losses: list[Loss]) -> None:
    if not facts.get("stateless"):
        fields["store"] = False
    if facts.get("reasoning") != "none" and _form(facts) != _PLAIN:  # an error for a model that does not reason
        fields["include"] = ["reasoning.encrypted_content"]
    if options.stream:
        fields["stream"] = True
    if options.user_id is not None:
        if len(options.user_id) <= USER_ID_LENGTH:
            fields["safety_identifier"] = options.user_id
        else:
            losses.append(option_loss("user_id", "dropped", f"longer than {USER_ID_LENGTH} characters"))
    for name in _ABSENT:
        value = getattr(options, name)
        if value in (None, ()):
            continue
        if name not in facts.get("also_takes", ()):
            losses.append(option_loss(name, "dropped", f"this wire has no {name}"))
            continue
        fields[name] = value if name != "stop" else list(value[:_STOPS])
        if name == "stop" and len(value) > _STOPS:
            losses.append(option_loss(name, "rewritten", f"{_STOPS} stop sequences are taken; the rest is left out"))


def _lay_over(fields: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for name, value in extra.items():
        if value is None:
            fields.pop(name, None)
            continue
        ours = fields.get(name)
        merge = name in ("reasoning", "text") and isinstance(ours, dict) and isinstance(value, Mapping)
        fields[name] = {**ours, **value} if merge and ours is not None else value


def to_wire_reasoning(options: RequestOptions, facts: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    """Return the `reasoning` object, empty when no option is about it; `thinking` also requests a summary."""
    kind = facts.get("reasoning")
    if kind == "none":
        for name in ("effort", "thinking", "thinking_budget"):
            if getattr(options, name) not in (None, "none", False):
                losses.append(option_loss(name, "dropped", "this model does not reason"))
        return {}
    members = facts.get("reasoning_members", ())  # of the object `reasoning`, beside the format's own
    reasoning: dict[str, Any] = {}
    budget = options.thinking_budget
    if budget and "max_tokens" in members and options.effort is None and options.thinking is not False:
        reasoning["max_tokens"] = budget
    else:
        options = budget_as_effort(options, losses)
        if (effort := _effort(options, facts, losses)) is not None:
            reasoning["effort"] = effort
    if not options.thinking or reasoning.get("effort") == "none":
        return reasoning
    if "enabled" in members:
        reasoning["enabled"] = True
    if _form(facts) != _PLAIN:
        reasoning["summary"] = "auto"
    elif not reasoning and kind not in _THINKS_BY_DEFAULT:
        losses.append(option_loss("thinking", "dropped", "this service is asked by an effort"))
    return reasoning


def _effort(options: RequestOptions, facts: Mapping[str, Any], losses: list[Loss]) -> str | None:
    wanted: str | None = "none" if options.thinking is False else options.effort
    if wanted is None:
        enough = options.thinking and facts.get("reasoning") == "off"
        return nearest_effort(_ENOUGH, facts.get("efforts") or (_ENOUGH,), []) if enough else None
    if options.thinking is False and options.effort not in (None, "none"):
        losses.append(option_loss("effort", "dropped", "thinking is switched off"))
    efforts = facts.get("efforts")
    option = "thinking" if options.thinking is False else "effort"
    if efforts is not None:
        return nearest_effort(wanted, efforts, losses, option)
    if wanted == "none" and facts.get("reasoning") == "always":
        losses.append(option_loss(option, "dropped", "this model always reasons"))
        return None
    return wanted


def to_wire_sampling(
    options: RequestOptions, facts: Mapping[str, Any], effort: str | None, losses: list[Loss]
) -> dict[str, float]:
    """Return temperature and top_p, which a model rejects while it reasons; 0 is sent."""
    reasons = effort != "none" if effort is not None else facts.get("reasoning") in _THINKS_BY_DEFAULT
    kept: dict[str, float] = {}
    for name in ("temperature", "top_p"):
        value = getattr(options, name)
        if value is None:
            continue
        if facts.get("sampling") is False:
            losses.append(option_loss(name, "dropped", "this model refuses sampling parameters"))
        elif reasons and facts.get("reasoning") != "none" and not facts.get("sampling"):
            losses.append(option_loss(name, "dropped", "sampling parameters are refused while reasoning"))
        else:
            kept[name] = value
    return kept


def to_wire_tools(
    tools: Sequence[ToolDefinition], strict: StrictTools, service_tools: Sequence[Any], losses: list[Loss]
) -> bytes:
    """Write the definitions; without `strict` the server would try strict mode (WIRE.md, Responses tools).

    It is false if strictness was not requested, because it makes every property required and so changes what the
    tool accepts. Tools are deferred if a search is among those of the service.
    """
    searched = any(isinstance(tool, Mapping) and tool.get("type") == "tool_search" for tool in service_tools)
    losses.extend((*strict.losses, *root_losses(tools, RESPONSES)))
    for at, tool in enumerate(tools):
        if tool.cache is not None:
            reason = "tools carry no cache marker on this wire; they are part of what the first marker keeps"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="dropped", reason=reason))
        if tool.deferred and not searched and not tool.extra_of(RESPONSES):
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=_NOT_SEARCHED))
    written = to_wire_definitions(
        tools, lambda tool: {**to_wire_function(tool, strict.schemas.get(tool.name)), **_late(tool, searched=searched)}
    )
    return json_array([dumps(each) for each in written])


def _late(tool: ToolDefinition, *, searched: bool) -> dict[str, bool]:
    return {"defer_loading": True} if tool.deferred and searched else {}


def to_wire_tool_choice(choice: ToolChoice | str, tools: Sequence[ToolDefinition]) -> str | dict[str, str]:
    """Return the choice; of a tool of the service, its type."""
    if not isinstance(choice, ToolChoice):
        return choice
    kinds = [came["type"] for tool in tools if tool.name == choice.name and call_type_of(came := as_it_came(tool))]
    return {"type": kinds[0]} if kinds else {"type": "function", "name": choice.name}


def to_wire_format(options: RequestOptions, losses: list[Loss]) -> dict[str, Any]:
    """Return `text.format` for the requested schema: strict, which the service enforces, if the schema allows it."""
    return {"type": "json_schema", **to_wire_answer_schema(options, losses, object_root=True)}
