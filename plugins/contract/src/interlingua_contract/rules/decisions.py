"""A rule on decisions: each question is asked once, about the conversation given, and read as it is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types import assistant, user
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.follow_ups import read_exchanges
from interlingua_contract.json_paths import leaves, texts, words_beside
from interlingua_contract.recordings import is_decision
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Aim, Subject

_QUESTIONS: tuple[dict[str, Any], ...] = (
    {"id": "Yes_7", "kind": "yes_no", "text": "mkaq?", "yes": "mkatrue", "no": "mkafalse"},
    {"id": "Kind_9", "kind": "choice", "text": "mkbq?", "options": {"mkbone": "mkbdescribed", "mkbtwo": None}},
    {"id": "How_10", "kind": "scale", "text": "mkcq?", "levels": ["mkclow", "mkcmiddle", "mkchigh"]},
)
"""Their ids and options are the same as in the approved requests, which compare what is written under each of them."""

_SHARES = 0.011  # services round probabilities to two places


@rule(
    "C109",
    "Decisions ask each question under its id, about the conversation given; answers are read with their numbers.",
    source="hook auxiliary_request; how-to/decide.md",
    fix="""For `decide`, write every message of `request` that the service reads, and each of `questions` with its id,
    its text, its options and levels in their order, and what they mean. Read each answer under its id: probabilities as
    received, those of a scale in the order of its levels, and a refusal as `refused`. Return None for a model or a kind
    of question that the service does not have.""",
)
def decisions_are_about_their_questions(subject: Subject) -> Iterator[RuleFinding]:
    """The model of each recorded decision: a conversation with a question of each kind, and the recorded answer."""
    found = 0
    for exchange in read_exchanges(subject):
        if (aim := _decider(subject, exchange)) is not None:
            found += 1
            yield from _check_request(subject, aim)
            yield from _check_answer(subject, exchange)
    if not found:
        raise NotApplicable("no cassette has a decision")


def _decider(subject: Subject, exchange: RecordedExchange) -> Aim | None:
    """Return what an exchange is a decision of; None if it is not a decision."""
    if not is_decision(exchange):
        return None
    model = str(json.loads(exchange.request_body).get("model"))
    for aim in {aim.api: aim for aim in reversed(subject.aims)}.values():
        meant = attrs.evolve(aim, model=model.removeprefix("models/"))
        try:
            path = urlsplit(_ask(subject, meant).path).path
        except CapabilityError:
            continue
        if urlsplit(exchange.uri).path.endswith(path):
            return meant
    return None


def _ask(subject: Subject, aim: Aim) -> WireRequest:
    history = [user("mkt1q"), assistant("mkt2q"), user("mkt3q")]
    request = subject.write(aim, history)
    return subject.provider.auxiliary_request("decide", {"request": request, "questions": list(_QUESTIONS)})


def _check_request(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    request = _ask(subject, aim)
    body, where = json.loads(request.body), f"decide, {aim.name}"
    written = texts(body) + [str(name) for path, _ in leaves(body) for name in path]
    whole = "\n".join(written)
    if missing := [word for word in ("mkt1q", "mkt2q", "mkt3q") if word not in whole]:
        yield RuleFinding(f"the message {missing[0]!r} of the conversation is not in the request", where)
    if aim.model not in whole and aim.model not in request.path:
        yield RuleFinding(f"the model {aim.model!r} is not in the request", where)
    text = json.dumps(body["questions"] if isinstance(body.get("questions"), (dict, list)) else body)
    for question in _QUESTIONS:
        words = [word for word in _words(question) if word not in text]
        if words:
            yield RuleFinding(f"{words[0]!r} of the question {question['id']!r} is not in the request", where)
            return
        own, others = question["text"], [one["text"] for one in _QUESTIONS]
        if (beside := _beside(body["questions"], question["id"], others)) != {own}:
            yield RuleFinding(f"under the id {question['id']!r} of {own!r} is {sorted(beside) or 'nothing'}", where)
        order = [text.index(word) for word in question.get("levels") or list(question.get("options") or ())]
        if any(left > right for left, right in pairwise(order)):
            yield RuleFinding(f"the answers to {question['id']!r} are not in their order", where)


def _words(question: Mapping[str, Any]) -> list[str]:
    options = question.get("options") or {}
    meant = [question.get("yes"), question.get("no"), *options, *options.values(), *(question.get("levels") or ())]
    return [question["id"], question["text"], *filter(None, meant)]


def _beside(questions: Any, name: str, wanted: list[str]) -> set[str]:
    if isinstance(questions, dict):
        return {one for one in wanted if one in "\n".join(texts(questions.get(name)))}
    return words_beside(questions, name, wanted)


def _check_answer(subject: Subject, exchange: RecordedExchange) -> Iterator[RuleFinding]:
    where = exchange.cassette
    response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
    try:
        read = subject.provider.from_wire_auxiliary("decide", response)
    except InterlinguaError as error:
        yield RuleFinding(f"the answer cannot be read: {error}", where)
        return
    body = json.loads(exchange.body)
    came = body["answers"]
    raw = dict(came) if isinstance(came, dict) else {one.get("name") or at: one for at, one in enumerate(came)}
    given = {one["id"] if one["id"] is not None else at: one for at, one in enumerate(read["answers"])}
    if set(given) != set(raw):
        yield RuleFinding(f"answers to {sorted(map(str, raw))} are read as answers to {sorted(map(str, given))}", where)
        return
    counted = read.get("usage") and read["usage"].input_tokens
    if counted not in _numbers(body.get("usage")):
        yield RuleFinding(f"{counted!r} tokens of input are not what the answer counts", where)
    for name, one in given.items():
        yield from _check_decision(name, one, raw[name], where)


def _check_decision(name: Any, read: Mapping[str, Any], raw: Any, where: str) -> Iterator[RuleFinding]:
    if read.get("raw") != raw:
        yield RuleFinding(f"`raw` of {name!r} differs from the answer", where)
    numbers, known = _numbers(raw), {key: value for key, value in read.items() if key != "raw"}
    if made_up := [number for number in _numbers(known) if number not in numbers]:
        yield RuleFinding(f"{made_up[0]} of {name!r} is not in the answer", where)
    if lost := [number for number in numbers if number not in _numbers(known) and not float(number).is_integer()]:
        yield RuleFinding(f"{lost[0]} of {name!r} is not read", where)
    shares = read.get("probabilities")
    if read["kind"] == "choice" and shares and shares[read["option"]] < max(shares.values()):
        yield RuleFinding(f"{name!r} is read as {read['option']!r}, which is not the most probable option", where)
    if read["kind"] == "scale" and shares:
        mean = sum(at * share for at, share in enumerate(shares))
        if abs(mean - read["score"]) > _SHARES * len(shares) * len(shares):
            yield RuleFinding(f"{name!r}: {read['score']} is not the mean of the levels, {mean:.2f}", where)


def _numbers(value: Any) -> list[float]:
    return [leaf for _, leaf in leaves(value) if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)]
