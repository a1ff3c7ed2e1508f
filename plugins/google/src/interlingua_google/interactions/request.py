"""A conversation, tools and options -> one request that creates an interaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    Json,
    Loss,
    WireRequest,
    budget_as_effort,
    dumps,
    json_object,
    loads,
    nearest_effort,
    option_loss,
    replay_state,
)
from interlingua.types import Message, RequestOptions, Role, ToolChoice, ToolDefinition
from interlingua_google.interactions.messages import MessageSteps, WrittenInput, to_wire_input
from interlingua_google.interactions.replay import match_steps
from interlingua_google.models import INTERACTIONS, facts_of, generation_of, is_agent
from interlingua_google.request import check_tool_choice, to_wire_answer_schema, to_wire_sampling, to_wire_tools

HEADERS = {"content-type": "application/json", "api-revision": "2026-05-20"}
"""Headers of each request; the revision pins the form of steps (WIRE.md, Interactions)."""
PATH = "/interactions"
_NAMES = {"max_tokens": "max_output_tokens", "stop": "stop_sequences"}  # other options have the same name here
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_LEVELS = ("minimal", "low", "medium", "high")
_CAP = 65_536  # tokens of one request; a longer answer is continued (WIRE.md, Interactions later answers)
_IN_BACKGROUND = "deep-research"  # agents that answer in no other way
_ASSISTANT = Role.ASSISTANT


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions) -> WireRequest:
    """Write the request.

    The service stores nothing and gets the whole conversation, unless `provider_options` or the connection option
    `stateful` say otherwise. `provider_options` are merged over the body, with these exceptions: members of
    `generation_config` replace single members, and `tools` (the service's own) are appended to the declared ones. With
    `previous_interaction_id` only the messages after the answer of that id are sent.

    Raises:
        CapabilityError: the model rejects an option, or the service cannot do what is asked without storing it.
    """
    losses: list[Loss] = []
    extra: dict[str, Any] = dict(options.provider_options)
    written = to_wire_input(messages, options.model)
    losses += written.losses
    agent = "agent" in extra or is_agent(options.model)
    fields: dict[str, Json] = {"agent" if agent else "model": dumps(extra.pop("agent", None) or options.model)}
    if written.system is not None:
        fields["system_instruction"] = dumps(written.system)
    own = extra.get("tools") or ()
    searched = any(isinstance(tool, Mapping) and tool.get("type") == "tool_search" for tool in own)
    functions = to_wire_tools(tools, losses, INTERACTIONS, "parameters", searched=searched)
    declared = [{"type": "function", **each} for each in functions]
    if declared or "tools" in extra:
        fields["tools"] = dumps([*declared, *(extra.pop("tools", None) or ())])
    stateful = bool(options.connection.get("stateful"))
    prefix = _add_state(fields, extra, written, messages, options, stateful=stateful and not agent)
    generation = _generation(options, tools, losses)
    given = extra.pop("generation_config", None)
    generation |= given if isinstance(given, Mapping) else {}
    schema = to_wire_answer_schema(options, losses, tools=bool(tools))
    if schema is not None:
        fields["response_format"] = dumps({"type": "text", "mime_type": "application/json", "schema": schema})
    if agent:
        losses += [option_loss(name, "dropped", "an agent runs with its own settings") for name in _canonical(options)]
        if options.model.startswith(_IN_BACKGROUND):
            extra.setdefault("background", True)
    elif generation:
        fields["generation_config"] = dumps(generation)
    background = bool(extra.get("background"))
    if background:
        _require_store(extra)
    stream = options.stream and not background
    if stream:
        fields["stream"] = b"true"
    if "store" not in extra and not (background or stateful or "previous_interaction_id" in fields):
        fields["store"] = b"false"
    for name, value in extra.items():
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = dumps(value)
    body = json_object(fields)
    return WireRequest(
        path=PATH,
        headers=dict(HEADERS),
        body=body,
        losses=tuple(losses),
        api=INTERACTIONS,
        stream=stream,
        echo=_echo(generation, prefix, body, stream=options.stream, background=background),
    )


def _require_store(extra: Mapping[str, Any]) -> None:
    if extra.get("store") is False:
        raise CapabilityError(
            "the service answers in the background only if it stores the interaction; leave out store=False",
            path="options.provider_options.store",
        )


def _echo(
    generation: Mapping[str, Any], prefix: str | None, body: bytes, *, stream: bool, background: bool
) -> dict[str, Any]:
    """Return what a later hook needs of this request."""
    echo: dict[str, Any] = {} if prefix is None else {"prefix": prefix}
    if background and stream:
        echo["stream"] = True
    most = generation.get("max_output_tokens")
    if not background and not stream and isinstance(most, int) and most > _CAP:
        echo["body"] = loads(body)  # of the request that continues a long answer
    return echo


# ---- the conversation, or what the service does not have of it


def _add_state(
    fields: dict[str, Json],
    extra: dict[str, Any],
    written: WrittenInput,
    messages: Sequence[Message],
    options: RequestOptions,
    *,
    stateful: bool,
) -> str | None:
    """Add `input`, with the id of the interaction that it continues; return the digest of what the service then has."""
    start = written.leading
    prefix = None
    previous = extra.pop("previous_interaction_id", None)
    if previous is not None:
        start = next((at + 1 for at in _answers(messages) if _id_of(messages[at]) == previous), start)
    elif stateful:
        prefix = digest(written.elements[start:])
        at = next(_answers(messages), None)
        if at is not None and at + 1 < len(messages) and _is_stored(messages[at], written.elements[start:at], options):
            previous, start = _id_of(messages[at]), at + 1
    if previous is not None:
        fields["previous_interaction_id"] = dumps(previous)
        if "continuation_token" in extra:
            return None  # the service has the input
    steps = b",".join([element.wire for element in written.elements[start:] if element.wire])
    if not steps:
        raise CapabilityError("a request must contain a message: add a user message", path="messages")
    fields["input"] = [b"[", steps, b"]"]
    return prefix


def _answers(messages: Sequence[Message]) -> Any:
    """Yield the places of the answers, the last one first."""
    return (at for at in range(len(messages) - 1, -1, -1) if messages[at].role is _ASSISTANT)


def _id_of(message: Message) -> Any:
    return replay_state(message, INTERACTIONS).get("id")


def _is_stored(answer: Message, before: Sequence[MessageSteps], options: RequestOptions) -> bool:
    """Return True if the service has this answer of this model as it is here, and the same messages before it."""
    state, origin = replay_state(answer, INTERACTIONS), answer.metadata.origin
    if not state.get("id") or origin is None or origin.model != options.model:
        return False
    matches = match_steps(state.get("steps"), answer.content)
    unchanged = matches is not None and all(match.same for match in matches)
    return unchanged and bool(state.get("prefix") == digest(before))


def digest(elements: Sequence[MessageSteps]) -> str:
    """Return a digest of the steps of messages."""
    made = hashlib.blake2b(digest_size=12)
    for element in elements:
        made.update(element.wire)
        made.update(b"\n")
    return made.hexdigest()


# ---- options


def _canonical(options: RequestOptions) -> list[str]:
    """Return the names of the options that only `generation_config` can hold."""
    names = (
        *("max_tokens", "temperature", "top_p", "top_k", "seed", "stop", "effort", "thinking", "thinking_budget"),
        "tool_choice",
    )
    return [name for name in names if getattr(options, name) not in (None, ())]


def _generation(options: RequestOptions, tools: Sequence[ToolDefinition], losses: list[Loss]) -> dict[str, Any]:
    """Return `generation_config`; {} if no option is set."""
    choice = check_tool_choice(tools, options, losses)
    if options.user_id is not None:
        losses.append(option_loss("user_id", "dropped", "this wire has no end-user id"))
    if is_agent(options.model):
        return {}
    config = {_NAMES.get(name, name): value for name, value in to_wire_sampling(options, losses).items()}
    config |= to_wire_thinking(options, losses)
    if isinstance(choice, ToolChoice):
        config["tool_choice"] = {"allowed_tools": {"mode": "any", "tools": [choice.name]}}
    elif choice is not None:
        config["tool_choice"] = _CHOICES[choice]
    return config


def to_wire_thinking(options: RequestOptions, losses: list[Loss]) -> dict[str, Any]:
    """Return `thinking_level` and `thinking_summaries`, which all thinking models take here; {} for the defaults."""
    budget, effort = options.thinking_budget, options.effort
    off = options.thinking is False or effort == "none"
    if not off and options.thinking is None and budget is None and effort is None:
        return {}
    facts = facts_of(options.model)
    if facts.get("thinking") == "none" or (generation_of(options.model) or 3) < 2:
        if not off:
            losses.append(option_loss("thinking", "dropped", "this model does not think"))
        return {}
    levels = [level.lower() for level in facts.get("levels") or _LEVELS]
    if off:
        if budget is not None:
            losses.append(option_loss("thinking_budget", "dropped", "thinking is switched off"))
        return {"thinking_level": nearest_effort("none", levels, losses, "thinking")}
    made: dict[str, Any] = {"thinking_summaries": "auto"} if options.thinking or budget is not None else {}
    options = budget_as_effort(options, losses)
    if options.effort is not None:
        made["thinking_level"] = nearest_effort(options.effort, levels, losses)
    return made
