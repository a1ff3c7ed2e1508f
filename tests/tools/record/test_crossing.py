"""The demo crosses four wires and comes back with image, reasoning and parallel calls; SDKs read the answers."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic.types
import google.genai.types
import mistralai.client.models
import openai.types.responses
import pytest
from click.testing import CliRunner, Result

from interlingua_cli.root import cli
from tests.support import tree
from tests.support.cassettes import FOLDER, load_exchanges

CASSETTE = FOLDER / "demo" / "crossing.yaml"
MODELS = [
    "anthropic:claude-sonnet-4-5", "openai:gpt-5-mini", "google:gemini-3-flash-preview", "mistral:mistral-medium-3-5",
    "anthropic:claude-sonnet-4-5",
]  # fmt: skip
TYPES: dict[str, Callable[[Any], Any]] = {
    "api.anthropic.com": anthropic.types.Message.model_validate,
    "api.openai.com": openai.types.responses.Response.model_validate,
    "generativelanguage.googleapis.com": google.genai.types.GenerateContentResponse.model_validate,
    "api.mistral.ai": mistralai.client.models.ChatCompletionResponse.model_validate,
}


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tree.ROOT)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("CONFIG", "PLUGINS"):
        monkeypatch.delenv(f"INTERLINGUA_{name}", raising=False)
    for name in ("ANTHROPIC", "OPENAI", "GEMINI", "GOOGLE", "MISTRAL"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    return lambda *arguments: CliRunner().invoke(cli, ["demo", *arguments], prog_name="interlingua")


def steps(result: Result, kind: str) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [step for step in json.loads(result.stdout)["steps"] if step["type"] == kind]


def bodies() -> list[tuple[str, Any, Any]]:
    """Return host, request and answer of each exchange."""
    exchanges = load_exchanges(CASSETTE)
    return [(one.uri.split("/")[2], one.request, json.loads(one.body)) for one in exchanges]


def test_the_services_own_types_read_the_answers() -> None:
    read = [TYPES[host](answer) for host, _, answer in bodies()]

    assert len(read) == 8
    assert [type(block).__name__ for block in read[0].content] == [
        "ThinkingBlock", "TextBlock", "ToolUseBlock", "ToolUseBlock",
    ]  # fmt: skip


def test_five_turns_cross_four_wires_and_come_back(demo: Callable[..., Result]) -> None:
    result = demo("--json")

    assert [turn["model"] for turn in steps(result, "turn")] == MODELS
    answers = [step["message"] for step in steps(result, "message") if step["message"]["role"] == "assistant"]
    apis = list(dict.fromkeys(answer["metadata"]["api"] for answer in answers))
    assert apis == ["messages", "responses", "generate", "chat"]
    kinds = [block["type"] for answer in answers for block in answer["content"]]
    assert kinds.count("thinking") == 2
    parallel = [sum(block["type"] == "tool_use" for block in answer["content"]) for answer in answers]
    assert parallel == [2, 0, 2, 0, 1, 0, 0, 0]
    assert "no service was asked" in json.loads(result.stdout)["source"]


def test_the_image_is_in_every_request_in_each_wires_form() -> None:
    image = base64.b64encode((FOLDER / "demo" / "moon.png").read_bytes()).decode()

    assert all(json.dumps(request).count(image) == 1 for _, request, _ in bodies())


def test_coming_back_a_service_gets_its_own_reasoning_and_ids_and_no_others() -> None:
    _, first, answer = bodies()[0]
    _, last, _ = bodies()[-1]
    thinking, _, *calls = answer["content"]
    text = json.dumps(last)

    assert thinking in last["messages"][1]["content"]
    assert all(call in last["messages"][1]["content"] for call in calls)
    assert [text.count(f'"{call["id"]}"') for call in calls] == [2, 2]  # the call and its result
    assert text.count('"thinking"') == json.dumps(first).count('"thinking"') + 2  # the block's type and text
    assert "gAAAAABdemoAuthored" not in text
    assert "ZGVtby1hdXRob3JlZC1jYWxs" not in text


def test_beside_each_swap_stand_its_ledger_its_cost_and_what_the_cache_would_have_spared(
    demo: Callable[..., Result],
) -> None:
    swaps = steps(demo("--json"), "ledger")

    assert [swap["model"] for swap in swaps] == MODELS[1:]
    assert [sum(loss["block_type"] == "thinking" for loss in swap["losses"]) for swap in swaps] == [1, 2, 2, 1]
    assert all(loss["reason"] and loss["verdict"] for swap in swaps for loss in swap["losses"])
    assert all(swap["input_tokens"] > 1000 and float(swap["input_cost_usd"]) > 0 for swap in swaps)
    # what the last answer of the model that is left reported as cached, at most what the request holds
    reported = [2014, 1408, 1624, 0]
    lost = [min(tokens, swap["input_tokens"]) for tokens, swap in zip(reported, swaps, strict=True)]
    assert [swap["lost_cache"]["tokens"] for swap in swaps] == lost
    assert [swap["kept"] for swap in swaps] == [0, 0, 0, 1]
    shown = demo().stdout
    for swap in swaps:
        assert f"swap to {swap['model']}: {len(swap['losses'])} rows in the loss ledger" in shown
        cost = f"{Decimal(swap['input_cost_usd']):.6f}".rstrip("0")
        assert f"about {swap['input_tokens']:,} tokens in, ${cost}" in shown
    assert "1 block of its reasoning returned with their signature" in shown


def test_the_cassette_is_what_the_record_writes(tmp_path: Path) -> None:
    """Written anew, it differs in no request: the cassette is not edited by hand."""
    code = (
        "import json, tests.tools.record.crossing as crossing\n"
        "crossing.write_row = lambda *a, **k: None\n"
        f"crossing.main({str(tmp_path / 'again.yaml')!r})\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tree.ROOT, check=True, capture_output=True, timeout=120)
    before, after = load_exchanges(CASSETTE), load_exchanges(tmp_path / "again.yaml")

    assert [(one.uri, one.body) for one in after] == [(one.uri, one.body) for one in before]
