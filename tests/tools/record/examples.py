"""`python -m tests.tools.record.examples`: record the programs of docs/examples, each with its exchanges as a cassette.

What a small model can do is recorded from llama.cpp's server. It calls no tools unasked, sees no pictures, fits a type
at once and has no price: those exchanges are authored in the format of Messages.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml

from tests.examples.player import lead_to
from tests.examples.test_examples import RECORDED, Started, run_example
from tests.support.cassettes import FOLDER
from tests.support.loopback import LoopbackHandler, LoopbackServer
from tests.tools.local_server import files
from tests.tools.local_server.server import LocalServer
from tests.tools.record.provenance import write_row
from tests.tools.record.recorder import LOCAL_SOURCE
from tests.tools.record.service import Answer, Call, scripted_service

TEST = "tests/examples/test_examples.py"
AUTHORED = "answers by hand in the format of https://platform.claude.com/docs/en/api/messages, requests by the program"
SOURCE = LOCAL_SOURCE.replace("make record", "python -m tests.tools.record.examples")
_HOST = "https://api.anthropic.com"
_WRONG = '{"name": "Ganymede", "planet": "Jupiter", "diameter_km": "wide"}'
_PRICE = {"museum": "Museum of the Moon", "persons": 2}
SCRIPTS: dict[str, list[Answer]] = {
    "agent": [
        [Call("opening_hours", {"museum": "Museum of the Moon"}), Call("ticket_price", _PRICE)],
        "10 to 18, closed on Mondays; 25 euros.",
    ],
    "typed_output": [_WRONG, _WRONG.replace('"wide"', "5268")],
    "image": ["A dot."],
    "cost": ["Ganymede is the largest.", "5,268 km."],
    "trace": [[Call("radius", {"moon": "Ganymede"})], "2,634 km."],
}


class _Proxy(LoopbackServer):
    target = ""
    seen: list[dict[str, Any]]


class _Handler(LoopbackHandler):
    server: _Proxy

    def do_POST(self) -> None:
        asked = self.read_body()
        headers = {"content-type": "application/json", "authorization": "Bearer k", "x-api-key": "k"}
        body = bytearray()
        with httpx.stream("POST", self.server.target + self.path, content=asked, headers=headers, timeout=600) as got:
            self.send_response(got.status_code)
            self.send_header("content-type", got.headers["content-type"])
            self.end_headers()
            with suppress(ConnectionError):
                for piece in got.iter_bytes():
                    if select.select([self.connection], [], [], 0)[0]:  # the program left
                        break
                    self.wfile.write(piece)
                    body += piece
                    time.sleep(0.05)
        kind = got.headers["content-type"].partition(";")[0]
        text = body.decode()
        streamed = kind == "text/event-stream"
        self.server.seen.append({
            "request": {
                "method": "POST", "uri": self.server.target + self.path,
                "headers": {"content-type": ["application/json"]}, "parsed_body": json.loads(asked),
            },
            "response": {
                "status": {"code": got.status_code, "message": "OK"}, "headers": {"content-type": [kind]},
                "body": {"lines": text.split("\n")} if streamed else {"parsed_body": json.loads(text)},
            },
        })  # fmt: skip


@contextmanager
def _proxy(target: str) -> Iterator[tuple[_Proxy, str]]:
    with _Proxy(_Handler) as proxy:
        proxy.target, proxy.seen = target, []
        yield proxy, proxy.url


def _record(started: Started, target: str) -> list[dict[str, Any]]:
    with _proxy(target) as (proxy, url), TemporaryDirectory() as folder:
        for _ in range(started.times):
            said = started.stdin
            print(run_example(started.name, *started.arguments, environ=lead_to(url), cwd=Path(folder), stdin=said))
        return proxy.seen


def _write(name: str, interactions: list[dict[str, Any]], provenance: str, source: str) -> None:
    path = FOLDER / "examples" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    content: Mapping[str, Any] = {"version": 1, "interactions": interactions}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=10_000)
    path.write_text(text, encoding="utf-8")
    write_row(f"examples/{name}.yaml", provenance=provenance, source=source, test=TEST)


def main() -> int:
    """Record those that a local model can do, and write the others; the exit status is 2 without the server."""
    only = sys.argv[1:]
    for name, script in SCRIPTS.items():
        if only and name not in only:
            continue
        with scripted_service(*script) as service:
            seen = _record(Started(name), service.environ["ANTHROPIC_BASE_URL"])
        for one in seen:
            one["request"]["uri"] = _HOST + urlsplit(one["request"]["uri"]).path
        _write(name, seen, "authored", AUTHORED)
    if absent := files.missing():
        print(f"not recorded: {absent}", file=sys.stderr)
        return 2
    with LocalServer(context=4096) as server:
        for started in RECORDED:
            if not only or started.name in only:
                _write(started.name, _record(started, server.url), "recorded", SOURCE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
