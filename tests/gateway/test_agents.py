"""Claude Code, Codex, Gemini CLI, Qwen Code, opencode and pi work through the gateway with a model of another API.

They run in a network namespace with loopback only. Skipped where INTERLINGUA_AGENTS names no folder they are installed
in: `npm install --prefix FOLDER` with `tests.gateway.agents.PACKAGES`.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.gateway import agent_service
from tests.gateway.agent_service import SAID, SECRETS, signature
from tests.gateway.agents import AGENTS, PACKAGES, SCRIPTED_ONLY
from tests.support import tree
from tests.tools.local_server import files

VARIABLE = "INTERLINGUA_AGENTS"
_JPEG = b"\xff\xd8\xff"  # Qwen Code sends pictures in this format


def _missing() -> str | None:
    """Return what the agents cannot be run without here."""
    if not os.environ.get(VARIABLE):
        return f"{VARIABLE} names no folder with the agents"
    if shutil.which("node") is None:
        return "no node: two of the agents are JavaScript"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"], check=False).returncode:
        return "no network namespaces here: agents could reach the network"
    return None


pytestmark = pytest.mark.skipif((reason := _missing()) is not None, reason=reason or "")


def test_the_agents_are_those_that_are_named() -> None:
    folder = Path(os.environ[VARIABLE]) / "node_modules"
    for package in PACKAGES:
        name, _, version = package.rpartition("@")
        assert json.loads((folder / name / "package.json").read_text())["version"] == version, name


def _run(name: str, model: str) -> list[dict[str, Any]]:
    inside = f"ip link set lo up && exec {sys.executable} -m tests.gateway.agents {name} {model}"
    command = ["unshare", "-n", "sh", "-c", inside]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    runs: list[dict[str, Any]] = json.loads(done.stdout)
    assert runs
    for run in runs:
        assert run["exit"] == 0, (run["output"][-4_000:], run["errors"])
    return runs


def _pictures(parts: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return the images among parts in three APIs, those inside results too."""
    found = []
    for part in parts:
        if part.get("type") == "image":
            assert part["source"]["type"] == "base64"
            found.append(base64.b64decode(part["source"]["data"]))
        elif part.get("type") == "image_url":
            kind, _, data = part["image_url"]["url"].partition(",")
            assert kind.endswith(";base64")
            found.append(base64.b64decode(data))
        elif "inlineData" in part:
            found.append(base64.b64decode(part["inlineData"]["data"]))
        elif "functionResponse" in part:
            found += _pictures(part["functionResponse"].get("parts", ()))
        elif isinstance(part.get("content"), list):
            found += _pictures(part["content"])
    return found


def _signatures(body: Mapping[str, Any]) -> list[str]:
    """Return the signatures in the answers of a request of Messages or generateContent."""
    if "contents" in body:
        parts = [part for content in body["contents"] if content["role"] == "model" for part in content["parts"]]
        return [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    answers = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    return [part["signature"] for content in answers for part in content if part["type"] == "thinking"]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agents_turns(name: str) -> None:
    """The same question is repeated, so that only the order tells the answers apart."""
    for turn, run in enumerate(_run(name, "scripted")):
        assert SAID in run["output"], run["output"][-4_000:]
        counted = [body for path, body in run["requests"] if path == agent_service.COUNT]
        asked = [(path, body) for path, body in run["requests"] if path != agent_service.COUNT and body.get("tools")]
        assert len(counted) <= (name == "gemini")  # it counts the tokens of a question that has an image
        streamed = [body.get("stream") or "streamGenerateContent" in path for path, body in asked]
        assert streamed == [True, True], "repeated, or fallen back to a whole answer"
        question, results = [agent_service.parts_since_answer(body) for _, body in asked]
        assert _pictures(question) == _pictures(results)
        assert _pictures(results) == [agent_service.picture()] or (
            name == "qwen" and _pictures(results)[0][:3] == _JPEG
        )
        assert all(text in json.dumps(results) for text in SECRETS.values()), results
        for at, (path, body) in enumerate(asked):
            if "chat/completions" not in path:
                assert _signatures(body) == [signature(number) for number in range(turn + at)]


def _text(name: str, output: str) -> str:
    if name == "codex":
        items = [event.get("item", {}) for event in map(json.loads, output.splitlines())]
        return "".join(item["text"] for item in items if item.get("type") == "agent_message")
    if name.startswith("claude"):
        return str(json.loads(output)["result"])
    if name == "gemini":
        return str(json.loads(output)["response"])
    return output


@pytest.mark.skipif(files.missing() is not None, reason=files.missing() or "")
@pytest.mark.parametrize("name", [name for name in AGENTS if name not in SCRIPTED_ONLY])
def test_an_agents_turn_with_a_real_model(name: str) -> None:
    [run] = _run(name, "real")
    assert _text(name, run["output"]).strip()
    asked = len(run["requests"])
    assert asked == 1 or (asked == 2 and name.startswith("opencode"))  # it may also ask for a title
    assert run["requests"] == [{"stream": True, "attempts": 1, "error": None, "stop_reason": "end_turn"}] * asked
