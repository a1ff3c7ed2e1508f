"""Asking for a typed answer, reading it, and asking again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Literal, TypeVar

import attrs

from interlingua import output
from interlingua.errors import CallerError, CapabilityError, ContentRefusedError
from interlingua.output import Answer, Attempt, InvalidOutputError, OutputMode, OutputProblem, OutputTruncatedError
from interlingua.plugins import Loss, dumps, loads, option_loss
from interlingua.types import (
    CostParts,
    Message,
    MessageStatus,
    ModelCapabilities,
    RequestOptions,
    Role,
    SideEffects,
    StopReason,
    TextBlock,
    ToolChoice,
    ToolDefinition,
    Usage,
    system,
    tool_result,
    user,
)
from interlingua_output.partial import JsonPartialReader
from interlingua_output.schema import OutputType, child_schemas, project_schema

_T = TypeVar("_T")
_TOOL = "Give the answer by calling this tool, once."
_CALL = "When you know the answer, give it by calling the tool {}, not as text."
_PROMPT = "Answer with one JSON object that follows this JSON Schema, and nothing else:\n{}"
_WRONG = "The answer does not fit what was asked for:\n{}\nGive the whole answer again."
_TOO_EARLY = "Not taken, for other tools were called beside it: give the answer after their results."
_MOST_PROBLEMS = 10
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.S)
_SAYING = {"type", "enum", "const", "anyOf", "allOf", "$ref"}  # a schema without any of these accepts any value
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FOREIGN = re.compile("[^a-z0-9_]")  # no part of a tool's name


class SchemaPlan(output.OutputPlan[_T]):
    """How one request asks for a typed answer and how its answer is read, by a JSON Schema of the type.

    Args:
        kind: the type of the answer, or a JSON Schema.
        tools: the caller's tools.
        options: options of the request.
        can: capabilities of the model with these options.
        mode: the requested mode, or "auto" for the first that the model supports.
        name: name of the schema or tool; "" makes it from the type's name.
        description: describes the answer to the model.

    Attributes:
        mode: the mode in use.
        tools: tools to offer the model: the caller's and, in mode `tool`, the tool that takes the answer.
        options: options by name that replace the caller's.
        losses: rows for the ledger: the mode if it is not `native`, and each change to the schema.
        tool: name of the tool that takes the answer; "" in other modes.

    Raises:
        CallerError: no JSON can be read into the type.
        CapabilityError: the requested mode is not available; the message says why.
    """

    mode: OutputMode

    def __init__(
        self,
        kind: type[_T] | Any,
        tools: Sequence[ToolDefinition],
        options: RequestOptions,
        can: ModelCapabilities,
        *,
        mode: Literal["auto", "native", "tool", "prompt"] = "auto",
        name: str = "",
        description: str = "",
    ) -> None:
        if options.response_schema is not None:
            raise CallerError("output= sets response_schema itself: pass one of the two")
        self._read_type = OutputType(kind)
        self._wants_thinking = bool(options.thinking or options.thinking_budget or options.effort not in (None, "none"))
        self.tools, self.options, self.tool = tuple(tools), dict[str, Any](), ""
        self._instructions = ""
        schema, lost = project_schema(self._read_type.schema, can)
        why = _native_obstacle(tools, options, can) or _schema_obstacle(schema, can)
        if mode != "auto":
            self.mode = mode
        elif not why:
            self.mode = "native"
        else:
            self.mode = "tool" if can.supports_tools else "prompt"
        if (self.mode == "native" and why) or (self.mode == "tool" and not can.supports_tools):
            why = why or "this model takes no tools"
            raise CapabilityError(f"output mode {self.mode!r} is not available: {why}", path="output")
        named = _HUMP.sub("_", name or self._read_type.name)
        if self.mode == "native":
            self.options = {"response_schema": schema, "response_name": named}
            if not can.structured_in_prompt:
                self._instructions = self._words()
        elif self.mode == "tool":
            schema, lost = project_schema(self._read_type.schema, can, tool=True)
            self._offer_tool(named, description, schema, options, can)
        else:
            lost = self._switch_on_json(tools, options, can)
            self._instructions = self._words()
        rows = [] if self.mode == "native" else [_row(f"asked for by {self.mode}: {why or 'so wanted'}")]
        self.losses: tuple[Loss, ...] = (*rows, *lost)

    def _offer_tool(
        self, named: str, description: str, schema: Mapping[str, Any], options: RequestOptions, can: ModelCapabilities
    ) -> None:
        taken = {one.name for one in self.tools}
        named = _FOREIGN.sub("_", named.lower())[:63]
        named = named if named[:1].isalpha() else f"t{named}"
        self.tool = f"{named[:57]}_answer" if named in taken else named
        definition = ToolDefinition(
            name=self.tool, description=f"{description} {_TOOL}".strip(), input_schema=schema,
            side_effects=SideEffects.NONE, requires_workspace=False,
        )  # fmt: skip
        thinks = self._wants_thinking or (
            can.thinks_by_default and options.thinking is None and options.effort != "none"
        )
        others = self.tools and options.tool_choice != "none"
        self.tools = (*self.tools, definition)
        if options.tool_choice == "required" or isinstance(options.tool_choice, ToolChoice):
            return
        if thinks and not can.forced_tool_with_thinking:
            choice: Any = "auto"
        elif can.supports_named_tool_choice and not others:
            choice = ToolChoice(self.tool)
        else:
            choice = "required" if can.supports_tool_choice else "auto"
        self.options = {"tool_choice": choice}
        if choice == "auto":
            self._instructions = _CALL.format(self.tool)

    def _switch_on_json(
        self, tools: Sequence[ToolDefinition], options: RequestOptions, can: ModelCapabilities
    ) -> list[Loss]:
        """Switch on the service's JSON mode, if there is one, below the caller's provider options."""
        if not can.json_mode or _conflict(tools, options, can):
            return []
        self.options = {"provider_options": _merge(can.json_mode, options.provider_options)}
        return [_row("the service's JSON mode is on: it keeps the answer to JSON, not to the schema")]

    def _words(self) -> str:
        return _PROMPT.format(dumps(self._read_type.schema).decode())

    @cached_property
    def _system(self) -> Message:
        return system(self._instructions)

    def messages(self, history: Sequence[Message]) -> Sequence[Message]:
        """Return the conversation with the instructions about the answer in its system prompt."""
        if not self._instructions:
            return history
        leading = next((at for at, one in enumerate(history) if one.role is not Role.SYSTEM), len(history))
        if not leading:
            return [attrs.evolve(self._system, session_id=history[0].session_id), *history]
        last = history[leading - 1]
        told = attrs.evolve(last, content=(*last.content, TextBlock(text=self._instructions)))
        return [*history[: leading - 1], told, *history[leading:]]

    def attempts(self, messages: Sequence[Message], retries: int) -> SchemaAttempts[_T]:
        """Start the attempts of a conversation; the answer may be requested again `retries` times."""
        return SchemaAttempts(self, messages, retries)

    def partials(self) -> JsonPartialReader:
        """Start to read partial answers from the events of one stream."""
        return JsonPartialReader(self.tool, self.restore, self.unwrap)

    def answer(self, message: Message, losses: Sequence[Loss]) -> Answer[_T]:
        """Return the answer of a stream's message; raises as `SchemaAttempts.take` does."""
        answer = SchemaAttempts(self, [message]).take(message, losses)
        assert answer is not None  # noqa: S101  there is no retry left
        return answer

    def misses_thinking(self, message: Message) -> bool:
        """Return whether the caller requested thinking and a message shows no sign of it."""
        usage = message.metadata.usage
        return self._wants_thinking and not message.thinking_blocks and not (usage and usage.reasoning_tokens)

    def is_answer(self, message: Message) -> bool:
        """Return whether a message is meant as the answer: it calls no tool of the caller."""
        return all(call.name == self.tool for call in message.tool_calls)

    def read(self, message: Message) -> tuple[_T, tuple[OutputProblem, ...]]:
        """Return the value of an answer and its problems; the value is valid only if there are no problems.

        Raises:
            ContentRefusedError: the model refused.
            OutputTruncatedError: the answer was cut off.
        """
        reason = message.metadata.stop_reason
        if reason is StopReason.REFUSAL:
            raise ContentRefusedError("the model refused to answer", partial=message)
        if reason in (StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW):
            raise OutputTruncatedError(f"the answer was cut off ({reason}): raise max_tokens, or ask for less")
        if self.tool and all(one.name != self.tool for one in message.tool_calls):
            return None, (OutputProblem("", f"the tool {self.tool} was not called"),)  # type: ignore[return-value]
        value = self._find(message)
        if value is None:
            return None, (OutputProblem("", "is not a JSON object"),)  # type: ignore[return-value]
        return self._read_type.read(value)

    def _find(self, message: Message) -> dict[str, Any] | None:
        """Return the JSON object of an answer, or None."""
        if not self.tool:
            return _find_json(message.text)
        call = next((one for one in message.tool_calls if one.name == self.tool), None)
        return None if call is None or call.parse_error else dict(call.input)

    def has_form(self, message: Message) -> bool:
        """Return whether an answer has the form of the type, regardless of the type's own checks of its values."""
        problems: list[OutputProblem] = []
        value = self._find(message)
        self._read_type.restore(value, problems)
        return value is not None and not problems

    def restore(self, value: Any) -> Any:
        """Convert the JSON of an answer, complete or partial, to the type's own form."""
        value = self._read_type.restore(value)
        return value.get("value") if self._read_type.wrapped and isinstance(value, dict) else value

    def unwrap(self, paths: Set[str]) -> frozenset[str]:
        """Convert paths in the answer's JSON to paths in its value."""
        return frozenset(one.removeprefix("value").lstrip("/") if self._read_type.wrapped else one for one in paths)

    def correct(self, message: Message, errors: Sequence[OutputProblem]) -> list[Message]:
        """Return the failed message and the messages that tell the model its errors, to be sent after the history."""
        lines = [f"{one.path or 'answer'}: {one.message}" for one in errors[:_MOST_PROBLEMS]]
        text = _WRONG.format("\n".join(lines + ["…"] * (len(errors) > _MOST_PROBLEMS)))
        if calls := message.tool_calls:
            return [message, *(tool_result(call, text, is_error=True, session_id=message.session_id) for call in calls)]
        return [*([message] if message.content else []), user(text, session_id=message.session_id)]

    def close(self, message: Message) -> list[Message]:
        """Return the message for the history, with a result for the call that was the answer."""
        text, failed = ("Taken.", False) if self.is_answer(message) else (_TOO_EARLY, True)
        calls = [call for call in message.tool_calls if call.name == self.tool]
        return [message, *(tool_result(call, text, is_error=failed, session_id=message.session_id) for call in calls)]


