"""Presets of Responses at OpenRouter, Mistral, Groq and xAI: no stored state, reasoning, schemas, charges.

Expected values are from the fact sheet of Responses hosts (§7, §11), the types of OpenRouter's SDK, and recorded
answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from openrouter.components import ResponsesRequest
from pydantic import BaseModel

import interlingua as il
from interlingua.plugins import Registry, WireRequest, build_request
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua.types import RequestOptions, user
from tests.support.corpus import Corpus

REGISTRY = Registry()
STATELESS = ["openrouter-responses", "mistral-responses", "groq-responses"]
HOSTS = [*STATELESS, "xai-responses"]
MODELS = {
    "openrouter-responses": "openai/gpt-5-nano",
    "mistral-responses": "mistral-medium-latest",
    "groq-responses": "openai/gpt-oss-20b",
    "xai-responses": "grok-4.6",
}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def _request(key: str, **options: Any) -> WireRequest:
    return build_request(REGISTRY.provider(key), [user("q")], (), RequestOptions(model=MODELS[key], **options))


def _body(key: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_request(key, **options).body)
    return found


# ---- state


@pytest.mark.parametrize("key", STATELESS)
@pytest.mark.parametrize("field", ["previous_response_id", "conversation", "background", "store"])
def test_a_service_without_state_refuses_what_needs_it(key: str, field: str) -> None:
    value = True if field in ("background", "store") else "resp_1"
    with pytest.raises(il.CapabilityError, match="stores no answers") as caught:
        _request(key, provider_options={field: value})

    assert caught.value.path == f"options.provider_options.{field}"


@pytest.mark.parametrize("key", STATELESS)
def test_a_service_without_state_gets_no_word_of_it(key: str) -> None:
    assert not _body(key).keys() & {"store", "previous_response_id", "conversation", "background"}
    assert _body(key, provider_options={"store": False})["store"] is False


def test_a_service_with_state_is_told_to_store_nothing_and_may_be_asked_for_it() -> None:
    assert _body("xai-responses")["store"] is False
    asked = {"previous_response_id": "resp_1", "store": True}
    assert asked.items() <= _body("xai-responses", provider_options=asked).items()


# ---- reasoning


@pytest.mark.parametrize(("key", "include"), [
    ("openrouter-responses", ["reasoning.encrypted_content"]),
    ("xai-responses", ["reasoning.encrypted_content"]),
    ("mistral-responses", None),
    ("groq-responses", None),
])  # fmt: skip
def test_encrypted_reasoning_is_asked_for_where_the_service_has_it(key: str, include: Any) -> None:
    assert _body(key).get("include") == include
    summary = _body(key, thinking=True, effort="high")["reasoning"].get("summary")
    assert (summary is None) is (include is None)  # summaries are of encrypted reasoning


@pytest.mark.parametrize(("options", "reasoning"), [
    ({"thinking": True}, {"enabled": True, "summary": "auto"}),
    ({"thinking_budget": 2048}, {"max_tokens": 2048}),
    ({"thinking_budget": 2048, "thinking": True}, {"max_tokens": 2048, "enabled": True, "summary": "auto"}),
    ({"thinking": False}, {"effort": "none"}),
    ({"effort": "high"}, {"effort": "high"}),
])  # fmt: skip
def test_openrouter_takes_a_budget_and_a_switch(options: dict[str, Any], reasoning: dict[str, Any]) -> None:
    made = build_request(
        REGISTRY.provider("openrouter-responses"), [user("q")], (), RequestOptions(model="acme/unlisted", **options)
    )

    assert json.loads(made.body)["reasoning"] == reasoning
    assert not made.losses
    assert _read_by_sdk(reasoning) == reasoning


def _read_by_sdk(reasoning: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object as OpenRouter's SDK writes it again, without what it does not know."""
    read = ResponsesRequest.model_validate({"input": "q", "reasoning": dict(reasoning)}).reasoning
    assert isinstance(read, BaseModel)
    written: dict[str, Any] = json.loads(read.model_dump_json(by_alias=True, exclude_none=True))
    return written


def test_an_effort_excludes_a_budget_at_openrouter() -> None:
    made = _request("openrouter-responses", thinking_budget=2048, effort="low")

    assert json.loads(made.body)["reasoning"] == {"effort": "low"}
    assert [row.path for row in made.losses] == ["options.thinking_budget"]


@pytest.mark.parametrize("key", ["mistral-responses", "groq-responses", "xai-responses"])
def test_elsewhere_a_budget_becomes_an_effort_with_a_row(key: str) -> None:
    made = _request(key, thinking_budget=2048)

    assert json.loads(made.body)["reasoning"] == {"effort": "low"}
    assert [(row.path, row.verdict) for row in made.losses] == [("options.thinking_budget", "rewritten")]


# ---- schemas


