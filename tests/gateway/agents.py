"""`python -m tests.gateway.agents NAME [MODEL]`: run a real agent against the gateway, offline.

The agents come from npm (`npm install --prefix FOLDER` of `PACKAGES`); INTERLINGUA_AGENTS names that folder. Nothing is
reachable but loopback. MODEL is `scripted`, an upstream that plays thinking, three parallel calls (two text files and
an image) and text in an API that is not the agent's; or `real`, a small model on llama.cpp's server.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from interlingua.plugins import Registry, hookimpl
from interlingua_gateway import config_of, create_app
from tests.gateway.conftest import Upstream, gateway, serving
from tests.support.loopback import send_bytes
from tests.tools.local_server.server import MODEL, LocalServer

PACKAGES = (
    "@anthropic-ai/claude-code@2.1.197",
    "@openai/codex@0.169.0",
    "@google/gemini-cli@0.61.0",
    "@mariozechner/pi-coding-agent@0.73.1",
    "opencode-ai@1.18.33",  # continues sessions only (tests.transcripts.resumed)
)
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBzZXJ2aWNl" * 40
COUNT = "/v1/messages/count_tokens"
SAID = "Both files are read."
SECRETS = {"one.txt": "first secret 4711", "two.txt": "second secret 0815"}
PICTURE = "picture.png"
HELLO, BRIEF = "Say hello.", "Be brief."
SHORT = "root ::= [a-zA-Z ,]{5,40} [.!?]"  # grammar of the small model's answers, which may not end by themselves
# tool of an agent -> the arguments that read a file; the first one that it has is used
READERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Read": lambda path: {"file_path": path},
    "read_file": lambda path: {"file_path": path},
    "read": lambda path: {"path": path},
    "exec_command": lambda path: {"cmd": f"cat {path}"},
    "shell_command": lambda path: {"command": f"cat {path}"},
    "shell": lambda path: {"command": ["cat", path]},
}
VIEWERS = {"view_image": lambda path: {"path": path}, **READERS}


def picture() -> bytes:
    """Return a PNG file of 16 x 16 red pixels (https://www.w3.org/TR/png-3/)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0))
    rows = zlib.compress((b"\0" + b"\xff\0\0" * 16) * 16)
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _calls(tools: Sequence[Mapping[str, Any]], folder: Path) -> list[tuple[str, dict[str, Any]]]:
    names = [tool.get("name") or tool["function"]["name"] for tool in tools]
    reader = next(name for name in READERS if name in names)
    viewer = next(name for name in VIEWERS if name in names)
    texts = [(reader, READERS[reader](str(folder / file))) for file in SECRETS]
    return [*texts, (viewer, VIEWERS[viewer](str(folder / PICTURE)))]


def parts_since_answer(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts after the last answer, in Messages or Chat Completions; a message of role `tool` is one part."""
    parts: list[dict[str, Any]] = []
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        whole = message["role"] == "tool" or isinstance(message["content"], str)
        parts = [*([message] if whole else message["content"]), *parts]
    return parts


def is_result(part: Mapping[str, Any]) -> bool:
    """Tell whether a part is the result of a call."""
    return part.get("role") == "tool" or part.get("type") == "tool_result"


def messages_events(calls: Sequence[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed answer of the Messages API (https://docs.anthropic.com/en/api/messages-streaming)."""
    usage = {"input_tokens": 50, "output_tokens": 1}
    message = {"id": "msg_up", "type": "message", "role": "assistant", "model": "up", "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if calls:
        thinking = [
            {"type": "thinking_delta", "thinking": "I read both."},
            {"type": "signature_delta", "signature": SIGNATURE},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, thinking))
    for number, (name, arguments) in enumerate(calls):
        start = {"type": "tool_use", "id": f"toolu_up{number}", "name": name, "input": {}}
        blocks.append((start, [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}]))
    if not calls:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": SAID}]))
    for index, (start, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


def chat_chunks(calls: Sequence[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed answer of Chat Completions."""
    about = {"id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 1, "model": "up"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if calls else SAID}]
    if calls:
        deltas.insert(0, {"role": "assistant", "reasoning_content": "I read both."})
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        deltas.append(
            {"tool_calls": [{"index": index, "id": f"call_up{index}", "type": "function", "function": function}]}
        )
    for delta in deltas:
        yield {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    yield {**about, "choices": [last]}
    yield {**about, "choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}}


def play(folder: Path) -> Any:
    """Return the function that answers: calls after a question, text after results, a number if tokens are counted."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if handler.path == COUNT:
            send_bytes(handler, 200, "application/json", b'{"input_tokens": 50}')
            return
        answered = any(is_result(part) for part in parts_since_answer(body))
        calls = [] if answered or not body.get("tools") else _calls(body["tools"], folder)
        if handler.path.startswith("/v1/messages"):
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in messages_events(calls)]
        else:
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chat_chunks(calls)] + ["data: [DONE]\n\n"]
        send_bytes(handler, 200, "text/event-stream", "".join(lines).encode())

    return answer


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
    again = [program, "exec", "resume", "--last", "--image", PICTURE, *options, "Read all files again."]
    return [ask, again], {"LAB_KEY": "x"}


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
    program = str(turns.binaries / ".bin" / "gemini")
    return [[program, "-p", asked, "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-o", "json"]], environ


def _pi(api: str, turns: Turns) -> Prepared:
    paths = {"anthropic-messages": "", "google-generative-ai": "/v1beta"}
    model = {"id": "m", "name": "m", "reasoning": True, "input": ["text", "image"], "contextWindow": 200_000,
             "maxTokens": 8_000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}  # fmt: skip
    provider = {"baseUrl": turns.url + paths.get(api, "/v1"), "api": api, "apiKey": "x", "models": [model]}
    turns.write(".pi/agent/models.json", json.dumps({"providers": {"lab": provider}}))
    options = ["--print", "--no-session", "--provider", "lab", "--model", "m", "--thinking", "medium"]
    asked = [f"@{PICTURE}", "Read all files."]
    if turns.plain:
        asked = ["--no-tools", "--system-prompt", BRIEF, HELLO]
    environ = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
    return [[str(turns.binaries / ".bin" / "pi"), *options, *asked]], environ


AGENTS: dict[str, Callable[[Turns], Prepared]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "pi-messages": partial(_pi, "anthropic-messages"),
    "pi-responses": partial(_pi, "openai-responses"),
    "pi-chat": partial(_pi, "openai-completions"),
    "pi-google": partial(_pi, "google-generative-ai"),
}
# the upstream's API is never the agent's own
UPSTREAMS = {"claude": "llamacpp", "pi-messages": "llamacpp"}


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
        "llamacpp": {"base_url": f"{upstream.url}/v1"},
    }
    model = "claude-opus-4-5" if target == "anthropic" else "up"
    routes = [{"match": "*", "to": [f"{target}:{model}"], "retries": 0}]
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
