"""`python -m tests.gateway.agents NAME [MODEL]`: run a real agent against the gateway, offline.

The agents come from npm (`npm install --prefix FOLDER` of `PACKAGES`); INTERLINGUA_AGENTS names that folder. Nothing is
reachable but loopback. MODEL is `scripted`, an upstream that plays thinking, three parallel calls (two text files and
an image) and text in an API that is not the agent's; or `real`, a small model on llama.cpp's server.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from interlingua.plugins import Registry, hookimpl
from interlingua_gateway import config_of, create_app
from tests.gateway.agent_service import PICTURE, SECRETS, picture, play
from tests.gateway.conftest import Upstream, gateway, serving
from tests.tools.local_server.server import MODEL, LocalServer

PACKAGES = (
    "@anthropic-ai/claude-code@2.1.332",
    "@openai/codex@0.171.0",
    "@google/gemini-cli@0.61.0",
    "@mariozechner/pi-coding-agent@0.73.1",
    "opencode-ai@1.18.33",
    "@qwen-code/qwen-code@0.24.4",
    "node@22.23.3",  # for Qwen Code
)
HELLO, BRIEF = "Say hello.", "Be brief."
SHORT = "root ::= [a-zA-Z ,]{5,40} [.!?]"  # grammar of the small model's answers, which may not end by themselves


@attrs.frozen
class Turns:
    """The settings of an agent's run.

    Attributes:
        url: the gateway's.
        home: its HOME, empty.
        work: its working folder.
        binaries: where npm has put the agents.
        plain: one turn without tools and with a short system prompt, as a small model needs it.
    """

    url: str
    home: Path
    work: Path
    binaries: Path
    plain: bool

    def write(self, path: str, text: str) -> str:
        """Write a file below HOME and return its path."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return str(file)


Prepared = tuple[list[list[str]], dict[str, str]]


def _claude(turns: Turns) -> Prepared:
    program = str(turns.binaries / "@anthropic-ai" / "claude-code-linux-x64" / "claude")
    environ = {
        "ANTHROPIC_BASE_URL": turns.url, "ANTHROPIC_API_KEY": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }  # fmt: skip
    first, other = "claude-sonnet-4-5", "gpt-5.1"
    options = ["--output-format", "json", "--model"]
    if turns.plain:
        return [[program, "-p", HELLO, "--system-prompt", BRIEF, "--tools", "", *options, first]], environ
    ask = [program, "-p", f"Read all files. @{PICTURE}", "--allowedTools", "Read", *options]
    return [
        [*ask, first],
        [*ask, first, "--continue"],
        [*ask, other, "--continue"],
        [*ask, first, "--continue"],
    ], environ


def _codex(turns: Turns) -> Prepared:
    package = turns.binaries / "@openai" / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl"
    program = str(package / "bin" / "codex")
    provider = f'name = "lab"\nbase_url = "{turns.url}/v1"\nenv_key = "LAB_KEY"\nwire_api = "responses"\n'
    short = f'model_instructions_file = "{turns.write("brief.md", BRIEF)}"\n' if turns.plain else ""
    tools = ("shell_tool", "unified_exec", "goals", "multi_agent", "view_image")
    without = "".join(f"{tool} = false\n" for tool in tools) if turns.plain else ""
    turns.write(
        ".codex/config.toml",
        f'model = "gpt-5.1"\nmodel_provider = "lab"\ncheck_for_update_on_startup = false\n{short}'
        f"[features]\n{without}[analytics]\nenabled = false\n"
        f"[model_providers.lab]\n{provider}stream_max_retries = 0\nrequest_max_retries = 0\n",
    )
    options = ["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"]
    if turns.plain:
        return [[program, "exec", *options, HELLO]], {"LAB_KEY": "x"}
    ask = [program, "exec", "--image", PICTURE, *options, "Read all files."]
    again = [program, "exec", "resume", "--last", "--image", PICTURE, *options, "Read all files."]
    return [ask, again, again], {"LAB_KEY": "x"}


