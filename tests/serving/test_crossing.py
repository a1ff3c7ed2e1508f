"""An answer of one provider, written in another's API, read by its SDK and sent back: its maker gets it as it made it.

The next request to the answer's origin equals, as JSON, the request without the way through the other API.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from interlingua.plugins import WireRequest, build_request
from interlingua.types import Message, RequestOptions, ToolDefinition, WireTool, tool_result, user
from interlingua_serving import answer_events, find_serving_plugin
from tests.serving.answers import Answer, context, recorded
from tests.serving.compare import REGISTRY, differences
from tests.serving.test_answers import APIS, MESSAGES, Api
from tests.support.counts import FULL, chosen


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def _schema(names: list[str]) -> list[ToolDefinition]:
    return [WireTool(name=name, description="d", input_schema={"type": "object", "properties": {}}) for name in names]


def _direct(answer: Answer) -> dict[str, Any]:
    """Return the request that the maker gets when it is asked again directly."""
    calls = answer.message.tool_calls
    results = [tool_result(call, "r") for call in calls]
    history = [user("q"), answer.message, *results, user("n")]
    return _written(answer, history, [call.name for call in calls])


def _written(answer: Answer, history: list[Message], names: list[str]) -> dict[str, Any]:
    origin = answer.origin
    options = RequestOptions(model=origin.model, api=origin.api, max_tokens=64)
    tools = _schema(sorted(set(names)))
    found: dict[str, Any] = json.loads(build_request(REGISTRY.provider(origin.provider), history, tools, options).body)
    return found


def _crossed(api: Api, answer: Answer, *, streamed: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the request that the maker gets after the caller's API was between, and the reasons of losses."""
    asked = context(api.key, api.api, answer.origin)
    plugin = find_serving_plugin(REGISTRY, api.key)
    writer = plugin.stream_to_wire(asked)
    reads = [writer.feed(read) for read in answer.reads] + [writer.end()]
    whole = plugin.to_wire_response(answer.message, asked)
    body = api.streamed(b"".join(reads)) if streamed else api.whole(whole.body)
    losses = writer.losses if streamed else whole.losses
    request = {"model": "asked-for", **api.sent_back(body)}
    request["messages"] += _results(api, request["messages"][-1])
    wire = WireRequest(path="/", body=json.dumps(request).encode(), api=api.api)
    read = plugin.from_wire_request(wire, asked)
    origin = answer.origin
    messages, _, _ = read.for_upstream(origin.provider, origin.api, origin.model)
    names = [call.name for call in answer.message.tool_calls]
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
    for answer in (one for one in recorded() if chosen(f"{api.key} {one.name}", 3)):
        own = answer.origin[:2] == (api.key, api.api)
        if answer.message.metadata.stop_reason == "error" or (own and streamed and not answer.streamed):
            continue  # its own events would say what made-up events do not
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
    assert seen["equal"] > (250 if FULL else 40)


def _thoughtful(key: str, api: str, number: int) -> Answer:
    """Return an answer that calls a tool, with state that only its provider can use; made of two if need be."""
    ours = [answer for answer in recorded() if answer.origin[:2] == (key, api)]
    calling = [answer for answer in ours if answer.message.tool_calls]
    both = [answer for answer in calling if _signed(answer.message)]
    if both:
        return both[number % len(both)]
    thoughts = next(blocks for answer in ours if (blocks := _signed(answer.message)))
    answer = calling[number % len(calling)]
    return attrs.evolve(answer, message=attrs.evolve(answer.message, content=(*thoughts, *answer.message.content)))


def _signed(message: Message) -> list[Any]:
    return [block for block in message.content if getattr(block, "signature", None)]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_five_turns_whose_upstreams_alternate(streamed: bool) -> None:
    """Each upstream gets the request that it would get if the library kept the conversation, with the same ledger."""
    makers = [("anthropic", "messages"), ("openai", "responses"), ("google", "generate")]
    answers = [_thoughtful(*makers[turn % 3], turn // 3) for turn in range(5)]
    direct: list[Message] = [user("q")]
    turns: list[dict[str, Any]] = [{"role": "user", "content": "q"}]
    plugin = find_serving_plugin(REGISTRY, "anthropic")
    for number, answer in enumerate(answers):
        asked = context("anthropic", "messages", answer.origin, answer_id=f"01KAKDPZ00000000000000{number:04d}")
        message = _with_ids(answer.message, number)
        if streamed:
            writer = plugin.stream_to_wire(asked)
            body = MESSAGES.streamed(writer.feed(answer_events(message)) + writer.end())
        else:
            body = MESSAGES.whole(plugin.to_wire_response(message, asked).body)
        turns.append({"role": "assistant", "content": body["content"]})
        turns += _results(MESSAGES, turns[-1])
        direct += [message, *[tool_result(call, "r") for call in message.tool_calls], user("n")]
        request = {"model": "asked-for", "max_tokens": 9, "messages": turns}
        wire = WireRequest(path="/", body=json.dumps(request).encode(), api="messages")
        read = plugin.from_wire_request(wire, asked)
        for key, api in makers:
            model = next(each.origin.model for each in answers if each.origin.provider == key)
            options = RequestOptions(model=model, api=api, max_tokens=64)
            tools = _schema(sorted({call.name for each in answers for call in each.message.tool_calls}))
            messages, _, _ = read.for_upstream(key, api, model)
            crossed, kept = [
                build_request(REGISTRY.provider(key), history, tools, options) for history in (list(messages), direct)
            ]
            found = differences(json.loads(kept.body), json.loads(crossed.body))
            # ids of calls that others made: those that the callers of the first have seen
            assert [each for each in found if not str(each.before).startswith("tu_")] == []
            assert Counter(loss.reason for loss in crossed.losses) == Counter(loss.reason for loss in kept.losses)


def _with_ids(message: Message, number: int) -> Message:
    """Return the answer as of another turn: ids that core mints are given out once."""
    content = [
        attrs.evolve(block, id=f"{block.id[:-6]}{number:03d}{at:03d}") if block.type == "tool_use" else block
        for at, block in enumerate(message.content)
    ]
    return attrs.evolve(message, id=f"{message.id[:-4]}{number:04d}", content=tuple(content))
