"""Agents that run the calls of a service's own tools: patch, shell, computer; whole, streamed, by a gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

import interlingua as il
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua.transport import HttpRequest
from interlingua.types import ImageBlock, MediaSource
from interlingua_agents import Agent, ToolError, patch_tool, shell_tool, tool_of
from interlingua_agents.local_tools import apply_diff
from interlingua_openai import client_tool
from tests.gateway.conftest import Upstream, gateway
from tests.plugins.openai.wire import events_of, response, said, sse
from tests.support.loopback import send_bytes

MODEL = "gpt-5.5"
PATCH = {"id": "apc_1", "type": "apply_patch_call", "status": "completed", "call_id": "call_p",
         "operation": {"type": "create_file", "diff": "+one\n+two\n", "path": "notes/a.txt"}}  # fmt: skip
EDIT = {"id": "apc_2", "type": "apply_patch_call", "status": "completed", "call_id": "call_e",
        "operation": {"type": "update_file", "diff": "@@\n one\n-two\n+three\n", "path": "notes/a.txt"}}  # fmt: skip
SHELL = {
    "id": "sh_1", "type": "shell_call", "status": "completed", "call_id": "call_s", "environment": {"type": "local"},
    "action": {"commands": ["cat notes/a.txt", "exit 3"], "timeout_ms": None, "max_output_length": None},
}  # fmt: skip
CHECK = {"id": "sc_1", "code": "x", "message": "Look."}
LOOK = {"id": "cu_1", "type": "computer_call", "status": "completed", "call_id": "call_1",
        "actions": [{"type": "screenshot"}], "pending_safety_checks": []}  # fmt: skip
CLICK = {"id": "cu_2", "type": "computer_call", "status": "completed", "call_id": "call_2",
         "actions": [{"type": "click", "button": "left", "x": 1, "y": 2, "keys": None}],
         "pending_safety_checks": [CHECK]}  # fmt: skip
PIXEL = "data:image/png;base64,aGk="
CODER = ([PATCH], [EDIT, SHELL], [said("Done.")])
CLICKER = ([LOOK], [CLICK], [said("Clicked.")])


class Service:
    """A scripted service of the Responses API that refuses items which its SDK does not type."""

    def __init__(self, *answers: list[dict[str, Any]]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def reply(self, body: dict[str, Any]) -> tuple[str, bytes]:
        TypeAdapter(list[ResponseInputItemParam]).validate_python(body["input"])
        self.asked.append(body)
        made = response(*self.answers[len(self.asked) - 1])
        if body.get("stream"):
            return "text/event-stream", sse(events_of(made))
        return "application/json", json.dumps(made).encode()

    def in_memory(self, request: HttpRequest) -> MemoryReply:
        kind, data = self.reply(json.loads(request.body))
        return MemoryReply(data, headers={"content-type": kind})

    def over_http(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        kind, data = self.reply(body)
        send_bytes(handler, 200, kind, data)


@contextmanager
def client_of(service: Service, way: str) -> Iterator[il.Client]:
    """Yield a client of the service, directly or by a gateway in front of it."""
    if way == "direct":
        with il.Client(settings={"openai": {"api_key": "k"}}, transport=MemoryTransport(service.in_memory)) as client:
            yield client
        return
    upstream = Upstream()
    upstream.answers = [service.over_http]
    routes = [{"match": "*", "to": [f"openai:{MODEL}"], "retries": 0}]
    settings = {"openai": {"base_url": f"{upstream.url}/v1", "api_key": "k"}}
    try:
        with (
            gateway(upstream, settings=settings, routes=routes) as url,
            il.Client(settings={"openai": {"base_url": f"{url}/v1", "api_key": "k"}}) as client,
        ):
            yield client
    finally:
        upstream.close()


def run(agent: Agent[str], client: il.Client, *, stream: bool) -> Any:
    if not stream:
        return agent.run_sync("Go.", client=client)
    with agent.stream_sync("Go.", client=client) as events:
        for _ in events:
            pass
    return events.result


ways = pytest.mark.parametrize("way", ["direct", "gateway"])
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@ways
@streams
def test_a_coder_patches_files_and_runs_commands(tmp_path: Path, way: str, stream: bool) -> None:
    service, asked = Service(*CODER), []
    tools = [
        patch_tool(tmp_path, definition=client_tool("apply_patch")),
        shell_tool(tmp_path, definition=client_tool("shell", environment={"type": "local"})),
    ]
    agent = Agent(f"openai:{MODEL}", tools=tools, confirm=lambda question: asked.append(question.text) or True)
    with client_of(service, way) as client:
        result = run(agent, client, stream=stream)

    assert result.value == "Done."
    assert (tmp_path / "notes/a.txt").read_text() == "one\nthree\n"
    assert [text.split(" (")[0] for text in asked] == ["Run apply_patch", "Run apply_patch", "Run shell"]
    assert service.asked[0]["tools"] == [{"type": "apply_patch"}, {"type": "shell", "environment": {"type": "local"}}]
    sent = service.asked[2]["input"]
    assert [item for item in sent if item["type"].endswith("_call")] == [PATCH, EDIT, SHELL]
    assert [item for item in sent if item["type"].endswith("_output")] == [
        {"type": "apply_patch_call_output", "call_id": "call_p", "status": "completed",
         "output": "Created notes/a.txt"},
        {"type": "apply_patch_call_output", "call_id": "call_e", "status": "completed",
         "output": "Updated notes/a.txt"},
        {"type": "shell_call_output", "call_id": "call_s", "output": [
            {"stdout": "one\nthree\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 3}}]},
    ]  # fmt: skip


@ways
@streams
def test_a_computer_is_used_for_three_turns(way: str, stream: bool) -> None:
    service, acted = Service(*CLICKER), []

    def computer(actions: list[Any], pending_safety_checks: list[Any] = []) -> ImageBlock:  # noqa: B006  read only
        acted.append(([action["type"] for action in actions], len(pending_safety_checks)))
        return ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png")

    tools = [tool_of(client_tool("computer"), computer)]
    agent = Agent(f"openai:{MODEL}", tools=tools, confirm=lambda _: True)
    with client_of(service, way) as client:
        result = run(agent, client, stream=stream)

    assert (result.value, acted) == ("Clicked.", [(["screenshot"], 0), (["click"], 1)])
    assert service.asked[2]["input"][1:] == [
        LOOK,
        {"type": "computer_call_output", "call_id": "call_1",
         "output": {"type": "computer_screenshot", "image_url": PIXEL}},
        CLICK,
        {"type": "computer_call_output", "call_id": "call_2",
         "output": {"type": "computer_screenshot", "image_url": PIXEL}, "acknowledged_safety_checks": [CHECK]},
    ]  # fmt: skip


def test_a_call_without_consent_is_reported_to_the_service(tmp_path: Path) -> None:
    service = Service([PATCH], [said("As you like.")])
    tools = [patch_tool(tmp_path, definition=client_tool("apply_patch"))]
    with client_of(service, "direct") as client:
        Agent(f"openai:{MODEL}", tools=tools, confirm=lambda _: False).run_sync("Go.", client=client)

    assert not list(tmp_path.iterdir())
    assert service.asked[1]["input"][-1]["status"] == "failed"


# ---- the tools themselves


@pytest.mark.parametrize(("text", "diff", "expected"), [
    ("", "+a\n+b\n", "a\nb\n"),
    ("a\nb\nc\n", "@@\n a\n-b\n+B\n", "a\nB\nc\n"),
    ("def f():\n  x\ndef g():\n  x\n", "@@ def g():\n-  x\n+  y\n", "def f():\n  x\ndef g():\n  y\n"),
    ("a\nb\nc\nd\n", "@@\n-a\n+1\n@@\n-d\n+4\n", "1\nb\nc\n4\n"),
    ("a\r\nb\r\n", "-b\n", "a\r\n"),
    ("a\n", "", "a\n"),
])  # fmt: skip
def test_a_diff_is_applied(text: str, diff: str, expected: str) -> None:
    assert apply_diff(text, diff) == expected


@pytest.mark.parametrize("diff", ["-x\n", "@@ nowhere\n-a\n", "*** Begin\n"])
def test_a_diff_that_does_not_fit_says_so(diff: str) -> None:
    with pytest.raises(ToolError):
        apply_diff("a\n", diff)


@pytest.mark.parametrize("path", ["../out.txt", "/etc/out.txt", "link/out.txt", "."])
def test_no_file_outside_the_folder_is_touched(tmp_path: Path, path: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)

    with pytest.raises(ToolError, match="outside"):
        patch_tool(inside)(type="create_file", path=path, diff="+x\n")


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (ran,) = shell_tool(tmp_path)(commands=["echo begun; sleep 30"], timeout_ms=300)["output"]

    assert (ran["stdout"], ran["outcome"]) == ("begun\n", {"type": "timeout"})
