"""The programs of docs/examples run as they are, as a reader would start them, on cassettes of what they exchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua_cli.cassettes import RecordedExchange
from tests.support import tree
from tests.support.cassettes import load_exchanges
from tests.support.counts import FULL

from .player import Player, played

FOLDER = tree.ROOT / "docs" / "examples"
PROGRAMS = sorted(FOLDER.glob("*.py"))
QUESTIONS = "The largest moon?\nHow wide is it?\n\n"
LOCAL = "smollm2-135m-instruct"


@attrs.frozen
class Started:
    """How a program is started for its cassette.

    Attributes:
        name: without its ending.
        arguments: of the command line.
        stdin: what is typed.
        times: how often it is run, one after the other.
    """

    name: str
    arguments: tuple[str, ...] = ()
    stdin: str = ""
    times: int = 1


RECORDED = (
    Started("chat", (f"llamacpp:{LOCAL}",), QUESTIONS),
    Started("cancel", (f"anthropic:{LOCAL}",)),
    Started("swap", (f"anthropic:{LOCAL}", f"openai:{LOCAL}")),
    Started("resume", (f"llamacpp:{LOCAL}",), times=2),
    Started("twenty_at_once", (f"llamacpp:{LOCAL}",)),
)
"""Those whose cassettes were recorded from llama.cpp's server (`python -m tests.tools.record.examples`)."""

STARTED = {one.name: one for one in RECORDED}


def run_example(
    name: str, *arguments: str, environ: dict[str, str], cwd: Path, stdin: str = "", status: int = 0
) -> str:
    """Run one program to its end; return what it printed."""
    with start_example(name, *arguments, environ=environ, cwd=cwd) as program:
        printed, errors = program.communicate(stdin, timeout=300)
    assert program.returncode == status, printed + errors
    return printed if status == 0 else printed + errors


