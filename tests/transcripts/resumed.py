"""`python -m tests.transcripts.resumed AGENT FOLDER`: continue session files in a real agent, offline.

Each file of FOLDER is written for AGENT by `transcript resume --in`, then the agent continues it against a scripted
service; JSON says for each file what the agent showed of it, or sent. The agents come from npm, as in
`tests.gateway.agents`: INTERLINGUA_AGENTS is the folder. Run in a network namespace with loopback only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.gateway.agent_service import COUNT, SAID, messages_events
from tests.gateway.conftest import Upstream
from tests.support.loopback import send_bytes

ASKED = "Go on, please."


def _answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    if handler.path.startswith(COUNT):
        send_bytes(handler, 200, "application/json", b'{"input_tokens": 50}')
        return
    if "GenerateContent" in handler.path:
        said = {"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "STOP", "index": 0}
        counts = {"promptTokenCount": 50, "candidatesTokenCount": 5, "totalTokenCount": 55}
        event = json.dumps({"candidates": [said], "usageMetadata": counts, "modelVersion": "gemini-2.5-flash"})
        send_bytes(handler, 200, "text/event-stream", f"data: {event}\n\n".encode())
        return
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in messages_events([])]
    send_bytes(handler, 200, "text/event-stream", "".join(lines).encode())


def _call(command: Sequence[str], environ: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class _Lab:
    """A home, a working folder and the session files that are written there."""

    def __init__(self, agent: str, folder: Path, scratch: Path) -> None:
        self.modules = Path(os.environ["INTERLINGUA_AGENTS"]) / "node_modules"
        self.home, self.work = scratch / "home", scratch / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TERM": "dumb"}
        self.commands: dict[str, list[str]] = {}
        self.first: dict[str, list[list[str]]] = {}
        self.refused: dict[str, str] = {}
        interlingua = Path(sys.executable).with_name("interlingua")
        for path in sorted(folder.iterdir()):
            own = [str(interlingua), "transcript", "resume", str(path), "--in", agent]
            done = _call(own, {**self.environ, "XDG_DATA_HOME": str(self.home / "data")}, self.work)
            if done.returncode:
                self.refused[path.name] = done.stderr[-500:]
            else:
                _, *first, command = done.stdout.strip().split(" && ")
                self.commands[path.name] = command.split()
                self.first[path.name] = [one.split() for one in first]

    def ask_each(
        self, program: Sequence[str], options: Sequence[str], set_up: Callable[[str], Mapping[str, str]]
    ) -> dict[str, Any]:
        """Ask one question in each session; return what was answered and the conversation that the service got.

        Args:
            program: the agent's, with the options before those that name the session.
            options: its own, after those that name the session.
            set_up: makes the agent's environment of the service's address.
        """
        upstream = Upstream()
        upstream.answers = [_answer]
        environ = {**self.environ, **set_up(upstream.url)}
        found = {}
        for name, command in self.commands.items():
            upstream.requests.clear()
            for first in self.first[name]:
                assert _call([program[0], *first[1:]], environ, self.work).returncode == 0, first
            done = _call([*program, *command[1:], *options], environ, self.work)
            sent = [body for path, body in upstream.requests if not path.startswith(COUNT) and _has_question(body)]
            found[name] = {
                "said": SAID in done.stdout,
                "sent": _messages(sent[-1]) if sent else [],
                "output": (done.stdout + done.stderr)[-600:],
            }
        upstream.close()
        return found


def _has_question(body: Mapping[str, Any]) -> bool:
    return ASKED in json.dumps(_messages(body)[-1:])


def _messages(body: Mapping[str, Any]) -> list[Any]:
    return list(body.get("messages") or body.get("contents") or ())


def _claude(lab: _Lab) -> dict[str, Any]:
    environ = {
        "ANTHROPIC_API_KEY": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "1",
    }  # fmt: skip
    program = lab.modules / "@anthropic-ai" / "claude-code-linux-x64" / "claude"
    options = ["-p", ASKED, "--model", "claude-sonnet-4-5"]
    return lab.ask_each([str(program)], options, lambda url: {**environ, "ANTHROPIC_BASE_URL": url})


def _gemini(lab: _Lab) -> dict[str, Any]:
    """List the sessions and continue each."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False}, "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }  # fmt: skip
    path = lab.home / ".gemini" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(settings))
    program = str(lab.modules / ".bin" / "gemini")
    shown = ""

    def set_up(url: str) -> Mapping[str, str]:
        nonlocal shown
        environ = {"GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true", "GOOGLE_GEMINI_BASE_URL": url}
        done = _call([program, "--list-sessions"], {**lab.environ, **environ}, lab.work)  # it asks for a summary
        shown = done.stdout + done.stderr
        return environ

    found = lab.ask_each([program], ["-p", ASKED, "-m", "gemini-2.5-flash"], set_up)
    for name, command in lab.commands.items():
        found[name]["listed"] = command[-1] in shown
    return found