@pytest.mark.parametrize(("given", "sent"), [
    ({}, {"require_parameters": True}),
    ({"provider": {"only": ["openai"]}}, {"require_parameters": True, "only": ["openai"]}),
    ({"provider": {"require_parameters": False}}, {"require_parameters": False}),
    ({"provider": None}, None),
])  # fmt: skip
def test_a_schema_goes_only_to_upstreams_that_enforce_it(given: dict[str, Any], sent: Any) -> None:
    body = _body("openrouter-responses", response_schema=SCHEMA, provider_options=given)

    assert body["text"]["format"]["schema"] == SCHEMA
    assert body.get("provider") == sent


def test_without_a_schema_any_upstream_may_answer() -> None:
    assert "provider" not in _body("openrouter-responses")
    assert _body("openrouter-responses", provider_options={"provider": {"only": ["a"]}})["provider"] == {"only": ["a"]}


@pytest.mark.parametrize("key", ["mistral-responses", "groq-responses", "xai-responses"])
def test_services_without_upstreams_get_the_schema_alone(key: str) -> None:
    assert "provider" not in _body(key, response_schema=SCHEMA)


# ---- sampling


def test_openrouter_takes_top_k_and_four_stop_sequences() -> None:
    made = _request("openrouter-responses", top_k=5, stop=("a", "b", "c", "d", "e"), temperature=0.5)
    body = json.loads(made.body)

    assert (body["top_k"], body["stop"], body["temperature"]) == (5, ["a", "b", "c", "d"], 0.5)
    assert [(row.path, row.verdict) for row in made.losses] == [("options.stop", "rewritten")]


@pytest.mark.parametrize("key", ["mistral-responses", "groq-responses", "xai-responses"])
def test_the_others_get_neither(key: str) -> None:
    made = _request(key, top_k=5, stop=("a",), user_id="u")

    assert not json.loads(made.body).keys() & {"top_k", "stop", "user", "safety_identifier"}
    assert {row.path for row in made.losses} == {"options.top_k", "options.stop", "options.user_id"}


# ---- charges


def _answered(body: bytes, *, stream: bool = False, key: str = "openrouter-responses") -> il.Usage:
    headers = {"content-type": "text/event-stream"} if stream else {}
    transport = MemoryTransport(lambda _: MemoryReply(body, headers=headers))
    with il.Client(f"{key}:{MODELS[key]}", transport=transport, environ={}, api_key="k") as client:
        if not stream:
            return client.send("q").usage
        with client.stream("q") as answer:
            return answer.message.usage


def _usage(**more: Any) -> bytes:
    item = {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
    }  # fmt: skip
    counts = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return json.dumps({"status": "completed", "output": [item], "usage": {**counts, **more}}).encode()


def test_the_charges_of_recorded_answers_are_their_costs(corpus: Corpus) -> None:
    checked = 0
    for entry in corpus.entries("openai-responses"):
        if "openrouter.ai" not in entry["url"] or entry["status"] != 200:
            continue
        *_, charged = re.findall(r'"cost":\s*([0-9.e-]+)', entry["response_text"])
        usage = _answered(entry["response_text"].encode(), stream=entry["kind"] == "sse")
        assert usage.cost_usd == Decimal(charged), entry["id"]
        assert usage.pricing_version == "reported"
        checked += 1
    assert checked >= 9


@pytest.mark.parametrize(("usage", "total", "parts"), [
    # as recorded: the upstream's cost for input and output, which is the charge
    ({"cost": 0.00005, "is_byok": False, "cost_details": {
        "upstream_inference_cost": 0.00005, "upstream_inference_input_cost": 0.000026,
        "upstream_inference_output_cost": 0.000024}}, "0.00005", ("0.000026", "0.000024", "0")),
    # with a key of the caller's the upstream charges too, and the router's fee is the rest
    ({"cost": 0.001, "is_byok": True, "cost_details": {
        "upstream_inference_cost": 0.02, "upstream_inference_input_cost": 0.015,
        "upstream_inference_output_cost": 0.005}}, "0.021", ("0.015", "0.005", "0.001")),
    ({"cost": 0.25, "cost_details": {"upstream_inference_cost": None}}, "0.25", ("0", "0", "0.25")),
    # parts that exceed the charge are no parts of it
    ({"cost": 0.01, "cost_details": {"upstream_inference_input_cost": 0.02, "upstream_inference_output_cost": 0.01}},
     "0.01", ("0", "0", "0.01")),
    ({"cost": 0}, "0", ("0", "0", "0")),
])  # fmt: skip
def test_a_charge_has_the_parts_that_the_answer_names(usage: Any, total: str, parts: tuple[str, str, str]) -> None:
    found = _answered(_usage(**usage))

    assert found.cost_usd == Decimal(total)
    assert found.cost is not None
    assert (found.cost.input, found.cost.output, found.cost.other) == tuple(map(Decimal, parts))


@pytest.mark.parametrize("cost", [None, True, "0.5"])
def test_what_is_no_amount_is_no_charge(cost: Any) -> None:
    assert _answered(_usage(cost=cost)).pricing_version != "reported"


@pytest.mark.parametrize("key", ["mistral-responses", "groq-responses", "xai-responses"])
def test_the_other_services_are_priced_by_their_catalogues(key: str) -> None:
    assert _answered(_usage(cost=12.5), key=key).cost_usd != Decimal("12.5")
