"""The programs of docs/examples run as they are, as a reader would start them, against a service with a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import tree

from .service import Call, Cut, Service, scripted_service

FOLDER = tree.ROOT / "docs" / "examples"
PROGRAMS = sorted(FOLDER.glob("*.py"))
LARGEST = "Ganymede is the largest."


def run_example(
    name: str, *arguments: str, environ: dict[str, str], cwd: Path, stdin: str = "", status: int = 0
) -> str:
    """Run one program to its end; return what it printed."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "SYSTEMROOT", "TMPDIR") if key in os.environ}
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py"), *arguments]
    done = subprocess.run(
        command, input=stdin, env=kept | environ, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stdout + done.stderr


def _run(service: Service, tmp_path: Path, name: str, *arguments: str, stdin: str = "") -> str:
    return run_example(name, *arguments, environ=service.environ, cwd=tmp_path, stdin=stdin)


def test_each_program_is_short_and_tested() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    assert len(PROGRAMS) == 10
    for path in PROGRAMS:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 40, path.name
        assert f'"{path.stem}"' in tests, path.name


def test_chat_remembers(tmp_path: Path) -> None:
    with scripted_service(LARGEST, "5,268 km.") as service:
        printed = _run(service, tmp_path, "chat", stdin="The largest moon?\nHow wide is it?\n\n")
    assert LARGEST in printed
    assert "5,268 km." in printed
    assert [message["role"] for message in service.asked[1]["messages"]] == ["user", "assistant", "user"]


def test_chat_goes_on_after_a_stream_that_broke(tmp_path: Path) -> None:
    with scripted_service(Cut("Ganymede is the widest of them"), "5,268 km.") as service:
        printed = _run(service, tmp_path, "chat", stdin="The largest moon?\nHow wide is it?\n\n")
    assert "(broken off; what came is kept)" in printed
    assert "5,268 km." in printed
    assert "Ganymede is the" in str(service.asked[1]["messages"][1])


def test_agent_runs_both_tools(tmp_path: Path) -> None:
    calls = [
        Call("opening_hours", {"museum": "Museum of the Moon"}),
        Call("ticket_price", {"museum": "Museum of the Moon", "persons": 2}),
    ]
    with scripted_service(calls, "10 to 18; 25 euros.") as service:
        printed = _run(service, tmp_path, "agent")
    assert printed.splitlines()[:2] == ["[opening_hours: completed]", "[ticket_price: completed]"]
    assert printed.endswith("10 to 18; 25 euros.\ndone after 2 answers\n")
    results = service.asked[1]["messages"][-1]["content"]
    assert [result["type"] for result in results] == ["tool_result", "tool_result"]
    assert "25.0" in str(results[1])


def test_typed_output_asks_again(tmp_path: Path) -> None:
    wrong = '{"name": "Ganymede", "planet": "Jupiter", "diameter_km": "wide"}'
    with scripted_service(wrong, wrong.replace('"wide"', "5268")) as service:
        printed = _run(service, tmp_path, "typed_output")
    first, second = printed.splitlines()
    assert first.startswith("asked again: ")
    assert "diameter_km" in first
    assert second == "Moon(name='Ganymede', planet='Jupiter', diameter_km=5268)"
    assert "diameter_km" in str(service.asked[1]["messages"][-1])


def test_typed_output_gives_up(tmp_path: Path) -> None:
    with scripted_service("{}") as service:
        printed = run_example("typed_output", environ=service.environ, cwd=tmp_path, status=1)
    assert "no answer fits" in printed
    assert len(service.asked) == 3


def test_image_is_sent(tmp_path: Path) -> None:
    with scripted_service("A dot.") as service:
        assert _run(service, tmp_path, "image") == "A dot.\n"
    assert [part["type"] for part in service.asked[0]["messages"][0]["content"]] == ["text", "image"]


def test_twenty_at_once_keeps_the_order(tmp_path: Path) -> None:
    with scripted_service(LARGEST) as service:
        lines = _run(service, tmp_path, "twenty_at_once").splitlines()
    assert len(lines) == len(service.asked) == 20
    assert all(f"number {number}," in line and line.endswith(LARGEST) for number, line in enumerate(lines, 1))


def test_cancel_keeps_what_came(tmp_path: Path) -> None:
    story = "Once there was a lighthouse. " * 200
    with scripted_service(story, "It went out.") as service:
        printed = _run(service, tmp_path, "cancel")
    assert "cancelled: " in printed
    assert printed.endswith("It went out.\n")
    roles = [message["role"] for message in service.asked[1]["messages"]]
    assert roles == ["user", "assistant", "user"]
    kept = service.asked[1]["messages"][1]["content"][0]["text"]
    assert 40 < len(kept) < len(story)
    assert story.startswith(kept)


def test_swap_asks_the_other_service(tmp_path: Path) -> None:
    with scripted_service(LARGEST, "5,268 km.") as service:
        printed = _run(service, tmp_path, "swap")
    assert f"anthropic:claude-haiku-4-5: {LARGEST}" in printed
    assert "openai:gpt-5-mini: 5,268 km." in printed
    assert [item["role"] for item in service.asked[1]["input"]] == ["user", "assistant", "user"]


def test_resume_goes_on_in_another_process(tmp_path: Path) -> None:
    with scripted_service(LARGEST, "Titan.") as service:
        first, second = (_run(service, tmp_path, "resume") for _ in range(2))
    assert LARGEST in first
    assert "Titan." in second
    assert [message["role"] for message in service.asked[1]["messages"]] == ["user", "assistant", "user"]


def test_cost_is_added_up(tmp_path: Path) -> None:
    with scripted_service(LARGEST) as service:
        first, second, total = _run(service, tmp_path, "cost").splitlines()
    assert first.startswith("12 tokens in, 6 out, ")
    assert second.endswith(" USD")
    # Haiku 4.5: 1 USD for a million tokens read, 5 USD for a million written; two answers of 12 and 6
    assert total == "together 0.000084 USD"


def test_trace_prints_nested_spans(tmp_path: Path) -> None:
    with scripted_service([Call("radius", {"moon": "Ganymede"})], "2,634 km.") as service:
        lines = _run(service, tmp_path, "trace").splitlines()
    assert [line.split(" {")[0] for line in lines[:-1]] == [
        "chat claude-haiku-4-5",
        "execute_tool radius",
        "chat claude-haiku-4-5",
        "invoke_agent moons",
    ]
    assert lines[-1] == "2,634 km."


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_says_how_it_is_started(path: Path) -> None:
    assert f"python {path.name} [MODEL]" in path.read_text(encoding="utf-8").split('"""')[1]
