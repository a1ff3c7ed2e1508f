"""The words of the decision APIs, and what becomes of each: asked and read by the adapters, as conversations are."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import openai.types.decision as openai_answer
import openai.types.decision_create_params as openai_request
import openrouter.components as openrouter
from google.genai._gaos.types.decisions import answer as google_answers
from google.genai._gaos.types.decisions import createdecisionrequest as google_request
from google.genai._gaos.types.decisions import createdecisionresponse as google_answer
from google.genai._gaos.types.decisions import question as google_questions
from google.genai._gaos.types.interactions.usage import Usage as GoogleUsage

from interlingua.plugins import WireRequest, WireResponse, build_request
from interlingua.types import (
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    RequestOptions,
    TextBlock,
    tool_result,
    user,
)
from interlingua_decisions import Choice, Locate, Question, Questions, Scale, YesNo
from tests.support import driving
from tests.tools.coverage.places import Place
from tests.tools.coverage.sdk_types import Maker, item, kinds, leaves, members, options

_PREDICATE = YesNo("zq1", yes="zq2", no="zq3")
_ASKED: Mapping[str, Question] = {
    "predicate": _PREDICATE,
    "noul": _PREDICATE,
    "choice": Choice("zq4", {"zq5": "zq6", "zq7": "zq8"}),
    "score": Scale("zq9", ["zq10", "zq11"]),
    "box": Locate("zq12"),
    "refusal": _PREDICATE,
}
_PICTURE = ImageBlock(source=MediaSource(kind="base64", data="eno="), media_type="image/png")
_CANONICAL = {
    "message": "Message", "text": "TextBlock", "input_text": "TextBlock", "image": "ImageBlock",
    "input_image": "ImageBlock", "output_text": "TextBlock", "refusal": "TextBlock", "function_call": "ToolUseBlock",
    "custom_tool_call": "ToolUseBlock", "function_call_output": "ToolResultBlock",
    "custom_tool_call_output": "ToolResultBlock",
}  # fmt: skip
_CONSTANTS = ("type", "name")
_ALWAYS = {"model": "model", "input": "messages", "state": "messages", "questions": "Questions"}


@attrs.frozen(kw_only=True)
class DecisionApi:
    """One API.

    Attributes:
        name: on the page.
        sdk: the distribution whose types are read.
        key: the provider.
        model: the model that is asked.
        api: the API whose request holds the conversation.
        parameters: of a request.
        sent: kinds of what the conversation may hold.
        questions: kinds of questions.
        answer: members of an answer.
        usage: members of its usage.
        answers: kinds of answers to one question.
        listed: answers are a list with names, not an object.
    """

    name: str
    sdk: str
    key: str
    model: str
    api: str
    parameters: Mapping[str, Any]
    sent: Mapping[str, Any]
    questions: Mapping[str, Any]
    answer: Mapping[str, Any]
    usage: Mapping[str, Any]
    answers: Mapping[str, Any]
    listed: bool = False

    @property
    def provider(self) -> Any:
        """The provider under test."""
        return driving.provider(self.key)


def openai_decisions() -> DecisionApi:
    """Return OpenAI's."""
    asked = members(openai_request.DecisionCreateParams)
    items = next(one for one in options(asked["input"]) if one is not str)
    held: dict[str, Any] = {}
    for one in options(item(items)):
        inner = members(one)
        parts = inner.get("content") or inner.get("output")
        held |= kinds(one)
        held |= kinds(item(parts)) if parts and options(parts) != [str] else {}
    return DecisionApi(
        name="OpenAI Decisions", sdk="openai", key="openai", model="gpt-6-luna", api="responses", parameters=asked,
        sent=held, questions=kinds(item(asked["questions"])), answer=members(openai_answer.Decision),
        usage=members(openai_answer.Usage), answers=kinds(openai_answer.Answer), listed=True,
    )  # fmt: skip


