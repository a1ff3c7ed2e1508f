"""Traces which of our files a request enters, in order; `python -m tests.repo.walk` prints the walks.

A file is entered when a function of it is called from another file. Returning to a file is no entry. Files that hold
values only (`interlingua.types`, what crosses the seam, errors, ids, JSON, frozen classes) are looked through: neither
they nor calls inside them count. `allow/walk.toml` holds the bounds.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import attrs
import httpx

import interlingua as il
from interlingua_agents import tool
from interlingua_agents.loop import AgentLoop
from interlingua_gateway.config import config_of
from interlingua_gateway.gateway import create_app
from interlingua_sessions import Session, open_store
from tests.support.loopback import LoopbackHandler, LoopbackServer
from tests.support.tree import DISTRIBUTIONS, ROOT

MODEL = "claude-haiku-4-5"
SOURCES = tuple(f"{folder}/src/" for folder in DISTRIBUTIONS)
CORE = f"{ROOT}/core/src/interlingua/"
VALUE_FILES = (
    "types/",
    "_plugins/connection.py",
    "_plugins/losses.py",
    "_plugins/wire.py",
    "errors.py",
    "_ids.py",
    "_json.py",
    "_values.py",
    "transport.py",
)
VALUES = tuple(CORE + name for name in VALUE_FILES)


def bounds() -> dict[str, int]:
    """Read the bounds, by name."""
    found: dict[str, int] = tomllib.loads((ROOT / "tests" / "repo" / "allow" / "walk.toml").read_text(encoding="utf-8"))
    return found


@attrs.define
class Walk:
    """The files entered, in order, and how many calls were made inside our files."""

    entered: list[str] = attrs.field(factory=list)
    calls: int = 0

    @property
    def files(self) -> list[str]:
        """Return each file once, in the order of first entry."""
        return list(dict.fromkeys(self.entered))

    @property
    def most_entered(self) -> tuple[str, int]:
        """Return the file entered most often, and how often."""
        return Counter(self.entered).most_common(1)[0]

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Note one call, as `sys.setprofile` tells it."""
        if event != "call" or not _counts(frame.f_code):
            return
        self.calls += 1
        caller = frame.f_back
        while caller is not None and not _counts(caller.f_code):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != frame.f_code.co_filename:
            self.entered.append(_where(frame.f_code.co_filename))


def _counts(code: CodeType) -> bool:
    return code.co_filename.startswith(SOURCES) and not code.co_filename.startswith(VALUES)


def _where(file: str) -> str:
    return Path(file).relative_to(ROOT).as_posix().replace("/src", "", 1)


