"""The cassettes of decisions are what the plugins write, and the services' SDKs read their answers alike."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.genai._gaos.types.decisions.createdecisionrequest import CreateDecisionRequest
from google.genai._gaos.types.decisions.createdecisionresponse import CreateDecisionResponse
from openai.types import Decision as OpenAIDecision
from openai.types.decision_create_params import DecisionCreateParams
from openrouter.components import DecisionsRequest, DecisionsResponse
from pydantic import TypeAdapter

from interlingua import assistant, user
from interlingua_cli.cassettes import read_cassette
from interlingua_decisions import Choice, Locate, Question, Questions, Scale, YesNo
from tests.decisions.service import Service
from tests.support import tree

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC")
ASKED: dict[str, Question] = {
    "urgent": YesNo(
        "Does the customer need an answer today?", yes="asks for one today", no="names no day, or a later one"
    ),
    "team": Choice(
        "Which team should answer?", {"billing": "payments and refunds", "technical": "faults", "other": None}
    ),
    "mood": Scale("How frustrated is the customer?", ["calm and polite", "frustrated", "angry or hostile"]),
}
TALK = [
    user("I was charged twice."),
    assistant("Sorry to hear that. We look into it."),
    user("It is still not refunded. Please do it today!"),
]
CASES: dict[str, tuple[str, Any, dict[str, Question]]] = {
    "openai": ("openai:gpt-6-luna", TALK, {"disabled": YesNo("Does the customer have a disability?")}),
    "google": ("google:gemini-decision-1", TALK, {}),
    "openrouter": (
        "openrouter:typesafe/jev-1.14",
        [user("Here is my bill. Please refund it today.", images=[PNG])],
        {"where": Locate("the amount on the bill")},
    ),
}


def _request(key: str, sent: Any) -> None:
    """Read a request by the SDK's types; they raise where it does not fit."""
    if key == "openai":
        TypeAdapter(DecisionCreateParams).validate_python(sent)
    else:
        types: dict[str, Any] = {"google": CreateDecisionRequest, "openrouter": DecisionsRequest}
        types[key].model_validate(sent)


def _answers(key: str, text: str) -> dict[str, Any]:
    """Return the SDK's answers by question."""
    if key == "openai":
        return {str(one.name): one for one in OpenAIDecision.model_validate_json(text).answers}
    types: dict[str, Any] = {"google": CreateDecisionResponse, "openrouter": DecisionsResponse}
    return dict(types[key].model_validate_json(text).answers)


@pytest.mark.parametrize("key", list(CASES))
def test_a_cassette_is_what_the_plugin_writes_and_the_sdk_reads(key: str) -> None:
    (exchange,) = read_cassette(tree.ROOT / "cassettes" / key / "decisions.yaml")
    model, talk, more = CASES[key]
    service = Service(exchange.body.decode())
    with service.client(model) as client:
        answer = client.decide(talk, Questions({**ASKED, **more}))

    (path, sent), *_ = service.asked
    assert (exchange.uri.endswith(path), sent) == (True, json.loads(exchange.request_body))
    _request(key, sent)
    read = _answers(key, exchange.body.decode())
    assert set(read) == set(answer.value)
    for name, one in read.items():
        decision: Any = answer.value[name]
        if one.type in ("predicate", "noul"):
            assert decision.probability == (one.probability if one.type == "predicate" else one.noul)
        elif one.type == "choice":
            assert (decision.value, decision.confidence) == (one.choice, one.confidence)
            assert decision.probabilities == _by_option(one.probabilities)
        elif one.type == "score":
            assert (decision.value, decision.confidence) == (one.score, one.confidence)
            assert decision.probabilities == tuple(_by_option(one.probabilities).values())
        elif one.type == "box":
            assert decision.value._asdict() == one.box.model_dump()
        else:
            assert decision.reason == "refused"


def _by_option(shares: Any) -> dict[Any, float]:
    """Return probabilities by option or level: a list of objects at one service, an object at the others."""
    return dict(shares) if isinstance(shares, dict) else {one.value: one.probability for one in shares}