def start_example(name: str, *arguments: str, environ: dict[str, str], cwd: Path) -> subprocess.Popen[str]:
    """Start one program."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "SYSTEMROOT", "TMPDIR") if key in os.environ}
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py"), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=kept | environ, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _run(player: Player, tmp_path: Path, name: str, *, status: int = 0) -> str:
    how = STARTED.get(name, Started(name))
    return run_example(
        name, *how.arguments, environ=player.environ, cwd=tmp_path, stdin=how.stdin, status=status
    )  # fmt: skip


def _play(name: str, tmp_path: Path) -> tuple[str, list[RecordedExchange]]:
    """Run a program on its whole cassette; return what it printed, and the exchanges."""
    cassette = f"examples/{name}.yaml"
    with played(cassette) as player:
        printed = "".join(_run(player, tmp_path, name) for _ in range(STARTED.get(name, Started(name)).times))
    assert player.unknown == [], "the program asks otherwise than it did: record it again"
    assert player.left == []
    return printed, load_exchanges(cassette)


def text_of(exchange: RecordedExchange) -> str:
    """The text of an answer, read from its JSON by hand: Messages, Chat Completions, Responses."""
    if not exchange.streamed:
        body = json.loads(exchange.body)
        if "choices" in body:
            return str(body["choices"][0]["message"]["content"])
        items = body.get("content") or [part for item in body["output"] for part in item.get("content", ())]
        return "".join(part.get("text", "") for part in items)
    text = ""
    for line in exchange.body.decode().split("\n"):
        if line.startswith("data: {"):
            event: Any = json.loads(line[6:])
            delta = event["choices"][0]["delta"] if event.get("choices") else event.get("delta", {})
            text += delta.get("content") or delta.get("text") or ""
    return text


def test_each_program_is_short_and_tested() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    more = Path(__file__).with_name("test_more_examples.py").read_text(encoding="utf-8")
    assert len(PROGRAMS) == 17
    for path in PROGRAMS:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= (60 if path.stem == "agent_sse" else 40), path.name
        assert (f'_play("{path.stem}"' in tests and path.stem in BROKEN) or f'("{path.stem}",' in more, path.name


def test_chat_remembers(tmp_path: Path) -> None:
    printed, (first, second) = _play("chat", tmp_path)
    assert text_of(first) in printed
    assert text_of(second) in printed
    assert [message["role"] for message in second.request["messages"]] == ["system", "user", "assistant", "user"]
    assert second.request["messages"][2]["content"] == text_of(first)


def test_agent_runs_both_tools(tmp_path: Path) -> None:
    printed, (_, second) = _play("agent", tmp_path)
    assert printed.splitlines()[:2] == ["[opening_hours: completed]", "[ticket_price: completed]"]
    assert printed.endswith("10 to 18, closed on Mondays; 25 euros.\ndone after 2 answers\n")
    results = second.request["messages"][-1]["content"]
    assert [result["type"] for result in results] == ["tool_result", "tool_result"]
    assert "25.0" in str(results[1])


def test_typed_output_asks_again(tmp_path: Path) -> None:
    printed, (_, second) = _play("typed_output", tmp_path)
    problem, output = printed.splitlines()
    assert problem.startswith("asked again: ")
    assert "diameter_km" in problem
    assert output == "Moon(name='Ganymede', planet='Jupiter', diameter_km=5268)"
    assert "diameter_km" in str(second.request["messages"][-1])


def test_typed_output_gives_up(tmp_path: Path) -> None:
    with played("examples/typed_output.yaml", strict=False) as player:
        del player.left[1:]  # the answer that does not fit, again and again
        printed = _run(player, tmp_path, "typed_output", status=1)
    assert "no answer fits" in printed
    assert len(player.asked) == 3


def test_image_is_sent(tmp_path: Path) -> None:
    printed, [only] = _play("image", tmp_path)
    assert printed == "A dot.\n"
    assert [part["type"] for part in only.request["messages"][0]["content"]] == ["text", "image"]


def test_twenty_at_once_keeps_the_order(tmp_path: Path) -> None:
    printed, exchanges = _play("twenty_at_once", tmp_path)
    answers = {one.request["messages"][-1]["content"]: text_of(one) for one in exchanges}
    assert len(answers) == 20
    questions = [f"Name one fact about the number {number}, in one line." for number in range(1, 21)]
    assert printed == "".join(f"{question} -> {answers[question]}\n" for question in questions)


def test_cancel_keeps_what_came(tmp_path: Path) -> None:
    printed, (first, second) = _play("cancel", tmp_path)
    assert "cancelled: " in printed
    assert printed.endswith(text_of(second) + "\n")
    story, kept = text_of(first), second.request["messages"][1]
    assert b"message_stop" not in first.body
    assert [message["role"] for message in second.request["messages"]] == ["user", "assistant", "user"]
    assert "".join(part["text"] for part in kept["content"]) == story


def test_swap_asks_the_other_service(tmp_path: Path) -> None:
    printed, (first, second) = _play("swap", tmp_path)
    assert f"anthropic:{LOCAL}: {text_of(first)}" in printed
    assert f"openai:{LOCAL}: {text_of(second)}" in printed
    assert first.uri.endswith("/v1/messages")
    assert second.uri.endswith("/v1/responses")
    assert [item["role"] for item in second.request["input"]] == ["user", "assistant", "user"]


def test_resume_goes_on_in_another_process(tmp_path: Path) -> None:
    printed, (first, second) = _play("resume", tmp_path)
    assert text_of(first) in printed
    assert text_of(second) in printed
    assert printed.endswith("5 messages are kept in chats.db\n")
    assert [message["role"] for message in second.request["messages"]] == ["system", "user", "assistant", "user"]


def test_cost_is_added_up(tmp_path: Path) -> None:
    printed, _ = _play("cost", tmp_path)
    first, second, total = printed.splitlines()
    assert first.startswith("12 tokens in, 6 out, ")
    assert second.endswith(" USD")
    # Haiku 4.5: 1 USD for a million tokens read, 5 USD for a million written; two answers of 12 and 6
    assert total == "together 0.000084 USD"


def test_trace_prints_nested_spans(tmp_path: Path) -> None:
    printed, _ = _play("trace", tmp_path)
    lines = printed.splitlines()
    assert [line.split(" {")[0] for line in lines[:-1]] == [
        "chat claude-haiku-4-5",
        "execute_tool radius",
        "chat claude-haiku-4-5",
        "invoke_agent moons",
    ]
    assert lines[-1] == "2,634 km."


BROKEN = {
    "chat": (0, "(interrupted; the received part is kept)"),
    "agent": (1, "StreamInterruptedError"),
    "cancel": (1, "StreamInterruptedError"),
    "resume": (1, "StreamInterruptedError"),
    "typed_output": (0, "Moon(name="),
    "image": (0, "A dot."),
    "twenty_at_once": (0, "the number 20, in one line. ->"),
    "swap": (0, f"openai:{LOCAL}: "),
    "cost": (0, "together 0.000084 USD"),
    "trace": (0, "2,634 km."),
}
"""Exit status and what is printed where the first answer breaks off, as docs/explanation/beside-others.md has it."""


@pytest.mark.parametrize("name", sorted(BROKEN) if FULL else ["agent", "chat", "image"])
def test_the_first_answer_breaks_off(name: str, tmp_path: Path) -> None:
    """A stream that broke says so, for its text was shown; a whole answer is asked for again, and nothing is lost."""
    status, expected = BROKEN[name]
    with played(f"examples/{name}.yaml", cuts=1, strict=False) as player:
        printed = _run(player, tmp_path, name, status=status)
    assert expected in printed
    if name == "agent":
        assert "[opening_hours" not in printed  # no call of an answer that is not whole is run
    if name == "chat":
        first = load_exchanges("examples/chat.yaml")[0]
        kept = player.asked[1]["messages"][2]["content"]
        assert text_of(first).startswith(kept) and 0 < len(kept) < len(text_of(first))  # noqa: PT018
    if status == 0 and name != "chat":
        assert player.asked[0] in player.asked[1:]


def test_a_resumed_conversation_has_what_came_before_the_break(tmp_path: Path) -> None:
    with played("examples/resume.yaml", cuts=1, strict=False) as player:
        _run(player, tmp_path, "resume", status=1)
        assert "5 messages are kept" in _run(player, tmp_path, "resume")
    first = load_exchanges("examples/resume.yaml")[0]
    kept = player.asked[1]["messages"][2]
    assert kept["role"] == "assistant"
    assert text_of(first).startswith(kept["content"])


@pytest.mark.parametrize("name", ["twenty_at_once", "image"])
def test_every_answer_breaks_off(name: str, tmp_path: Path) -> None:
    status = 0 if name == "twenty_at_once" else 1
    with played(f"examples/{name}.yaml", cuts=1_000, strict=False) as player:
        printed = _run(player, tmp_path, name, status=status)
    assert "APIConnectionError" in printed if status else printed.count("-> failed: ") == 20
    assert len(player.asked) == (3 if status else 60)  # each three times


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_says_how_it_is_started(path: Path) -> None:
    assert f"python {path.name} [MODEL]" in path.read_text(encoding="utf-8").split('"""')[1]
