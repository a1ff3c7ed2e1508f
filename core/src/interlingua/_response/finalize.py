"""Complete an answer with cost, latency and facts from the response headers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from interlingua._catalogue import ModelInfo
from interlingua._plugins.errors import hide_secrets, is_cut_off, retry_after
from interlingua._plugins.registry import InstrumentedWork, Registry
from interlingua._plugins.wire import WireResponse
from interlingua._pricing import cost_fields
from interlingua._request.prepare import RequestDraft
from interlingua._values import replace
from interlingua.errors import InterlinguaError, MalformedResponseError, RejectedAnswerError
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import THINKING_WAS_REFUSED, Message, MessageStatus, Usage

if TYPE_CHECKING:
    from interlingua.fallback import ModelChain

_log = logging.getLogger("interlingua")

FAILED = 300
"""Statuses from 300 on are failures: services do not redirect API requests."""

UNFINISHED_COST = "the answer was cut off before the provider's final count"


def complete_error(
    error: InterlinguaError, headers: Mapping[str, str], request_id_headers: Sequence[str], sent: Mapping[str, str]
) -> InterlinguaError:
    """Fill in facts of the response headers that the plugin did not set on an error; hide secrets that were sent."""
    if error.retry_after is None:
        error.retry_after = retry_after(headers)
    if error.request_id is None:
        names = (*request_id_headers, "request-id", "x-request-id")
        error.request_id = next((headers[name] for name in names if name in headers), None)
    if (should := headers.get("x-should-retry")) in ("true", "false"):
        error.retryable = should == "true"
    hide_secrets(error, sent)
    return error


class AnswerFinalizer:
    """Reads the answers to one request."""

    def __init__(
        self,
        request: RequestDraft,
        registry: Registry,
        model_info: Callable[[], ModelInfo | None],
        chain: ModelChain | None = None,
    ) -> None:
        self.request, self.chain = request, chain
        self.started = 0.0  # `time.monotonic()` when the attempt began; latency counts from there
        self.begun = self.first_event = 0.0  # the same for the first attempt and for the first event of a stream
        self.attempts, self.url = 0, ""  # number of attempts; URL of the last one, without query
        self.typed = False  # a whole typed answer is wanted: an answer that the service rejected is read too
        self.activity: InstrumentedWork | None = None  # the scopes of plugins
        self.sent: Mapping[str, str] = {}  # the headers of the last request
        self.request_id_headers: tuple[str, ...] = ()  # further headers of this connection with a request id
        self.follow_up: Mapping[str, Any] | None = None  # what has to follow, as a message holds it
        self.usage: Usage | None = None  # of another request
        self._reported, self._registry, self._model_info = False, registry, model_info

    def read(self, response: WireResponse) -> Message:
        """Return the message of a whole answer, or raise the error of a failed or malformed one."""
        arrived = time.monotonic()
        provider = self.request.provider
        context = attrs.evolve(self.request.context, response_headers=response.headers)
        if response.status >= FAILED:
            error = provider.from_wire_error(response, context)
            complete_error(error, response.headers, self.request_id_headers, self.sent)
            if not (self.typed and isinstance(error, RejectedAnswerError) and isinstance(error.partial, Message)):
                raise error
            return error.partial  # a failed attempt at a typed answer
        try:
            message = provider.from_wire_response(response, context)
        except InterlinguaError as error:
            # a body that was cut off may be whole the next time, as a stream may
            error.retryable = error.retryable or (type(error) is MalformedResponseError and is_cut_off(response.body))
            complete_error(error, response.headers, self.request_id_headers, self.sent)
            raise
        message = self.finalize(message, arrived)
        if self._registry.plugins:
            self.report(message)
        return message

    def finalize(self, message: Message, arrived: float | None = None) -> Message:
        """Return an answer with its cost, its latency and the kinds of the tools it calls."""
        latency_ms = round(((arrived or time.monotonic()) - self.started) * 1000)
        metadata, usage = message.metadata, message.metadata.usage
        complete = metadata.status is MessageStatus.COMPLETE
        if self.follow_up is not None and not complete:
            raw = metadata.provider_raw or {"origin": [*self.request.context.origin], "replay": {}, "trace": {}}
            metadata = replace(metadata, provider_raw={**raw, "follow_up": self.follow_up})
        usage = self.usage or usage
        if usage is not None:
            cost: dict[str, Any] = {"cost_note": UNFINISHED_COST}
            if complete:
                info = self._model_info()
                parts = self.request.provider.cost_of(message=message, model=info)
                cost = cost_fields(usage, info, message.created_at, parts)
            usage = replace(usage, latency_ms=latency_ms, **cost)
            metadata = replace(metadata, usage=usage)
        if losses := self.request.wire.losses:
            metadata = replace(metadata, losses=(*losses, *metadata.losses))
        if self.request.target.refused_thinking:  # the next turns leave it out at once
            metadata = replace(metadata, extra={**metadata.extra, THINKING_WAS_REFUSED: True})
        if self.chain is not None:
            metadata = self.chain.record(metadata)
        if metadata is not message.metadata:
            message = replace(message, metadata=metadata)
        kinds = {tool.name: tool.kind for tool in self.request.tools if tool.kind is not None} if complete else {}
        if kinds and message.tool_calls:  # for user interfaces
            content = [
                replace(block, kind=kinds.get(block.name, block.kind)) if type(block) is ToolUseBlock else block
                for block in message.content
            ]
            message = replace(message, content=tuple(content))
        return message

    def report(self, message: Message | None, error: BaseException | None = None) -> None:
        """Report the end of the request to plugins, once: the message received and the error, if any."""
        if self._reported or (self.activity is None and not self._registry.observes):
            return
        self._reported = True
        try:
            self._report(message, error)
        except Exception:  # a received answer is returned, whatever becomes of its report
            _log.warning("cannot report the end of a request to plugins", exc_info=True)

    def _report(self, message: Message | None, error: BaseException | None) -> None:
        request, wire = self.request, getattr(self.request, "wire", None)
        losses = () if wire is None else wire.losses
        facts: dict[str, Any] = {
            "type": "answer.received",
            "session_id": request.messages[-1].session_id,
            "provider": request.provider.key,
            "model": request.options.model,
            "url": self.url,
            "stream": request.options.stream,
            "attempts": self.attempts,
            "duration_s": time.monotonic() - self.begun,
            "first_event_s": self.first_event - self.begun if self.first_event else None,
            "losses": losses,
        }
        if self.activity is not None:
            self.activity.end(message, error, facts)
        if self._registry.observes:
            from interlingua.codec._writing import write_value  # noqa: PLC0415  needed only if a plugin observes

            known = None if message is None else message.metadata
            plain = {
                "message_id": None if message is None else message.id,
                "status": known and known.status.value,
                "stop_reason": known and known.stop_reason and known.stop_reason.value,
                "usage": known and known.usage and write_value(known.usage),
                "losses": [attrs.asdict(loss) for loss in losses],
                "error": None if error is None else type(error).__name__,
            }
            self._registry.observe(facts | plain)
