"""The prefix law and the rules of WIRE.md on both wires, over generated conversations with two origins."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from interlingua.plugins import build_request
from interlingua.types.factories import assistant, system, user
from interlingua.types.messages import Message, Origin
from interlingua.types.options import RequestOptions
from tests.plugins.chat_completions import checker as chat_checker
from tests.plugins.chat_completions.checker import elements
from tests.plugins.openai import checker as responses_checker
from tests.plugins.openai.wire import PROVIDER
from tests.support.adapter import READ
from tests.support.conversations import request_points
from tests.support.request_laws import check_prefix, check_pure, is_nothing_to_send, over

MODELS = ("gpt-5.6-sol", "gpt-4.1")  # one that reasons and takes cache markers, one that does neither
LISTS = {"responses": "input", "chat": "messages"}
RULES: dict[str, Callable[[bytes], list[str]]] = {
    "responses": responses_checker.broken_rules,
    "chat": partial(chat_checker.broken_rules, blank=True),
}
OTHER = Origin("anthropic", "messages", "claude-opus-4-6")
pytestmark = pytest.mark.usefixtures("quiet")
apis = pytest.mark.parametrize("api", LISTS)


def asked(messages: list[Message], api: str, model: str) -> bytes:
    return build_request(PROVIDER, messages, [READ], RequestOptions(model=model, api=api)).body


def talks(api: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return over(Origin("openai", api, MODELS[0]), OTHER, examples=40)


@apis
@pytest.mark.parametrize("model", MODELS)
def test_each_turns_elements_begin_with_the_turn_befores(api: str, model: str) -> None:
    """What the model sees is tools, then `instructions`, then the items: all of it only grows."""

    def content(point: list[Message]) -> list[bytes]:
        raw = asked(point, api, model)
        instructions = json.loads(raw).get("instructions")
        return [*([] if instructions is None else [instructions.encode()]), *elements(raw, LISTS[api])]

    @talks(api)
    def law(history: list[Message]) -> None:
        check_prefix(history, content)

    law()


def test_a_system_message_does_not_come_to_lead_behind_a_users_message_of_blanks() -> None:
    """The service takes blank text of users and of assistants."""
    history = [user(" "), assistant(" "), system("Be kind."), user("q"), assistant("b"), user("n")]
    first, *others = [json.loads(asked(point, "responses", MODELS[0])) for point in request_points(history)]

    assert first["input"] == [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": " "}]}]
    assert not any("instructions" in one for one in (first, *others))
    assert all(one["input"][0] == first["input"][0] for one in others)
    assert all(one["tools"] == first["tools"] for one in others)


@apis
def test_every_request_keeps_the_wires_rules(api: str) -> None:
    @talks(api)
    def law(history: list[Message]) -> None:
        for model in MODELS:
            for point in request_points(history):
                if not is_nothing_to_send(lambda point: asked(point, api, model), point):  # noqa: B023  called here
                    assert RULES[api](asked(point, api, model)) == []

    law()


@apis
def test_a_request_is_a_pure_function_of_its_arguments(api: str) -> None:
    @talks(api)
    def law(history: list[Message]) -> None:
        check_pure(history, lambda messages: asked(messages, api, MODELS[0]))

    law()
