"""What is sent and received: canned answers on both wires and a neutral conversation, all from fixed seeds."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from typing import Any, NamedTuple

MODEL_ANTHROPIC = "claude-haiku-4-5"
MODEL_OPENAI = "gpt-4.1"
SYSTEM = "You plan train timetables. Use the tool for every change and keep the answer short."
QUESTION = "Which trains have to move when the 7:40 runs twelve minutes late, and why?"
QUESTION_NEXT: dict[str, Any] = {"role": "user", "text": "And on a Sunday?"}
TOOL_NAME = "move_trains"
TOOL_DESC = "Move trains in the timetable; answers with the conflicts that are left."
TOOL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "description": "ISO date"},
        "mode": {"type": "string", "enum": ["plan", "commit"]},
        "moves": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "train": {"type": "integer"},
                    "minutes": {"type": "number"},
                    "from": {"type": "string"},
                    "reason": {"type": "string"},
                    "notify": {"type": "boolean"},
                },
                "required": ["train", "minutes", "from"],
            },
        },
    },
    "required": ["day", "moves"],
}
TOOL_ANTHROPIC = {"name": TOOL_NAME, "description": TOOL_DESC, "input_schema": TOOL_SCHEMA}
TOOL_OPENAI = {
    "type": "function",
    "function": {"name": TOOL_NAME, "description": TOOL_DESC, "parameters": TOOL_SCHEMA},
}

_WORDS: list[str] = re.findall(
    r"\w+",
    "platform signal train the and express delay of seven minutes local freight to crossing single track before after "
    "we hold depart arrive late early in on connection passenger at line north south junction because then if it is "
    "not clear route path slot depot driver crew change engine coupling station stop through fast slow timetable",
)
_TAILS = (".\n\n", ", ", ' "quoted"', " — Zürich, Besançon", " 東京 🚆", ":\n- ")


class Scenario(NamedTuple):
    """One canned answer: `full` is the text, or the argument string that `args` was written as."""

    kind: str
    pieces: list[str]
    full: str
    args: dict[str, Any] | None = None


def _delta(dice: random.Random) -> str:
    words = "".join(" " + dice.choice(_WORDS) for _ in range(dice.randint(3, 6)))
    return words + (dice.choice(_TAILS) if dice.random() < 0.2 else "")


def text_of(size: int, seed: str) -> str:
    """Return text of at most `size` characters, and nearly that."""
    dice = random.Random(seed)
    text = ""
    while len(text) < size:
        text += _delta(dice)
    return text[:size].strip()


def arguments_of(size: int, seed: str) -> dict[str, Any]:
    """Return tool arguments whose JSON text is about `size` characters long."""
    dice = random.Random(seed)
    moves: list[dict[str, Any]] = []
    made = 50
    while made < size:
        move = {
            "train": dice.randint(1, 9000),
            "minutes": round(dice.random() * 60, 3),
            "from": text_of(dice.randint(15, 50), f"{seed}/{made}/from"),
            "reason": text_of(dice.randint(30, 100), f"{seed}/{made}/reason"),
            "notify": dice.random() < 0.5,
        }
        moves.append(move)
        made += len(_compact(move))
    return {"day": "2026-11-21", "mode": "plan", "moves": moves}


@functools.cache
def scenario(name: str) -> Scenario:
    """Return `small`, `text<N>`, `think<N>` (N deltas) or `tool<N>` (N fragments of 30 characters)."""
    if name == "small":
        text = text_of(1000, name)
        return Scenario("text", [text], text)
    kind, count = re.fullmatch(r"(text|think|tool)(\d+)", name).groups()  # type: ignore[union-attr]
    if kind == "tool":
        arguments = arguments_of(30 * int(count), name)
        written = _compact(arguments)
        cuts = [len(written) * at // int(count) for at in range(int(count) + 1)]
        pieces = [written[start:end] for start, end in itertools.pairwise(cuts)]
        return Scenario(kind, pieces, written, arguments)
    dice = random.Random(name)
    pieces = [_delta(dice) for _ in range(int(count))]
    return Scenario(kind, pieces, "".join(pieces))


def conversation(count: int) -> list[dict[str, Any]]:
    """Return `count` neutral messages of about 1 KB, then a question; the system prompt is not part of it.

    They cycle: user (`text`), assistant with a call (`text`, `calls`: `id`, `name`, `args`, `args_json`), tool result
    (`id`, `name`, `content`), assistant (`text`, no `calls`).
    """
    made: list[dict[str, Any]] = []
    for at in range(count):
        call_id = f"toolu_{at - at % 4:020d}"
        if at % 4 == 0:
            made.append({"role": "user", "text": text_of(1000, f"user {at}")})
        elif at % 4 == 1:
            args = arguments_of(900, f"call {at}")
            call = {"id": call_id, "name": TOOL_NAME, "args": args, "args_json": _compact(args)}
            made.append({"role": "assistant", "text": text_of(60, f"lead {at}"), "calls": [call]})
        elif at % 4 == 2:
            made.append({"role": "tool", "id": call_id, "name": TOOL_NAME, "content": text_of(1000, f"tool {at}")})
        else:
            made.append({"role": "assistant", "text": text_of(1000, f"answer {at}"), "calls": []})
    return [*made, {"role": "user", "text": QUESTION}]


def anthropic_answer(message: dict[str, Any]) -> bytes:
    """Return the answer of the Messages API that a neutral assistant message was read from."""
    content: list[dict[str, Any]] = [{"type": "text", "text": message["text"]}]
    for call in message["calls"]:
        content.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]})
    stop = {"stop_reason": "tool_use" if message["calls"] else "end_turn", "stop_sequence": None}
    return _compact(_A_HEAD | {"content": content, **stop, "usage": _A_USAGE | {"output_tokens": 500}}).encode()


def openai_answer(message: dict[str, Any]) -> bytes:
    """Return the answer of Chat Completions that a neutral assistant message was read from."""
    answer: dict[str, Any] = {"role": "assistant", "content": message["text"], "refusal": None, "annotations": []}
    if message["calls"]:
        answer["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["args_json"]}}
            for call in message["calls"]
        ]
    finish = "tool_calls" if message["calls"] else "stop"
    choice = {"index": 0, "message": answer, "logprobs": None, "finish_reason": finish}
    body = {**_O_HEAD, "object": "chat.completion", "choices": [choice], "usage": _O_USAGE, **_O_TAIL}
    return _compact(body).encode()


def one_exchange() -> list[dict[str, Any]]:
    """Return what a turn appends to a history: the small answer and another question."""
    return [
        {"role": "assistant", "text": scenario("small").full, "calls": []},
        QUESTION_NEXT,
    ]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- the bytes of both wires -----------------------------------------------------------------------------------------
_SIGNATURE = "QUJD" * 80
_A_USAGE = {
    "input_tokens": 1830, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}, "service_tier": "standard",
}  # fmt: skip
_A_HEAD = {"id": "msg_01BenchBenchBenchBench", "type": "message", "role": "assistant", "model": MODEL_ANTHROPIC}
_A_DELTA = {
    "text": ("text_delta", "text"),
    "think": ("thinking_delta", "thinking"),
    "tool": ("input_json_delta", "partial_json"),
}
_A_START: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "think": {"type": "thinking", "thinking": "", "signature": ""},
    "tool": {"type": "tool_use", "id": "toolu_01BenchBenchBenchBench", "name": TOOL_NAME, "input": {}},
}


def anthropic_json(name: str) -> bytes:
    """Return a whole answer of the Messages API."""
    answer = scenario(name)
    content: list[dict[str, Any]]
    if answer.kind == "tool":
        content = [_A_START["tool"] | {"input": answer.args}]
    elif answer.kind == "think":
        thinking = {"type": "thinking", "thinking": answer.full, "signature": _SIGNATURE}
        content = [thinking, {"type": "text", "text": "Done."}]
    else:
        content = [{"type": "text", "text": answer.full}]
    stop = {"stop_reason": "tool_use" if answer.kind == "tool" else "end_turn", "stop_sequence": None}
    return _compact(_A_HEAD | {"content": content, **stop, "usage": _A_USAGE | {"output_tokens": 500}}).encode()


def anthropic_events(name: str) -> list[bytes]:
    """Return a streamed answer of the Messages API, one SSE event each."""
    answer = scenario(name)
    start: dict[str, Any] = _A_HEAD | {"content": [], "stop_reason": None, "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start | {"usage": _A_USAGE | {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": _A_START[answer.kind]},
        {"type": "ping"},
    ]
    kind, field = _A_DELTA[answer.kind]
    events += [_a_delta(0, {"type": kind, field: piece}) for piece in answer.pieces]
    if answer.kind == "think":
        events += [
            _a_delta(0, {"type": "signature_delta", "signature": _SIGNATURE}),
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": _A_START["text"]},
            _a_delta(1, {"type": "text_delta", "text": "Done."}),
        ]
    stop = {"stop_reason": "tool_use" if answer.kind == "tool" else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 1830, "cache_read_input_tokens": 0, "output_tokens": 6100}
    events += [
        {"type": "content_block_stop", "index": int(answer.kind == "think")},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {_compact(event)}\n\n".encode() for event in events]


def _a_delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


_O_USAGE = {
    "prompt_tokens": 1830, "completion_tokens": 500, "total_tokens": 2330,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
                                  "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
}  # fmt: skip
_O_HEAD = {"id": "chatcmpl-BenchBenchBenchBench", "created": 1763740800, "model": MODEL_OPENAI + "-2025-04-14"}
_O_TAIL = {"service_tier": "default", "system_fingerprint": "fp_0123456789"}
_O_CALL = {"id": "call_BenchBenchBenchBench", "type": "function"}


def openai_json(name: str) -> bytes:
    """Return a whole answer of Chat Completions."""
    answer = scenario(name)
    message: dict[str, Any] = {"role": "assistant", "content": answer.full, "refusal": None, "annotations": []}
    finish = "stop"
    if answer.kind == "tool":
        finish, message["content"] = "tool_calls", None
        message["tool_calls"] = [_O_CALL | {"function": {"name": TOOL_NAME, "arguments": answer.full}}]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    body = {**_O_HEAD, "object": "chat.completion", "choices": [choice], "usage": _O_USAGE, **_O_TAIL}
    return _compact(body).encode()


def openai_events(name: str) -> list[bytes]:
    """Return a streamed answer of Chat Completions, one SSE event each, with the padding field the service sends."""
    answer = scenario(name)
    deltas: list[dict[str, Any]]
    finish = "stop"
    if answer.kind == "tool":
        finish = "tool_calls"
        call = {"index": 0, **_O_CALL, "function": {"name": TOOL_NAME, "arguments": ""}}
        deltas = [{"role": "assistant", "content": None, "tool_calls": [call], "refusal": None}]
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in answer.pieces]
    else:
        deltas = [{"role": "assistant", "content": "", "refusal": None}]
        field = "reasoning_content" if answer.kind == "think" else "content"  # the de-facto extension
        deltas += [{field: piece} for piece in answer.pieces]
        deltas += [{"content": "Done."}] if answer.kind == "think" else []
    dice = random.Random("padding " + name)
    chunks = [_o_chunk(delta, None, dice) for delta in deltas]
    chunks.append(_o_chunk({}, finish, dice))
    chunks.append(_o_chunk(None, None, dice) | {"usage": _O_USAGE})
    return [b"data: " + _compact(chunk).encode() + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"]


def _o_chunk(delta: dict[str, Any] | None, finish: str | None, dice: random.Random) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    padding = "abcdefgh0123"[: dice.randint(1, 12)]
    choices = [] if delta is None else [choice]
    head = {**_O_HEAD, "object": "chat.completion.chunk", **_O_TAIL}
    return {**head, "choices": choices, "usage": None, "obfuscation": padding}
