"""Break real bodies and streams in every way, and see that only typed errors come out and nothing received is lost.

Real ones are read from the corpus, never copied. Tests run a few hundred; `python -m tests.support.fuzz --wire NAME
--count 10000 --seed N` runs as many as wanted and prints what failed. A wire is one row of `WIRES`.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from interlingua.errors import InterlinguaError
from interlingua.plugins import RequestContext, build_request
from interlingua.types.messages import Message
from tests.support import corpus as corpus_files
from tests.support import driving
from tests.support.corpus import Corpus
from tests.support.google_text import generated_text
from tests.support.openai_text import chat_text, responses_text

LIMIT_S = 1.0
JUNK = (b"\x00", b"\xff\xfe", b"{", b"}", b'"', b"null", b"\n\n", b"data: ", b"[]", b"-1", b"1e999", b"\\ud800", b"\r")
FAILED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}'
UNKNOWN = b'event: brand_new\ndata: {"type":"brand_new","index":"?"}'
VALUES: tuple[Any, ...] = (None, 0, -1, 2**70, 1.5, True, "", "x", [], {}, [None], {"type": "new"}, "\ud800")


@attrs.frozen(kw_only=True)
class Wire:
    """How one wire is fuzzed.

    Attributes:
        key: provider key.
        api: its wire format.
        file: the corpus file's name.
        text_of: reads the text of ready events' data, independently of the adapter.
        kind: framing of its streams: `sse`, or `ndjson` with an event a line.
    """

    key: str
    api: str
    file: str
    text_of: Callable[[list[bytes]], str]
    kind: str = "sse"

    @property
    def gap(self) -> bytes:
        """What ends an event."""
        return b"\n" if self.kind == "ndjson" else b"\n\n"


def _messages_text(events: list[bytes]) -> str:
    """Text of the Messages API's events in order of blocks."""
    blocks: dict[tuple[int, int], str] = {}
    message = 0
    for data in events:
        event = json.loads(data)
        if event["type"] == "message_start":
            message += 1
        elif event["type"] == "content_block_start" and event["content_block"]["type"] == "text":
            blocks[message, event["index"]] = event["content_block"]["text"]
        elif event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            blocks[message, event["index"]] += event["delta"]["text"]
    return "".join(text for _, text in sorted(blocks.items()))


def _native_chat_text(events: list[bytes]) -> str:
    """Text of the native chat API's lines, or of the older generate API's."""
    lines = [json.loads(data) for data in events]
    return "".join(line["message"].get("content", "") if "message" in line else line["response"] for line in lines)


def _v2_text(events: list[bytes]) -> str:
    """Text of v2 chat's items of content."""
    said = ""
    for data in events:
        event = json.loads(data) if data.startswith(b"{") else {}
        if event.get("type") in ("content-start", "content-delta"):
            said += event["delta"]["message"]["content"].get("text") or ""
    return said


def _chunked_text(events: list[bytes]) -> str:
    """Text of the first choice, a string or a list of chunks."""
    said = ""
    for data in events:
        event = json.loads(data) if data.startswith(b"{") else {}
        for choice in event.get("choices") or ():
            content = choice["delta"].get("content") if not choice.get("index") else None
            said += content if isinstance(content, str) else ""
            for part in content if isinstance(content, list) else ():
                said += part.get("text", "")
    return said


WIRES = {
    "anthropic": Wire(key="anthropic", api="messages", file="anthropic-messages", text_of=_messages_text),
    "openai-chat": Wire(key="openai", api="chat", file="openai-chat", text_of=chat_text),
    "openai-responses": Wire(key="openai", api="responses", file="openai-responses", text_of=responses_text),
    "mistral": Wire(key="mistral", api="chat", file="mistral-chat", text_of=_chunked_text),
    "ollama": Wire(key="ollama", api="chat-native", file="ollama-chat", text_of=_native_chat_text, kind="ndjson"),
    "cohere": Wire(key="cohere", api="chat-v2", file="cohere-chat", text_of=_v2_text),
    "google": Wire(key="google", api="generate", file="google-generate", text_of=generated_text),
    "openrouter": Wire(key="openrouter", api="chat", file="openrouter-chat", text_of=chat_text),
    "zai": Wire(key="zai", api="chat", file="zai-chat", text_of=chat_text),
}


