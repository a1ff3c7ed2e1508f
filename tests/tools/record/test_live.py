"""Live, against a llama.cpp server: the demo across both wires, and one question over each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlingua_cli.root import cli
from tests.tools.local_server import files
from tests.tools.local_server.server import MODEL, LocalServer

ABSENT = files.missing()
pytestmark = [pytest.mark.live, pytest.mark.skipif(ABSENT is not None, reason=ABSENT or "")]
PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LocalServer() as server:
        yield server.url


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)  # the demo's cast is found from there
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("INTERLINGUA_CONFIG", "INTERLINGUA_PLUGINS", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_the_demo_crosses_both_wires(url: str) -> None:
    result = CliRunner().invoke(cli, ["demo", "--live-url", url, "--json"])

    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    answers = [step["message"] for step in shown["steps"] if step["type"] == "message"]
    providers = [message["metadata"]["provider"] for message in answers if message["role"] == "assistant"]
    assert shown["source"] == f"live from {url}"
    assert (providers[0], providers[-1], set(providers)) == ("anthropic", "anthropic", {"anthropic", "openai"})
    called = [block["name"] for message in answers for block in message["content"] if block["type"] == "tool_use"]
    assert "read_file" in called


@pytest.mark.parametrize("way", [(), ("--no-stream",)], ids=["stream", "whole"])
@pytest.mark.parametrize(("provider", "path"), [("anthropic", ""), ("openai", "/v1"), ("llamacpp", "/v1")])
def test_a_question_is_answered(url: str, provider: str, path: str, way: tuple[str, ...]) -> None:
    options = ("-o", "max_tokens=16", "-o", "temperature=0")
    result = CliRunner().invoke(cli, ["send", f"{provider}:{MODEL}", "Say hello.", "--url", url + path, *options, *way])

    assert result.exit_code == 0, result.output
    assert result.stdout.strip()
    assert " in · 16 out" in result.stderr  # the bill: cut off at the tokens asked for; Responses takes no fewer
