"""Decisions: typed questions about a conversation, each answered with probabilities (WIRE.md, Decisions)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import Loss, WireRequest, WireResponse, dumps, loads
from interlingua_chat_completions.decisions import option_losses, read_answers
from interlingua_openai.catalogue import RESPONSES
from interlingua_openai.responses.response import from_wire_usage

_MODELS = re.compile(r"gpt-6-luna(-\d{4}-\d{2}-\d{2})?").fullmatch
_OWN = ("prompt_cache_key", "prompt_cache_options", "safety_identifier")  # fields that both APIs have
_OF_CONVERSATIONS = frozenset({"model", "input", "instructions", "store", "include", "stream", *_OWN})
_OPTIONS = {"max_output_tokens": "max_tokens", "reasoning": "effort", "text": "response_schema"}
# item -> its fields; every other item, such as reasoning, has no place here
_ITEMS = {
    "message": ("role", "content", "phase"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
}
# content part -> its fields
_PARTS = {
    "input_text": ("text",),
    "input_image": ("image_url", "detail"),
    "output_text": ("text",),
    "refusal": ("refusal",),
}


def decision_request(request: WireRequest, questions: Sequence[Mapping[str, Any]]) -> WireRequest | None:
    """Return the request for decisions about the conversation of a request; None for other models and kinds."""
    body = loads(request.body)
    if request.api != RESPONSES or not _MODELS(body["model"]):
        return None
    asked = [_question(question) for question in questions]
    if None in asked:
        return None
    losses: list[Loss] = list(request.losses)
    items = _input(body, losses)
    made = {"model": body["model"], "input": items, "questions": asked}
    made |= {name: body[name] for name in _OWN if name in body}
    losses += option_losses(body, _OF_CONVERSATIONS, _OPTIONS)
    headers = {"content-type": "application/json"}
    return WireRequest(path="/decisions", headers=headers, body=dumps(made), losses=tuple(losses), api=RESPONSES)


def _question(question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a question in this API's words; None for a kind that it does not have."""
    kind, named, text = question["kind"], {"name": question["id"]}, question["text"]
    if kind == "yes_no":  # this API has no place for what the answers mean
        meanings = (
            (f"{word} means: {meant}")
            for word, meant in (("True", question["yes"]), ("False", question["no"]))
            if meant
        )
        return {"type": "predicate", **named, "instructions": "\n".join([text, *_after_a_line(meanings)])}
    if kind == "choice":
        listed = [_described("value", value, text) for value, text in question["options"].items()]
        return {"type": "choice", **named, "instructions": text, "choices": listed}
    if kind == "scale":
        levels = [_described("label", str(at), text) for at, text in enumerate(question["levels"])]
        return {"type": "score", **named, "instructions": text, "levels": levels}
    return None


def _after_a_line(lines: Any) -> list[str]:
    found = list(lines)
    return ["", *found] if found else []


def _described(name: str, value: str, description: str | None) -> dict[str, str]:
    return {name: value} if description is None else {name: value, "description": description}


def _input(body: Mapping[str, Any], losses: list[Loss]) -> Any:
    """Return the items that this API takes; a string for a single text of the user."""
    kept = []
    if body.get("instructions"):
        kept.append({"role": "developer", "content": body["instructions"]})
    for at, item in enumerate(body["input"]):
        kind = item.get("type", "message")
        if kind in _ITEMS:
            content = {
                name: _parts(value, f"input[{at}].{name}", losses)
                for name in _ITEMS[kind]
                if (value := item.get(name)) is not None
            }
            kept.append(content if kind == "message" else {"type": kind, **content})
        elif kind != "reasoning":
            losses.append(_lost(f"input[{at}]", kind))
        else:
            losses.append(
                Loss(
                    path=f"input[{at}]",
                    block_type="thinking",
                    verdict="dropped",
                    reason="a decision reads no reasoning",
                )
            )
    if len(kept) == 1 and kept[0].get("role") == "user":
        content = kept[0]["content"]
        only = (
            content[0] if isinstance(content, list) and len(content) == 1 else {"type": "input_text", "text": content}
        )
        if only["type"] == "input_text" and isinstance(only["text"], str):
            return only["text"]
    return kept


def _parts(value: Any, where: str, losses: list[Loss]) -> Any:
    if not isinstance(value, list):
        return value
    kept = []
    for at, part in enumerate(value):
        names = _PARTS.get(part["type"], ())
        if not names or "file_id" in part:
            losses.append(_lost(f"{where}[{at}]", part["type"]))
        else:
            kept.append({"type": part["type"], **{name: part[name] for name in names if part.get(name) is not None}})
    return kept


def _lost(path: str, kind: str) -> Loss:
    return Loss(
        path=path,
        block_type=kind.removeprefix("input_"),
        verdict="dropped",
        reason=f"a decision reads no {kind}",
        severity="content",
    )


def read_decisions(response: WireResponse) -> dict[str, Any]:
    """Return the answers, as `decide` promises them (docs/reference/hooks.md)."""
    body = loads(response.body)
    named = ((answer.get("name") if isinstance(answer, Mapping) else None, answer) for answer in body["answers"])
    trace = {name: value for name, value in body.items() if name not in ("answers", "model")}
    usage = from_wire_usage(body, ())
    return {"answers": read_answers(named, _answer), "model": body.get("model"), "usage": usage, "trace": trace}


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    kind, confidence = answer["type"], answer.get("confidence")
    if kind == "predicate":
        return {"kind": "yes_no", "yes": float(answer["probability"]), "confidence": None}
    if kind == "choice":
        shares = {_word(each["value"]): float(each["probability"]) for each in answer["probabilities"]}
        return {"kind": "choice", "option": _word(answer["choice"]), "probabilities": shares, "confidence": confidence}
    if kind == "score":
        ordered = sorted(answer["probabilities"], key=lambda each: each["value"])
        levels = [float(each["probability"]) for each in ordered]
        return {"kind": "scale", "score": float(answer["score"]), "probabilities": levels, "confidence": confidence}
    return {"kind": "refused" if kind == "refusal" else "unknown"}


def _word(value: str | bool) -> str:
    """Return an option as it was asked: all are sent as strings."""
    return value if isinstance(value, str) else str(value).lower()
