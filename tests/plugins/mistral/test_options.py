"""What a caller can ask of this service, and how it is reached (WIRE.md, Request)."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, WireRequest, WireResponse
from interlingua.types.factories import user
from interlingua.types.options import RequestOptions, ToolChoice
from tests.plugins.mistral.wire import MISTRAL, asked, body
from tests.support.adapter import READ

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def test_streams_are_asked_for_without_stream_options() -> None:
    sent = body([user("q")], stream=True, max_tokens=5)

    assert sent["stream"] is True
    assert sent["max_tokens"] == 5
    assert "stream_options" not in sent


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("required", "any"),
        (ToolChoice("read_file"), {"type": "function", "function": {"name": "read_file"}}),
    ],
)
def test_tool_choice(choice: object, expected: object) -> None:
    assert body([user("q")], [READ], tool_choice=choice)["tool_choice"] == expected


def test_no_tool_is_said_by_naming_none() -> None:
    sent = body([user("q")], [READ], tool_choice="none")

    assert "tools" not in sent
    assert "tool_choice" not in sent


def test_parallel_calls_can_be_forbidden() -> None:
    assert body([user("q")], [READ], parallel_tool_calls=False)["parallel_tool_calls"] is False


def test_an_answers_schema() -> None:
    sent = body([user("q")], response_schema=SCHEMA, response_name="letter")["response_format"]

    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["name"] == "letter"
    assert sent["json_schema"]["schema"]["properties"] == SCHEMA["properties"]


@pytest.mark.parametrize(
    ("model", "options", "sent", "losses"),
    [
        ("mistral-small-latest", {"effort": "high"}, "high", []),
        ("mistral-small-2603", {"effort": "medium"}, "high", ["options.effort"]),  # 400: must be one of none, high
        ("mistral-medium-3-5", {"effort": "none"}, "none", []),
        ("mistral-small-latest", {"thinking": False}, "none", []),
        ("mistral-large-latest", {"effort": "high"}, None, ["options.effort"]),  # 422
        ("magistral-medium-latest", {"effort": "high"}, None, ["options.effort"]),
        ("codestral-latest", {"thinking": False}, None, ["options.thinking"]),
    ],
)
def test_an_effort_goes_to_models_that_take_it(
    model: str, options: dict[str, Any], sent: str | None, losses: list[str]
) -> None:
    assert body([user("q")], model=model, **options).get("reasoning_effort") == sent
    assert [loss.path for loss in asked([user("q")], model=model, **options).losses] == losses


def test_a_temperature_outside_is_moved_and_told() -> None:
    request = asked([user("q")], temperature=2)

    assert b'"temperature":1.5' in request.body
    assert [loss.path for loss in request.losses] == ["options.temperature"]


def test_what_has_no_place_is_in_the_ledger() -> None:
    assert [loss.path for loss in asked([user("q")], user_id="u").losses] == ["options.user_id"]


def test_other_fields_go_through_as_they_are() -> None:
    sent = body([user("q")], provider_options={"safe_prompt": True, "prompt_mode": "reasoning"})

    assert (sent["safe_prompt"], sent["prompt_mode"]) == (True, "reasoning")


def test_the_hosts() -> None:
    plain = MISTRAL.connection(ConnectionSettings())
    europe = MISTRAL.connection(ConnectionSettings(options={"region": "eu"}, environ={"MISTRAL_API_KEY": "none-real"}))

    assert (plain.base_url, plain.has_key) == ("https://api.mistral.ai/v1", False)
    assert europe.base_url == "https://api.eu.mistral.ai/v1"
    request = WireRequest(path="/chat/completions", body=b"", api="chat")
    assert europe.auth(request) == {"authorization": "Bearer none-real"}
    with pytest.raises(CapabilityError):
        MISTRAL.connection(ConnectionSettings(options={"region": "moon"}))


def test_the_live_list() -> None:
    request = MISTRAL.auxiliary_request("models", {})

    assert (request.method, request.path) == ("GET", "/models")
    for listed in (b'{"object":"list","data":[{"id":"a"}]}', b'[{"id":"a"}]'):
        assert MISTRAL.from_wire_auxiliary("models", WireResponse(body=listed)) == ["a"]


def test_capabilities_are_the_same_object_and_say_what_wire_md_says() -> None:
    known = MISTRAL.capabilities("mistral-large-latest")

    assert known is MISTRAL.capabilities("mistral-large-latest", RequestOptions(model="mistral-large-latest"))
    assert (known.tool_id_max_length, known.assumed, known.supports_audio) == (9, False, False)
    assert MISTRAL.capabilities("voxtral-small-latest").supports_audio
    assert MISTRAL.capabilities("brand-new").assumed


def test_a_request_id_is_the_correlation_id() -> None:
    from tests.plugins.mistral.wire import context

    response = WireResponse(status=500, headers={"mistral-correlation-id": "c-1"}, body=b'{"message":"no"}')

    assert MISTRAL.from_wire_error(response, context()).request_id == "c-1"
