"""Decisions: typed questions about a conversation, each answered with probabilities (WIRE.md, Decisions)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from interlingua.errors import MalformedResponseError
from interlingua.plugins import Loss, WireRequest, WireResponse, dumps, loads, option_loss
from interlingua.types import CostParts, Usage
from interlingua_google.interactions.response import from_wire_usage
from interlingua_google.interactions.steps import CALL, INPUT, OUTPUT, RESULT
from interlingua_google.models import INTERACTIONS, is_decider

_PRICE = Decimal("0.10") / 1_000_000  # USD for a token of input; output is free (WIRE.md, Decisions)
_PRICES = "blog.google 2026-11-11"
_NOTHING = Decimal(0)
_CONTENTS = frozenset({"text", "image", "audio", "video", "document"})
_SPEAKERS = {INPUT: "User:", OUTPUT: "Assistant:"}
_NO_PLACE = "a decision has no such option"


def decision_request(request: WireRequest, questions: Sequence[Mapping[str, Any]]) -> WireRequest | None:
    """Return the request for decisions about the conversation of a request; None for other models and kinds."""
    body = loads(request.body)
    if request.api != INTERACTIONS or not is_decider(str(body.get("model"))) or "previous_interaction_id" in body:
        return None
    asked = {question["id"]: _question(question) for question in questions}
    if None in asked.values():
        return None
    losses: list[Loss] = list(request.losses)
    contents = list(_contents(body, losses))
    made = {"model": body["model"], "input": contents, "questions": asked}
    losses += [option_loss(name, "dropped", _NO_PLACE) for name in body.get("generation_config") or ()]
    if "response_format" in body:
        losses.append(option_loss("response_schema", "dropped", _NO_PLACE))
    if "tools" in body:
        losses.append(Loss(path="tools", block_type="option", verdict="dropped", reason="a decision calls no tools"))
    return WireRequest(
        path="/decisions", headers=request.headers, body=dumps(made), losses=tuple(losses), api=INTERACTIONS
    )


def _question(question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a question in this API's words; None for a kind that it does not have."""
    kind, made = question["kind"], {"instructions": question["text"]}
    if kind == "yes_no":
        meanings = {"true_description": question["yes"], "false_description": question["no"]}
        criteria = {name: text for name, text in meanings.items() if text}
        return {"type": "noul", **made, **({"criteria": criteria} if criteria else {})}
    if kind == "choice":
        options = {name: text if text is not None else name for name, text in question["options"].items()}
        return {"type": "choice", **made, "criteria": options}
    return {"type": "score", **made, "criteria": list(question["levels"])} if kind == "scale" else None


def _contents(body: Mapping[str, Any], losses: list[Loss]) -> Iterator[Any]:
    """Yield what the service reads: contents without speakers, so each speaker is announced in words."""
    steps = body["input"]
    alone = len(steps) == 1 and steps[0]["type"] == INPUT and "system_instruction" not in body
    if "system_instruction" in body:
        yield _text(f"System: {body['system_instruction']}")
    for at, step in enumerate(steps):
        kind = step["type"]
        if kind in _SPEAKERS:
            if not alone:
                yield _text(_SPEAKERS[kind])
            for part in step["content"]:
                if part["type"] in _CONTENTS:
                    yield {name: value for name, value in part.items() if name != "annotations"}
                else:
                    losses.append(_lost(at, part["type"]))
        elif kind == CALL:
            yield _text(f"Call of {step['name']}: {dumps(step['arguments']).decode()}")
        elif kind == RESULT:
            yield from _result(step)
        elif kind != "thought":
            losses.append(_lost(at, kind))


def _result(step: Mapping[str, Any]) -> Iterator[Any]:
    result, title = step["result"], f"Result of {step.get('name') or step['call_id']}:"
    if isinstance(result, list):
        yield _text(title)
        yield from result
    else:
        yield _text(f"{title} {result if isinstance(result, str) else dumps(result).decode()}")


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _lost(at: int, kind: str) -> Loss:
    reason = f"a decision reads no {kind}"
    return Loss(path=f"input[{at}]", block_type="opaque", verdict="dropped", reason=reason)


def read_decisions(response: WireResponse) -> dict[str, Any]:
    """Return the answers, as `decide` promises them (docs/reference/hooks.md)."""
    body = loads(response.body)
    answers = [{"id": name, **_read(answer), "raw": answer} for name, answer in (body.get("answers") or {}).items()]
    if answers and all(one["kind"] == "malformed" for one in answers):
        raise MalformedResponseError(f"no answer can be read: {answers[0]['detail']}", path="/answers")
    feedback = body.get("prompt_feedback") or {}
    blocked = None
    if feedback:
        blocked = ": ".join(filter(None, [feedback.get("block_reason"), feedback.get("block_reason_message")]))
    usage = _priced(from_wire_usage(body))
    trace = {name: value for name, value in body.items() if name != "answers"}
    return {"answers": answers, "model": None, "usage": usage, "blocked": blocked, "trace": trace}


def _read(answer: Any) -> dict[str, Any]:
    """Read one answer; `malformed` if it cannot be read, so that the others are not lost."""
    try:
        return _answer(answer)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return {"kind": "malformed", "detail": f"{type(error).__name__}: {error}"}


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    kind, confidence = answer.get("type"), answer.get("confidence")
    if kind == "noul":
        return {"kind": "yes_no", "yes": float(answer["noul"]), "confidence": confidence}
    shares = answer.get("probabilities")
    if kind == "choice":
        named = shares and {option: float(share) for option, share in shares.items()}
        return {"kind": "choice", "option": answer["choice"], "probabilities": named, "confidence": confidence}
    if kind == "score":
        levels = shares and [float(shares[at]) for at in sorted(shares, key=int)]
        return {"kind": "scale", "score": float(answer["score"]), "probabilities": levels, "confidence": confidence}
    return {"kind": "unknown"}


def _priced(usage: Usage | None) -> Usage | None:
    """Return the usage with its cost, if nothing but input was counted."""
    if usage is None or usage.input_tokens is None or usage.cached_input_tokens:
        return usage
    cost = usage.input_tokens * _PRICE
    parts = CostParts(input=cost, output=_NOTHING, cached_read=_NOTHING, cache_write=_NOTHING)
    return attrs.evolve(usage, cost_usd=cost, cost=parts, pricing_version=_PRICES)
