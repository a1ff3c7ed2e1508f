"""The wire rules refuse what the server refuses, and nothing that it accepts."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import parrot_server
import pytest
from interlingua.plugins import WireRequest
from interlingua_cli.cassettes import read_cassettes
from interlingua_cli.lint import load_rules

RULES = load_rules(files("interlingua_parrot").joinpath("lint.toml").read_text("utf-8"))
WORDS = [{"type": "words", "words": "Hello."}]
REFUSED = {
    "something-heard": {"heard": []},
    "speakers": {"heard": [{"from": "user", "says": WORDS}]},
    "tags": {"heard": [{"from": "bird", "says": [{"type": "trick", "tag": "a b", "trick": "fly", "with": {}}]}]},
    "with-is-an-object": {
        "heard": [{"from": "bird", "says": [{"type": "trick", "tag": "a", "trick": "fly", "with": "{}"}]}]
    },
    "heat": {"heard": [{"from": "keeper", "says": WORDS}], "heat": 3},
}


def lint_body(body: Any) -> list[str]:
    request = WireRequest(path="/v2/talk", body=json.dumps(body).encode(), api="talk")
    return [finding.rule for finding in RULES.lint(request)]


@pytest.mark.parametrize("rule", [rule.id for rule in RULES.rules])
def test_the_server_refuses_what_a_rule_refuses(rule: str, live_url: str) -> None:
    body = {"model": "grey-1", "stream": False, **REFUSED[rule]}
    answer = httpx.post(f"{live_url}/v2/talk", json=body, headers={"parrot-key": parrot_server.KEY})

    assert answer.status_code == 400
    assert lint_body(body) == [rule]


def test_rules_accept_what_the_server_accepts() -> None:
    exchanges = [each for each in read_cassettes(Path(__file__).parent / "cassettes") if each.good]

    assert len(exchanges) >= 8
    assert not [finding for each in exchanges for finding in lint_body(each.request)]
