"""Adapters that read whole answers, errors and counts wrongly.

Nothing here is shipped. The shelf comes in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs

from interlingua.errors import BadRequestError, ServerError
from interlingua.types.messages import StopReason, Usage
from tests.contract.broken.machine import Mutant, in_message


def _meta(message: Any, **facts: Any) -> Any:
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, **facts))


def _content(message: Any, keep: Callable[[Any], Any]) -> Any:
    made = [new for block in message.content if (new := keep(block)) is not None]
    return attrs.evolve(message, content=tuple(made))


def _calls(**facts: Any) -> Callable[[Any], Any]:
    return lambda message: _content(
        message, lambda block: attrs.evolve(block, **facts) if block.type == "tool_use" else block
    )


def _without_unknown(message: Any) -> Any:
    return _meta(_content(message, lambda block: None if block.type == "opaque" else block), provider_raw=None)


def _usage(**facts: Any) -> Callable[[Any], Any]:
    return lambda message: _meta(message, usage=attrs.evolve(message.metadata.usage, **facts))


def _zeros(message: Any) -> Any:
    usage = message.metadata.usage or Usage()
    return _meta(message, usage=attrs.evolve(usage, input_tokens=usage.input_tokens or 0))


def _exclusive(message: Any) -> Any:
    usage = message.metadata.usage
    if usage is None or not usage.cached_input_tokens or usage.input_tokens is None:
        return message
    return _meta(message, usage=attrs.evolve(usage, input_tokens=usage.input_tokens - usage.cached_input_tokens))


def _strict(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    body = json.loads(response.body)
    known = {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "stop_details",
             "container", "context_management", "error", "request_id"}  # fmt: skip
    if set(body) - known:
        raise RuntimeError("unknown field")
    return inner()


def _key_error(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    body = json.loads(response.body)
    reasons = {"end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "stop_sequence"}
    if isinstance(body, dict) and body.get("stop_reason") not in reasons and "error" not in body:
        raise ValueError(body.get("stop_reason"))
    return inner()


def _forgiving(inner: Callable[..., Any], response: Any, context: Any) -> Any:
    try:
        return inner()
    except Exception:
        return context.message([], stop_reason=StopReason.END_TURN)


def _end_turn(message: Any) -> Any:
    reason = StopReason.END_TURN if message.metadata.stop_reason is StopReason.OTHER else message.metadata.stop_reason
    return _meta(message, stop_reason=reason)


def _stop_with_calls(message: Any) -> Any:
    return _meta(message, stop_reason=StopReason.END_TURN) if message.tool_calls() else message


def _retry_all(inner: Callable[..., Any], **_: Any) -> Any:
    error = inner()
    error.retryable = True
    return error


def _no_wait(inner: Callable[..., Any], **_: Any) -> Any:
    error = inner()
    error.retry_after = None
    return error


def _all_invalid(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    return BadRequestError("failed", status=response.status)


def _all_server(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    return ServerError("failed", status=response.status) if b"error" in response.body else inner()


_stored: list[Any] = []


def _first_again(message: Any) -> Any:
    _stored.append(message)
    return _stored[-2] if len(_stored) % 3 == 0 else message


ANSWERS = (
    Mutant("the issued call id thrown away", "C16", in_message(_calls(provider_id=None))),
    Mutant("text stripped", "C21", in_message(
        lambda message: _content(
            message,
            lambda block: attrs.evolve(block, text=block.text[1:]) if block.type == "text" else block))),
    Mutant("the last of parallel calls lost", "C28", {"from_wire_response": lambda inner, **_: _content(
        inner(), lambda block: None if block.type == "text" else block)}),
    Mutant("unknown content lost", "C27", in_message(_without_unknown)),
    Mutant("a new field is an error", "C27", {"from_wire_response": _strict}),
    Mutant("state kept between answers", "C29", in_message(_first_again)),
    Mutant("a broken body read as a good answer", "C35", {"from_wire_response": _forgiving}),
    Mutant("an unknown stop reason is an exception", "C36", {"from_wire_response": _key_error}),
    Mutant("an unknown stop reason is end_turn", "C36", in_message(_end_turn)),
    Mutant("the provider's word not kept", "C36", in_message(lambda message: _meta(message, stop_reason_raw=None))),
    Mutant("stop with calls", "C37", in_message(_stop_with_calls)),
    Mutant("cached tokens outside the total", "C38", in_message(_exclusive)),
    Mutant("cached tokens counted twice", "C38", in_message(_usage(input_tokens=99_999))),
    Mutant("not reported is 0", "C39", in_message(_zeros)),
    Mutant("every failure is retried", "C40", {"from_wire_error": _retry_all}),
    Mutant("retry-after ignored", "C41", {"from_wire_error": _no_wait}),
    Mutant("every failure is an invalid request", "C40", {"from_wire_error": _all_invalid}),
    Mutant("the provider's words thrown away", "C41", {"from_wire_error": _all_server}),
    Mutant("an estimate of nothing", "C42", {"estimate_input_tokens": lambda inner, **_: 1}),
    Mutant("an estimate in characters", "C42", {"estimate_input_tokens": lambda inner, messages, **_: sum(
        len(message.text_content()) for message in messages)}),
)  # fmt: skip
