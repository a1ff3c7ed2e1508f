"""An answer of one provider, written in another's API, read by its SDK and sent back: its maker gets it as it made it.

The next request to the maker is, as JSON, the one that would have been written without the way through the other API.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.plugins import WireRequest, write_request
from interlingua.types import AdapterOptions, Message, ToolDefinition, WireTool, tool_result, user
from tests.serve.answers import Answer, context, recorded
from tests.serve.compare import REGISTRY, differences
from tests.serve.test_answers import APIS, MESSAGES, Api


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def _schema(names: list[str]) -> list[ToolDefinition]:
    return [WireTool(name=name, description="d", input_schema={"type": "object", "properties": {}}) for name in names]


def _direct(answer: Answer) -> dict[str, Any]:
    """Return the request that the maker gets when it is asked again directly."""
    calls = answer.message.tool_calls()
    results = [tool_result(call, "r") for call in calls]
    history = [user("q"), answer.message, *results, user("n")]
    return _written(answer, history, [call.name for call in calls])


def _written(answer: Answer, history: list[Message], names: list[str]) -> dict[str, Any]:
    origin = answer.origin
    options = AdapterOptions(model=origin.model, api=origin.api, max_tokens=64)
    tools = _schema(sorted(set(names)))
    found: dict[str, Any] = json.loads(write_request(REGISTRY.provider(origin.provider), history, tools, options).body)
    return found


def _crossed(api: Api, answer: Answer, *, streamed: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the request that the maker gets after the caller's API was between, and the reasons of losses."""
    asked = context(api.key, api.api, answer.origin)
    provider = REGISTRY.provider(api.key)
    writer = provider.stream_to_wire(asked)
    reads = [writer.feed(read) for read in answer.reads] + [writer.end()]
    whole = provider.to_wire_response(answer.message, asked)
    body = api.streamed(b"".join(reads)) if streamed else api.whole(whole.body)
    losses = writer.losses if streamed else whole.losses
    request = {"model": "asked-for", **api.sent_back(body)}
    request["messages"] += _results(api, request["messages"][-1])
    wire = WireRequest(path="/", body=json.dumps(request).encode(), api=api.api)
    read = provider.from_wire_request(wire, asked)
    origin = answer.origin
    messages, _, _ = read.for_upstream(origin.provider, origin.api, origin.model)
    names = [call.name for call in answer.message.tool_calls()]
    return _written(answer, list(messages), names), [loss.reason for loss in losses]


def _results(api: Api, answer: dict[str, Any]) -> list[dict[str, Any]]:
    if api is MESSAGES:
        calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call, "content": "r"} for call in calls]
        return [{"role": "user", "content": [*results, {"type": "text", "text": "n"}]}]
    calls = [call["id"] for call in answer.get("tool_calls") or ()]
    results = [{"role": "tool", "tool_call_id": call, "content": "r"} for call in calls]
    return [*results, {"role": "user", "content": "n"}]


def _has_media(answer: Answer) -> bool:
    return any(block.type in ("image", "audio", "video") for block in answer.message.content)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.api}-{api.key}")
def test_the_maker_gets_its_answer_as_it_made_it(api: Api, streamed: bool) -> None:
    seen: Counter[str] = Counter()
    changed = []
    for answer in recorded():
        own = answer.origin[:2] == (api.key, api.api)
        if answer.message.metadata.stop_reason == "error" or (own and streamed and not answer.streamed):
            continue  # events of its own would say what those that are made up do not
        direct = _direct(answer)
        crossed, losses = _crossed(api, answer, streamed=streamed)
        found = list(differences(direct, crossed))
        if not found:
            seen["equal"] += 1
        elif losses or _has_media(answer):
            seen["late" if losses else "media"] += 1
        else:
            changed.append(f"{answer.origin.provider} {answer.name}: {found[0]}"[:400])

    assert not changed, f"{len(changed)} of {sum(seen.values()) + len(changed)}: " + "\n".join(changed[:12])
    assert seen["equal"] > 250