def google_decisions() -> DecisionApi:
    """Return Gemini's."""
    asked = members(google_request.CreateDecisionRequestParam)
    contents = next(one for one in options(asked["input"]) if members(one))
    held = {kind: one for each in options(asked["input"]) if members(each) for kind, one in kinds(each).items()}
    return DecisionApi(
        name="Gemini Decisions", sdk="google-genai", key="google", model="gemini-decision-1", api="interactions",
        parameters=asked, sent=held or kinds(contents), questions=kinds(google_questions.Question),
        answer=members(google_answer.CreateDecisionResponse), usage=members(GoogleUsage),
        answers=kinds(google_answers.Answer),
    )  # fmt: skip


def openrouter_decisions() -> DecisionApi:
    """Return System One, as OpenRouter's SDK has it; its state is any JSON."""
    return DecisionApi(
        name="System One (OpenRouter)", sdk="openrouter", key="openrouter", model="typesafe/jev-1.14", api="chat",
        parameters=members(openrouter.DecisionsRequest), sent={},
        questions={
            kind: getattr(openrouter, f"Decisions{kind.title()}Question") for kind in ("noul", "choice", "score", "box")
        },
        answer=members(openrouter.DecisionsResponse), usage=members(openrouter.DecisionsResponseUsage),
        answers={
            kind: getattr(openrouter, f"Decisions{kind.title()}Answer") for kind in ("noul", "choice", "score", "box")
        },
    )  # fmt: skip


APIS = (openai_decisions, google_decisions, openrouter_decisions)


def sections(api: DecisionApi) -> Iterator[tuple[str, Iterator[tuple[str, Place]]]]:
    """Yield the groups of an API's words: their title, and what becomes of each."""
    yield "parameters", parameters(api)
    yield "blocks of a request", blocks(api)
    yield "questions", questions(api)
    yield "fields of an answer", fields(api)
    yield "answers to a question", answers(api)


def ask(api: DecisionApi, history: Any = "zq0", kind: str = "choice", **given: Any) -> WireRequest:
    """Return the request for one decision, about messages, or one of the user."""
    messages = history if isinstance(history, list) else [user(history)]
    request = build_request(api.provider, messages, [], RequestOptions(model=api.model, api=api.api, **given))
    question = _ASKED[kind]
    asked = [{"id": "a", "kind": question.kind, **question.as_json()}]
    made: WireRequest = api.provider.auxiliary_request("decide", {"request": request, "questions": asked})
    return made


def parameters(api: DecisionApi) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each parameter."""
    plain, maker = json.loads(ask(api).body), Maker()
    named = json.loads(ask(api, user_id="zq7").body)
    for name, hint in api.parameters.items():
        value = maker.make(hint)
        if name in plain:
            yield name, Place("typed", _ALWAYS[name])
        elif name in named:
            yield name, Place("typed", "user_id")
        elif json.loads(ask(api, provider_options={name: value}).body).get(name) == value:
            yield name, Place("passes", "provider_options")
        else:
            yield name, Place("unplaced", "not in the request")


def blocks(api: DecisionApi) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each kind of what a conversation holds; what is refused is asked for as a typed answer."""
    found = json.loads(ask(api, [user([TextBlock(text="zq0"), _PICTURE]), *_answered(api)]).body)
    written = set(_kinds(found))
    for kind, hint in api.sent.items():
        value = Maker().make(hint, tag=("type", kind))
        if kind in written:
            yield kind, Place("typed", _CANONICAL[kind])
            continue
        made = ask(api, [user([TextBlock(text="zq0"), OpaqueBlock(provider=api.key, kind=kind, data=value)])])
        body = made.body.decode()
        if leaves(value) and all(str(leaf) in body for leaf in leaves(value).values()):
            yield kind, Place("passes", "OpaqueBlock")
        elif any(row.severity == "content" for row in made.losses):
            yield kind, Place("refused", "a row; asked for as a typed answer instead")
        else:
            yield kind, Place("unplaced", "not in the request")


