"""`python -m tests.gateway.agents NAME`: run a real agent against the gateway, in a network namespace of its own.

The agents come from npm (`npm install --prefix FOLDER` of `PACKAGES`); INTERLINGUA_AGENTS names that folder. Nothing is
reachable but loopback. The upstream plays thinking, two parallel calls and a text, in an API that is not the agent's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.gateway.conftest import Upstream, gateway, send_bytes

PACKAGES = (
    "@anthropic-ai/claude-code@2.1.197",
    "@openai/codex@0.169.0",
    "@google/gemini-cli@0.61.0",
    "@mariozechner/pi-coding-agent@0.73.1",
)
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBzZXJ2aWNl" * 40
SAID = "Both files are read."
SECRETS = {"one.txt": "first secret 4711", "two.txt": "second secret 0815"}
# tool of an agent -> the arguments that read a file
READERS = {
    "Read": lambda path: {"file_path": path},
    "read_file": lambda path: {"file_path": path},
    "read": lambda path: {"path": path},
    "exec_command": lambda path: {"cmd": f"cat {path}"},
    "shell_command": lambda path: {"command": f"cat {path}"},
    "shell": lambda path: {"command": ["cat", path]},
}


def _calls(tools: Sequence[Mapping[str, Any]], folder: Path) -> list[tuple[str, dict[str, Any]]]:
    names = [tool.get("name") or tool["function"]["name"] for tool in tools]
    found = [(name, reader) for reader in READERS for name in names if name == reader]
    name, reader = found[0]
    return [(name, READERS[reader](str(folder / file))) for file in SECRETS]


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
    """Return what answers: calls after a question, a text after results."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        last = body["messages"][-1]
        content = last["content"] if isinstance(last["content"], list) else []
        after_results = last["role"] == "tool" or any(part.get("type") == "tool_result" for part in content)
        calls = [] if after_results or not body.get("tools") else _calls(body["tools"], folder)
        if handler.path.startswith("/v1/messages"):
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in messages_events(calls)]
        else:
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chat_chunks(calls)] + ["data: [DONE]\n\n"]
        send_bytes(handler, 200, "text/event-stream", "".join(lines).encode())

    return answer


def _claude(url: str, home: Path, binaries: Path) -> tuple[list[list[str]], dict[str, str]]:
    program = str(binaries / "@anthropic-ai" / "claude-code-linux-x64" / "claude")
    ask = [program, "-p", "Read both files.", "--output-format", "json", "--allowedTools", "Read", "--model"]
    environ = {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }  # fmt: skip
    first, other = "claude-sonnet-4-5", "gpt-5.1"
    return [
        [*ask, first],
        [*ask, first, "--continue"],
        [*ask, other, "--continue"],
        [*ask, first, "--continue"],
    ], environ


def _codex(url: str, home: Path, binaries: Path) -> tuple[list[list[str]], dict[str, str]]:
    program = binaries / "@openai" / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex"
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        'model = "gpt-5.1"\nmodel_provider = "lab"\ncheck_for_update_on_startup = false\n'
        "[analytics]\nenabled = false\n"
        f'[model_providers.lab]\nname = "lab"\nbase_url = "{url}/v1"\nenv_key = "LAB_KEY"\nwire_api = "responses"\n'
        f"stream_max_retries = 0\nrequest_max_retries = 0\n"
    )
    options = ["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"]
    ask = [str(program), "exec", *options, "Read both files."]
    again = [str(program), "exec", "resume", "--last", *options, "Read both files again."]
    return [ask, again], {"LAB_KEY": "x"}


def _gemini(url: str, home: Path, binaries: Path) -> tuple[list[list[str]], dict[str, str]]:
    (home / ".gemini").mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    program = str(binaries / ".bin" / "gemini")
    ask = [program, "-p", "Read both files.", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-o", "json"]
    return [ask], {"GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true", "GOOGLE_GEMINI_BASE_URL": url}


def _pi(api: str) -> Any:
    def prepare(url: str, home: Path, binaries: Path) -> tuple[list[list[str]], dict[str, str]]:
        base = {"anthropic-messages": url, "google-generative-ai": f"{url}/v1beta"}.get(api, f"{url}/v1")
        model = {"id": "m", "name": "m", "reasoning": True, "input": ["text", "image"], "contextWindow": 200_000,
                 "maxTokens": 8_000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}  # fmt: skip
        provider = {"baseUrl": base, "api": api, "apiKey": "x", "models": [model]}
        (home / ".pi" / "agent").mkdir(parents=True)
        (home / ".pi" / "agent" / "models.json").write_text(json.dumps({"providers": {"lab": provider}}))
        program = str(binaries / ".bin" / "pi")
        options = ["--print", "--no-session", "--provider", "lab", "--model", "m", "--thinking", "medium"]
        return [[program, *options, "Read both files."]], {
            "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0",
        }  # fmt: skip

    return prepare


AGENTS: dict[str, Any] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "pi-messages": _pi("anthropic-messages"),
    "pi-responses": _pi("openai-responses"),
    "pi-chat": _pi("openai-completions"),
    "pi-google": _pi("google-generative-ai"),
}
# the upstream's API is never the agent's own
UPSTREAMS = {"claude": "llamacpp", "pi-messages": "llamacpp"}


def main(name: str) -> int:
    """Run an agent's turns; print what it said and what the upstream and the gateway were asked."""
    binaries = Path(os.environ["INTERLINGUA_AGENTS"]) / "node_modules"
    upstream = Upstream()
    with TemporaryDirectory() as scratch:
        home, work = Path(scratch) / "home", Path(scratch) / "work"
        home.mkdir()
        work.mkdir()
        for file, text in SECRETS.items():
            (work / file).write_text(text)
        upstream.answers = [play(work)]
        target = UPSTREAMS.get(name, "anthropic")
        settings = {
            "anthropic": {"base_url": upstream.url, "api_key": "k"},
            "llamacpp": {"base_url": f"{upstream.url}/v1"},
        }
        model = "claude-opus-4-5" if target == "anthropic" else "up"
        routes = [{"match": "*", "to": [f"{target}:{model}"], "retries": 0}]
        with gateway(upstream, settings=settings, routes=routes, store=f"sqlite:///{scratch}/g.db") as url:
            commands, environ = AGENTS[name](url, home, binaries)
            base = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb", **environ}
            runs = []
            for command in commands:
                before = len(upstream.requests)
                done = subprocess.run(
                    command, cwd=work, env=base, stdin=subprocess.DEVNULL, capture_output=True, timeout=90, check=False
                )
                runs.append({
                    "exit": done.returncode,
                    "output": done.stdout.decode(errors="replace")[-4_000:],
                    "errors": done.stderr.decode(errors="replace")[-2_000:],
                    "requests": [body for _, body in upstream.requests[before:]],
                })  # fmt: skip
    upstream.close()
    print(json.dumps(runs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
