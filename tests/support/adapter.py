"""Short ways to ask one adapter for a request and to read an answer with it, one for each provider's tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from interlingua._plugins.provider import Provider
from interlingua.plugins import RequestContext, WireRequest, build_request
from interlingua.types.blocks import ContentBlock
from interlingua.types.messages import Message, MessageMetadata, Origin, Provenance, Role, Usage
from interlingua.types.options import RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.support import driving

READ = ToolDefinition(
    name="read_file",
    description="Read a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    side_effects=SideEffects.READ,
)


@attrs.frozen
class Adapter:
    """One installed provider on one of its wires, with the model that is meant where none is named."""

    key: str
    api: str
    model: str

    @property
    def provider(self) -> Provider:
        """The provider itself; the same object each time."""
        return driving.provider(self.key)

    def origin(self, model: str = "") -> Origin:
        """Return the origin of what a model here says."""
        return Origin(self.key, self.api, model or self.model)

    def asked(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> WireRequest:
        """Return the request."""
        asked = RequestOptions(**{"model": self.model, **options})
        return build_request(self.provider, list(messages), list(tools), asked)

    def body(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> dict[str, Any]:
        """Return the body of the request, parsed."""
        parsed: dict[str, Any] = json.loads(self.asked(messages, tools, **options).body)
        return parsed

    def answer(
        self, *content: ContentBlock, provider: str = "", api: str = "", model: str = "", **facts: Any
    ) -> Message:
        """Return a generated assistant message, this adapter's unless another origin is given."""
        metadata = MessageMetadata(
            model=f"{provider or self.key}:{model or self.model}",
            provider=provider or self.key,
            api=api or self.api,
            provenance=Provenance.GENERATED,
            **{"usage": Usage(), **facts},
        )
        return Message(role=Role.ASSISTANT, content=content, metadata=metadata)

    def context(self, model: str = "", echo: Mapping[str, object] | None = None) -> RequestContext:
        """Return a context for an answer of this provider."""
        return driving.context(self.key, self.api, model or self.model, echo)

    def read(self, whole: Any, model: str = "") -> Message:
        """Return the message of a whole answer."""
        return driving.whole(self.provider, json.dumps(whole).encode(), self.context(model))

    def streamed(self, raw: bytes, model: str = "") -> Message:
        """Return the message of a streamed body, read at three chunkings that must agree."""
        found = [driving.streamed(self.provider, raw, self.context(model), size) for size in (None, 7, 1)]
        assert found[0] == found[1] == found[2]
        assert found[0].metadata.provider_raw == found[1].metadata.provider_raw == found[2].metadata.provider_raw
        return found[0]
