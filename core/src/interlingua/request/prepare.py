"""From what was asked to the bytes that are sent, and back from an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from interlingua.errors import CallerError, CapabilityError, InterlinguaError, InvalidConversationError
from interlingua.http.limits import Deadline
from interlingua.http.transport import Outgoing, no_key, outgoing
from interlingua.ids import new_ulid
from interlingua.plugins.encoding import keep_grown, take_grown
from interlingua.plugins.provider import Provider
from interlingua.plugins.wire import Connection, Loss, RequestContext, WireRequest, WireResponse, retry_after
from interlingua.request.conversation import Sent, tell
from interlingua.request.media import Fetched, fitted, holds_media, referring, resolved, wanted_urls
from interlingua.request.validate import check_sendable, extraordinary
from interlingua.response.finalize import report_invalid_tool_inputs, with_cost
from interlingua.types.messages import Message, MessageStatus, Origin, RoutingDecisionRecord
from interlingua.types.options import AdapterCapabilities, AdapterOptions
from interlingua.types.tools import ToolDefinition

if TYPE_CHECKING:
    from interlingua.http.shared import SharedState

_log = logging.getLogger("interlingua")


FAILED = 300


"""Statuses from here on are failures: no provider redirects an API."""


_CLEAN = "client.exchange:clean"


_REQUEST_IDS = ("request-id", "x-request-id")


class Exchange:
    """One request, from canonical values to bytes, and its answer, from bytes to a message.

    Made by `begin`; then `urls` are fetched, `write` called, and `outgoing` sent as often as `pause`
    allows.
    """

    wire: WireRequest
    context: RequestContext
    limits: Deadline

    def __init__(
        self,
        core: SharedState,
        provider: Provider,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        options: AdapterOptions,
        routing: RoutingDecisionRecord,
    ) -> None:
        self.core = core
        self.provider = provider
        self.messages, self.tools, self.options = provider.prepare(messages, tools, options)
        self.routing = routing
        self.capabilities: AdapterCapabilities = provider.target(self.options).capabilities
        self._check_capabilities()
        # what went out before is neither searched for references nor checked again
        sent, media = take_grown(self.messages, _CLEAN)
        self._grown = sent > 0
        self._odd = extraordinary(self.messages, sent)
        self._media: list[int] = [*(media or ()), *[at for at in self._odd if holds_media(self.messages[at])]]
        self._marked = referring([self.messages[at] for at in self._odd])
        self._inline_urls = self.capabilities.supports_images and not self.capabilities.supports_image_urls
        self.attempts = 0
        self.started = 0.0

    # -- before sending -----------------------------------------------------------------------------------------

    @property
    def urls(self) -> Sequence[str]:
        """Image URLs the client must fetch before `write`."""
        return wanted_urls(self._marked) if self._marked and self._inline_urls else ()

    def write(self, fetched: Mapping[str, Fetched] | None = None) -> Exchange:
        """Write the request.

        Args:
            fetched: what `urls` gave.

        Raises:
            InvalidConversationError: the conversation breaks a rule that projection cannot repair.
            CapabilityError: the target cannot do what was asked, or takes no media so many or so large.
            CallerError: a reference cannot be resolved.
        """
        if self._marked:
            self.messages = resolved(
                self.messages,
                self._marked,
                inline_urls=self._inline_urls,
                workspace=self.core.workspace,
                fetched=fetched or {},
            )
        self._check_invariants()
        lost = self._fit() if self._media else ()
        messages = self.messages
        self.wire = self.provider.to_wire(messages, self.tools, self.options)
        if lost:
            self.wire = attrs.evolve(self.wire, losses=(*lost, *self.wire.losses))
        self._watch_prefix()
        self.context = RequestContext(
            origin=Origin(self.provider.key, self.wire.api, self.options.model),
            message_id=_id_after(messages[-1].id),
            session_id=messages[-1].session_id,
            routing=self.routing,
            tool_names=self.wire.tool_names,
            echo=self.wire.echo,
            user_id=self.options.user_id,
        )
        return self

    def _watch_prefix(self) -> None:
        last = self.messages[-1]
        kept = last.memo.get(_CLEAN)  # a copy of all before it, where one was kept: callers append to their lists
        older = kept[0] if kept is not None else tuple(self.messages[:-1])
        now = Sent(self.provider, self.options.model, older, last, self.tools)
        changed = self.core.prefixes.changed(now, grown=self._grown)
        if changed is not None:
            info = self.core.info(self.provider, self.options.model)
            tell(*changed, now, self.options, info, self.core.registry)

    def _fit(self) -> tuple[Loss, ...]:
        """Hold the media against the target's limits; images made smaller, where that was asked, are in the ledger."""
        target = self.provider.target(self.options)
        self.messages, lost = fitted(self.messages, self._media, target, downscale=self.options.downscale_images)
        if lost:
            self.provider.tell(lost, self.messages[0].session_id)
        return lost

    def _check_capabilities(self) -> None:
        can, options = self.capabilities, self.options
        for asked, able, what in (
            (self.tools, can.supports_tools, "tools"),
            (options.response_schema is not None, can.supports_structured_output, "response_schema"),
            (options.stream, can.supports_streaming, "streaming"),
        ):
            if asked and not able:
                raise CapabilityError(
                    f"{self.provider.key}:{options.model} does not support {what}",
                    path=what,
                    provider=self.provider.key,
                    model=options.model,
                )

    def _check_invariants(self) -> None:
        broken = check_sendable(self.messages, self.tools, self._odd)
        if broken:
            raise InvalidConversationError(broken, provider=self.provider.key, model=self.options.model)
        if not self._marked:
            keep_grown(self.messages, _CLEAN, self._media)

    @property
    def connection(self) -> Connection:
        """How to reach the service."""
        return self.core.connection(self.provider, self.options.api)

    def outgoing(self) -> Outgoing:
        """Begin an attempt: the HTTP request, signed now.

        Raises:
            AuthenticationError: a key is needed and there is none.
        """
        connection = self.connection
        if not connection.has_key:
            raise no_key(connection, self.provider.key)
        self.attempts += 1
        if self.attempts == 1:
            self.limits = Deadline(self.core.timeout)
        self.started = time.monotonic()
        return outgoing(connection, self.wire, self.options.headers)

    # -- after an answer ----------------------------------------------------------------------------------------

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> Message:
        """Return the message of a whole answer.

        Raises:
            ProviderError: the answer is a failure.
            MalformedResponseError: it is not what the wire format allows.
        """
        response = WireResponse(status=status, headers=headers, body=body)
        if status >= FAILED:
            raise self.credited(self.provider.from_wire_error(response, self.context), headers)
        try:
            message = self.provider.from_wire_response(response, self.context)
        except InterlinguaError as error:
            self.credited(error, headers)
            raise
        return self.finished(message)

    def finished(self, message: Message) -> Message:
        """Return an answer with what only the client knows, its cost and its latency; bad tool inputs are told."""
        latency_ms = round((time.monotonic() - self.started) * 1000)
        complete = message.metadata.status is MessageStatus.COMPLETE
        if message.metadata.usage is not None:
            info = self.core.info(self.provider, self.options.model) if complete else None
            message = with_cost(message, info, latency_ms)
        if complete and self.tools:
            report_invalid_tool_inputs(message, self.tools, self.core.registry)
        return message

    def credited(self, error: InterlinguaError, headers: Mapping[str, str]) -> InterlinguaError:
        """Fill in what an answer's headers say about a failure, where its adapter did not."""
        if error.retry_after is None:
            error.retry_after = retry_after(headers)
        if error.request_id is None:
            error.request_id = next((headers[name] for name in _REQUEST_IDS if name in headers), None)
        should = headers.get("x-should-retry")
        if should in ("true", "false"):
            error.retryable = should == "true"
        return error

    def pause(self, error: InterlinguaError) -> float:
        """Return the seconds to wait before the next attempt.

        Raises:
            InterlinguaError: the same error, when there is to be none.
        """
        error.provider = error.provider or self.provider.key
        error.model = error.model or self.options.model
        delay = self.core.retry.delay(error, self.attempts)
        if delay is None or (self.limits.deadline is not None and delay >= (self.limits.left() or 0)):
            raise error
        _log.info("attempt %d failed (%s); again in %.2f s", self.attempts, type(error).__name__, delay)
        return delay


def _id_after(last: str) -> str:
    """Mint an id greater than the conversation's last, whatever clock that one came from (seed 003 §6.1)."""
    made = new_ulid()
    if made > last:
        return made
    try:
        return new_ulid(after=last)
    except CallerError:  # an imported history may use other ids
        return made


def write_request(
    provider: Provider, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
) -> WireRequest:
    """Write the request a provider is sent for these messages, with its ledger of losses: the whole way but for media.

    Raises:
        CapabilityError: a critical block cannot be carried, or an option cannot be said.
    """
    return provider.to_wire(messages, tools, options)


def estimate_input_tokens(
    provider: Provider, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
) -> int:
    """Estimate the input tokens of a request."""
    return provider.estimate_input_tokens(messages, tools, options)
