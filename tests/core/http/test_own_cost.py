"""Billed units and a provider's own price; connection options in the hooks that write requests."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import attrs

import interlingua as il
from interlingua._catalogue import ModelInfo
from interlingua.codec import decode_message, encode_message
from interlingua.plugins import RequestContext, WireRequest, WireResponse, hookimpl
from interlingua.types import (
    CostParts,
    Message,
    ModelCapabilities,
    RequestOptions,
    ToolDefinition,
    Usage,
)
from tests.support.fake_provider import STREAM, Fake, Reply, registry, served

SEARCH = Decimal("0.002")


class Billing(Fake):
    """Bills one search per answer; writes the region into the path."""

    def __init__(self) -> None:
        super().__init__()
        self.regions: list[Any] = []

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:  # type: ignore[override]
        self.regions.append(options.connection.get("region") if options else None)
        return super().capabilities(model)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        written = super().to_wire(messages, tools, options)
        return attrs.evolve(written, path=f"/{options.connection.get('region', 'none')}/say")

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        message = super().from_wire_response(response, context)
        assert message.metadata.usage is not None
        usage = attrs.evolve(message.metadata.usage, extra_units={"searches": 1})
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=usage))

    @hookimpl
    def cost_of(self, message: Message, model: ModelInfo | None) -> CostParts | None:
        usage = message.metadata.usage
        if usage is None or usage.extra_units is None:
            return None
        nothing = Decimal(0)
        other = SEARCH * int(usage.extra_units["searches"])
        return CostParts(input=nothing, output=Decimal("0.001"), cached_read=nothing, cache_write=nothing, other=other)


def test_a_provider_may_price_its_own_answers() -> None:
    with (
        served(Reply(), Reply(body=STREAM)) as server,
        il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(Billing())) as client,
    ):
        message = client.send("hi")
        with client.stream("hi") as stream:
            streamed = stream.message

    usage = message.metadata.usage
    assert usage is not None
    assert (usage.extra_units, usage.cost_usd, usage.cost_note) == ({"searches": 1}, Decimal("0.003"), None)
    assert usage.cost is not None
    assert usage.cost.other == SEARCH
    assert decode_message(encode_message(message)) == message
    assert streamed.metadata.usage is not None  # the hook answered None: core's price, which is unknown here
    assert (streamed.metadata.usage.cost_usd, streamed.metadata.usage.extra_units) == (None, None)
    assert "extra_units" not in encode_message(streamed)["metadata"]["usage"]


def test_extra_units_are_totals_like_counts() -> None:
    first = Usage(output_tokens=1, extra_units={"searches": 1})
    assert first.updated(Usage(output_tokens=2)).extra_units == {"searches": 1}
    assert first.updated(Usage(extra_units={"searches": 3})).extra_units == {"searches": 3}


def test_connection_options_reach_capabilities_and_to_wire() -> None:
    fake = Billing()
    settings = {"fake": {"options": {"region": "eu"}}}
    with (
        served() as server,
        il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(fake), settings=settings) as client,
    ):
        client.send("hi")
        assert client.build_request("hi").path == "/eu/say"

    assert server.got[0].path == "/eu/say"
    assert set(fake.regions) == {"eu"}