def _gemini(turns: Turns) -> Prepared:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    environ = {"GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true", "GOOGLE_GEMINI_BASE_URL": turns.url}
    if turns.plain:
        settings["tools"] = {"core": ["none"]}
        environ["GEMINI_SYSTEM_MD"] = turns.write("brief.md", BRIEF)
    turns.write(".gemini/settings.json", json.dumps(settings))
    asked = HELLO if turns.plain else f"Read all files. @{PICTURE}"
    ask = [str(turns.binaries / ".bin" / "gemini"), "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-o", "json"]
    ask += ["-p", asked]
    return ([ask] if turns.plain else [ask, *[[*ask, "--resume", "latest"]] * 2]), environ


def _pi(api: str, turns: Turns) -> Prepared:
    paths = {"anthropic-messages": "", "google-generative-ai": "/v1beta"}
    model = {"id": "m", "name": "m", "reasoning": True, "input": ["text", "image"], "contextWindow": 200_000,
             "maxTokens": 8_000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}  # fmt: skip
    provider = {"baseUrl": turns.url + paths.get(api, "/v1"), "api": api, "apiKey": "x", "models": [model]}
    turns.write(".pi/agent/models.json", json.dumps({"providers": {"lab": provider}}))
    ask = [str(turns.binaries / ".bin" / "pi"), "--print", "--provider", "lab", "--model", "m", "--thinking", "medium"]
    environ = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
    if turns.plain:
        return [[*ask, "--no-session", "--no-tools", "--system-prompt", BRIEF, HELLO]], environ
    asked = [f"@{PICTURE}", "Read all files."]
    return [[*ask, *asked], *[[*ask, "--continue", *asked]] * 2], environ


def _opencode(package: str, turns: Turns) -> Prepared:
    program = str(turns.binaries / "opencode-linux-x64" / "bin" / "opencode")
    model = {"name": "m", "reasoning": True, "attachment": True, "limit": {"context": 200_000, "output": 8_000},
             "modalities": {"input": ["text", "image"], "output": ["text"]}}  # fmt: skip
    provider = {"npm": package, "name": "lab", "models": {"m": model},
                "options": {"baseURL": f"{turns.url}/v1", "apiKey": "x"}}  # fmt: skip
    settings: dict[str, Any] = {"provider": {"lab": provider}, "autoupdate": False, "share": "disabled"}
    if turns.plain:
        settings |= {"agent": {"build": {"prompt": BRIEF}}, "tools": {"*": False}}
    turns.write(".config/opencode/opencode.json", json.dumps(settings))
    environ = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    ask = [program, "run", "--model", "lab/m"]
    if turns.plain:
        return [[*ask, HELLO]], environ
    asked = ["Read all files.", "--file", PICTURE]
    return [[*ask, *asked], *[[*ask, "--continue", *asked]] * 2], environ


def _qwen(turns: Turns) -> Prepared:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    environ = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{turns.url}/v1"}
    turns.write(".qwen/settings.json", json.dumps(settings))
    program = turns.binaries / "@qwen-code" / "qwen-code" / "cli-entry.js"
    ask = [
        str(turns.binaries / "node" / "bin" / "node"),
        str(program),
        "-m",
        "gpt-5.1",
        "--approval-mode",
        "yolo",
        "-o",
        "json",
    ]
    ask += ["-p", f"Read all files. @{PICTURE}"]
    return [ask, *[[*ask, "--continue"]] * 2], environ


AGENTS: dict[str, Callable[[Turns], Prepared]] = {
    "claude": _claude,
    "claude-signed": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "opencode-messages": partial(_opencode, "@ai-sdk/anthropic"),
    "opencode-chat": partial(_opencode, "@ai-sdk/openai-compatible"),
    "pi-messages": partial(_pi, "anthropic-messages"),
    "pi-responses": partial(_pi, "openai-responses"),
    "pi-chat": partial(_pi, "openai-completions"),
    "pi-google": partial(_pi, "google-generative-ai"),
}
SCRIPTED_ONLY = ("claude-signed", "qwen")  # Qwen Code's questions are larger than a small model's context
# the upstream's API is never the agent's own
UPSTREAMS = {"claude": "llamacpp", "claude-signed": "google", "pi-messages": "llamacpp", "opencode-messages": "google"}
MODELS = {"anthropic": "claude-opus-4-5", "google": "gemini-3-flash-preview", "llamacpp": "up"}


