"""The values that serving hooks take and return, and the reading of a request into messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import attrs

from interlingua.errors import CallerError
from interlingua.plugins import EMPTY, Loss, dumps, loads, message_loss, option_loss
from interlingua.types import (
    ContentBlock,
    Message,
    MessageMetadata,
    ModelCapabilities,
    OpaqueBlock,
    Origin,
    Provenance,
    RequestOptions,
    Role,
    StreamEvent,
    TextBlock,
    ToolDefinition,
    new_ulid,
    replace,
)
from interlingua_serving.answers import State, restore_answer

_REFUSED = "a sealed state that may not be used here was left out"
_TIME = datetime.fromtimestamp(0, UTC)  # a request does not say when its messages were made
_JSON = "Answer with one JSON object, and nothing else: no other text, and no code fence around it."
_SCHEMA = _JSON + " The object follows this JSON Schema:\n{}"
_NAMED = "Answer with one JSON object."
_TOLD = "the system prompt asks for it"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@attrs.frozen(kw_only=True)
class ServedRoute:
    """A path of an API.

    Attributes:
        path: the path, with `{name}` for a segment that varies and `{name:path}` for one that may hold slashes, such as
            `/v1beta/models/{model:path}:generateContent`.
        kind: `send` for a conversation, `count_tokens` for a count of its tokens, `models` for the list of models,
            `model` for the facts of one (named in the path as `{model}` or `{model:path}`, else by
            `from_wire_request`), `version` for the version of the API, `pass` for requests that are not conversations
            and go unchanged to the API's own service; `answer`, `cancel` and `delete` for an answer that the host
            keeps, with its id as `{answer}` in the path.
        method: the HTTP method.
        free: True if requests of kind `pass` cost nothing, so that a key with a budget may send them.
    """

    path: str
    kind: Literal["send", "count_tokens", "models", "model", "version", "pass", "answer", "cancel", "delete"] = "send"
    method: str = "POST"
    free: bool = False


@attrs.frozen(kw_only=True)
class ServiceTool:
    """A tool that an API's service runs for the model, and what it costs in addition to tokens.

    Attributes:
        name: the tool in a request, with wildcards: the `type` of an entry of `tools`, or a member of an entry without
            a type.
        unit: the name of its uses in `Usage.extra_units`, by which the catalogue prices them; empty if it costs tokens
            only.
        uses: the member of its entry that limits its uses, such as `max_uses`; empty without one.
    """

    name: str
    unit: str = ""
    uses: str = ""


@attrs.frozen(kw_only=True)
class ServedApi:
    """An API that a plugin serves.

    Attributes:
        name: the API, as in `ModelCapabilities.api`.
        routes: its paths. None if another plugin serves the same API at its paths, so that a gateway adds none.
        references: members of a request, by their names in `InboundRequest.extra`, that name data which only the
            API's own service holds, such as `previous_response_id`. Another provider cannot answer a request with them.
        other_models: members of a request, by their names in `InboundRequest.extra`, with which another model than the
            requested one may answer, such as `fallbacks`. A host refuses them to callers that may not use every model.
        answer_counts: places in `InboundRequest.extra` of the number of answers that a request asks for, such as
            `generationConfig.candidateCount`. A host refuses more than one, because it returns one and all cost.
        tiers: members of a request, by their names in `InboundRequest.extra`, that choose a price, such as
            `service_tier`. A host with budgets reserves the highest price of the model then.
        unpriced: members of a request, by their names in `InboundRequest.extra`, with which it may cost more than its
            tokens, such as `tools` that the service runs. A host with budgets refuses them, or reserves an amount.
        service_tools: tools of the service whose cost is known; a host with budgets reserves it.
        tool_blocks: kinds of opaque blocks that bring such tools in their member `tools`.
        tool_uses: the member of a request that limits the uses of all of them, such as `max_tool_calls`.
        told_apart_by: a request header that only callers of this API send. It decides between two APIs that share a
            path.
        key_headers: request headers, in addition to `authorization`, in which callers of this API send their key.
        key_parameters: query parameters in which they do.
        input_tokens: places of the number of input tokens in answers of `pass` routes, such as `usage.prompt_tokens`;
            the first one that an answer has counts.
        output_tokens: the same for output tokens.
    """

    name: str
    routes: tuple[ServedRoute, ...] = ()
    references: tuple[str, ...] = ()
    other_models: tuple[str, ...] = ()
    answer_counts: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    service_tools: tuple[ServiceTool, ...] = ()
    tool_blocks: tuple[str, ...] = ()
    tool_uses: str = ""
    told_apart_by: str = ""
    key_headers: tuple[str, ...] = ()
    key_parameters: tuple[str, ...] = ()
    input_tokens: tuple[str, ...] = ()
    output_tokens: tuple[str, ...] = ()


@attrs.frozen
class ServedModel:
    """A model that callers asked about.

    Attributes:
        name: the name that callers use.
        capabilities: those of the first model that answers for it.
    """

    name: str
    capabilities: ModelCapabilities


@attrs.frozen(kw_only=True)
class InboundRequest:
    """A request in a provider's API, as a serving plugin read it.

    Attributes:
        messages: the conversation. An answer has the origin in its sealed state, or this API's service as its origin.
        tools: the tools of the request, mostly `WireTool`.
        options: the options of the request: the requested `model`, `stream`, `api`; without `provider_options`.
        extra: members that only this API has, in the form of `options.provider_options`.
        covered: members of `extra` that `options` express too, each with the options to leave out beside it.
        json_mode: the member of `extra` that asks for some JSON object, the JSON mode of this API; None without one.
        continues: the id of an earlier answer that the request continues, if a host keeps answers
            (`continue_request`); None without one.
        stored: True if the caller wants the answer to be kept.
        private: indexes of messages that only this API's own service may read.
        provider: the key of the provider whose API it is.
        losses: parts that could not be read, such as an altered seal.
        echo: values that the plugin needs when it writes the answer (`ServeContext.echo`).
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: RequestOptions
    extra: Mapping[str, Any] = EMPTY
    covered: Mapping[str, Sequence[str]] = EMPTY
    json_mode: str | None = None
    continues: str | None = None
    stored: bool = False
    private: tuple[int, ...] = ()
    provider: str
    losses: tuple[Loss, ...] = ()
    echo: Mapping[str, Any] = EMPTY

    def for_upstream(
        self, provider: str, api: str, model: str, can: ModelCapabilities | None = None
    ) -> tuple[tuple[Message, ...], RequestOptions, tuple[Loss, ...]]:
        """Return messages and options for the model that will answer, and the losses.

        A model with the same API gets the whole request. A model with another API gets it without the members that
        only this API has. The exact form of `covered` members is kept for this API's own service and the requested
        model only, because other models may reject it. A JSON mode or a schema that the model does not take, or not
        in this request, becomes an instruction in the system prompt.

        Args:
            provider: the provider key of the model.
            api: the API of the model.
            model: the model name without provider key.
            can: the model's capabilities; without them, a schema is passed on and a JSON mode is an instruction.
        """
        asked, messages, losses = self.options.model, self.messages, list(self.losses)
        own = provider == self.provider and api == self.options.api
        if own and model == asked:
            left_out: dict[str, Any] = dict.fromkeys(name for names in self.covered.values() for name in names)
            return messages, attrs.evolve(self.options, **left_out, provider_options=self.extra), tuple(losses)
        extra = {name: value for name, value in self.extra.items() if name not in self.covered}
        options, shape = self.options, _AnswerShape(can, self.tools, self.options, losses)
        if api != self.options.api:
            for name, value in extra.items():
                if value is not None and name != self.json_mode:
                    losses.append(option_loss(f"provider_options.{name}", "dropped", "only this API has it"))
            extra = shape.json_mode(f"provider_options.{self.json_mode}", messages) if self.json_mode else {}
        if options.response_schema is not None and (mode := shape.schema(options.response_schema)) is not None:
            options = attrs.evolve(options, response_schema=None)
            extra = {**mode, **extra}
        if own:  # answers without a seal count as answers of the model in use
            before, now = f"{provider}:{asked}", f"{provider}:{model}"
            messages = tuple(
                [
                    replace(each, metadata=replace(each.metadata, model=now)) if each.metadata.model == before else each
                    for each in messages
                ]
            )
        else:
            lost = [message_loss(at, "it is for this API's own service") for at in self.private]
            losses += [attrs.evolve(row, verdict="dropped") for row in lost]
            messages = tuple([each for at, each in enumerate(messages) if at not in self.private])
        messages = shape.told(messages)
        return messages, attrs.evolve(options, model=model, api=api, provider_options=extra), tuple(losses)


