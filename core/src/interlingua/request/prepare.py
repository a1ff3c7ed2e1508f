"""The stations of a request, in order: hooks, capabilities, rules, media, projection, the adapter's bytes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from interlingua.catalogue import ModelInfo
from interlingua.errors import CallerError, CapabilityError, InvalidConversationError
from interlingua.ids import new_ulid
from interlingua.plugins.provider import Provider, Target
from interlingua.plugins.wire import Loss, RequestContext, WireRequest
from interlingua.request.conversation import (
    PrefixWatch,
    PreparedConversation,
    claim_conversation,
    reclaim_conversation,
)
from interlingua.request.media import Fetched, enforce_media_limits, resolve_references, urls_to_fetch
from interlingua.request.project_blocks import locate_losses, wire_tools
from interlingua.request.rules import i24_tool_names_are_unique
from interlingua.types.messages import Message, Origin, RoutingDecisionRecord
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition

_log = logging.getLogger("interlingua")


class PreparedRequest:
    """One request: what was asked and, once written, the bytes to send and the context its answer is read with.

    Attributes:
        provider: who is asked.
        messages: the conversation as plugins' `prepare_request` hooks left it.
        tools: what the model may call.
        options: of this request.
        target: what the provider carries with this model.
        wire: the request as bytes, after `write`.
        context: what the answer is read with, after `write`.
    """

    wire: WireRequest
    context: RequestContext

    def __init__(
        self,
        provider: Provider,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        options: AdapterOptions,
        routing: RoutingDecisionRecord | None = None,
    ) -> None:
        """Let plugins change the request, and hold it against rules and capabilities.

        Raises:
            InvalidConversationError: the conversation breaks a rule that projection cannot repair.
            CapabilityError: the target cannot do what was asked.
        """
        self.provider = provider
        self.messages, self.tools, self.options = provider.prepare(messages, tools, options)
        self.target: Target = provider.target(self.options)
        self._routing = routing
        self._check_capabilities()
        self._conversation = claim_conversation(self.messages)
        try:
            broken = (*self._conversation.check(), *i24_tool_names_are_unique(self.tools))
        finally:
            self._conversation.release()
        if broken:
            raise InvalidConversationError(broken, provider=provider.key, model=self.options.model)

    @property
    def urls(self) -> Sequence[str]:
        """Image URLs that must be fetched before `write`: the target takes images, but none by URL."""
        media = self._conversation.media
        return urls_to_fetch(media.values()) if media and self._inlines_urls else ()

    def write(
        self,
        fetched: Mapping[str, Fetched] | None = None,
        *,
        workspace: str | Path | None = None,
        watch: PrefixWatch | None = None,
        model_info: Callable[[], ModelInfo | None] = lambda: None,
    ) -> PreparedRequest:
        """Write the request.

        Args:
            fetched: what `urls` gave.
            workspace: the folder that `file_ref` media are read from.
            watch: warns where the prompt cache is lost.
            model_info: gives the model's catalogue row, for that warning.

        Raises:
            CapabilityError: a critical block cannot be carried, or the target takes no media so many or so large.
            CallerError: a reference cannot be resolved.
        """
        conversation = reclaim_conversation(self._conversation, self.messages)
        try:
            messages, lost = self._resolve_media(conversation, workspace, fetched or {})
            self.wire = _write(self.provider, self.target, conversation, messages, self.tools, self.options, lost)
            conversation.keep()
        finally:
            conversation.release()
        if watch is not None:
            watch.check(conversation, self.provider, self.tools, self.options, model_info)
        newest = self.messages[-1]
        self.context = RequestContext(
            origin=Origin(self.provider.key, self.wire.api, self.options.model),
            message_id=_id_after(newest.id),
            session_id=newest.session_id,
            routing=self._routing,
            tool_names=self.wire.tool_names,
            echo=self.wire.echo,
            user_id=self.options.user_id,
        )
        return self

    @property
    def _inlines_urls(self) -> bool:
        can = self.target.capabilities
        return can.supports_images and not can.supports_image_urls

    def _resolve_media(
        self, conversation: PreparedConversation, workspace: str | Path | None, fetched: Mapping[str, Fetched]
    ) -> tuple[Sequence[Message], tuple[Loss, ...]]:
        messages: Sequence[Message] = conversation.messages
        if not conversation.media:
            return messages, ()
        messages = resolve_references(
            messages, conversation.media, inline_urls=self._inlines_urls, workspace=workspace, fetched=fetched
        )
        downscale = self.options.downscale_images
        messages, lost = enforce_media_limits(messages, conversation.media, self.target, downscale=downscale)
        if lost:
            self.provider.log_losses(lost, messages[0].session_id)
        return messages, lost

    def _check_capabilities(self) -> None:
        can, options = self.target.capabilities, self.options
        for wanted, able, what in (
            (self.tools, can.supports_tools, "tools"),
            (options.response_schema is not None, can.supports_structured_output, "response_schema"),
            (options.stream, can.supports_streaming, "streaming"),
        ):
            if wanted and not able:
                raise CapabilityError(
                    f"{self.provider.key}:{options.model} does not support {what}",
                    path=what,
                    provider=self.provider.key,
                    model=options.model,
                )


def write_request(
    provider: Provider, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
) -> WireRequest:
    """Write the request a provider is sent for these messages, with its losses; neither rules nor media are looked at.

    For who holds a `Provider` and no client: tests, wire linters, the swap matrix.

    Raises:
        CapabilityError: a critical block cannot be carried, or an option cannot be expressed.
    """
    conversation = claim_conversation(messages)
    try:
        target = provider.target(options)
        request = _write(provider, target, conversation, conversation.messages, tools, options, ())
        conversation.keep()
    finally:
        conversation.release()
    return request


def estimate_input_tokens(
    provider: Provider, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
) -> int:
    """Estimate the input tokens of a request."""
    conversation = claim_conversation(messages)
    try:
        projected, _ = conversation.project(provider.target(options), conversation.messages).result()
        return provider.estimate_input_tokens(projected, tools, options)
    finally:
        conversation.release()


def _write(
    provider: Provider,
    target: Target,
    conversation: PreparedConversation,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: AdapterOptions,
    lost: tuple[Loss, ...],
) -> WireRequest:
    """Project the messages, have them written, and put the losses of all stations into the request, logged."""
    projected, losses = conversation.project(target, messages).result()
    names: Mapping[str, str] = {}
    if tools:
        tools, names, lost_tools = wire_tools(tools, target)
        losses = (*losses, *lost_tools)
    request = provider.to_wire(projected, tools, options)
    if request.losses:
        losses += locate_losses(request.losses, projected, messages, losses)
    if losses or names:
        request = attrs.evolve(request, losses=losses, tool_names=names)
        if losses:
            provider.log_losses(losses, messages[0].session_id if messages else "")
    return attrs.evolve(request, losses=(*lost, *request.losses)) if lost else request


def _id_after(last: str) -> str:
    """Mint an id greater than the conversation's last, whatever clock that one came from (format.md, Identity)."""
    made = new_ulid()
    if made > last:
        return made
    try:
        return new_ulid(after=last)
    except CallerError:  # an imported history may use other ids
        return made
