"""The applications of docs/examples/apps, run from wheels in clean environments against a service on this machine."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import tree
from tests.support.loopback import LoopbackHandler, LoopbackServer
from tests.wheels.clean import Clean

APPS = tree.ROOT / "docs" / "examples" / "apps"
ROWS = 10_000
PATIENCE_S = 60.0


class Service(LoopbackServer):
    """A service that speaks Chat Completions; `/down/…` is overloaded, `/up/…` answers by what it is asked."""

    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.asked: list[dict[str, Any]] = []

    def url_of(self, path: str) -> str:
        return f"{self.url}/{path}/v1"


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.read_body())
        self.server.asked.append({"path": self.path, **body})
        if self.path.startswith("/down/"):
            self._send(503, "application/json", json.dumps({"error": {"message": "overloaded"}}))
            return
        message, reason = _answer(body)
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        head = {"id": "c1", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send(200, "application/json", json.dumps(whole))
            return
        for at, call in enumerate(message.get("tool_calls", ())):
            call["index"] = at
        chunks = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": usage},
        ]
        lines = [json.dumps({**head, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
        self._send(200, "text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _answer(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    last = body["messages"][-1]
    text = last["content"] if isinstance(last["content"], str) else "".join(part["text"] for part in last["content"])
    if "response_format" in body:
        label = (
            "question" if text.endswith("?") else "complaint" if "broke" in text or "money back" in text else "praise"
        )
        return {"content": json.dumps({"label": label})}, "stop"
    if last["role"] == "tool":
        return {"content": f"It is {json.loads(text)['status']}."}, "stop"
    if body.get("tools") and (number := re.search(r"A-\d+", text)):
        call = {"name": "find_order", "arguments": json.dumps({"number": number[0]})}
        return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}, "tool_calls"
    return {"content": "Ganymede."}, "stop"


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as made:
        yield made


def _environment(clean: Clean, **values: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "INTERLINGUA_"))}
    return {**kept, "XDG_CONFIG_HOME": str(clean.folder), "XDG_DATA_HOME": str(clean.folder), **values}


def _run(clean: Clean, app: Path, environment: dict[str, str], *command: str, said: str = "") -> str:
    done = subprocess.run(
        [str(clean.program("python")), *command],
        cwd=app, env=environment, input=said, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _installed(wheels: dict[str, Path], folder: Path, name: str) -> tuple[Clean, Path]:
    """Install what the application's README names, and return the environment and a copy of the application."""
    app = shutil.copytree(APPS / name, folder / name)
    words = re.search(r"^pip install (.*)$", (app / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert words is not None
    clean = Clean.make(folder, wheels)
    clean.install(*(word.strip("'") for word in words[1].split()), "interlingua-chat-completions")
    return clean, app


def test_the_support_chat_answers_by_its_fallback_and_continues(
    wheels: dict[str, Path], service: Service, tmp_path: Path
) -> None:
    clean, app = _installed(wheels, tmp_path, "support-chat")
    environment = _environment(clean, LLAMACPP_BASE_URL=service.url_of("down"), VLLM_BASE_URL=service.url_of("up"))
    command = ["support_chat.py", "olga", "--model", "llamacpp:small", "--fallback", "vllm:large"]
    shown = _run(clean, app, environment, *command, said="Where is A-1001?\n/cost\n\n")
    assert "sent on Monday, arrives on Thursday" in shown
    assert "[vllm:large]" in shown
    again = _run(clean, app, environment, *command, said="Which moon is the largest?\n")
    assert "(5 messages so far)" in again  # the system prompt, question, call, result and answer
    assert "Ganymede." in again


def test_the_labeller_labels_every_review_once(wheels: dict[str, Path], service: Service, tmp_path: Path) -> None:
    clean, app = _installed(wheels, tmp_path, "labeller")
    environment = _environment(clean, VLLM_BASE_URL=service.url_of("up"))
    _run(clean, app, environment, "label.py", "make", "reviews.csv", "--rows", str(ROWS))
    command = ["label.py", "run", "reviews.csv", "labels.jsonl", "--model", "vllm:small"]
    begun = subprocess.Popen(
        [str(clean.program("python")), *command], cwd=app, env=environment, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + PATIENCE_S
    while len(service.asked) < ROWS // 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    begun.kill()
    begun.wait()
    killed = len(service.asked)
    assert 0 < killed < ROWS
    _run(clean, app, environment, *command)
    assert ROWS <= len(service.asked) <= ROWS + 256, "only what was in progress is sent twice"
    counted = _run(clean, app, environment, "label.py", "count", "labels.jsonl")
    numbers = {label: int(number) for number, label in map(str.split, counted.splitlines())}
    source = (app / "reviews.csv").read_text(encoding="utf-8").splitlines()[1:]
    expected = sum(line.endswith("?") for line in source)
    assert numbers["question"] == expected
    assert sum(numbers.values()) == ROWS


def test_the_gateway_serves_a_team_by_its_keys(wheels: dict[str, Path], service: Service, tmp_path: Path) -> None:
    clean, app = _installed(wheels, tmp_path, "team-gateway")
    config = (app / "gateway.toml").read_text(encoding="utf-8")
    config = re.sub(r"to = \[.*?\]", 'to = ["llamacpp:small", "vllm:large"]', config)
    (app / "gateway.toml").write_text(config, encoding="utf-8")
    environment = _environment(clean, LLAMACPP_BASE_URL=service.url_of("down"), VLLM_BASE_URL=service.url_of("up"))
    program = [str(clean.program("interlingua")), "gateway"]
    checked = subprocess.run(
        [*program, "check", "--config", "gateway.toml"],
        cwd=app, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "fast" in checked.stdout
    assert checked.returncode == 0, checked.stdout + checked.stderr
    made = subprocess.run(
        [*program, "keys", "add", "Ann", "--config", "gateway.toml", "--budget", "20", "--model", "fast"],
        cwd=app, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    key = re.search(r"ilg-\S+|il-\S+|\b\w+[-_]\w{20,}\b", made.stdout)
    assert key is not None, made.stdout
    with subprocess.Popen(
        [*program, "--config", "gateway.toml", "--port", "0"],
        cwd=app, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as running:  # fmt: skip
        try:
            environment |= {"INTERLINGUA_KEY": key[0], "INTERLINGUA_GATEWAY_URL": f"{_address(running)}/v1"}
            assert "Ganymede." in _run(clean, app, environment, "ask.py", "fast", "Which moon is the largest?")
            refused = subprocess.run(
                [str(clean.program("python")), "ask.py", "careful", "Hello?"],
                cwd=app, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert refused.returncode != 0
        finally:
            running.terminate()
    listed = subprocess.run(
        [*program, "keys", "list", "--config", "gateway.toml"],
        cwd=app, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Ann" in listed.stdout


def _address(running: subprocess.Popen[str]) -> str:
    """Return the address that a gateway prints."""
    assert running.stdout is not None
    read, deadline = "", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if select.select([running.stdout], [], [], 0.5)[0]:
            read += running.stdout.readline()
            if found := re.search(r"http://127\.0\.0\.1:\d+", read):
                return found[0]
        assert running.poll() is None, read
    raise AssertionError(read)
