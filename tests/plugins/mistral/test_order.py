"""Who may speak behind whom, and when a beginning is gone on with: what mistral-common's validator refuses is not sent.

The rules are those of its `protocol/instruct/validator.py` (1.11.7), told beside each test.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.plugins import WireRequest
from interlingua.types.blocks import TextBlock
from interlingua.types.factories import system, tool_result, user
from interlingua.types.messages import Message, Role
from interlingua_cli.lint import lint_request
from interlingua_contract.scenes import READ
from tests.plugins.mistral.checker import broken_rules
from tests.plugins.mistral.test_cases_history import CALL
from tests.plugins.mistral.wire import MISTRAL, MODEL, answer, asked, body
from tests.support.conversations import request_points

ONCE = answer(TextBlock(text="Once"))
PREFIX: dict[str, Any] = {"provider_options": {"prefix": True}}


def _ask(*messages: dict[str, Any]) -> WireRequest:
    raw = json.dumps({"model": MODEL, "messages": messages}).encode()
    return WireRequest(path="/chat/completions", body=raw, api="chat")


def test_a_beginning_is_gone_on_with_where_that_is_asked_for() -> None:
    """`_validate_last_message` takes an assistant message that stands last only with `prefix`."""
    request = asked([user("q"), ONCE], **PREFIX)
    sent = json.loads(request.body)

    assert sent["messages"][1] == {"role": "assistant", "content": "Once", "prefix": True}
    assert "prefix" not in sent
    assert broken_rules(request.body) == []
    assert request.losses == ()


def test_a_beginning_that_is_not_there_is_told() -> None:
    (loss,) = asked([user("q")], **PREFIX).losses

    assert (loss.path, loss.verdict) == ("options.provider_options.prefix", "dropped")


@pytest.mark.parametrize(
    "history",
    [
        [user("q"), ONCE],
        [user("q"), ONCE, answer(TextBlock(text="upon"))],
        [user("q"), ONCE, answer(TextBlock(text=" "))],  # an answer that says nothing is not sent back
        [user("q"), answer(CALL), tool_result(CALL, "r"), ONCE],
    ],
    ids=["answer", "another", "vanished", "results"],
)
@pytest.mark.parametrize("model", [MODEL, "mistral-small-latest"])
def test_what_the_model_said_last_is_sent_as_it_is_and_the_ledger_tells(history: list[Message], model: str) -> None:
    """`_validate_last_message`: nothing that nobody said is put behind it, and the row says what can be done."""
    request = asked(history, [READ], model=model)

    assert json.loads(request.body)["messages"][-1]["role"] == "assistant"
    assert [(loss.block_type, loss.verdict) for loss in request.losses][-1] == ("message", "rewritten")
    assert "add a user message, or continue the answer: provider_options" in request.losses[-1].reason
    assert [one.rule for one in lint_request(MISTRAL, request)] == ["mistral-last-message"]
    assert broken_rules(asked(history, [READ], model=model, **PREFIX).body) == []


@pytest.mark.parametrize(
    "history",
    [
        [user("q"), ONCE, answer(TextBlock(text="upon")), user("n")],
        [user("q"), ONCE, answer(TextBlock(text=" ")), user("n")],  # an answer that says nothing is not sent back
        [user("q"), ONCE, system("Be brief."), answer(TextBlock(text="upon"))],
        [user("q"), answer(CALL), tool_result(CALL, "r"), ONCE, answer(TextBlock(text="upon")), user("n")],
    ],
    ids=["another", "vanished", "system", "results"],
)
@pytest.mark.parametrize("model", [MODEL, "mistral-small-latest"])
def test_what_stood_last_stays_as_it_was(history: list[Message], model: str) -> None:
    """`_validate_assistant_message`: "Assistant message with prefix True must be last message"."""
    earlier: list[Any] = []
    for point in request_points(history):
        request = asked(point, [READ], model=model)
        now = json.loads(request.body)["messages"]
        assert now[: len(earlier)] == earlier
        if point[-1].role is not Role.ASSISTANT:
            assert broken_rules(request.body) == []
            assert lint_request(MISTRAL, request) == ()
        earlier = now


def test_a_later_system_message_is_the_users() -> None:
    """`_validate_message_order` has no system message behind an assistant or tool message (spring-ai#2380)."""
    request = asked([system("Be kind."), user("q"), ONCE, system("Be brief."), user("n")])
    sent = body([system("Be kind."), user("q"), ONCE, system("Be brief."), user("n")])["messages"]

    assert [one["role"] for one in sent] == ["system", "user", "assistant", "user", "user"]
    assert sent[3]["content"] == "<system>\nBe brief.\n</system>"
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[3].content[0]", "rewritten")]


def test_the_linter_knows_both_rules() -> None:
    said, prefix = {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "a", "prefix": True}
    asks, told = {"role": "user", "content": "q"}, {"role": "system", "content": "s"}

    assert [one.rule for one in lint_request(MISTRAL, _ask(asks, prefix, asks))] == ["mistral-prefix-is-last"]
    late = lint_request(MISTRAL, _ask(asks, said, told, asks))
    assert [one.rule for one in late] == ["mistral-no-system-after-answer"]
    assert lint_request(MISTRAL, _ask(asks, prefix)) == ()
