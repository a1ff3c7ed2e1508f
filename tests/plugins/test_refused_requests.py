"""What a service would refuse is mended before it is sent, with a ledger row, on every installed provider and API.

The providers are found by entry points, so a new one is asked too. The limits are those of each plugin's WIRE.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, WireRequest, build_request
from interlingua.types.blocks import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ToolUseBlock,
)
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message, Role
from interlingua.types.options import RequestOptions
from interlingua_cli.lint import lint_request
from tests.support.adapter import READ, Adapter

REGISTRY = Registry()
KEYS = [provider.key for provider in REGISTRY.providers()]
APIS = [
    (key, api) for key in KEYS for api in REGISTRY.provider(key).connection(ConnectionSettings(environ={})).endpoints
]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
pytestmark = pytest.mark.usefixtures("quiet")


def write(key: str, messages: list[Message], *, api: str | None = None, model: str = "", **options: Any) -> WireRequest:
    asked = RequestOptions(model=model or "a-model-nobody-lists", api=api, **options)
    return build_request(REGISTRY.provider(key), messages, [], asked)


def findings(key: str, request: WireRequest) -> list[str]:
    """Return the linter's findings but the one about images as such: these tests say that the model takes some."""
    found = [finding.rule for finding in lint_request(REGISTRY.provider(key), request)]
    return [rule for rule in found if rule != "deepseek-text-only"]


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a body."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


# -- a user's turn that nothing can be sent of -------------------------------------------------------------------------

FILM = AudioBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="audio/x-unheard-of")
FOREIGN = OpaqueBlock(provider="elsewhere", kind="thing", data={"a": 1})


def _takes_blank_text(key: str, api: str) -> bool:
    options = RequestOptions(model="a-model-nobody-lists", api=api)
    return REGISTRY.provider(key).capabilities(options.model, options).blank_text == "anywhere"


@pytest.mark.parametrize(("key", "api"), APIS)
@pytest.mark.parametrize(
    ("content", "stand_in"),
    [
        ([FILM], "[audio not sent: "),
        ([FOREIGN], "[opaque not sent: "),
        ([TextBlock(text=" \n")], "[empty message]"),
        ([TextBlock(text=" "), FILM], "[audio not sent: "),
        ([], "[empty message]"),
    ],
    ids=["media", "opaque", "blank", "both", "nothing"],
)
def test_a_users_turn_never_vanishes(key: str, api: str, content: list[ContentBlock], stand_in: str) -> None:
    turn = Message(role=Role.USER, content=content)
    request = write(key, [user("q"), assistant("a"), turn], api=api, capabilities={"supports_audio": False})
    body = json.loads(request.body)
    if content == [TextBlock(text=" \n")] and _takes_blank_text(key, api):
        assert [text for text in texts(body) if text.isspace()] == [" \n"]
        assert request.losses == ()
        return

    sent = [text for text in texts(body) if text.startswith(stand_in)]
    assert len(sent) == 1, "the turn says what could not be sent"
    assert [text for text in texts(body) if "Continue" in text] == []
    assert {loss.path.partition(".")[0] for loss in request.losses} == {"messages[2]"}
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize(("key", "api"), APIS)
def test_media_that_only_the_wire_knows_it_cannot_take_leave_a_stand_in(key: str, api: str) -> None:
    uploaded = ImageBlock(source=MediaSource(kind="file_id", data="file-1"))
    try:
        request = write(key, [user("q"), assistant("a"), user([uploaded])], api=api)
    except CapabilityError:
        return
    written = request.body.decode()

    assert "file-1" in written or "[image not sent: " in written
    assert "file-1" in written or [loss.path for loss in request.losses] == ["messages[2].content[0]"]


@pytest.mark.parametrize(("key", "api"), APIS)
def test_where_nothing_is_left_nothing_is_sent(key: str, api: str) -> None:
    with pytest.raises(CapabilityError, match="nothing of this conversation can be sent") as caught:
        write(key, [tool_result("tu_nobody", "x")], api=api)
    assert caught.value.path == "messages"


@pytest.mark.parametrize("key", ["anthropic", "google", "mistral", "zai"])
def test_a_system_prompt_alone_is_no_request_where_the_service_answers_the_user_only(key: str) -> None:
    with pytest.raises(CapabilityError, match=r"add (a user message|one)"):
        write(key, [system("Be brief.")])


