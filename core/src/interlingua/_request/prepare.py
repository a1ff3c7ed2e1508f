"""From a caller's arguments to bytes: options, hooks, capabilities, rules, media, projection, the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from interlingua._catalogue import ModelInfo
from interlingua._ids import new_ulid
from interlingua._json import EMPTY
from interlingua._plugins.losses import option_loss
from interlingua._plugins.provider import ProjectionTarget, Provider
from interlingua._plugins.wire import RequestContext, WireRequest
from interlingua._request.conversation import ConversationCache, ConversationState
from interlingua._request.media import Fetched, refer_to_uploads, resolve_references, urls_to_fetch
from interlingua._request.prefix import PrefixWatch, add_cache_hints, price_change
from interlingua._request.project import BLOCK_PATH, NOTED, locate_losses
from interlingua._request.rules import i23_tool_names_are_unique
from interlingua._request.wire_names import wire_name, wire_tools
from interlingua._values import replace
from interlingua.errors import CallerError, CapabilityError, InvalidConversationError
from interlingua.types.blocks import MediaSource, RedactedThinkingBlock, ThinkingBlock, UnknownBlock
from interlingua.types.factories import tools_at, user
from interlingua.types.messages import Loss, Message, Origin, Role, RoutingDecision, changes_in
from interlingua.types.options import RequestKwargs, RequestOptions, ToolChoice, nearest
from interlingua.types.tools import ToolDefinition

_NAMES = RequestKwargs.__optional_keys__
_NO_CONVERSATION = (
    "a conversation is a string, a Message or a sequence of Message values; interlingua.user(...) makes one,"
    " interlingua.codec.decode_messages(...) reads stored ones"
)

_HINTS = {
    "stream": "call .stream(...) for a stream",
    "system": "put interlingua.system(...) first in the messages",
    "max_completion_tokens": "use max_tokens",
    "extra_body": "use provider_options",
    "extra_headers": "use headers",
    "max_retries": "pass it to the client: Client(…, retry=2)",
}
OF_CLIENTS = (
    "api_key", "base_url", "registry", "settings", "timeout", "retry", "http_client", "transport", "workspace",
    "environ", "max_response_bytes", "fetch", "fallback", "concurrency", "requests_per_minute", "tokens_per_minute",
    "uploads",
)  # fmt: skip
_HINTS |= {name: f"pass it to the client: Client(…, {name}=…)" for name in OF_CLIENTS}
_HINTS |= dict.fromkeys(("messages", "history", "prompt"), "pass the messages as the first argument")
_OF_AGENTS = ("confirm", "instructions", "max_turns", "budget_usd", "compactor", "listen")
_HINTS |= {name: f"it belongs to agents: Agent(…, {name}=…)" for name in _OF_AGENTS}


def check_options(given: Iterable[str], names: Set[str] = _NAMES) -> None:
    """Raise a CallerError about the first option that does not exist, with a hint."""
    for name in given:
        if name not in names:
            raise CallerError(f"unknown option {name!r}: {_HINTS.get(name) or nearest(name, sorted(names))}")


def read_options(
    given: Mapping[str, Any], settings: Mapping[str, Any] = EMPTY, headers: Mapping[str, str] = EMPTY, **fixed: Any
) -> RequestOptions:
    """Make the options of one request from the caller's options and the client's settings for the provider and headers.

    Raises:
        CallerError: no option has that name, or a value has the wrong type.
    """
    check_options(given, _NAMES - {"model", "user_id", "team_id", "tools", "routing"})  # what else a call takes
    given = {"api": settings.get("api"), **{name: value for name, value in given.items() if value is not None}}
    if headers:
        given["headers"] = {**headers, **given.get("headers", {})}
    try:
        return RequestOptions(**fixed, **given, connection=settings.get("options") or EMPTY)
    except CallerError as error:
        raise CallerError(error.message.replace("RequestOptions.", "option ", 1)) from None


def read_messages(given: str | Message | Sequence[Message]) -> Sequence[Message]:
    """Return a conversation of messages; raise a CallerError if it is empty, or holds something else."""
    if isinstance(given, str):
        if not given.strip():
            raise CallerError("there is nothing to send: the text is empty")
        return (user(given),)
    if isinstance(given, Message):
        return (given,)
    if not hasattr(given, "__getitem__") or isinstance(given, (Mapping, bytes)):
        raise CallerError(f"{_NO_CONVERSATION}; not {type(given).__name__}")
    if not len(given):
        raise CallerError("there is nothing to send: the conversation is empty")
    if wrong := {*map(type, given)} - {Message}:
        raise CallerError(f"{_NO_CONVERSATION}; not {wrong.pop().__name__}")
    if not given[0].content and not any(message.content for message in given):
        raise CallerError("there is nothing to send: no message holds anything")
    return given


def read_tools(given: Sequence[Any], messages: Sequence[Message], options: RequestOptions) -> Sequence[ToolDefinition]:
    """Check the tools: each must be a ToolDefinition, and a forced tool must be one that may be called by now."""
    if isinstance(given, (ToolDefinition, Mapping, str)) or not isinstance(given, Iterable):
        raise CallerError(f"tools must be a sequence of ToolDefinition values, not {type(given).__name__}")
    for tool in given:
        if not isinstance(tool, ToolDefinition):
            text = f"a tool must be a ToolDefinition, not {type(tool).__name__}; from_wire_tool(...) reads other forms"
            if isinstance(getattr(tool, "definition", None), ToolDefinition):
                text = (
                    f"{tool.definition.name!r} is a tool with its function, and a request runs no functions: pass its"
                    " `definition` to offer it, or run it with an agent (pip install interlingua-agents)"
                )
            raise CallerError(text)
    forced = options.tool_choice
    names = [tool.name for tool in tools_at(given, messages)] if isinstance(forced, ToolChoice) else []
    if isinstance(forced, ToolChoice) and forced.name not in names:
        text = f"tool_choice requires the tool {forced.name!r}, but the request offers: "
        raise CallerError(text + (", ".join(names) or "none"))
    return given


class RequestDraft:
    """One request: what was asked, as plugins' `prepare_request` hooks left it, and, once written, what is sent."""

    wire: WireRequest
    context: RequestContext  # what the answer is read with
    uploaded: Mapping[Any, MediaSource] = EMPTY  # what is sent instead of these media

    def __init__(
        self,
        provider: Provider,
        messages: str | Message | Sequence[Message],
        tools: Sequence[ToolDefinition],
        options: RequestOptions,
        routing: RoutingDecision | None = None,
        team_id: str | None = None,
        losses: tuple[Loss, ...] = (),
        cache: ConversationCache | None = None,
    ) -> None:
        """Read what a caller gave, let plugins change it, and check it against rules and capabilities.

        Raises:
            CallerError: messages or tools cannot be read, the conversation breaks a rule that projection cannot repair
                (InvalidConversationError), or the target cannot do what was asked (CapabilityError).
        """
        self.provider = provider
        read = read_messages(messages)
        self.messages, self.tools, self.options = provider.prepare(read, read_tools(tools, read, options), options)
        self.target: ProjectionTarget = provider.target(self.options)
        self._folded = fold_changes(self.messages, self.tools, self.options, self.target)
        self._routing, self._team_id, self._losses = routing, team_id, losses
        self._check_capabilities()
        self._conversation = cache.claim(self.messages) if cache is not None else ConversationState(self.messages)
        broken = (*self._conversation.check(), *i23_tool_names_are_unique(self.tools))
        if broken:
            self._conversation.release()
            raise InvalidConversationError(broken, provider=provider.key, model=self.options.model)

    @property
    def urls(self) -> Sequence[str]:
        """Image URLs that must be fetched before `build`: the target takes images, but none by URL."""
        media = self._conversation.media
        return urls_to_fetch(media.values()) if media and self._inlines_urls else ()

    def build(
        self,
        fetched: Mapping[str, Fetched] | None = None,
        *,
        workspace: str | Path | None = None,
        watch: PrefixWatch | None = None,
        model_info: Callable[[], ModelInfo | None] = lambda: None,
        models_for: Callable[[Any], Sequence[str]] = lambda _: (),
    ) -> WireRequest:
        """Build the request, once and again after `drop_thinking`, and set `wire` and `context`.

        Without `fetched`, the contents of `urls`, it is a preview in which the URLs appear instead. `watch` reports
        prompt caches that this request loses; the error about a block that this model does not take
        lists the result of `models_for`.

        Raises:
            CallerError: a reference cannot be resolved, or the target cannot carry what was asked (CapabilityError).
        """
        with self._conversation as conversation:
            messages: Sequence[Message] = conversation.messages
            lost = self._losses
            if media := conversation.media:
                from interlingua._request.media_limits import enforce_media_limits  # noqa: PLC0415  only for media

                messages, unfetched = resolve_references(messages, media, self._inlines_urls, workspace, fetched)
                downscale = self.options.downscale_images
                messages, files = refer_to_uploads(messages, media, self.uploaded, images=False)
                messages, smaller = enforce_media_limits(messages, media, self.target, downscale=downscale)
                messages, pictures = refer_to_uploads(messages, media, self.uploaded, images=True)
                lost += smaller + unfetched + files + pictures
            tools, options = self._folded
            self.wire = _build(self.provider, self.target, conversation, messages, tools, options, lost)
            if self.wire.losses:
                if not self.options.allow_loss:
                    self._refuse_new_losses(self.wire.losses, models_for)
                self.provider.log_losses(self.wire.losses, messages[0].session_id, conversation.logged)
            conversation.note_written(self.target, len(self.wire.body))
        if watch is not None:
            missed = watch.check(conversation.messages, self.provider, tools, self.options, model_info)
            if missed is not None:
                self.wire = attrs.evolve(self.wire, losses=price_change(self.wire.losses, *missed))
        newest = self.messages[-1]
        self.context = RequestContext(
            origin=Origin(self.provider.key, self.wire.api, self.options.model),
            message_id=_id_after(newest.id),
            session_id=newest.session_id,
            routing=self._routing,
            tool_names=self.wire.tool_names,
            echo=self.wire.echo,
            user_id=self.options.user_id,
            team_id=self._team_id,
        )
        return self.wire

    def drop_thinking(self) -> bool:
        """Leave out the thinking of earlier answers when `build` writes again; False if nothing changes."""
        kinds = (ThinkingBlock, RedactedThinkingBlock)
        if self.target.refused_thinking or not any(
            isinstance(block, kinds) for message in self.messages for block in message.content
        ):
            return False
        self.target = attrs.evolve(self.target, refused_thinking=True)
        self.begin_again()
        return True

    def begin_again(self) -> None:
        """Prepare for another `build`."""
        media, self._conversation = self._conversation.media, ConversationState(self.messages)
        self._conversation.media = media

    def media(self, fetched: Mapping[str, Fetched] | None, workspace: str | Path | None) -> list[tuple[str, Any]]:
        """Return the media that the target takes, references resolved, each with its place."""
        if not (media := self._conversation.media):
            return []
        from interlingua._request.media_limits import find_places  # noqa: PLC0415  only for media

        messages, _ = resolve_references(self.messages, media, self._inlines_urls, workspace, fetched)
        return [(place.path, place.media) for place in find_places(messages, media, self.target)]

    def _refuse_new_losses(self, losses: Sequence[Loss], models_for: Callable[[Any], Sequence[str]]) -> None:
        """Raise a CapabilityError if the model would not read a block of the user's newest turn, not answered yet."""
        begin = len(self.messages)  # of the turn: the first message that no model has answered
        for answer in (True, False):  # a last answer is one to be continued
            while begin and (self.messages[begin - 1].role is Role.ASSISTANT) is answer:
                begin -= 1
        for loss in losses:
            match = BLOCK_PATH.match(loss.path) if loss.severity == "content" else None
            if match is None or match[2] is None or int(match[1]) < begin:
                continue
            message = self.messages[int(match[1])]
            block: Any = message.content[int(match[2])]
            if message.role is not Role.USER or type(block) is UnknownBlock:  # of a newer version, from a file
                continue
            reason = loss.reason.removesuffix(NOTED)
            key, model, kind = self.provider.key, self.options.model, loss.block_type
            kind += f" ({block.media_type})" if getattr(block, "media_type", None) else ""
            text = f"{key}:{model} cannot read the {kind} in block {match[2]} of message {match[1]}: {reason}"
            hint = f"models that can: {', '.join(others)}; " if (others := models_for(block)) else ""
            hint += "allow_loss=True sends a note instead"
            raise CapabilityError(text, path=loss.path, provider=key, model=model, hint=hint)

    @property
    def _inlines_urls(self) -> bool:
        can = self.target.capabilities
        return can.supports_images and not can.supports_image_urls

    def _check_capabilities(self) -> None:
        can, options = self.target.capabilities, self._folded[1]
        for wanted, able, what in (
            (self.tools, can.supports_tools, "tools"),
            (options.response_schema is not None, can.supports_structured_output, "response_schema"),
            (options.stream, can.supports_streaming, "streaming"),
        ):
            if wanted and not able:
                key, model = self.provider.key, options.model
                raise CapabilityError(f"{key}:{model} does not support {what}", path=what, provider=key, model=model)


