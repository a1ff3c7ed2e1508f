"""The programs of docs/examples that serve, fall back, branch, stop at a budget or use an MCP server, as they are."""

from __future__ import annotations

import ast
import io
import json
import shutil
import socket
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from mypy import api

from tests.examples.test_examples import FOLDER, PROGRAMS, run_example, start_example
from tests.support import tree
from tests.tools.record.service import Answer, Call, Service, scripted_service

LONG = "A lighthouse stood on a rock. " * 400


@contextmanager
def serving(name: str, service: Service, tmp_path: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run a program that serves; yield its port and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with start_example(name, "anthropic:claude-haiku-4-5", str(port), environ=service.environ, cwd=tmp_path) as process:
        try:
            for _ in range(600):
                assert process.poll() is None, process.communicate()
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield port, process
        finally:
            process.kill()


def _run(
    name: str, tmp_path: Path, *script: Answer, arguments: tuple[str, ...] = (), stdin: str = ""
) -> tuple[str, Service]:
    with scripted_service(*script) as service:
        return run_example(name, *arguments, environ=service.environ, cwd=tmp_path, stdin=stdin), service


def test_agent_sse_sends_events_while_two_tools_run_side_by_side(tmp_path: Path) -> None:
    calls = [Call("weather", {"city": "Oslo"}), Call("local_time", {"city": "Oslo"})]
    with scripted_service(calls, "Rain, at 14:30.") as service, serving("agent_sse", service, tmp_path) as (port, _):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/?q=What%20is%20it%20like%20in%20Oslo%3F")
        answer = connection.getresponse()
        events, times = [], []
        while line := answer.readline():
            if line.startswith(b"event: "):
                times.append(time.monotonic())
                events.append((line[7:-1].decode(), json.loads(answer.readline()[6:])))
        connection.close()

    assert answer.getheader("content-type") == "text/event-stream"
    names = [name for name, _ in events]
    assert names[:4] == ["tool_start", "tool_start", "tool_end", "tool_end"]
    assert 0.9 < times[3] - times[0] < 1.9  # each takes a second
    assert "".join(data for name, data in events if name == "text_delta") == "Rain, at 14:30."
    assert events[-1] == ("run_end", "done")
    results = service.asked[1]["messages"][-1]["content"]
    assert [result["content"] for result in results] == ["Oslo: rain", "Oslo: 14:30"]


def test_disconnect_keeps_what_the_reader_saw_and_goes_on(tmp_path: Path) -> None:
    with scripted_service(LONG, "The end.") as service, serving("disconnect", service, tmp_path) as (port, process):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as reader:
            reader.sendall(b"A story?\n")
            seen = reader.recv(40)
        assert process.stdout is not None
        status, _, count = process.stdout.readline().partition(": ")
        with socket.create_connection(("127.0.0.1", port), timeout=30) as reader:
            reader.sendall(b"And its end?\n")
            assert b"".join(iter(lambda: reader.recv(4096), b"")) == b"The end."

    assert status == "cancelled"
    assert len(seen) <= int(count.split()[0]) < len(LONG)
    kept = service.asked[-1]["messages"][1]["content"][0]["text"]
    assert LONG.startswith(kept)
    assert len(kept) == int(count.split()[0])


def test_fallback_asks_the_next_model(tmp_path: Path) -> None:
    with scripted_service("Ganymede.", "Titan.") as service:
        environ = service.environ | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}  # nothing listens there
        printed = run_example("fallback", environ=environ, cwd=tmp_path)
    lines = printed.splitlines()
    assert lines[0] == "openai:gpt-5-mini: Ganymede."
    assert lines[1].startswith("not asked first: ")
    assert "anthropic:claude-haiku-4-5" in lines[1]
    assert lines[2] == "openai:gpt-5-mini: Titan."
    assert len(service.asked) == 2


def test_swap_in_loop_gives_the_other_model_the_calls(tmp_path: Path) -> None:
    calls = [Call("radius", {"moon": "Ganymede"}), Call("radius", {"moon": "Io"})]
    printed, service = _run("swap_in_loop", tmp_path, calls, "Yes.")
    assert printed.splitlines() == [
        "user: Is Ganymede wider than Io?",
        "anthropic:claude-haiku-4-5: ['radius', 'radius']",
        "tool: []",
        "tool: []",
        "openai:gpt-5-mini: Yes.",
    ]
    first, second = service.asked
    assert first["messages"][0]["content"][0]["text"] == "Is Ganymede wider than Io?"
    kinds = [item.get("type", item.get("role")) for item in second["input"]]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 2