@attrs.frozen(kw_only=True)
class Failure:
    """A case that broke a rule; `entry`, `kind` and the run's seed make it again."""

    entry: str
    kind: str
    why: str


def samples(corpus: Corpus, wire: Wire) -> tuple[list[tuple[str, bytes]], list[tuple[str, bytes]]]:
    """Return the (id, body) of successful streams and of whole answers, none of them huge."""
    streams: list[tuple[str, bytes]] = []
    bodies: list[tuple[str, bytes]] = []
    for entry in corpus.entries(wire.file):
        body = entry["response_text"].encode()
        if (entry["status"] or 200) >= 400 or len(body) > 60_000:
            continue
        (streams if entry["kind"] == wire.kind else bodies).append((entry["id"], body))
    return streams, bodies


def run(corpus: Corpus, name: str, count: int, seed: int) -> Iterator[Failure]:
    """Run `count` cases: two streams for every whole body; a case's time is the processor's, not the machine's."""
    wire = WIRES[name]
    source = random.Random(seed)
    streams, bodies = samples(corpus, wire)
    for number in range(count):
        entry, body = source.choice(bodies if number % 3 == 2 else streams)
        case = (_whole_case if number % 3 == 2 else _stream_case)(wire, body, source)
        started = time.process_time()
        kind, why = next(case), ""
        why = next(case)
        if time.process_time() - started > LIMIT_S:
            why = why or f"took {time.process_time() - started:.1f} s"
        if why:
            yield Failure(entry=entry, kind=kind, why=why)


def _whole_case(wire: Wire, body: bytes, source: random.Random) -> Iterator[str]:
    kind = source.choice(["junk", "cut", "flip", "value", "value", "value"])
    yield kind
    broken = _value(body, source) if kind == "value" else _bytes(body, kind, source)
    try:
        message = driving.whole(driving.provider(wire.key), broken, _context(wire))
    except InterlinguaError:
        yield ""
    except Exception as error:  # this is what the fuzzer looks for
        yield f"{type(error).__name__}: {error}"
    else:
        yield _sendable(wire, message)


def _stream_case(wire: Wire, body: bytes, source: random.Random) -> Iterator[str]:
    events = [event for event in body.replace(b"\r\n", b"\n").split(wire.gap) if event.strip()]
    at = source.randrange(len(events))
    kind = source.choice(["junk", "cut", "flip", "value", "value", "drop", "twice", "swap", "unknown", "error", "end"])
    yield f"{kind}@{at}"
    broken = wire.gap.join(_broken(wire, events, at, kind, source))
    if kind != "end":
        broken += wire.gap
    size = source.choice([1, 7, 64, None])
    yield _judge(wire, broken, [data for event in events[:at] if (data := _data(wire, event))], size)


def _broken(wire: Wire, events: list[bytes], at: int, kind: str, source: random.Random) -> list[bytes]:
    before, event, after = events[:at], events[at], events[at + 1 :]
    if kind == "drop":
        return before + after
    if kind == "twice":
        return [*before, event, event, *after]
    if kind == "swap":
        return [*before, *after[:1], event, *after[1:]]
    if kind == "unknown":
        return [*before, UNKNOWN if wire.kind == "sse" else _data_line(UNKNOWN), event, *after]
    if kind == "error":
        return [*before, FAILED if wire.kind == "sse" else _data_line(FAILED), *after]
    if kind == "end":
        return [*before, event[: source.randrange(len(event) + 1)]]
    if kind == "value":
        head, mark, data = event.rpartition(b"data:") if wire.kind == "sse" else (b"", b"", event)
        return [*before, head + mark + b" " + _value(data, source), *after]
    return [*before, _bytes(event, kind, source), *after]


