"""Decisions on the System One wire: typed questions about a state, each answered with probabilities.

Services of this format have it beside conversations (WIRE.md of OpenRouter; the presets' field `system_one`).
`option_losses` and `read_answers` are for decisions of other wires too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import Loss, WireRequest, WireResponse, dumps, loads, option_loss
from interlingua.types import Usage
from interlingua_chat_completions.dialect import API

_PATH = "/systemone"
_OF_CONVERSATIONS = frozenset({"model", "messages", "stream", "stream_options"})
_OPTIONS = {"max_completion_tokens": "max_tokens", "response_format": "response_schema", "user": "user_id"}
_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_SIDES = ("left", "top", "right", "bottom")


def decision_request(
    request: WireRequest,
    questions: Sequence[Mapping[str, Any]],
    *,
    kinds: Sequence[str] = ("yes_no", "choice", "scale"),
    images: bool = False,
    extras: Sequence[str] = (),
) -> WireRequest | None:
    """Return the request for decisions about the conversation of a request.

    Args:
        request: the request of the conversation.
        questions: as the hook gets them (docs/reference/hooks.md).
        kinds: the kinds of questions that the service has.
        images: the service reads images, as parts before the state.
        extras: fields of the request that the service takes beside a decision, too.

    Returns:
        The request; None if the service has no such question, or reads no media that the conversation holds.
    """
    if any(question["kind"] not in kinds for question in questions):
        return None
    body = loads(request.body)
    state, media = _state(body["messages"])
    if media and not (images and all(part["type"] == "image_url" for part in media)):
        return None
    made = {
        "model": body["model"],
        "state": [*media, state] if media else state,
        "questions": {question["id"]: _question(question) for question in questions},
        **{name: body[name] for name in extras if name in body},
    }
    losses = (*request.losses, *option_losses(body, {*_OF_CONVERSATIONS, *extras}, _OPTIONS))
    headers = {"content-type": "application/json"}
    return WireRequest(path=_PATH, headers=headers, body=dumps(made), losses=losses, api=API)


def option_losses(body: Mapping[str, Any], taken: Iterable[str], options: Mapping[str, str]) -> list[Loss]:
    """Return a row for each member of a conversation's request that a decision does not have, and one for all tools.

    Args:
        body: the request of the conversation.
        taken: members that the decision has, or that say how a conversation is sent.
        options: member -> the option that it is, if their names differ.
    """
    others = [name for name in body if name not in taken and name not in _TOOLS]
    losses = [option_loss(options.get(name, name), "dropped", "a decision has no such option") for name in others]
    if any(name in body for name in _TOOLS):
        losses.append(Loss(path="tools", block_type="option", verdict="dropped", reason="a decision calls no tools"))
    return losses


def _question(question: Mapping[str, Any]) -> dict[str, Any]:
    kind, made = question["kind"], {"instructions": question["text"]}
    if kind == "yes_no":
        meanings = {word: text for word, text in (("true", question["yes"]), ("false", question["no"])) if text}
        return {"type": "noul", **made, **({"criteria": meanings} if meanings else {})}
    if kind == "choice":
        return {"type": "choice", **made, "criteria": dict(question["options"])}
    return (
        {"type": "score", **made, "criteria": list(question["levels"])} if kind == "scale" else {"type": "box", **made}
    )


def _state(messages: Sequence[Mapping[str, Any]]) -> tuple[Any, list[Any]]:
    """Return the state, and the media taken out of it: the string of a single user message, else all messages."""
    media: list[Any] = []
    kept = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            media += [part for part in content if part["type"] != "text"]
            content = "".join(part["text"] for part in content if part["type"] == "text")
        kept.append({**message, "content": content})
    alone = len(kept) == 1 and kept[0]["role"] == "user"
    return kept[0]["content"] if alone else kept, media


def read_decisions(response: WireResponse) -> dict[str, Any]:
    """Return the answers, as `decide` promises them (docs/reference/hooks.md)."""
    body = loads(response.body)
    answers = read_answers(body["answers"].items(), _answer)
    trace = {name: value for name, value in body.items() if name not in ("answers", "model")}
    return {"answers": answers, "model": body.get("model"), "usage": _usage(body.get("usage")), "trace": trace}


def read_answers(
    answers: Iterable[tuple[str | None, Any]], read: Callable[[Any], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return answers as `decide` promises them; one that cannot be read is `malformed`, and keeps what came.

    Args:
        answers: the id of each question, or None, with its answer.
        read: returns the members of one answer.

    Raises:
        MalformedResponseError: no answer can be read.
    """
    made = []
    for name, answer in answers:
        try:
            fields = read(answer)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            fields = {"kind": "malformed", "detail": f"{type(error).__name__}: {error}"}
        made.append({"id": name, **fields, "raw": answer})
    if made and all(one["kind"] == "malformed" for one in made):
        raise MalformedResponseError(f"no answer can be read: {made[0]['detail']}", path="/answers")
    return made


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    kind, confidence, shares = answer.get("type"), answer.get("confidence"), answer.get("probabilities")
    if kind == "noul":
        return {"kind": "yes_no", "yes": float(answer["noul"]), "confidence": confidence}
    if kind == "choice":
        named = shares and {option: float(share) for option, share in shares.items()}
        return {"kind": "choice", "option": answer["choice"], "probabilities": named, "confidence": confidence}
    if kind == "score":
        levels = shares and [float(shares[at]) for at in sorted(shares, key=int)]
        return {"kind": "scale", "score": float(answer["score"]), "probabilities": levels, "confidence": confidence}
    if kind == "box":
        sides = {name: float(answer["box"][name]) for name in _SIDES}
        return {"kind": "locate", "box": sides, "confidence": confidence}
    return {"kind": "unknown"}


def _usage(raw: Any) -> Usage | None:
    if not isinstance(raw, Mapping):
        return None
    counts = [value if type(value := raw.get(name)) is int else None for name in ("input_tokens", "output_tokens")]
    return Usage(input_tokens=counts[0], output_tokens=counts[1])