def _row(reason: str) -> Loss:
    return Loss(path="output", block_type="option", verdict="rewritten", reason=reason)


def _native_obstacle(tools: Sequence[Any], options: RequestOptions, can: ModelCapabilities) -> str:
    if not can.supports_structured_output:
        return "this model keeps to no schema"
    return _conflict(tools, options, can)


def _conflict(tools: Sequence[Any], options: RequestOptions, can: ModelCapabilities) -> str:
    """Return why the request allows no schema or JSON mode; "" if it does."""
    if tools and not can.structured_output_with_tools:
        return "this model takes no schema together with tools"
    return "this model takes no schema in a stream" if options.stream and not can.structured_output_streams else ""


def _merge(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two objects; values of `high` replace those of `low`."""
    made = {**low, **high}
    for name in low.keys() & high.keys():
        if isinstance(low[name], Mapping) and isinstance(high[name], Mapping):
            made[name] = _merge(low[name], high[name])
    return made


def _schema_obstacle(schema: Mapping[str, Any], can: ModelCapabilities) -> str:
    """Return which limit of the target a projected schema exceeds; "" if it is within them."""
    counts = {"optional": 0, "unions": 0, "depth": 0, "properties": 0, "enum_values": 0, "open": 0}

    def count(node: Mapping[str, Any], depth: int) -> None:
        properties = node.get("properties", {})
        depth += "properties" in node
        counts["depth"] = max(counts["depth"], depth)
        counts["properties"] += len(properties)
        counts["optional"] += len(properties.keys() - {*node.get("required", ())})
        counts["unions"] += "anyOf" in node
        counts["enum_values"] += len(node.get("enum", ()))
        counts["open"] += not node.keys() & _SAYING or (
            node.get("type") == "object" and "properties" not in node and node.get("additionalProperties") is not False
        )
        for child in child_schemas(dict(node)):
            count(child, depth)

    count(schema, 0)
    if counts.pop("open") and not can.schema_open_maps:
        return "the schema leaves open what a value is, and this service takes closed ones"
    for name, found in counts.items():
        most = getattr(can, f"schema_max_{name}")
        if 0 < most < found:
            return f"the schema has {found} {name.replace('_', ' ')}, and this service takes {most}"
    return "the schema refers to itself" if "$defs" in schema and not can.schema_recursive else ""


def _find_json(text: str) -> dict[str, Any] | None:
    """Find the JSON object of an answer: the whole text, in a fence, or between words."""
    fenced = _FENCED.findall(text)
    for part in (text, *fenced[-1:], text[text.find("{") : text.rfind("}") + 1]):
        try:
            value = loads(part.strip())
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


class SchemaAttempts(output.OutputAttempts[_T]):
    """The attempts to obtain one typed answer.

    Attributes:
        messages: the messages to send next, with the plan as `output`.
    """

    def __init__(self, plan: SchemaPlan[_T], messages: Sequence[Message], retries: int = 0) -> None:
        self._plan = plan
        self._history = self.messages = messages
        self._left = retries
        self._attempts: list[Attempt] = []
        self._losses: list[Loss] = []

    def take(self, message: Message, losses: Sequence[Loss]) -> Answer[_T] | None:
        """Return the answer of a message, or None if `messages` must be sent to ask again.

        Raises:
            InvalidOutputError: the answer does not fit and no retry is left.
            OutputTruncatedError: the answer was cut off.
            ContentRefusedError: the model refused to answer.
        """
        plan = self._plan
        self._losses += [one for one in losses if one not in self._losses]
        if not plan.is_answer(message) and message.metadata.status is MessageStatus.COMPLETE:
            return self._answer(message, None)
        try:
            value, errors = plan.read(message)
        except InvalidOutputError as error:
            self._attempts.append(Attempt(message))
            raise self._annotate(error) from None
        refusal = message.metadata.error if message.metadata.status is MessageStatus.ERROR else None
        if refusal is not None:  # the service read the answer and rejected it: its reason is listed first
            errors = (OutputProblem("", refusal.message), *(() if plan.tool else errors))
        self._attempts.append(Attempt(message, errors))
        if plan.misses_thinking(message):
            why = f"it was asked for, and answer {len(self._attempts)} came without any"
            self._losses.append(option_loss("thinking", "dropped", why))
        if not errors:
            return self._answer(message, value)
        if plan.mode == "native" and refusal is None and not plan.has_form(message):
            at, why = len(self._attempts), "did not keep to the schema it was given: its service did not force it"
            self._losses.append(option_loss("response_schema", "dropped", f"answer {at} {why}"))
        if not self._left or (refusal is None and message.metadata.status is not MessageStatus.COMPLETE):
            places = ", ".join(one.path or "the answer itself" for one in errors[:_MOST_PROBLEMS])
            text = f"after {len(self._attempts)} attempt(s) the answer does not fit at: {places}"
            raise self._annotate(InvalidOutputError(text, errors=errors))
        self._left -= 1
        self.messages = [*self._history, *plan.correct(message, errors)]
        return None

    def _answer(self, message: Message, value: Any) -> Answer[_T]:
        called = not self._plan.is_answer(message)
        return Answer(
            message=message,
            messages=tuple(self._plan.close(message)),
            attempts=() if called else tuple(self._attempts),
            usage=_sum_usage([*(one.message for one in self._attempts), *([message] if called else [])]),
            mode=self._plan.mode,
            losses=tuple(self._losses),
            value=value,
        )

    def _annotate(self, error: InvalidOutputError) -> InvalidOutputError:
        error.attempts = tuple(self._attempts)
        error.usage = _sum_usage([one.message for one in self._attempts])
        error.partial = self._attempts[-1].message
        return error


def _sum_usage(messages: Sequence[Message]) -> Usage:
    """Add up the usage of answers: each count over those that report it, the cost only if all report it."""
    usages = [one.metadata.usage or Usage() for one in messages]
    total: dict[str, Any] = {}
    for name in attrs.fields_dict(Usage):
        values = [value for one in usages if (value := getattr(one, name)) is not None]
        if not values or (name in ("cost", "cost_usd") and len(values) < len(usages)):
            continue
        if isinstance(values[0], Mapping):
            total[name] = {unit: sum(one.get(unit, 0) for one in values) for one in values for unit in one}
        elif isinstance(values[0], CostParts):
            parts = {part: sum(getattr(one, part) for one in values) for part in attrs.fields_dict(CostParts)}
            total[name] = CostParts(**parts)
        else:
            total[name] = values[-1] if isinstance(values[0], str) else sum(values)
    return Usage(**total)