def build_request(
    provider: Provider,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: RequestOptions,
    *,
    cache: ConversationCache | None = None,
) -> WireRequest:
    """Build a provider's request for these messages, with its losses, without checking rules or media.

    For callers that have a `Provider` and no client: tests, wire linters, the swap matrix. Messages in `cache` are not
    encoded again.

    Raises:
        CapabilityError: a critical block cannot be carried, or an option cannot be expressed.
    """
    target = provider.target(options)
    with ConversationState(messages) if cache is None else cache.claim(messages) as conversation:
        tools, options = fold_changes(messages, tools, options, target)
        request = _build(provider, target, conversation, conversation.messages, tools, options, ())
        if request.losses:
            provider.log_losses(request.losses, messages[0].session_id if messages else "", conversation.logged)
        return request


def fold_changes(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions, target: ProjectionTarget
) -> tuple[Sequence[ToolDefinition], RequestOptions]:
    """Return tools and options with the changes in the conversation that the target takes in no other form."""
    can, changes = target.capabilities, changes_in(messages)
    if changes and not can.supports_tool_changes:
        tools = tools_at(tools, messages)
    settings = {"effort": can.supports_effort_changes, "response_schema": can.supports_format_changes}
    for name, able in settings.items() if changes else ():
        values = [value for change in changes if (value := getattr(change, name)) is not None]
        if values and not able:
            options = replace(options, **{name: values[-1] or None})  # an empty schema: any text
    return tools, options


