"""Thinking that models bind to its prefix, in histories whose prefix is not known (WIRE.md, Thinking).

Fields, values and the beta: `BetaThinkingBlockBindingParam` of the SDK 2.12.0, and a recorded exchange of 2026-10-05.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import WireRequest, build_request
from interlingua.types import Message, RequestOptions, TextBlock, ThinkingBlock, user
from tests.support.adapter import Adapter

REGISTRY = Registry()
BOUND = ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2"]
BETA = "thinking-binding-controls-2026-08-01"
ASKED = {"prefix_mismatch_behavior": "drop_block"}
THOUGHT = ThinkingBlock(text="Hm.", signature="c2ln")
pytestmark = pytest.mark.usefixtures("quiet")


def history(key: str, model: str) -> list[Message]:
    """Return a conversation with thinking and without a digest of what is before it, as an import has it."""
    return [user("q"), Adapter(key, "messages", model).answer(THOUGHT, TextBlock(text="a")), user("and?")]


def write(key: str, model: str, messages: list[Message], **options: Any) -> WireRequest:
    return build_request(REGISTRY.provider(key), messages, (), RequestOptions(model=model, **options))


@pytest.mark.parametrize("key", ["anthropic", "vertex", "azure"])
@pytest.mark.parametrize("model", BOUND)
def test_thinking_with_an_unknown_prefix_asks_the_service_to_drop_what_does_not_fit(key: str, model: str) -> None:
    request = write(key, model, history(key, model))
    body = json.loads(request.body)

    assert body["thinking"] == {"type": "adaptive", "block_binding": ASKED}
    assert request.headers["anthropic-beta"] == BETA
    assert "c2ln" in request.body.decode()
    assert request.losses == ()


@pytest.mark.parametrize("key", ["anthropic", "vertex", "azure"])
@pytest.mark.parametrize("model", BOUND)
def test_the_setting_is_the_same_in_each_request_of_a_conversation(key: str, model: str) -> None:
    whole = history(key, model)
    bodies = [json.loads(write(key, model, whole[:length]).body) for length in (1, 3)]

    assert bodies[0].pop("messages") == bodies[1].pop("messages")[:1]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("prefix", ["", "us.", "global."])
@pytest.mark.parametrize("model", BOUND)
def test_converse_has_both_among_the_fields_of_the_model(model: str, prefix: str) -> None:
    name = f"{prefix}anthropic.{model}"
    messages = [user("q"), Adapter("bedrock", "converse", name).answer(THOUGHT, TextBlock(text="a")), user("and?")]
    own = {"additionalModelRequestFields": {"anthropic_beta": ["own-1", BETA]}}
    bodies = [json.loads(write("bedrock", name, messages, provider_options=options).body) for options in ({}, own)]

    assert bodies[0]["additionalModelRequestFields"] == {
        "thinking": {"type": "adaptive", "block_binding": ASKED},
        "anthropic_beta": [BETA],
    }
    assert bodies[1]["additionalModelRequestFields"]["anthropic_beta"] == [BETA, "own-1"]
    assert "c2ln" in json.dumps(bodies[0])


@pytest.mark.parametrize("own", [{"type": "adaptive"}, {"type": "disabled"}])
def test_a_callers_own_thinking_has_precedence_in_converse(own: dict[str, Any]) -> None:
    name = "anthropic.claude-opus-5-5"
    request = write("bedrock", name, [user("q")], provider_options={"additionalModelRequestFields": {"thinking": own}})

    assert json.loads(request.body)["additionalModelRequestFields"] == {"thinking": own}


def test_other_settings_of_thinking_stay_beside_it() -> None:
    request = write("anthropic", "claude-opus-5-5", history("anthropic", "claude-opus-5-5"), thinking=True)
    assert json.loads(request.body)["thinking"] == {
        "type": "adaptive",
        "display": "summarized",
        "block_binding": ASKED,
    }


STRICT = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}


@pytest.mark.parametrize("own", [{"type": "adaptive"}, STRICT])
def test_a_callers_own_setting_has_precedence(own: dict[str, Any]) -> None:
    messages = history("anthropic", "claude-opus-5-5")
    request = write("anthropic", "claude-opus-5-5", messages, provider_options={"thinking": own})

    assert json.loads(request.body)["thinking"] == own
    assert "anthropic-beta" not in request.headers
    assert request.losses == ()


def test_a_type_that_takes_no_setting_goes_without_that_thinking() -> None:
    messages = history("anthropic", "claude-sonnet-5-5")
    request = write("anthropic", "claude-sonnet-5-5", messages, thinking=False)

    assert json.loads(request.body)["thinking"] == {"type": "between_tools"}
    assert b"c2ln" not in request.body
    assert ("messages[1].content[0]", "dropped") in [(loss.path, loss.verdict) for loss in request.losses]


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5"])
def test_models_that_do_not_bind_thinking_are_asked_nothing(model: str) -> None:
    request = write("anthropic", model, history("anthropic", model))

    assert "block_binding" not in request.body.decode()
    assert request.losses == ()