class Watch:
    """A plugin that keeps what was asked of a model and how it ended."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []

    @hookimpl
    def observe(self, event: Mapping[str, Any]) -> None:
        """Keep the end of each request."""
        if event["type"] == "answer.received":
            names = ("stream", "attempts", "error", "stop_reason")
            self.answers.append({name: event[name] for name in names})


def _run(name: str, url: str, scratch: Path, plain: bool, asked: Sequence[Any]) -> list[dict[str, Any]]:
    turns = Turns(
        url, scratch / "home", scratch / "work", Path(os.environ["INTERLINGUA_AGENTS"]) / "node_modules", plain
    )
    turns.home.mkdir()
    commands, environ = AGENTS[name](turns)
    base = {"HOME": str(turns.home), "PATH": os.environ["PATH"], "TERM": "dumb", **environ}
    runs = []
    for command in commands:
        before = len(asked)
        done = subprocess.run(
            command, cwd=turns.work, env=base, stdin=subprocess.DEVNULL, capture_output=True, timeout=250, check=False
        )
        runs.append({
            "exit": done.returncode,
            "output": done.stdout.decode(errors="replace"),
            "errors": done.stderr.decode(errors="replace")[-2_000:],
            "requests": asked[before:],
        })  # fmt: skip
    return runs


def scripted(name: str, scratch: Path) -> list[dict[str, Any]]:
    """Run an agent's turns; return what it said and the bodies that the upstream got, with their paths."""
    upstream = Upstream()
    upstream.answers = [play(scratch / "work")]
    target = UPSTREAMS.get(name, "anthropic")
    settings = {
        "anthropic": {"base_url": upstream.url, "api_key": "k"},
        "google": {"base_url": f"{upstream.url}/v1beta", "api_key": "k"},
        "llamacpp": {"base_url": f"{upstream.url}/v1"},
    }
    routes = [{"match": "*", "to": [f"{target}:{MODELS[target]}"], "retries": 0}]
    with gateway(upstream, settings=settings, routes=routes, store=f"sqlite:///{scratch}/g.db") as url:
        runs = _run(name, url, scratch, False, upstream.requests)
    upstream.close()
    return runs


def real(name: str, scratch: Path) -> list[dict[str, Any]]:
    """Run one turn with a model on llama.cpp's server; return what the agent said and how each request ended.

    A model so small does not always end its answer (with an agent's tools the server leaves the grammar out): it is
    stopped then, and asked again.
    """
    with LocalServer(context=4096, options=["--grammar", SHORT, "--n-predict", "300"]) as server:
        config = config_of({
            "routes": [{"match": "*", "to": [f"llamacpp:{MODEL}"], "retries": 0}],
            "store": f"sqlite:///{scratch}/g.db",
        })  # fmt: skip
        settings = {"llamacpp": {"base_url": f"{server.url}/v1"}}
        for attempt in range(4):
            place, watch = scratch / str(attempt), Watch()
            shutil.copytree(scratch / "work", place / "work")
            with serving(create_app(config, registry=Registry([watch]), settings=settings, environ={})) as url:
                runs = _run(name, url, place, True, watch.answers)
            if all(answer["stop_reason"] != "max_tokens" for answer in watch.answers):
                break
        return runs


def main(name: str, model: str = "scripted") -> int:
    """Run an agent and print the outcome of each turn."""
    with TemporaryDirectory() as folder:
        scratch = Path(folder)
        work = scratch / "work"
        work.mkdir()
        for file, text in SECRETS.items():
            (work / file).write_text(text)
        (work / PICTURE).write_bytes(picture())
        print(json.dumps((real if model == "real" else scripted)(name, scratch)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
