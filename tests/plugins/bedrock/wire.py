"""Short ways to ask the adapter for a request and to read it, and botocore over ready bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import botocore.loaders
import botocore.model
from botocore.eventstream import EventStream
from botocore.parsers import RestJSONParser

from interlingua.plugins import WireChunk
from interlingua.types import Message
from interlingua_bedrock.event_stream import EventStreamFramer
from tests.support import driving
from tests.support.adapter import Adapter

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-pro-v1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
ADAPTER = Adapter("bedrock", "converse", CLAUDE)
BEDROCK = ADAPTER.provider
asked, body, answer, context, read = ADAPTER.asked, ADAPTER.body, ADAPTER.answer, ADAPTER.context, ADAPTER.read

SERVICE = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2"))
_CONVERSE = SERVICE.operation_model("Converse").output_shape
_STREAM = SERVICE.operation_model("ConverseStream").output_shape.members["stream"]


def frame(event: str, payload: Mapping[str, Any], kind: str = "event") -> bytes:
    """Write one frame as the service does."""
    headers = {f":{kind}-type": event, ":content-type": "application/json", ":message-type": kind}
    return EventStreamFramer.write(WireChunk(event, json.dumps(payload).encode(), headers))


def streamed(*frames: bytes, model: str = CLAUDE, size: int | None = None) -> Message:
    """Return the message of a stream."""
    return driving.streamed(BEDROCK, b"".join(frames), context(model), size)


def sdk_whole(raw: bytes) -> dict[str, Any]:
    """Return what botocore makes of a whole body."""
    answered = {"status_code": 200, "headers": {}, "body": raw}
    found: dict[str, Any] = RestJSONParser().parse(answered, _CONVERSE)
    return found


class _Body:
    """What botocore reads a stream from."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def stream(self) -> Any:
        yield self._raw

    def close(self) -> None:
        pass


def sdk_streamed(raw: bytes) -> list[dict[str, Any]]:
    """Return the events that botocore makes of a stream; raises its error for an exception in it."""
    return list(EventStream(_Body(raw), _STREAM, RestJSONParser()._event_stream_parser, "ConverseStream"))
