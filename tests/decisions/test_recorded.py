"""Recorded exchanges: requests as they were sent, and answers as the services' own SDKs read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from openai.types import Decision as OpenAIDecision
from openrouter.components import DecisionsResponse

from interlingua.errors import AuthenticationError, BadRequestError, PermissionDeniedError
from interlingua_decisions import Choice, Question, Questions, Scale, Undecided, YesNo
from tests.decisions.service import Service
from tests.support.corpus import Corpus


def _entries(corpus: Corpus, provider: str, status: int | None = 200) -> Iterator[dict[str, Any]]:
    for entry in corpus.entries("decisions"):
        if entry["provider"] == provider and (status is None or entry["status"] == status):
            yield entry


def _text(instructions: Any) -> str:
    return instructions if isinstance(instructions, str) else str(instructions.get("question"))


def _of_openai(asked: Mapping[str, Any]) -> Question:
    if asked["type"] == "predicate":
        return YesNo(asked["instructions"])
    if asked["type"] == "choice":
        return Choice(asked["instructions"], {one["value"]: one.get("description") for one in asked["choices"]})
    return Scale(asked["instructions"], [one["description"] for one in asked["levels"]])


def _of_system_one(asked: Mapping[str, Any]) -> Question:
    text = _text(asked["instructions"])
    if asked["type"] == "noul":
        return YesNo(text)
    return Choice(text, asked["criteria"]) if asked["type"] == "choice" else Scale(text, asked["criteria"])


def test_openai_is_asked_as_recorded(corpus: Corpus) -> None:
    """Every recorded request is written again from its questions: equal JSON."""
    written = 0
    for entry in _entries(corpus, "openai"):
        asked = entry["request"]
        service = Service(entry["response_text"])
        with service.client(f"openai:{asked['model']}") as client:
            client.decide(asked["input"], Questions({one["name"]: _of_openai(one) for one in asked["questions"]}))
        assert service.asked == [("/v1/decisions", asked)], entry["id"]
        written += 1
    assert written >= 9


def test_openai_is_read_as_its_sdk_reads_it(corpus: Corpus) -> None:
    refused = 0
    for entry in _entries(corpus, "openai"):
        asked, read = entry["request"], OpenAIDecision.model_validate_json(entry["response_text"])
        questions = Questions({one["name"]: _of_openai(one) for one in asked["questions"]})
        with Service(entry["response_text"]).client(f"openai:{asked['model']}") as client:
            answer = client.decide(asked["input"], questions)
        assert list(answer.value) == [one.name for one in read.answers], entry["id"]
        for one in read.answers:
            decision: Any = answer.value[str(one.name)]
            if one.type == "refusal":
                refused += 1
                assert (decision.value, decision.reason) == (None, "refused")
            elif one.type == "predicate":
                assert (decision.probability, decision.value) == (one.probability, one.probability >= 0.5)
            elif one.type == "choice":
                assert (decision.value, decision.confidence) == (one.choice, one.confidence)
                assert decision.probabilities == {each.value: each.probability for each in one.probabilities}
            else:
                assert (decision.value, decision.confidence) == (one.score, one.confidence)
                assert decision.probabilities == tuple(each.probability for each in one.probabilities)
        usage = answer.usage
        assert (usage.input_tokens, usage.output_tokens) == (read.usage.input_tokens, read.usage.output_tokens)
        assert usage.cost_usd is not None
        assert float(usage.cost_usd) == pytest.approx(read.usage.input_tokens * 0.10 / 1e6)
    assert refused >= 2


def test_system_one_is_read_as_an_sdk_reads_it(corpus: Corpus) -> None:
    """TypeSafe's recordings; OpenRouter's SDK has types of the same answers."""
    read_answers = 0
    for entry in _entries(corpus, "typesafe"):
        asked, read = entry["request"], DecisionsResponse.model_validate_json(entry["response_text"])
        questions = Questions({name: _of_system_one(one) for name, one in asked["questions"].items()})
        service = Service(entry["response_text"])
        with service.client(f"typesafe:{asked['model']}") as client:
            answer = client.decide("anything", questions)
        (path, sent) = service.asked[0]
        assert (path, sent["model"], sent["state"]) == ("/v1/systemone", asked["model"], "anything")
        for name, one in read.answers.items():
            decision: Any = answer.value[name]
            if one.type == "noul":
                assert decision.probability == one.noul
            elif one.type == "choice":
                assert (decision.value, decision.probabilities) == (one.choice, one.probabilities)
                assert sent["questions"][name]["criteria"] == asked["questions"][name]["criteria"]
            assert decision.confidence == getattr(one, "confidence", None)
            read_answers += 1
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (
            read.usage.input_tokens,
            read.usage.output_tokens,
        )
    assert read_answers >= 8


@pytest.mark.parametrize(
    ("provider", "status", "error", "words"),
    [
        ("openai", 400, BadRequestError, "array too long"),
        ("openai", 403, PermissionDeniedError, "not enabled"),
        ("typesafe", 401, AuthenticationError, "Cannot authenticate"),
    ],
)
def test_refusals_of_a_service_are_errors(
    corpus: Corpus, provider: str, status: int, error: type[Exception], words: str
) -> None:
    """A refused request is no reason to ask in another way."""
    found = 0
    for entry in _entries(corpus, provider, status):
        service = Service((status, entry["response_text"]))
        asked = entry["request"]
        with (
            service.client(f"{provider}:{asked['model']}") as client,
            pytest.raises(error, match=words) as raised,
        ):
            client.decide("anything", Questions({"q": YesNo("Is it?")}))
        assert raised.value.status == status  # type: ignore[attr-defined]
        assert len(service.asked) == 1
        found += 1
    assert found


def test_an_answer_without_a_question_is_missing(corpus: Corpus) -> None:
    """The instrument: what the service leaves out is not read as refused, and not invented."""
    entry = next(_entries(corpus, "openai"))
    with Service(entry["response_text"]).client("openai:gpt-6-luna") as client:
        answer = client.decide("anything", Questions({"another": YesNo("Is it?")}))
    assert answer.value == {"another": Undecided(reason="missing")}
