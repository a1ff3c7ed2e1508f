"""Authored answers of services that no local server can show; an official SDK reads the same bytes and agrees with us.

Groq's own SDK reads Groq; the other services name the SDK of the format's maker as a client.
"""

from __future__ import annotations

import json
from typing import Any

import groq
import openai
import pytest

from interlingua import errors as tree
from interlingua.errors import OverloadedError, ProviderError, RejectedAnswerError, ServerError
from interlingua.plugins import WireResponse, build_request
from interlingua.types.blocks import TextBlock
from interlingua.types.factories import tool_result
from interlingua.types.messages import Message
from interlingua.types.options import RequestOptions
from tests.oracle import groq_sdk, openai_sdk
from tests.plugins.chat_completions.asked_presets import ASKED, COMPARE
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import FOLDER, RecordedExchange, load_exchanges
from tests.support.chat_merge import merged

KEYS = (
    "groq", "deepseek", "xai", "together", "fireworks", "cerebras", "moonshot", "lmstudio", "vllm",
    "perplexity", "nvidia", "huggingface", "qwen", "meta", "baseten", "sambanova", "nebius", "novita",
)  # fmt: skip
_TYPED = "typed"  # several exchanges each: tests/plugins/typed plays them
FILES = [(key, path.stem) for key in KEYS for path in sorted((FOLDER / key).glob("*.yaml"))]
NAMES = [(key, name) for key, name in FILES if not name.startswith(_TYPED)]
BACK = {"xai": "parallel_calls", **dict.fromkeys(("groq", "deepseek", "cerebras", "moonshot"), "thinking_then_call")}
"""Per service the answer whose reasoning goes back with its calls."""


def _exchange(key: str, name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"{key}/{name}.yaml")
    return found


GOOD = [(key, name) for key, name in NAMES if _exchange(key, name).good and name != "error_in_stream"]
FAILED = [(key, name) for key, name in NAMES if not _exchange(key, name).good]


def _read(key: str, name: str) -> Message:
    found = _exchange(key, name)
    road = driving.streamed if found.streamed else driving.whole
    return road(driving.provider(key), found.body, driving.context(key, "chat", found.request["model"]))


def _read_by_sdk(key: str, found: RecordedExchange) -> dict[str, Any]:
    if key != "groq":
        return openai_sdk.streamed_chat(found.body) if found.streamed else openai_sdk.whole_chat(found.body)
    return merged(groq_sdk.streamed(found.body)) if found.streamed else groq_sdk.whole(found.body)


@pytest.mark.parametrize(("key", "name"), GOOD)
def test_the_sdk_reads_the_same(key: str, name: str) -> None:
    read = _read_by_sdk(key, _exchange(key, name))
    expected = openai_sdk.read_chat(read)
    said, counts = read["choices"][0]["message"], read["usage"]
    message = _read(key, name)
    usage = message.metadata.usage

    assert message.text == expected.text
    thought = said.get("reasoning") or said.get("reasoning_content") or ""
    assert "".join(block.text for block in message.thinking_blocks) == thought
    assert tuple([(call.name, call.raw_input) for call in message.tool_calls]) == expected.calls
    assert [call.provider_id for call in message.tool_calls] == [call["id"] for call in said.get("tool_calls") or ()]
    assert message.metadata.stop_reason is expected.stop
    assert usage is not None
    cached = expected.usage[2] if expected.usage[2] is not None else counts.get("cached_tokens")
    assert (usage.input_tokens, usage.cached_input_tokens) == (expected.usage[0], cached)
    assert usage.output_tokens == counts["total_tokens"] - counts["prompt_tokens"]
    assert usage.reasoning_tokens == expected.usage[4]


@pytest.mark.parametrize(("key", "name"), [one for one in GOOD if one[1] != "thinking_sent_back"])
def test_the_request_is_the_one_we_write(key: str, name: str) -> None:
    found, asked = _exchange(key, name), ASKED[key, name]
    options = RequestOptions(model=found.request["model"], stream=found.streamed, **asked.options)
    request = build_request(driving.provider(key), list(asked.messages), [READ] if asked.tool else [], options)

    assert json.loads(request.body) == found.request
    assert not request.losses


