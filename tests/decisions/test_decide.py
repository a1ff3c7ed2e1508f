"""What is sent and what comes back: decision APIs, and typed answers where there is none."""

from __future__ import annotations

import asyncio
import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from google.genai._gaos.types.decisions.createdecisionrequest import CreateDecisionRequest
from openai.types.decision_create_params import DecisionCreateParams
from openrouter.components import DecisionsRequest
from pydantic import TypeAdapter

from interlingua import Message, assistant, system, tool_result, user
from interlingua.errors import CallerError, CapabilityError, MalformedResponseError, OverloadedError
from interlingua.types import ToolDefinition, ToolUseBlock
from interlingua_decisions import (
    Box,
    Choice,
    ChoiceDecision,
    Locate,
    Questions,
    Scale,
    ScaleDecision,
    Undecided,
    YesNo,
    YesNoDecision,
)
from tests.decisions.service import Service

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC")
TRIAGE = Questions({
    "urgent": YesNo("Is it urgent?", yes="today", no="later"),
    "team": Choice("Which team?", {"billing": "payments", "bug": None}),
    "mood": Scale("How angry?", ["calm", "annoyed", "furious"]),
})  # fmt: skip
GEMINI, OPENROUTER, OPENAI = "google:gemini-decision-1", "openrouter:typesafe/jev-1.14", "openai:gpt-6-luna"
USAGE = {"input_tokens": 100, "output_tokens": 3}
SYSTEM_ONE = {
    "model": "jev-1.14.0", "id": "dec-1", "provider": "TypeSafe", "usage": {**USAGE, "cost": 0.25},
    "answers": {
        "mood": {"type": "score", "score": 1.5, "probabilities": {"0": 0.1, "2": 0.6, "1": 0.3}, "confidence": 0.4},
        "urgent": {"type": "noul", "noul": 0.49},
        "team": {"type": "choice", "choice": "bug"},
    },
}  # fmt: skip
GOOGLE = {
    "answers": {
        "urgent": {"type": "noul", "noul": 0.49, "confidence": 0.51},
        "team": {"type": "choice", "choice": "bug", "confidence": 0.7, "probabilities": {"billing": 0.3, "bug": 0.7}},
        "mood": {
            "type": "score", "score": 1.5, "confidence": 0.6, "legend": {"0": "calm", "1": "annoyed", "2": "furious"},
            "probabilities": {"0": 0.1, "1": 0.3, "2": 0.6},
        },
    },
    "usage": {"total_input_tokens": 100, "total_output_tokens": 0},
}  # fmt: skip
PREDICATE = {"model": "gpt-6-luna", "answers": [{"type": "predicate", "name": "urgent", "probability": 0.5}]}
ONE = Questions({"urgent": YesNo("Is it urgent?")})