def _answered(api: DecisionApi) -> list[Message]:
    """Return an answer of the same service, of all kinds that it may hold, and the results of its calls."""
    if not api.listed:
        return []
    said = [{"type": "output_text", "text": "zq1", "annotations": []}, {"type": "refusal", "refusal": "zq2"}]
    calls = {"call_id": "c1", "name": "look_up", "type": "function_call", "id": "fc_1", "arguments": "{}"}
    custom = {"call_id": "c2", "name": "look_up", "type": "custom_tool_call", "id": "ctc_1", "input": "zq3"}
    output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": said}]
    body = {"id": "resp_1", "model": api.model, "status": "completed", "output": [*output, calls, custom]}
    context = driving.context(api.key, api.api, api.model)
    answer = driving.whole(api.provider, json.dumps(body).encode(), context)
    return [answer, *(tool_result(call, "zq4") for call in answer.tool_calls)]


def _kinds(value: Any) -> Iterator[str]:
    """Yield the kinds of all objects within a request; a message has a role instead."""
    for one in value if isinstance(value, list) else value.values():
        if isinstance(one, dict):
            yield str(one.get("type", "message" if "role" in one else ""))
        if isinstance(one, dict | list):
            yield from _kinds(one)


def questions(api: DecisionApi) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each member of each kind of question."""
    for kind, hint in api.questions.items():
        sent = json.loads(ask(api, kind=kind).body)["questions"]
        asked = sent[0] if isinstance(sent, list) else sent["a"]
        for name in members(hint):
            place = Place("typed", type(_ASKED[kind]).__name__) if name in asked else Place("unplaced", "not asked")
            yield f"{kind}.{name}", place


def _whole(api: DecisionApi, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer to one question, with more members."""
    choice: dict[str, Any] = {"type": "choice", "choice": "zq5", "confidence": 0.5}
    shares = [{"value": "zq5", "probability": 1.0}] if api.listed else {"zq5": 1.0}
    given: Any = {**choice, "probabilities": shares}
    return {"answers": [{**given, "name": "a"}] if api.listed else {"a": given}, **more}


def _read(api: DecisionApi, body: Any) -> dict[str, Any]:
    response = WireResponse(status=200, headers={"content-type": "application/json"}, body=json.dumps(body).encode())
    found: dict[str, Any] = api.provider.from_wire_auxiliary("decide", response)
    return found


def _holds(found: Any, value: Any) -> bool:
    said = json.dumps(found, default=lambda one: attrs.asdict(one, recurse=False) if attrs.has(type(one)) else str(one))
    return all(str(leaf) in said for leaf in leaves(value).values())


def fields(api: DecisionApi) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each member of an answer, and of its usage."""
    for label, hints in (("", api.answer), ("usage.", api.usage)):
        for name, hint in hints.items():
            if f"{label}{name}" == "answers":
                yield name, Place("typed", "the decisions")
                continue
            value = Maker().make(hint)
            found = _read(api, _whole(api, {"usage": {name: value}} if label else {name: value}))
            typed = {part: one for part, one in found.items() if part not in ("trace", "answers")}
            if leaves(value) and _holds(typed, value):
                yield f"{label}{name}", Place("typed", "usage" if label or name == "usage" else _typed_name(name))
            elif _holds(found["trace"], value) and found["trace"]:
                yield f"{label}{name}", Place("kept", "provider_raw")
            else:
                yield f"{label}{name}", Place("unplaced", "not read")


def _typed_name(name: str) -> str:
    return {"model": "model", "prompt_feedback": "Undecided(reason='blocked')"}[name]


def answers(api: DecisionApi) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each member of each kind of answer."""
    for kind, hint in api.answers.items():
        made = Maker().make(hint, tag=("type", kind))
        if kind == "score" and not api.listed:  # levels have numbers for names
            made = {name: {"0": next(iter(v.values()))} if isinstance(v, dict) else v for name, v in made.items()}
        body = copy.deepcopy(made)
        found = _read(api, {"answers": [{**body, "name": "a"}] if api.listed else {"a": body}})
        (decision,) = Questions({"a": _ASKED[kind]}).read(found).values()
        shown = attrs.asdict(decision, filter=lambda field, _: field.name != "raw", recurse=False)
        for name, value in made.items():
            if name in _CONSTANTS or (leaves(value) and _holds(shown, value)):
                yield f"{kind}.{name}", Place("typed", type(decision).__name__)
            elif _holds(decision.raw, value):
                yield f"{kind}.{name}", Place("kept", "raw")
            else:
                yield f"{kind}.{name}", Place("unplaced", "not read")
