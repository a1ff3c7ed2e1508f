"""The Parrot service, small enough to read: it repeats what it is sent, and calls tools by name.

`python tests/parrot_server.py` serves it on a fixed port. A user's text can be:

- `do NAME {...}`, one or several lines: the answer calls tools (of a budgie the first only);
- `be asleep`: the service is overloaded; `drop dead`: it fails in the middle of its answer;
- anything else is repeated, after "You said: ".

Token counts: four characters are a token, and three tokens are added for each message.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "polly"
PORT = 8765
_TRICK = re.compile(r"^do (\w+) (\{.*\})$", re.MULTILINE)
_TAG = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_STATUS = {"bad_key": 401, "no_such_bird": 404, "misheard": 400, "asleep": 503, "fell_off": 500}


class SquawkError(Exception):
    """The service's error."""

    def __init__(self, why: str, words: str) -> None:
        super().__init__(words)
        self.why = why
        self.body = {"squawk": {"why": why, "words": words}}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the whole answer to a request."""
    if request["model"] not in ("grey-1", "budgie-1"):
        raise SquawkError("no_such_bird", f"There is no bird {request['model']} here.")
    validate(request)
    says, reason = _reply(request)
    if says[0]["type"] == "words" and "most" in request and _tokens(says) > request["most"]:
        says[0]["words"] = says[0]["words"][: request["most"] * 4]
        reason = "cut_short"
    heard = _tokens(request.get("perch", "")) + sum(_tokens(each["says"]) + 3 for each in request["heard"])
    usage = {"heard": heard, "said": _tokens(says)}
    return {"talk": "tk-0001", "model": request["model"], "says": says, "reason": reason, "usage": usage}


def validate(request: dict[str, Any]) -> None:
    """Refuse what the service answers with 400."""
    if not request["heard"]:
        raise SquawkError("misheard", "I heard nothing.")
    if not 0 <= request.get("heat", 1) <= 2:
        raise SquawkError("misheard", "The heat is not between 0 and 2.")
    for each in request["heard"]:
        if each["from"] not in ("keeper", "bird", "trainer"):
            raise SquawkError("misheard", f"There is no role {each['from']}.")
        for part in each["says"]:
            if not _TAG.fullmatch(part.get("tag", "none")):
                raise SquawkError("misheard", "That is no tag.")
            if not isinstance(part.get("with", {}), dict):
                raise SquawkError("misheard", "A trick is done with an object.")


def _reply(request: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    last = request["heard"][-1]
    words = _words(last)
    if words == "be asleep":
        raise SquawkError("asleep", "The parrot is asleep.")
    if last["from"] == "trainer":
        return [{"type": "words", "words": f"The trick says: {words}"}], "finished"
    tricks = _TRICK.findall(words) if "tricks" in request else []
    if tricks:
        wanted = tricks if request["model"] == "grey-1" else tricks[:1]
        says = [
            {"type": "trick", "tag": f"trick.{number}", "trick": name, "with": json.loads(given)}
            for number, (name, given) in enumerate(wanted, 1)
        ]
        return says, "wants_tricks"
    greeting = f"{request['perch']} " if "perch" in request else ""
    return [{"type": "words", "words": f"{greeting}You said: {words}"}], "finished"


def _words(message: dict[str, Any]) -> str:
    inner = [part for each in message["says"] for part in each.get("says", [each])]
    return "\n".join(part["words"] for part in inner if part["type"] == "words")


def _tokens(value: Any) -> int:
    if isinstance(value, str):
        return -(-len(value) // 4)
    return sum(_tokens(part.get("words") or json.dumps(part)) for part in value)


def events(request: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the same answer as a stream: named events, each about the part `at`."""
    whole = answer(request)
    yield "open", {"talk": whole["talk"], "model": whole["model"]}
    for at, part in enumerate(whole["says"]):
        if part["type"] == "words":
            for piece in re.findall(r"\S+\s*", part["words"]):
                yield "words", {"at": at, "words": piece}
                if piece == "drop ":
                    raise SquawkError("fell_off", "The parrot fell off its perch.")
        else:
            yield "trick", {"at": at, "tag": part["tag"], "trick": part["trick"]}
            text = json.dumps(part["with"])
            for start in range(0, len(text), 6):
                yield "with", {"at": at, "json": text[start : start + 6]}
    yield "close", {"reason": whole["reason"], "usage": whole["usage"]}


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            if self.path != "/v2/talk" or self.headers["parrot-key"] != KEY:
                raise SquawkError("bad_key", "That is not the key to this cage.")
            if request.get("stream"):
                self._stream(request)
            else:
                self._send(200, json.dumps(answer(request)).encode())
        except SquawkError as squawk:
            self._send(_STATUS[squawk.why], json.dumps(squawk.body).encode(), wait=squawk.why == "asleep")

    def _send(self, status: int, body: bytes, kind: str = "application/json", *, wait: bool = False) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if wait:
            self.send_header("retry-after", "2")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, request: dict[str, Any]) -> None:
        """Send events one by one; without a length the end of the connection is the end of the answer."""
        answer(request)  # an error before the first event has its HTTP status
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        try:
            for name, data in events(request):
                self._event(name, data)
        except SquawkError as squawk:
            self._event("error", squawk.body)

    def _event(self, name: str, data: dict[str, Any]) -> None:
        self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


@contextmanager
def served(port: int = 0) -> Iterator[str]:
    """Run the server; yield its base URL."""
    http = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


if __name__ == "__main__":
    with served(PORT) as url:
        print(f"the parrot sits at {url}, its key is {KEY}; Ctrl-C lets it go")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print()