def traced(work: Callable[[], Any], *, threads: bool = False) -> Walk:
    """Run once and return the walk; `threads` also counts the work of threads that it starts."""
    walk = Walk()
    if threads:
        threading.setprofile(walk.profile)
    sys.setprofile(walk.profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return walk


# -- a server of canned answers on the loopback -----------------------------------------------------------------------
def _answer(request: dict[str, Any]) -> dict[str, Any]:
    asks = "tools" in request and not any(_is_result(message) for message in request["messages"])
    call = {"type": "tool_use", "id": "toolu_01", "name": "add", "input": {"a": 1, "b": 2}}
    return {
        "id": "msg_01", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None,
        "content": [{"type": "text", "text": "A sum."}, *([call] if asks else [])],
        "stop_reason": "tool_use" if asks else "end_turn", "usage": {"input_tokens": 9, "output_tokens": 5},
    }  # fmt: skip


def _is_result(message: dict[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)


def _events(count: int) -> Iterator[bytes]:
    start = _answer({"messages": []}) | {"content": [], "stop_reason": None}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *[delta] * count,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": count}},
        {"type": "message_stop"},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


class _Canned(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # an answer arrives in one piece, so that each walk is the same

    def do_POST(self) -> None:
        request = json.loads(self.read_body())
        if request.get("stream"):
            parts = [b"%x\r\n%b\r\n" % (len(event), event) for event in _events(20)]
            self._head("text/event-stream", "transfer-encoding", "chunked")
            self.wfile.write(b"".join(parts) + b"0\r\n\r\n")
        else:
            body = json.dumps(_answer(request)).encode()
            self._head("application/json", "content-length", str(len(body)))
            self.wfile.write(body)

    def _head(self, kind: str, name: str, value: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header(name, value)
        self.end_headers()


@contextmanager
def _service() -> Iterator[str]:
    """Run the server; yields its address."""
    with LoopbackServer(_Canned) as server:
        yield server.url


@contextmanager
def _client() -> Iterator[il.Client]:
    with (
        _service() as url,
        il.Client(f"anthropic:{MODEL}", api_key="x", base_url=url, environ={}, retry=0) as client,
    ):
        yield client


# -- the walks ---------------------------------------------------------------------------------------------------------
def send() -> Walk:
    """Trace the third send of a conversation, of five messages, by a client that has sent another one."""
    with _client() as client:
        for _ in range(2):
            conversation = [il.user("One?")]
            conversation += [client.send(conversation), il.user("Two?")]
            conversation += [client.send(conversation), il.user("Three?")]
            walk = traced(lambda messages=conversation: client.send(messages))
        return walk


def streamed_delta() -> Walk:
    """Trace one text delta out of the middle of a stream."""
    with _client() as client, client.stream("Go.") as stream:
        events = iter(stream)
        for _ in itertools.islice(events, 8):
            pass
        return traced(lambda: next(events))


@tool(side_effects="read")
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def tool_turn() -> Walk:
    """Trace a session's turn: an answer that calls a tool, and the answer after its result."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _client() as client,
        open_store(Path(folder) / "store.db") as store,
    ):
        for name in ("warm", "s"):
            session = Session.open(store, name, client=client)
            session.send("Hello.")
            walk = traced(lambda: session.send("Add.", tools=AgentLoop([add])), threads=True)  # noqa: B023 - run at once
        return walk


def gateway() -> Walk:
    """Trace the second request of a gateway: in Chat Completions, answered whole by a Messages service."""
    with tempfile.TemporaryDirectory() as folder, _service() as url:
        store = f"sqlite:///{folder}/gateway.db"
        config = config_of({"routes": [{"match": "m", "to": [f"anthropic:{MODEL}"]}], "store": store})
        app = create_app(config, settings={"anthropic": {"api_key": "x", "base_url": url}}, environ={})
        with asyncio.Runner() as runner:
            for _ in range(2):
                walk = traced(lambda: runner.run(_post(app)))
            runner.run(app.state.services.close())
        return walk


async def _post(app: Any) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as caller:
        answer = await caller.post("/v1/chat/completions", json=body)
    assert answer.json()["choices"][0]["message"]["content"] == "A sum.", answer.text


WALKS: dict[str, Callable[[], Walk]] = {
    "send": send,
    "delta": streamed_delta,
    "tool turn": tool_turn,
    "gateway": gateway,
}


def figures() -> dict[str, int]:
    """Return every figure that `allow/walk.toml` bounds."""
    found: dict[str, int] = {}
    for name, trace in WALKS.items():
        walk = trace()
        found |= {f"{name}: files": len(walk.files)}
        if name in ("send", "gateway"):
            found |= {f"{name}: calls": walk.calls}
        if name == "send":
            found |= {f"{name}: entries of one file": walk.most_entered[1]}
    return found


def main() -> None:
    """Print each walk: the files in order of entry, and how often each is entered."""
    for name, trace in WALKS.items():
        walk = trace()
        print(f"{name}: {len(walk.files)} files, {len(walk.entered)} entries, {walk.calls} calls")
        counts = Counter(walk.entered)
        print("".join(f"    {counts[file]:>3} {file}\n" for file in walk.files))


if __name__ == "__main__":
    main()