def _pi(lab: _Lab) -> dict[str, Any]:
    model = {"id": "m", "name": "m", "reasoning": True, "input": ["text", "image"], "contextWindow": 200_000,
             "maxTokens": 8_000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}  # fmt: skip

    def set_up(url: str) -> Mapping[str, str]:
        provider = {"baseUrl": url, "api": "anthropic-messages", "apiKey": "x", "models": [model]}
        settings = lab.home / ".pi" / "agent" / "models.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"providers": {"lab": provider}}))
        return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}

    options = ["--print", "--provider", "lab", "--model", "m", ASKED]
    return lab.ask_each([str(lab.modules / ".bin" / "pi")], options, set_up)


def _opencode(lab: _Lab) -> dict[str, Any]:
    """Import each session, list all and continue each."""
    program = str(lab.modules / "opencode-linux-x64" / "bin" / "opencode")
    environ = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def set_up(url: str) -> Mapping[str, str]:
        model = {"name": "m", "reasoning": True, "attachment": True,
                 "modalities": {"input": ["text", "image"], "output": ["text"]},
                 "limit": {"context": 200_000, "output": 8_000}}  # fmt: skip
        provider = {"npm": "@ai-sdk/anthropic", "name": "lab", "models": {"m": model},
                    "options": {"baseURL": f"{url}/v1", "apiKey": "x"}}  # fmt: skip
        settings = lab.home / ".config" / "opencode" / "opencode.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"provider": {"lab": provider}, "autoupdate": False, "share": "disabled"}))
        return environ

    found = lab.ask_each([program, "run"], ["--model", "lab/m", ASKED], set_up)
    shown = _call([program, "session", "list", "--format", "json"], {**lab.environ, **environ}, lab.work)
    listed = {session["id"] for session in json.loads(shown.stdout)}
    for name, command in lab.commands.items():
        found[name]["listed"] = command[-1] in listed
    return found


def _codex(lab: _Lab) -> dict[str, Any]:
    """List and resume each session by the app-server, which Codex's own windows use."""
    package = lab.modules / "@openai" / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl"
    server = subprocess.Popen(
        [str(package / "bin" / "codex"), "app-server"], cwd=lab.work, env=lab.environ, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout
    asked = 0

    def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        stdin.write(json.dumps({"id": asked, "method": method, "params": params}) + "\n")
        stdin.flush()
        for line in stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == asked:
                return answer
        raise EOFError("the app-server ended")

    ask("initialize", {"clientInfo": {"name": "t", "title": "t", "version": "1"}})
    listed = {thread["id"] for thread in ask("thread/list", {"limit": 200})["result"]["data"]}
    found: dict[str, Any] = {}
    for name, command in lab.commands.items():
        answer = ask("thread/resume", {"threadId": command[-1]})
        turns = answer["result"]["thread"]["turns"] if "result" in answer else []
        items = [item for turn in turns for item in turn["items"]]
        found[name] = {
            "listed": command[-1] in listed,
            "turns": len(turns),
            "items": items,
            "error": answer.get("error"),
        }
    server.kill()
    server.wait()
    return found


AGENTS: dict[str, Callable[[_Lab], dict[str, Any]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "pi": _pi,
}


def main(agent: str, folder: str) -> int:
    """Print what an agent makes of each file."""
    with TemporaryDirectory() as scratch:
        lab = _Lab(agent, Path(folder), Path(scratch))
        found = AGENTS[agent](lab)
    print(json.dumps({"found": found, "refused": lab.refused}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