def test_branch_goes_on_from_the_first_answer(tmp_path: Path) -> None:
    long = "Ganymede, which Galileo saw in 1610. " * 60
    printed, service = _run("branch", tmp_path, long, "None.", "Deimos.", "It was about Ganymede.", "Big.")
    assert printed.splitlines() == [
        "Deimos.",
        "4 messages there, 4 in the branch",
        "summarised: True",
        "Big.",
    ]
    sent = [[message["content"][0]["text"] for message in body["messages"]] for body in service.asked]
    assert sent[2] == ["Which moon of Jupiter is the largest?", long, "And the smallest?"]
    assert long not in str(sent[4])
    assert "It was about Ganymede." in str(sent[4])
    assert sent[4][-1] == "Now in one line."


def test_budget_ends_the_run(tmp_path: Path) -> None:
    arguments = ("anthropic:claude-haiku-4-5", "0.0001")
    printed, service = _run("budget", tmp_path, [Call("next_page", {"number": 1})], arguments=arguments)
    # Haiku 4.5: 1 USD for a million tokens read, 5 USD for a million written; answers of 12 and 6 cost 0.000042 USD
    assert printed == "budget after 3 answers and 0.000126 USD\n"
    assert len(service.asked) == 3


def test_mcp_tools_are_asked_for(tmp_path: Path) -> None:
    server = tmp_path / "news.py"
    server.write_text(
        "from mcp.server import MCPServer\n"
        'news = MCPServer("news")\n\n\n'
        "@news.tool()\n"
        "def fetch(url: str) -> str:\n"
        '    """Fetch a page."""\n'
        '    return f"nothing at {url}"\n\n\n'
        "news.run()\n",
        encoding="utf-8",
    )
    script: tuple[Answer, ...] = ([Call("fetch", {"url": "https://example.org"})], "Nothing.")
    command = ("anthropic:claude-haiku-4-5", sys.executable, str(server))
    printed, service = _run("mcp_tools", tmp_path, *script, arguments=command, stdin="y\n")
    assert printed.endswith("[y/n] Nothing.\n")
    [result] = service.asked[1]["messages"][-1]["content"]
    assert "nothing at https://example.org" in str(result["content"])


PEERS = {
    "chat": 18, "agent_sse": 40, "typed_output": 37, "image": 16, "twenty_at_once": 11, "disconnect": 22,
    "fallback": 13, "swap_in_loop": 26, "branch": 29, "budget": 19, "mcp_tools": 11, "trace": 19,
}  # fmt: skip
"""Lines of the same programs in pydantic-ai 2.68, which a reviewer wrote: without blank lines, comments, docstrings."""


def lines_of(source: str) -> int:
    """Count the lines that hold code; imports are code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented) and ast.get_docstring(node)]
    left_out = {line for node in nodes for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = [one for one in tokenize.generate_tokens(io.StringIO(source).readline) if one.type not in skipped]
    return len({line for one in tokens for line in range(one.start[0], one.end[0] + 1)} - left_out)


def test_lines_are_counted_without_comments_and_docstrings() -> None:
    assert (
        lines_of(
            '"""A."""\n\nimport a  # b\n# c\n\n\ndef f():\n    """D.\n\n    E.\n    """\n    g(\n        1\n    )\n'
        )
        == 5
    )


@pytest.mark.parametrize("name", PEERS)
def test_no_program_is_longer_than_its_counterpart(name: str) -> None:
    assert lines_of((FOLDER / f"{name}.py").read_text(encoding="utf-8")) <= PEERS[name]


def test_programs_are_typed() -> None:
    """No option but --strict, as a reader would check them."""
    cache = f"--cache-dir={tree.ROOT / '.mypy_cache'}"
    found, failed, status = api.run(
        ["--strict", "--follow-imports=silent", "--config-file=", cache, *map(str, PROGRAMS)]
    )
    assert (found, failed, status) == (f"Success: no issues found in {len(PROGRAMS)} source files\n", "", 0)


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed: npm install --global pyright")
def test_programs_are_typed_for_pyright(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "examples", ignore=shutil.ignore_patterns("apps"))
    settings = {"include": ["examples"], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = ["pyright", "--project", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "0 errors" in done.stdout