def _build(
    provider: Provider,
    target: ProjectionTarget,
    conversation: ConversationState,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: RequestOptions,
    lost: tuple[Loss, ...],
) -> WireRequest:
    """Project the messages, call the plugin, and put the losses of all steps into the request."""
    projected, losses = conversation.project(target, messages).result()
    if messages and not projected:
        why = losses[0].reason if losses else "no message holds anything"
        text = f"nothing of this conversation can be sent to {provider.key}:{target.model}: {why}"
        raise CapabilityError(text, path="messages", provider=provider.key, model=target.model)
    added = [tool for change in changes_in(messages) for tool in change.tools_added]
    tools, names, lost_tools = wire_tools(tools, added, target) if tools or added else (tools, {}, ())
    losses += lost_tools
    if names and isinstance(options.tool_choice, ToolChoice):  # the tool's name in this request
        options = attrs.evolve(options, tool_choice=ToolChoice(wire_name(options.tool_choice.name, target)))
    can, wanted = target.capabilities, options.max_tokens or 0
    if options.cache and not can.caches_only_hints:
        options = attrs.evolve(options, cache=None)
    elif options.cache:
        projected, tools = add_cache_hints(projected, tools, can.max_cache_hints)
    most = 0 if can.assumed and "max_output_tokens" not in options.capabilities else can.max_output_tokens
    if 0 < most < wanted:
        reason = f"this model answers with {most:,} tokens at most, not {wanted:,}; {most} is sent"
        losses = (*losses, option_loss("max_tokens", "rewritten", reason))
        options = attrs.evolve(options, max_tokens=most)
    if options.thinking_budget == 0:
        options = attrs.evolve(options, thinking=False, thinking_budget=None)
    request: WireRequest = provider.call_hook("to_wire", messages=projected, tools=tools, options=options)
    if request.losses:
        losses += locate_losses(request.losses, projected, messages, losses)
    if losses or names:
        request = attrs.evolve(request, losses=losses, tool_names=names)
    return attrs.evolve(request, losses=(*lost, *request.losses)) if lost else request


def _id_after(last: str) -> str:
    """Mint an id greater than the conversation's last, whatever clock that one came from (format.md, Identity)."""
    made = new_ulid()
    if made > last:
        return made
    with suppress(CallerError):  # an imported history may use other ids
        return new_ulid(after=last)
    return made
