"""`wire` and `explain`: the request that would be sent, without sending it and without secrets, and its ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlingua.codec import dumps_message
from interlingua.types import (
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    Role,
    TextBlock,
    ThinkingBlock,
    Usage,
    system,
    user,
)
from tests.cli.conftest import Run
from tests.cli.local import LocalServer

TOOLS = [
    {
        "name": "look_up",
        "description": "Look",
        "input_schema": {"type": "object", "properties": {}},
        "side_effects": "read",
    },
    {"type": "function", "function": {"name": "note", "description": "Note", "parameters": {"type": "object"}}},
]


@pytest.fixture
def talk(home: Path) -> str:
    thought = Message(role=Role.ASSISTANT, content=(ThinkingBlock(text="hmm"), TextBlock(text="Hi")))
    lines = [dumps_message(message) for message in (system("be brief"), user("hello"), thought, user("more"))]
    Path("talk.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "talk.jsonl"


def test_wire_prints_the_request_and_the_ledger(run: Run, server: LocalServer, talk: str) -> None:
    Path("tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    options = ["-o", "max_tokens=5", "-o", 'headers={"x-api-key": "hush", "x-mark": "seen"}']
    result = run("wire", talk, "--to", "e", "--tools", "tools.json", "--stream", *options, "--json")

    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["method"], printed["url"]) == ("POST", f"{server.url}/chat/completions")
    assert printed["headers"]["content-type"] == "application/json"
    assert printed["headers"]["x-mark"] == "seen"
    assert printed["headers"]["x-api-key"] == "***"
    assert "authorization" not in printed["headers"]
    assert "key-for-tests" not in result.output
    assert json.loads(printed["body_text"]) == printed["body"]
    assert printed["body"]["model"] == "echo"
    assert printed["body"]["stream"] is True
    assert [tool["function"]["name"] for tool in printed["body"]["tools"]] == ["look_up", "note"]
    assert [(loss["block_type"], loss["verdict"]) for loss in printed["losses"]] == [("thinking", "dropped")]
    assert printed["losses"][0]["path"] == "messages[2].content[0]"
    assert server.requests == []


def test_wire_for_a_person(run: Run, server: LocalServer, talk: str) -> None:
    result = run("wire", talk, "--to", "here:echo")

    head, _, body = result.stdout.partition("\n\n")
    assert head.startswith(f"POST {server.url}/chat/completions\ncontent-type: application/json")
    assert json.loads(body)["messages"][0]["content"] == "be brief"
    assert "messages[2].content[0]" in result.stderr
    assert "lossy projection" not in result.stderr  # the table says it


def test_explain_tells_losses_tokens_and_cost(run: Run, server: LocalServer, talk: str) -> None:
    facts = json.loads(run("explain", talk, "--to", "here:echo", "--json").stdout)

    assert facts["model"] == "here:echo"
    assert [loss["verdict"] for loss in facts["losses"]] == ["dropped"]
    assert 0 < facts["input_tokens"] < 100
    assert facts["fits"] is True
    assert float(facts["input_cost_usd"]) == pytest.approx(facts["input_tokens"] * 2 / 1e6)
    text = run("explain", talk, "--to", "here:echo").stdout
    assert "dropped" in text
    assert "of 1,000" in text
    unknown = json.loads(run("explain", talk, "--to", "here:unheard-of", "--json").stdout)
    assert unknown["assumed"] is True
    assert unknown["input_cost_usd"] is None
    assert unknown["cost_note"]


def test_an_image_that_would_be_fetched_is_refused_by_wire_and_explained(run: Run, server: LocalServer) -> None:
    block = ImageBlock(source=MediaSource(kind="url", data="http://127.0.0.1:9/cat.png"))
    Path("cat.jsonl").write_text(dumps_message(user([block, TextBlock(text="?")])), encoding="utf-8")
    option = ["--to", "here:echo", "-o", 'capabilities={"supports_images": true, "supports_image_urls": false}']
    result = run("wire", "cat.jsonl", *option)

    assert result.exit_code == 1
    assert "cat.png" in result.stderr
    assert run("explain", "cat.jsonl", "--to", "here:echo").exit_code == 0


@pytest.mark.parametrize(("text", "place"), [('{"role": "user"}', "content"), ("{", "line 1"), ("", "has no message")])
def test_a_conversation_that_cannot_be_read_names_the_place(
    run: Run, server: LocalServer, text: str, place: str
) -> None:
    Path("bad.jsonl").write_text(text, encoding="utf-8")
    result = run("wire", "bad.jsonl", "--to", "here:echo")

    assert result.exit_code == 1
    assert "bad.jsonl" in result.stderr
    assert place in result.stderr


def test_a_tool_that_cannot_be_read_names_its_place(run: Run, server: LocalServer, talk: str) -> None:
    Path("tools.json").write_text(
        json.dumps([TOOLS[0], {"name": "Bad Name", "side_effects": "none"}]), encoding="utf-8"
    )
    result = run("wire", talk, "--to", "here:echo", "--tools", "tools.json")

    assert result.exit_code == 1
    assert "tools.json" in result.stderr
    assert "[1]" in result.stderr


def _answered(path: str, provider: str = "there", model: str = "old", **usage: int) -> str:
    answer = Message(
        role=Role.ASSISTANT,
        content="Hi",
        metadata=MessageMetadata(model=f"{provider}:{model}", provider=provider, api="chat", usage=Usage(**usage)),
    )
    messages = [user("hello " * 2000), answer, user("more")]
    Path(path).write_text("".join(dumps_message(message) + "\n" for message in messages), encoding="utf-8")
    return path


def test_explain_tells_what_the_lost_cache_costs(run: Run, server: LocalServer) -> None:
    talk = _answered("cached.jsonl", input_tokens=1500, cached_input_tokens=1000, cache_creation_input_tokens=200)
    facts = json.loads(run("explain", talk, "--to", "here:echo", "--json").stdout)
    lost = facts["lost_cache"]

    assert (lost["from"], lost["tokens"], lost["source"]) == ("there:old", 1200, "usage")
    # 1,200 tokens at 2 instead of 0.2 USD per million
    assert float(lost["cost_usd"]) == pytest.approx(0.00216)
    text = run("explain", talk, "--to", "here:echo").stdout
    assert "of it $0.0021600" in text
    assert "1,200 tokens that there:old had cached" in text


def test_a_cache_that_nobody_reported_is_estimated_and_an_unknown_price_says_why(run: Run, server: LocalServer) -> None:
    talk = _answered("quiet.jsonl", input_tokens=1500, output_tokens=1)
    lost = json.loads(run("explain", talk, "--to", "here:echo", "--json").stdout)["lost_cache"]
    unknown = json.loads(run("explain", talk, "--to", "here:unheard-of", "--json").stdout)["lost_cache"]

    assert (lost["tokens"], lost["source"]) == (1500, "estimate")
    assert unknown["cost_usd"] is None
    assert unknown["cost_note"] == "model not in the catalogue"
    assert "unknown: model not in the catalogue" in run("explain", talk, "--to", "here:unheard-of").stdout


def test_where_nothing_is_swapped_no_cache_is_lost(run: Run, server: LocalServer, talk: str) -> None:
    nobody = json.loads(run("explain", talk, "--to", "here:echo", "--json").stdout)["lost_cache"]
    _answered("same.jsonl", "here", "echo", input_tokens=1500)
    same = json.loads(run("explain", "same.jsonl", "--to", "here:echo", "--json").stdout)["lost_cache"]

    assert (nobody["cost_usd"], nobody["cost_note"]) == (None, "no model has answered yet, so nothing is cached")
    assert (same["tokens"], same["cost_note"]) == (0, "the same model: its cache stays valid")


def test_what_cannot_be_read_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    missing = run("explain", "nothing.jsonl", "--to", "any:model")
    assert (missing.exit_code, missing.stderr) == (1, "error: nothing.jsonl: No such file or directory\n")

    (tmp_path / "broken.jsonl").write_text('{"role": "user"\n', encoding="utf-8")
    broken = run("explain", "broken.jsonl", "--to", "any:model")
    assert broken.exit_code == 1
    assert broken.stderr.startswith("error: broken.jsonl: line 1: not JSON")
    assert "interlingua doctor" in broken.stderr