@pytest.mark.parametrize("key", sorted(BACK))
def test_the_next_turn_brings_the_reasoning_back(key: str) -> None:
    found, answer = _exchange(key, "thinking_sent_back"), _read(key, BACK[key])
    results = [tool_result(call, "one") for call in answer.tool_calls]
    options = RequestOptions(model=found.request["model"])
    request = build_request(driving.provider(key), [COMPARE, answer, *results], [READ], options)

    assert json.loads(request.body) == found.request
    assert not request.losses


def test_a_prompt_cache_is_told_as_hits_and_misses() -> None:
    usage = _read("deepseek", "thinking").metadata.usage
    told = openai_sdk.streamed_chat(_exchange("deepseek", "thinking").body)["usage"]

    assert usage is not None
    assert usage.cached_input_tokens == told["prompt_cache_hit_tokens"] == 384
    assert usage.input_tokens == told["prompt_cache_hit_tokens"] + told["prompt_cache_miss_tokens"]


@pytest.mark.parametrize("name", ["sources", "sources_whole"])
def test_search_results_are_the_citations_of_the_text(name: str) -> None:
    """Every chunk has all of them; `citations`, which has only their addresses, stays in the trace."""
    message, found = _read("perplexity", name), _exchange("perplexity", name)
    body = json.loads(found.body if not found.streamed else found.body.split(b"\n")[0].removeprefix(b"data: "))
    (text,) = [block for block in message.content if isinstance(block, TextBlock)]

    assert [dict(one) for one in text.citations] == body["search_results"]
    assert message.metadata.provider_raw["trace"]["citations"] == body["citations"]
    assert message.metadata.provider_raw["trace"]["usage"]["cost"]["total_cost"] > 0


def test_reasoning_that_is_counted_beside_the_output_becomes_part_of_it() -> None:
    usage = _read("xai", "thinking").metadata.usage

    assert usage is not None
    assert (usage.output_tokens, usage.reasoning_tokens) == (12 + 38, 38)


_KINDS = {
    "AuthenticationError": ("bad_key", "unauthorized"),
    "ContentRefusedError": ("refused",),
    "ContextWindowExceededError": ("context_full",),
    "BadRequestError": ("bad_request", "effort_refused", "image_refused"),
    "ModelNotFoundError": ("decommissioned", "model_not_found"),
    "OverloadedError": ("overloaded",),
    "QuotaExceededError": ("no_balance", "no_credits"),
    "RateLimitError": ("rate_limited",),
    "RejectedAnswerError": ("tool_use_failed",),
}
CLASSES = {name: kind for kind, names in _KINDS.items() for name in names}
"""Of each failure: WIRE.md, Errors, or what the service itself says of the code (PROVENANCE)."""


@pytest.mark.parametrize(("key", "name"), FAILED)
def test_failures_are_failures_for_the_sdk_too(key: str, name: str) -> None:
    found = _exchange(key, name)
    response = WireResponse(status=found.status, headers=found.headers, body=found.body)
    error = driving.provider(key).from_wire_error(response, driving.context(key, "chat", found.request["model"]))
    theirs: Any = groq.APIStatusError if key == "groq" else openai.APIStatusError
    maker: Any = groq_sdk if key == "groq" else openai_sdk
    with pytest.raises(theirs) as caught:
        maker.client(found.body, status=found.status, headers=found.headers).chat.completions.create(**groq_sdk.ASKED)

    assert type(error) is getattr(tree, CLASSES[name])
    assert error.status == caught.value.status_code == found.status
    assert error.retryable is (CLASSES[name] in ("RateLimitError", "OverloadedError"))
    assert error.retry_after == (7 if name == "rate_limited" else None)


IN_STREAMS: dict[str, type[ProviderError]] = {
    "groq": RejectedAnswerError,
    "deepseek": OverloadedError,
    "moonshot": OverloadedError,
}


@pytest.mark.parametrize("key", KEYS)
def test_an_error_in_the_stream_keeps_the_text_and_fails_in_the_sdk_too(key: str) -> None:
    ours = IN_STREAMS.get(key, ServerError)
    found = _exchange(key, "error_in_stream")
    with pytest.raises(ours) as caught:
        _read(key, "error_in_stream")
    with pytest.raises(groq.APIError if key == "groq" else openai_sdk.Unparsed):
        _read_by_sdk(key, found)

    assert type(caught.value) is ours
    assert caught.value.partial.text == "They are "