class _AnswerShape:
    """The shape of an answer that a request asks for, and how a model is asked for it.

    Args:
        can: the model's capabilities; None if they are not known.
        tools: the tools of the request.
        options: its options.
        losses: receives a row for what is asked for in words.
    """

    def __init__(
        self,
        can: ModelCapabilities | None,
        tools: Sequence[ToolDefinition],
        options: RequestOptions,
        losses: list[Loss],
    ) -> None:
        self._can, self._losses = can, losses
        self._obstacle = ""  # why the model takes neither a schema nor its JSON mode in this request
        self._words = self._name = ""
        if can is not None and tools and not can.structured_output_with_tools:
            self._obstacle = "this model takes no schema or JSON mode together with tools"
        elif can is not None and options.stream and not can.structured_output_streams:
            self._obstacle = "this model takes no schema or JSON mode in a stream"

    def json_mode(self, option: str, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the `provider_options` for some JSON object; without a JSON mode, words ask for it.

        Args:
            option: the option that asks for it.
            messages: the conversation. Services refuse a JSON mode if it does not name JSON.
        """
        mode = {} if self._can is None or self._obstacle else dict(self._can.json_mode)
        if not mode:
            self._words = _JSON
            reason = f"{self._obstacle or 'this model has no JSON mode'}; {_TOLD}"
            self._losses.append(option_loss(option, "rewritten", reason))
        elif not any(map(_names_json, messages)):
            self._name = _NAMED
            self._losses.append(
                option_loss(option, "rewritten", "a JSON mode needs a prompt that names JSON; it does now")
            )
        return mode

    def schema(self, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return None if the model takes a schema; else words ask for it, beside the `provider_options` returned."""
        can = self._can
        if can is None or (can.supports_structured_output and not self._obstacle):
            return None
        self._words = _SCHEMA.format(dumps(schema).decode())
        reason = f"{self._obstacle or 'this model takes no schema'}; {_TOLD}"
        self._losses.append(option_loss("response_schema", "rewritten", reason))
        return {} if self._obstacle else dict(can.json_mode)

    def told(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return a conversation with the words at the end of its system prompt, or of its first question."""
        if self._name:
            first = next((at for at, each in enumerate(messages) if each.role is Role.USER), None)
            messages = messages if first is None else _with_text(messages, first, self._name)
        if not self._words:
            return messages
        leading = next((at for at, each in enumerate(messages) if each.role is not Role.SYSTEM), len(messages))
        if leading:
            return _with_text(messages, leading - 1, self._words)
        words = Message(id=new_ulid(), role=Role.SYSTEM, content=(TextBlock(text=self._words),), created_at=_TIME)
        return (words, *messages)


def _names_json(message: Message) -> bool:
    """Return whether a message has the word "json"; some services do not count a system prompt."""
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    return message.role is not Role.SYSTEM and any("json" in text.lower() for text in texts)


def _with_text(messages: tuple[Message, ...], at: int, text: str) -> tuple[Message, ...]:
    told = replace(messages[at], content=(*messages[at].content, TextBlock(text=text)))
    return (*messages[:at], told, *messages[at + 1 :])


@attrs.frozen(kw_only=True)
class ServeContext:
    """The values that a serving plugin must not make itself: ids, the time, seals, and the facts of the request.

    Attributes:
        provider: the key of the provider whose API it is; answers of that provider and API need no seal.
        api: the API.
        model: the requested model name, which the answer contains, whichever model made it; "" for a request.
        origin: the model that makes the answer; None for an error before a model was asked.
        echo: the value of `InboundRequest.echo`.
        answer_id: a unique id of letters and digits for the answer; the plugin adds the API's prefix.
        new_id: returns further ids, for parts of the answer.
        clock: returns the time in UTC.
        stores_answers: True if the host stores answers with their state, and finds them by the conversation.
        seal: turns state into a string that only `unseal` can read: URL-safe base64 with padding. If it is None, state
            is dropped.
        unseal: returns the state of a seal; {} for a seal that cannot be used here (altered, or of another key or
            tenant); None for a string that is not a seal.
    """

    provider: str
    api: str
    model: str = ""
    origin: Origin | None = None
    echo: Mapping[str, Any] = EMPTY
    answer_id: str = attrs.field(factory=new_ulid)
    new_id: Callable[[], str] = new_ulid
    clock: Callable[[], datetime] = _utc_now
    stores_answers: bool = False
    seal: Callable[[State], str] | None = None
    unseal: Callable[[str], State | None] = lambda _text: None

    @property
    def is_own(self) -> bool:
        """True if this API's own service makes the answer."""
        return self.origin is not None and self.origin[:2] == (self.provider, self.api)


def read_body(body: bytes) -> dict[str, Any]:
    """Return a body as a JSON object.

    Raises:
        CallerError: the body is not JSON, or another value.
    """
    value = loads(body)
    if not isinstance(value, dict):
        raise CallerError("the body is not a JSON object")
    return value


def require_string(holder: Mapping[str, Any], name: str, path: str = "", *, empty: bool = False) -> str:
    """Return a member that must be a string.

    Args:
        holder: an object of the body.
        name: the member.
        path: the place of the object in the body, for the error.
        empty: True if the string may be empty.

    Raises:
        CallerError: the member is missing or another value.
    """
    value = holder.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise CallerError(f"{path}.{name}: a string is required".lstrip("."))
    return value


def require_objects(value: Any, path: str) -> list[dict[str, Any]]:
    """Return a member that must be a list of objects; an empty list if it is missing.

    Raises:
        CallerError: it is another value.
    """
    listed = [] if value is None else value
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise CallerError(f"{path}: a list of objects is required")
    return listed


class RequestMessages:
    """The messages of a request. Their ids are their indexes, because a request has no ids.

    Args:
        context: the facts of the request.
        model: the requested model, which made the answers that carry no state of another origin.

    Attributes:
        messages: the messages so far.
        losses: the parts that could not be read.
        origin: the service and model whose API it is.
    """

    def __init__(self, context: ServeContext, model: str) -> None:
        self.messages: list[Message] = []
        self.losses: list[Loss] = []
        self.origin = Origin(context.provider, context.api, model)

    def add(
        self,
        role: Role,
        content: Sequence[ContentBlock],
        replay: Mapping[str, Any] | None = None,
        *,
        call: str | None = None,
    ) -> None:
        """Add a message. An answer without state of another origin counts as an answer of `origin`.

        Args:
            role: its role.
            content: its blocks.
            replay: fields that only this API has.
            call: the id of the call that it answers.
        """
        self.messages.append(self._made(role, content, replay, call))

    def add_answer(self, items: Sequence[ContentBlock | State], replay: Mapping[str, Any] | None = None) -> Message:
        """Add an answer with the state that its caller kept, and return it.

        Args:
            items: its blocks, with each unsealed state before the block that carried it.
            replay: fields that only this API has.
        """
        message = restore_answer(self._made(Role.ASSISTANT, (), replay), items)
        self.messages.append(message)
        return message

    def opaque(self, part: Mapping[str, Any], kind: str) -> OpaqueBlock:
        """Return a part that only this API's own service understands."""
        return OpaqueBlock(provider=self.origin.provider, kind=kind, data=part)

    def lose(self, block_type: str, reason: str, verdict: Literal["rewritten", "dropped"] = "dropped") -> None:
        """Add a loss of the next message."""
        path = f"messages[{len(self.messages)}]"
        self.losses.append(Loss(path=path, block_type=block_type, verdict=verdict, reason=reason))

    def lose_sealed(self) -> None:
        """Add the loss of a sealed state of the next message that may not be used here."""
        self.lose("thinking", _REFUSED)

    def _made(
        self,
        role: Role,
        content: Sequence[ContentBlock],
        replay: Mapping[str, Any] | None,
        call: str | None = None,
    ) -> Message:
        facts: dict[str, Any] = {}
        if replay or role is Role.ASSISTANT:
            provider, api, model = self.origin
            facts = {"model": f"{provider}:{model}", "provider": provider, "api": api}
            facts["provenance"] = Provenance.IMPORTED
        if replay:
            facts["provider_raw"] = {"origin": list(self.origin), "replay": replay, "trace": {}}
        metadata = MessageMetadata(parent_tool_use_id=call, **facts)
        name = f"m{len(self.messages)}"
        return Message(id=name, role=role, content=tuple(content), metadata=metadata, created_at=_TIME)


class StreamWriter(Protocol):
    """Writes the events of one answer in an API's framing.

    Attributes:
        content_type: the media type of the HTTP response.
        losses: the parts of the answer that this API cannot express.
    """

    content_type: str
    losses: list[Loss]

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        """Return the bytes for the events of one upstream read, to be sent in one write; b"" if there are no bytes.

        An `ErrorEvent` is written as this API's own error, last.
        """
        ...

    def end(self) -> bytes:
        """Return the remaining bytes after the last event: an error if no event ended the answer."""
        ...
