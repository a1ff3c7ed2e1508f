"""Material of the rules on serving: contexts with a seal, and answers as the events of a model."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

import attrs

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, WireRequest, build_request
from interlingua.types import Message, MessageStatus, Origin, Usage
from interlingua_contract.approved.values import digest, plain
from interlingua_contract.rule import NotApplicable
from interlingua_contract.subject import Subject
from interlingua_serving import InboundRequest, ServeContext, State

ASKED = "contract-asked-model"
_CLOCK = datetime(2026, 11, 21, tzinfo=UTC)
COUNTED = Usage(input_tokens=120, output_tokens=30, cached_input_tokens=20, reasoning_tokens=10)


class Seals:
    """A seal that shows nothing of the state: a digest of it in URL-safe base64."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}

    def seal(self, state: State) -> str:
        """Keep a state and return its seal, which differs for other states."""
        text = base64.urlsafe_b64encode(f"contract-seal-{digest(plain(state))}".encode()).decode()
        self._states[text] = state
        return text

    def unseal(self, text: str) -> State | None:
        """Return the state of a seal; None for any other string."""
        return self._states.get(text)


def served_apis(subject: Subject) -> tuple[str, ...]:
    """Return the APIs of the provider that its plugin serves.

    Raises:
        NotApplicable: it has no serving plugin.
    """
    try:
        served = {api.name for api in subject.serving.apis}
    except CapabilityError:
        served = set()
    if not served:
        raise NotApplicable("no serving plugin (entry point group interlingua.serving)")
    return tuple([api for api in subject.apis if api in served])


def serve_context(subject: Subject, api: str, origin: Origin | None = None, **facts: Any) -> ServeContext:
    """Return a context; every value is the same each time."""
    numbers = count(1)
    fixed: dict[str, Any] = {
        "model": ASKED,
        "answer_id": "01KAKDPZ0000000000000000AA",
        "new_id": lambda: f"01KAKDPZ0000000000{next(numbers):06d}AA",
        "clock": lambda: _CLOCK,
        "echo": {"include_usage": True},
    }
    return ServeContext(provider=subject.key, api=api, origin=origin, **(fixed | facts))


def read_request(subject: Subject, request: WireRequest, **facts: Any) -> InboundRequest:
    """Read a request with the serving plugin, in a context with these facts."""
    return subject.serving.from_wire_request(request, serve_context(subject, request.api, model="", **facts))


def written_again(subject: Subject, request: WireRequest, model: str) -> WireRequest:
    """Read a request and write it for the same API; `model` is used if the body names none."""
    read = read_request(subject, request)
    messages, options, _ = read.for_upstream(subject.key, request.api, read.options.model or model)
    return build_request(subject.provider, messages, read.tools, options)


def whole_answers(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the complete answers of a conversation, with counts."""
    for message in messages:
        if message.metadata.origin is not None and message.metadata.status is MessageStatus.COMPLETE:
            yield attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=COUNTED))


def decode_stream(subject: Subject, api: str, body: bytes, size: int = 0) -> StreamDecoder:
    """Read a stream with the adapter's own reader, in pieces of `size` bytes."""
    framing = subject.provider.connection(ConnectionSettings(api=api)).framing
    decoder = StreamDecoder(subject.provider, framer(framing), subject.context_for(api, ASKED))
    step = size or max(len(body), 1)
    for at in range(0, len(body), step):
        decoder.feed(body[at : at + step])
    decoder.end()
    return decoder
