"""The command `interlingua decide`, over loopback."""

from __future__ import annotations

import json
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlingua import user
from interlingua.codec import dumps_message
from interlingua_cli.root import cli
from tests.support.loopback import loopback, send_bytes

ANSWER = {
    "model": "gpt-6-luna",
    "answers": [
        {"type": "predicate", "name": "urgent", "probability": 0.97},
        {"type": "refusal", "name": "disabled"},
    ],
    "usage": {"input_tokens": 100, "output_tokens": 0},
}
QUESTIONS = {"urgent": {"kind": "yes_no", "text": "Is it urgent?"}, "disabled": {"kind": "yes_no", "text": "Is it?"}}


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, questions: Any, *words: str) -> tuple[Result, list[Any]]:
    """Run the command; return its result and what the service was asked."""
    asked: list[Any] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        asked.append((handler.path, json.loads(body)))
        send_bytes(handler, 200, "application/json", json.dumps(ANSWER).encode())

    (folder / "talk.jsonl").write_text(f"{dumps_message(user('Charged twice.'))}\n", encoding="utf-8")
    text = questions if isinstance(questions, str) else json.dumps(questions)
    (folder / "questions.json").write_text(text, encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    given = ("--to", "openai:gpt-6-luna", "--questions", str(folder / "questions.json"))
    with loopback(answer) as url:
        arguments = ["decide", str(folder / "talk.jsonl"), *given, "--url", f"{url}/v1", *words]
        return CliRunner().invoke(cli, arguments), asked


def test_decisions_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, asked = run(tmp_path, monkeypatch, QUESTIONS)

    assert shown.exit_code == 0, shown.output
    assert [(path, body["input"]) for path, body in asked] == [("/v1/decisions", "Charged twice.")]
    rows = {line.split()[0]: line.split()[1:] for line in shown.output.splitlines() if line.strip()}
    assert rows["urgent"][:2] == ["True", "0.97"]
    assert rows["disabled"][-1] == "refused"
    assert "$0.00001" in shown.output


def test_decisions_are_printed_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, _ = run(tmp_path, monkeypatch, QUESTIONS, "--json", "--option", "max_tokens=99")

    found = json.loads(shown.stdout)
    assert found["decisions"] == {
        "urgent": {"value": True, "probability": 0.97},
        "disabled": {"value": None, "reason": "refused", "detail": ""},
    }
    assert (found["model"], found["input_tokens"], Decimal(found["cost_usd"])) == (
        "openai:gpt-6-luna",
        100,
        Decimal("0.00001"),
    )
    assert [row["path"] for row in found["losses"]] == ["options.max_tokens"]


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        ("{", "not JSON"),
        ([], "must be an object"),
        ({"a": "Is it?"}, "'a': kind must be one of yes_no, choice, scale, locate"),
        ({"a": {"kind": "essay"}}, "'a': kind must be one of"),
        ({"a": {"kind": "scale", "text": "How?", "steps": []}}, "'a' takes text, levels, not text, steps"),
        ({"a": {"kind": "choice", "text": "Which?", "options": ["one"]}}, "two different options"),
    ],
)
def test_wrong_questions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, questions: Any, words: str) -> None:
    shown, asked = run(tmp_path, monkeypatch, questions)

    assert shown.exit_code != 0
    assert words in shown.output
    assert not asked