def _judge(wire: Wire, body: bytes, intact: list[bytes], size: int | None) -> str:
    made = _context(wire)
    decoder = driving.opened(driving.provider(wire.key), made)
    try:
        for piece in driving.pieces(body, size):
            decoder.feed(piece)
        decoder.end()
        message = decoder.message()
    except InterlinguaError as error:
        message = error.partial if error.partial is not None else decoder.partial()
    except Exception as error:  # this is what the fuzzer looks for
        return f"{type(error).__name__}: {error}"
    expected = wire.text_of(intact)
    if not message.text.startswith(expected):
        return f"text lost: {expected[-60:]!r} is not where it was in {message.text[:200]!r}"
    return _sendable(wire, message)


def _sendable(wire: Wire, message: Message) -> str:
    """What came out can be put into the next request."""
    from interlingua.types.factories import user
    from interlingua.types.options import RequestOptions

    try:
        options = RequestOptions(model="m", api=wire.api)
        build_request(driving.provider(wire.key), [user("a"), message, user("b")], [], options)
    except InterlinguaError:
        return ""
    except Exception as error:  # this is what the fuzzer looks for
        return f"next turn: {type(error).__name__}: {error}"
    return ""


def _context(wire: Wire) -> RequestContext:
    return driving.context(wire.key, wire.api, "m")


def _data(wire: Wire, event: bytes) -> bytes | None:
    if wire.kind == "ndjson":
        return event
    lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def _data_line(event: bytes) -> bytes:
    return event.rpartition(b"data: ")[2]


def _bytes(body: bytes, kind: str, source: random.Random) -> bytes:
    at = source.randrange(len(body) + 1)
    if kind == "cut":
        return body[:at]
    if kind == "flip" and body:
        at = min(at, len(body) - 1)
        return body[:at] + bytes([body[at] ^ (1 << source.randrange(8))]) + body[at + 1 :]
    return body[:at] + source.choice(JUNK) + body[at:]


def _value(body: bytes, source: random.Random) -> bytes:
    """Replace, delete or add one member anywhere in a JSON body."""
    try:
        whole = json.loads(body)
    except ValueError:
        return body + b"{"
    places: list[tuple[Any, Any]] = []
    _walk(whole, places)
    if places:
        holder, key = source.choice(places)
        action = source.choice(["put", "put", "delete", "add"])
        if action == "put":
            holder[key] = source.choice(VALUES)
        elif action == "delete":
            del holder[key]
        elif isinstance(holder, dict):
            holder["brand_new"] = source.choice(VALUES)
        else:
            holder.append(source.choice(VALUES))
    return json.dumps(whole).encode()


def _walk(value: Any, places: list[tuple[Any, Any]]) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        places.append((value, key))
        _walk(item, places)


def main() -> int:
    """Run from a shell; 1 when a rule was broken."""
    parser = argparse.ArgumentParser(description="Fuzz one wire with broken recordings.")
    parser.add_argument("--wire", choices=sorted(WIRES), required=True)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    asked = parser.parse_args()
    found = corpus_files.find()
    if found is None:
        print(corpus_files.SKIP_REASON, file=sys.stderr)
        return 2
    logging.getLogger("interlingua").setLevel(logging.CRITICAL)  # the ledger of ten thousand broken messages
    print(f"wire {asked.wire}, {asked.count} cases, seed {asked.seed}")
    started = time.monotonic()
    failures = list(run(found, asked.wire, asked.count, asked.seed))
    for failure in failures[:30]:
        print(f"  {failure.entry} {failure.kind}: {failure.why}")
    print(f"{len(failures)} failed, {time.monotonic() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
