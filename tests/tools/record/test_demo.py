"""The demo replays its recorded session: both wires, the tool, the ledger at the swap, and the way back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlingua.testing import MemoryReply
from interlingua.transport import HttpRequest
from interlingua_cli.demo.replay import RecordedAnswers
from interlingua_cli.root import cli
from tests.support.cassettes import FOLDER, load_exchanges

SESSION = FOLDER / "demo" / "session.yaml"
CAST = FOLDER / "demo" / "session.toml"
MODELS = ["anthropic:smollm2-135m-instruct", "openai:smollm2-135m-instruct", "anthropic:smollm2-135m-instruct"]

Demo = Callable[..., Result]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    """Run the command in process, in a folder of its own that holds a copy of the recorded session."""
    folder = tmp_path / "cassettes" / "demo"
    folder.mkdir(parents=True)
    for path in (SESSION, CAST):
        shutil.copy(path, folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("INTERLINGUA_CONFIG", "INTERLINGUA_PLUGINS", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return lambda *arguments: CliRunner().invoke(cli, ["demo", *arguments], prog_name="interlingua")


def steps(result: Result, kind: str) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [step for step in json.loads(result.stdout)["steps"] if step["type"] == kind]


def test_three_turns_cross_both_providers_and_come_back(demo: Demo) -> None:
    result = demo("--recorded", "--json")

    assert [turn["model"] for turn in steps(result, "turn")] == MODELS
    answers = [step["message"] for step in steps(result, "message") if step["message"]["role"] == "assistant"]
    assert [answer["metadata"]["provider"] for answer in answers] == ["anthropic"] * 2 + ["openai"] * 2 + ["anthropic"]
    assert [answer["metadata"]["api"] for answer in answers][2] == "responses"
    assert "llama.cpp" in json.loads(result.stdout)["source"]


def test_the_tool_is_called_on_both_files_and_its_results_go_back(demo: Demo) -> None:
    messages = [step["message"] for step in steps(demo("--recorded", "--json"), "message")]
    calls = [block for message in messages for block in message["content"] if block["type"] == "tool_use"]
    results = [block for message in messages for block in message["content"] if block["type"] == "tool_result"]

    assert [(call["name"], call["input"]) for call in calls] == [
        ("read_file", {"path": "README.md"}),
        ("read_file", {"path": "LICENSE"}),
    ]
    assert [result["tool_use_id"] for result in results] == [call["id"] for call in calls]


def test_text_and_usage_are_those_of_the_recorded_bytes(demo: Demo) -> None:
    messages = [step["message"] for step in steps(demo("--recorded", "--json"), "message")]
    answers = [message for message in messages if message["role"] == "assistant"]
    exchanges = load_exchanges(SESSION)

    assert len(answers) == len(exchanges)
    for answer, exchange in zip(answers, exchanges, strict=True):
        body = json.loads(exchange.body)
        items = [body] if "content" in body else body["output"]
        text = "".join(part.get("text", "") for item in items for part in item.get("content", ()))
        assert "".join(block["text"] for block in answer["content"] if block["type"] == "text") == text
        assert answer["metadata"]["usage"]["input_tokens"] == body["usage"]["input_tokens"]
        assert answer["metadata"]["usage"]["output_tokens"] == body["usage"]["output_tokens"]


def test_the_swap_shows_what_is_lost(demo: Demo) -> None:
    first, back = steps(demo("--recorded", "--json"), "ledger")

    (row,) = first["losses"]  # the cache marker: a hint the other wire does not have
    assert (row["path"], row["block_type"], row["verdict"]) == ("messages[0].content[0]", "text", "rewritten")
    assert "cache" in row["reason"]
    assert back["losses"] == []


def test_coming_back_each_service_is_given_its_own_call_ids(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    plain = RecordedAnswers.__call__

    def watched(self: RecordedAnswers, request: HttpRequest) -> MemoryReply:
        sent.append(request.body)
        return plain(self, request)

    monkeypatch.setattr(RecordedAnswers, "__call__", watched)
    assert demo("--recorded", "--json").exit_code == 0

    exchanges = load_exchanges(SESSION)
    issued = json.loads(exchanges[0].body)["content"][0]["id"].encode()
    other = json.loads(exchanges[2].body)["output"][0]["call_id"].encode()
    assert sent[4].count(b'"' + issued + b'"') == 2  # the call and its result
    assert sent[3].count(b'"' + other + b'"') == 2
    assert issued not in sent[3]  # a foreign id is projected (format.md, Identity)
    assert other not in sent[4]


def test_a_request_that_was_not_recorded_is_a_clear_error(demo: Demo) -> None:
    session = Path("cassettes", "demo", "session.yaml")
    text = session.read_text(encoding="utf-8")
    assert "may I sell Lantern?" in text
    session.write_text(text.replace("may I sell Lantern?", "may I lend Lantern?"), encoding="utf-8")
    result = demo("--recorded", "--json")

    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: exchange 5 of session.yaml was recorded for another request")


def test_a_person_sees_turns_tools_tokens_and_the_ledger(demo: Demo) -> None:
    result = demo("--recorded")

    assert result.exit_code == 0, result.output
    for shown in (*(f"turn {number}" for number in (1, 2, 3)), *MODELS, "read_file", "1 row in the loss ledger", "$"):
        assert shown in result.stdout
