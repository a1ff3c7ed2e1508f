"""Models whose upstream loses the name of a forced function (recorded 400s: "Required function  is not present").

Which they are is from recorded traffic; what other models take is too.
"""

from __future__ import annotations

import json

import attrs
import pytest

from interlingua.types.factories import user
from interlingua.types.options import ToolChoice
from interlingua_cli.lint import lint_request
from interlingua_contract.scenes import READ
from tests.plugins.openrouter.asking import OPENROUTER, asked, body
from tests.support.corpus import Corpus

NAMELESS = ("x-ai/grok-4", "x-ai/grok-4-fast", "x-ai/grok-code-fast-1", "x-ai/grok-4-fast:free")
NAMED = ToolChoice("read_file")
OTHER = attrs.evolve(READ, name="other")


@pytest.mark.parametrize("model", NAMELESS)
def test_the_only_tool_is_forced_without_its_name_and_the_ledger_tells(model: str) -> None:
    request = asked([user("x")], [READ], model=model, tool_choice=NAMED)

    assert json.loads(request.body)["tool_choice"] == "required"
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]
    assert lint_request(OPENROUTER, request) == ()


@pytest.mark.parametrize("model", NAMELESS)
def test_one_of_several_is_sent_alone(model: str) -> None:
    request = asked([user("x")], [READ, OTHER], model=model, tool_choice=NAMED)
    sent = json.loads(request.body)

    assert [tool["function"]["name"] for tool in sent["tools"]] == ["read_file"]
    assert sent["tool_choice"] == "required"
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_the_other_choices_are_taken(choice: str) -> None:
    assert body([user("x")], [READ], model=NAMELESS[0], tool_choice=choice)["tool_choice"] == choice


@pytest.mark.parametrize("model", ["x-ai/grok-3", "x-ai/grok-3-mini", "openai/gpt-5"])
def test_other_models_are_told_the_name(model: str) -> None:
    request = asked([user("x")], [READ, OTHER], model=model, tool_choice=NAMED)

    assert json.loads(request.body)["tool_choice"] == {"type": "function", "function": {"name": "read_file"}}
    assert request.losses == ()


def test_these_are_the_models_that_were_seen_to_refuse_it(corpus: Corpus) -> None:
    refused, taken = set(), set()
    for entry in corpus.entries("openrouter-chat"):
        asked_for = entry["request"]
        if isinstance(asked_for, dict) and isinstance(asked_for.get("tool_choice"), dict):
            if entry["status"] == 200:
                taken.add(asked_for["model"])
            elif "Required function  is not present" in entry["response_text"]:
                refused.add(asked_for["model"])

    assert refused == set(NAMELESS[:3])
    assert not refused & taken