def typed(**values: Any) -> dict[str, Any]:
    """Return an answer of the Messages API whose text is JSON."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "stop_sequence": None,
        "content": [{"type": "text", "text": json.dumps(values)}], "stop_reason": "end_turn", "usage": USAGE,
    }  # fmt: skip


def talk() -> list[Message]:
    """Return a conversation with a system prompt, a call and its result."""
    call = ToolUseBlock(id="call_1", name="look_up", input={"id": 7})
    return [
        system("Triage."), user("Charged twice."), assistant([call]), tool_result(call, "refunded"), user("Still?"),
    ]  # fmt: skip


@pytest.mark.parametrize(("model", "body"), [(OPENROUTER, SYSTEM_ONE), (GEMINI, GOOGLE)])
def test_decisions_are_in_the_order_of_their_questions(model: str, body: Any) -> None:
    with Service(body).client(model) as client:
        answer = client.decide("Charged twice.", TRIAGE)

    urgent, team, mood = answer.value.values()
    assert list(answer.value) == ["urgent", "team", "mood"]
    assert isinstance(urgent, YesNoDecision)
    assert isinstance(team, ChoiceDecision)
    assert isinstance(mood, ScaleDecision)
    assert (urgent.value, bool(urgent), urgent.probability) == (False, False, 0.49)
    assert team.value == "bug"
    assert (mood.value, mood.level, mood.probabilities) == (1.5, 2, (0.1, 0.3, 0.6))
    assert answer.mode == "native"
    assert json.loads(answer.message.text) == {"urgent": False, "team": "bug", "mood": 1.5}
    assert answer.messages == (answer.message,)


def test_costs_are_reported_or_of_the_input_alone() -> None:
    with Service(SYSTEM_ONE).client(OPENROUTER) as client:
        reported = client.decide("x", TRIAGE).usage
    with Service(GOOGLE).client(GEMINI) as client:
        listed = client.decide("x", TRIAGE).usage
    with Service({**PREDICATE, "usage": {**USAGE, "output_tokens": 9}}).client(OPENAI) as client:
        counted = client.decide("x", ONE).usage
    with Service({**SYSTEM_ONE, "usage": USAGE}).client("typesafe:jev-latest") as client:
        unknown = client.decide("x", TRIAGE).usage

    assert (reported.cost_usd, reported.pricing_version) == (Decimal("0.25"), "reported")
    assert listed.cost_usd == Decimal("0.00001")
    assert (counted.cost_usd, counted.output_tokens) == (Decimal("0.00001"), 9)
    assert unknown.cost_usd is None
    assert unknown.cost_note


def test_requests_fit_the_types_of_the_sdks() -> None:
    """A whole conversation with an image, and a question of each kind."""
    history = [*talk()[:-1], user("Still?", images=[PNG])]
    openai, google, openrouter = Service(PREDICATE), Service(GOOGLE), Service(SYSTEM_ONE)
    for service, model in ((openai, OPENAI), (google, GEMINI), (openrouter, OPENROUTER)):
        with service.client(model) as client:
            client.decide(history, TRIAGE)

    (path, sent), *_ = openai.asked
    TypeAdapter(DecisionCreateParams).validate_python(sent)
    roles = [item.get("role") or item["type"] for item in sent["input"]]
    assert path == "/v1/decisions"
    assert roles == ["developer", "user", "function_call", "function_call_output", "user"]
    assert sent["input"][-1]["content"][1]["image_url"].startswith("data:image/png;base64,")
    assert sent["questions"][0]["instructions"] == "Is it urgent?\n\nTrue means: today\nFalse means: later"
    (path, sent), *_ = google.asked
    CreateDecisionRequest.model_validate(sent)
    assert path == "/v1beta/decisions"
    assert [part.get("text", part["type"]) for part in sent["input"]] == [
        "System: Triage.", "User:", "Charged twice.", 'Call of look_up: {"id":7}', "Result of look_up: refunded",
        "User:", "Still?", "image",
    ]  # fmt: skip
    (path, sent), *_ = openrouter.asked
    DecisionsRequest.model_validate(sent)
    assert path == "/api/v1/systemone"
    assert [part.get("type") for part in sent["state"][:-1]] == ["image_url"]
    assert [message["role"] for message in sent["state"][-1]] == ["system", "user", "assistant", "tool", "user"]


def test_a_model_without_decisions_gives_a_typed_answer() -> None:
    service = Service(typed(urgent=True, team="bug", mood=2))
    with service.client("anthropic:claude-haiku-4-5") as client:
        answer = client.decide("Charged twice.", TRIAGE)

    assert service.paths == ["/v1/messages"]
    assert [decision.value for decision in answer.value.values()] == [True, "bug", 2.0]
    shares = [getattr(decision, "probability", getattr(decision, "probabilities", None)) for decision in
              answer.value.values()]  # fmt: skip
    assert shares == [None, None, None]
    assert any("without probabilities" in row.reason for row in answer.losses)
    described = str(service.asked[0][1]["output_config"]["format"]["schema"])
    assert all(word in described for word in ("Is it urgent?", "today", "later", "payments", "annoyed"))


def test_a_typed_answer_that_does_not_fit_is_asked_for_again() -> None:
    service = Service(typed(urgent=True, team="sales", mood=2), typed(urgent=True, team="bug", mood=2))
    with service.client("anthropic:claude-haiku-4-5") as client:
        answer = client.decide("x", TRIAGE)

    assert len(service.asked) == 2 == len(answer.attempts)
    assert answer.value["team"].value == "bug"


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_local_server_without_a_decision_model_gives_a_typed_answer(status: int) -> None:
    """Recorded at llama.cpp b11549: 501 for every model that is none, before the body is read."""
    error = {"error": {"code": 501, "message": "This model is not a decision model", "type": "not_supported_error"}}
    said = {"role": "assistant", "content": json.dumps({"urgent": True})}
    chat = {"id": "1", "model": "m", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
    service = Service((status, error), chat)
    with service.client("llamacpp:qwen", retry=3) as client:
        answer = client.decide("x", ONE)

    assert service.paths == ["/v1/systemone", "/v1/chat/completions"]
    assert answer.value["urgent"].value is True
    assert any("without probabilities" in row.reason for row in answer.losses)


def test_blocked_input_decides_nothing() -> None:
    feedback = {"block_reason": "safety", "block_reason_message": "no"}
    with Service({"prompt_feedback": feedback}).client(GEMINI) as client:
        answer = client.decide("x", TRIAGE)

    assert set(answer.value.values()) == {Undecided(reason="blocked", detail="safety: no")}
    assert answer.message.stop_reason == "refusal"


def test_answers_without_names_are_taken_in_order() -> None:
    body = {**PREDICATE, "answers": [{"type": "refusal", "name": None}, {"type": "predicate", "probability": 0.9}]}
    with Service(body).client(OPENAI) as client:
        answer = client.decide("x", Questions({"a": YesNo("a"), "b": YesNo("b"), "c": YesNo("c")}))

    reasons = [getattr(decision, "reason", decision.value) for decision in answer.value.values()]
    assert reasons == ["refused", True, "missing"]


def test_an_answer_of_another_kind_is_unknown_and_kept() -> None:
    body = {**PREDICATE, "answers": [{"type": "essay", "name": "urgent", "text": "well"}]}
    with Service(body).client(OPENAI) as client:
        decision = client.decide("x", ONE).value["urgent"]

    assert isinstance(decision, Undecided)
    assert decision.reason == "unknown"
    assert decision.raw == {"type": "essay", "name": "urgent", "text": "well"}


def test_something_is_located_where_a_service_has_it() -> None:
    box = {"left": 1, "top": 2, "right": 3, "bottom": 4}
    body = {**SYSTEM_ONE, "answers": {"where": {"type": "box", "box": box, "confidence": 0.8}}}
    question = Questions({"where": Locate("the cat")})
    with Service(body).client(OPENROUTER) as client:
        found = client.decide([user("Where?", images=[PNG])], question)
    assert found.value["where"].value == Box(1, 2, 3, 4)

    for model in (OPENAI, GEMINI, "anthropic:claude-haiku-4-5"):
        service = Service()
        with service.client(model) as client, pytest.raises(CapabilityError, match="locate"):
            client.decide("x", question)
        assert not service.asked


def test_what_a_decision_api_cannot_read_is_asked_in_a_conversation() -> None:
    """A document has no place in a decision: the typed answer reads it. With `allow_loss` it is a row."""
    history = [user("Signed?", documents=[b"%PDF-1.7"])]
    said = [{"type": "message", "role": "assistant", "id": "m", "status": "completed",
             "content": [{"type": "output_text", "text": '{"urgent": false}', "annotations": []}]}]  # fmt: skip
    response = {"id": "r", "object": "response", "model": "gpt-6-luna", "status": "completed", "output": said}
    service = Service(response)
    with service.client(OPENAI) as client:
        assert client.decide(history, ONE).value["urgent"].value is False
    assert service.paths == ["/v1/responses"]

    service = Service(PREDICATE)
    with service.client(OPENAI) as client:
        answer = client.decide(history, ONE, allow_loss=True)
    assert service.paths == ["/v1/decisions"]
    assert [row.block_type for row in answer.losses if row.severity == "content"] == ["file"]


def test_options_without_a_place_are_rows() -> None:
    tool = ToolDefinition(name="look_up", description="Look up.", input_schema={"type": "object"}, side_effects="none")
    for model, body in ((OPENAI, PREDICATE), (GEMINI, GOOGLE), (OPENROUTER, SYSTEM_ONE)):
        service = Service(body)
        with service.client(model) as client:
            answer = client.decide("x", ONE, max_tokens=99, temperature=0.5, tools=[tool])
        assert {row.path for row in answer.losses} >= {"tools"}, model
        assert "tools" not in service.asked[0][1]
        options = {row.path.removeprefix("options.") for row in answer.losses}
        assert options & {"max_tokens", "max_output_tokens"}, (model, options)


def test_an_end_user_and_a_cache_key_are_passed() -> None:
    service = Service(PREDICATE)
    with service.client(OPENAI) as client:
        client.decide("x", ONE, user_id="u-7", provider_options={"prompt_cache_key": "k-7"})

    _, sent = service.asked[0]
    assert (sent["safety_identifier"], sent["prompt_cache_key"]) == ("u-7", "k-7")


def test_failures_are_retried_as_answers_are() -> None:
    service = Service((503, {"error": {"message": "busy"}}), PREDICATE)
    with service.client(OPENAI, retry=1) as client:
        assert client.decide("x", ONE).value["urgent"].value is True
    assert service.paths == ["/v1/decisions"] * 2

    service = Service((503, {"error": {"message": "busy"}}))
    with service.client(OPENAI) as client, pytest.raises(OverloadedError):
        client.decide("x", ONE)


def test_the_next_model_of_a_call_is_asked() -> None:
    service = Service((503, {"error": {"message": "busy"}}), SYSTEM_ONE)
    both = [OPENAI, OPENROUTER]
    settings = {"openai": {"api_key": "k"}, "openrouter": {"api_key": "k"}}
    with service.client(both, api_key=None, settings=settings) as client:
        answer = client.decide("x", ONE)

    assert service.paths == ["/v1/decisions", "/api/v1/systemone"]
    assert answer.message.model == OPENROUTER


def test_many_conversations_are_decided_at_once() -> None:
    service = Service(*[PREDICATE] * 5, (400, {"error": {"message": "no"}}))
    with service.client(OPENAI) as client:
        answers = client.map(list("abcdef"), output=ONE, concurrency=1)

    assert [type(answer).__name__ for answer in answers] == ["Answer"] * 5 + ["BadRequestError"]


def test_the_asynchronous_client_decides() -> None:
    async def run() -> Any:
        async with Service(SYSTEM_ONE, SYSTEM_ONE).async_client(OPENROUTER) as client:
            return await client.decide("x", TRIAGE), await client.map(["x"], output=TRIAGE)

    one, (other,) = asyncio.run(run())
    assert one.value == other.value
    assert one.value["team"].value == "bug"


@pytest.mark.parametrize("broken", ["nothing", {"answers": [{"type": "predicate", "name": "urgent"}]}, {"answers": 7}])
def test_an_answer_that_is_none_is_malformed(broken: Any) -> None:
    with Service(broken).client(OPENAI) as client, pytest.raises(MalformedResponseError):
        client.decide("x", ONE)


GOOD_YES: dict[str, dict[str, Any]] = {
    OPENAI: {"type": "predicate", "name": "urgent", "probability": 0.9},
    GEMINI: {"type": "noul", "noul": 0.9, "confidence": 0.9},
    OPENROUTER: {"type": "noul", "noul": 0.9},
}
BROKEN: list[Any] = [
    7, {"type": "choice", "name": "team"}, {"type": "choice", "name": "team", "choice": "bug", "probabilities": "none"},
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN, ids=["number", "empty", "text for numbers"])
@pytest.mark.parametrize("model", GOOD_YES)
def test_one_malformed_answer_does_not_lose_the_others(model: str, broken: Any) -> None:
    both = Questions({"urgent": YesNo("Is it urgent?"), "team": Choice("Which team?", ["bug", "sales"])})
    listed: Any = [GOOD_YES[model], broken] if model == OPENAI else {"urgent": GOOD_YES[model], "team": broken}
    with Service({"model": "m", "answers": listed}).client(model) as client:
        found = client.decide("x", both).value

    assert found["urgent"].value is True
    assert isinstance(found["team"], Undecided)
    assert (found["team"].reason, found["team"].raw) == ("malformed", broken)
    assert found["team"].detail

    listed = [broken] if model == OPENAI else {"team": broken}
    with Service({"model": "m", "answers": listed}).client(model) as client, pytest.raises(MalformedResponseError):
        client.decide("x", both)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Questions({}),
        lambda: Questions({"": YesNo("x")}),
        lambda: Questions({"a": "Is it?"}),  # type: ignore[dict-item]
        lambda: Choice("x", ["one"]),
        lambda: Choice("x", ["one", "one", "two"]),
        lambda: Choice("x", "ab"),
        lambda: Scale("x", ["one"]),
        lambda: Scale("x", "ab"),
    ],
)
def test_wrong_questions_are_refused_before_anything_is_sent(make: Any) -> None:
    with pytest.raises(CallerError):
        make()