# -- limits ------------------------------------------------------------------------------------------------------------


def _models_on(key: str, api: str) -> list[str]:
    """Return the listed models that this API offers: a host has each maker's on its own."""
    provider, found = REGISTRY.provider(key), []
    for model in provider.models():
        with suppress(CapabilityError):
            provider.capabilities(model.id, RequestOptions(model=model.id, api=api))
            found.append(model.id)
    return found


@pytest.mark.parametrize(("key", "api"), APIS)
def test_a_thinking_budget_of_nothing_switches_thinking_off(key: str, api: str) -> None:
    for model in _models_on(key, api)[:20] or ["m"]:
        nothing = write(key, [user("q")], model=model, api=api, thinking_budget=0)
        off = write(key, [user("q")], model=model, api=api, thinking=False)
        assert (nothing.body, nothing.losses) == (off.body, off.losses), model


LISTED = [
    (provider.key, model.id, model.max_output_tokens)
    for provider in REGISTRY.providers()
    for model in provider.models()
    if model.max_output_tokens
]


@pytest.mark.parametrize("key", sorted({key for key, _, _ in LISTED}))
def test_max_tokens_above_the_models_own_limit_is_lowered(key: str) -> None:
    for name, most in [(model, most) for provider, model, most in LISTED if provider == key]:
        api = REGISTRY.provider(key).capabilities(name, RequestOptions(model=name)).api
        request = write(key, [user("q")], model=name, api=api, max_tokens=most + 1)
        assert str(most).encode() in request.body
        assert str(most + 1).encode() not in request.body
        assert ("options.max_tokens", "rewritten") in [(loss.path, loss.verdict) for loss in request.losses]
        at_most = write(key, [user("q")], model=name, api=api, max_tokens=most)
        assert "options.max_tokens" not in [loss.path for loss in at_most.losses]


@pytest.mark.parametrize(("key", "api"), APIS)
def test_max_tokens_of_a_model_that_nobody_lists_is_sent_as_it_is(key: str, api: str) -> None:
    request = write(key, [user("q")], api=api, max_tokens=7_654_321)

    assert b"7654321" in request.body
    assert "options.max_tokens" not in [loss.path for loss in request.losses]


def test_max_tokens_is_held_to_what_the_caller_says_of_an_unlisted_model() -> None:
    request = write("anthropic", [user("q")], max_tokens=9000, capabilities={"max_output_tokens": 8000})

    assert json.loads(request.body)["max_tokens"] == 8000


SIGHTED = {"supports_images": True, "supports_tool_result_images": True}


@pytest.mark.parametrize(("key", "api"), APIS)
def test_an_image_without_a_media_type_gets_the_one_its_bytes_show(key: str, api: str) -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data=PNG))
    request = write(key, [user([TextBlock(text="What is this?"), image])], api=api, capabilities=SIGHTED)
    body = request.body.decode()

    assert PNG in body
    assert "image/png" in body or not any(word in body for word in ("data:", "media_type", "mimeType"))
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[0].content[1]", "rewritten")]
    assert findings(key, request) == []


@pytest.mark.parametrize(("key", "api"), APIS)
def test_an_image_whose_media_type_nobody_can_tell_is_not_sent(key: str, api: str) -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="AAAAAAAA"))
    request = write(key, [user([TextBlock(text="What is this?"), image])], api=api, capabilities=SIGHTED)

    assert b"AAAAAAAA" not in request.body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[0].content[1]", "dropped")]


@pytest.mark.parametrize("capabilities", [SIGHTED, {**SIGHTED, "supports_tool_result_images": False}])
@pytest.mark.parametrize(("key", "api"), APIS)
def test_nor_is_one_in_a_result(key: str, api: str, capabilities: dict[str, bool]) -> None:
    unknown = ImageBlock(source=MediaSource(kind="base64", data="AAAAAAAA"))
    known = ImageBlock(source=MediaSource(kind="base64", data=PNG))
    call = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})
    answer = Adapter("elsewhere", "chat", "m").answer(call)
    history = [user("q"), answer, tool_result(call, [unknown, known])]
    try:
        asked = RequestOptions(model="a-model-nobody-lists", api=api, capabilities=capabilities)
        request = build_request(REGISTRY.provider(key), history, [READ], asked)
    except CapabilityError:
        pytest.skip("no tools here")

    assert b"AAAAAAAA" not in request.body
    assert findings(key, request) == []
