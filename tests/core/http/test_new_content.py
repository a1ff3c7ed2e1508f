"""Content that the user has just added is sent, or refused by name (format.md, Projection and losses)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import interlingua as il
from interlingua.types import AudioBlock, MediaSource, Message, Role, TextBlock, ToolUseBlock, VideoBlock, tool_result
from tests.support.fake_provider import STREAM, Reply, Server, registry, served

PDF = b"%PDF-1.7 ..."
PNG = bytes.fromhex("89504e470d0a1a0a")
NOTE = "[document not sent: this target takes no document]"
ASKED = il.user("What does it say?", documents=[PDF])
AUDIO = AudioBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="audio/mpeg")
VIDEO = VideoBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="video/mp4")


@contextmanager
def opened(**more: Any) -> Iterator[tuple[Server, il.Client]]:
    with (
        served() as server,
        il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(), **more) as c,
    ):
        yield server, c


def texts(server: Server) -> list[str]:
    found: list[str] = json.loads(server.got[-1].body)["texts"]
    return found


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if hasattr(record, "block_type")]


@pytest.mark.parametrize(
    ("model", "message", "kind"),
    [
        ("groq:llama-3.1-8b-instant", ASKED, "document (application/pdf)"),
        ("llamacpp:some", ASKED, "document (application/pdf)"),
        ("openai:gpt-3.5-turbo", il.user("Look.", images=[PNG]), "image (image/png)"),
        ("openai:gpt-3.5-turbo", il.user("Read.", documents=[PDF]), "document (application/pdf)"),
        ("azure:gpt-4", il.user("Read.", documents=[PDF]), "document (application/pdf)"),
        (
            "anthropic:claude-haiku-4-5",
            Message(role=Role.USER, content=[TextBlock(text="Hear."), AUDIO]),
            "audio (audio/mpeg)",
        ),
        ("openai:gpt-5-mini", Message(role=Role.USER, content=[TextBlock(text="See."), VIDEO]), "video (video/mp4)"),
    ],
)
def test_a_block_that_the_model_cannot_take_is_refused_by_name(model: str, message: Message, kind: str) -> None:
    history = [il.user("Hi"), il.assistant("Hello."), message]
    environ = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY", "GOOGLE_API_KEY"), "k")
    with il.Client(model, environ=environ) as client:
        with pytest.raises(il.CapabilityError, match="messages") as caught:
            client.send(history)
        with pytest.raises(il.CapabilityError):
            client.stream(history)

    error = caught.value
    assert (error.path, f"{error.provider}:{error.model}") == ("messages[2].content[1]", model)
    assert f"{model} cannot read the {kind} in block 1 of message 2: this target takes no" in error.message
    named = error.hint.partition("models that can: ")[2].partition("; ")[0].split(", ")
    assert 1 <= len(named) <= 3
    for other in named:  # each of them takes it
        with il.Client(other, api_key="k") as client:
            client.build_request(history)


def test_an_asynchronous_client_refuses_it_too() -> None:
    async def send() -> None:
        async with il.AsyncClient("groq:llama-3.1-8b-instant", api_key="k") as client:
            await client.send(ASKED)

    with pytest.raises(il.CapabilityError, match="cannot read the document"):
        asyncio.run(send())


def test_nothing_is_sent_when_a_block_is_refused() -> None:
    with opened() as (server, client), pytest.raises(il.CapabilityError):
        client.send(ASKED)

    assert server.got == []


@pytest.mark.parametrize("by_client", [True, False])
def test_allow_loss_sends_a_note_in_its_place(by_client: bool, caplog: pytest.LogCaptureFixture) -> None:
    given: Any = {} if by_client else {"allow_loss": True}
    with opened(allow_loss=by_client) as (server, client):
        answer = client.send(ASKED, **given)
        with pytest.raises(il.CapabilityError):
            client.send(ASKED, allow_loss=False)

    assert texts(server) == ["What does it say?" + NOTE]
    [row] = answer.metadata.losses
    assert (row.path, row.verdict, row.severity) == ("messages[0].content[1]", "dropped", "content")


def test_a_note_in_an_earlier_turn_tells_the_model_and_is_a_row() -> None:
    history = [ASKED, il.assistant("It is an invoice."), il.user("And the sum?")]
    with opened() as (server, client):
        answer = client.send(history)

    assert texts(server)[0] == "What does it say?" + NOTE
    assert [(row.path, row.severity) for row in answer.metadata.losses] == [("messages[0].content[1]", "content")]


def test_a_continued_answer_does_not_hide_the_users_turn() -> None:
    with opened() as (_, client), pytest.raises(il.CapabilityError):
        client.send([ASKED, il.assistant("It says")])


def test_a_result_holds_a_note() -> None:
    call = Message(role=Role.ASSISTANT, content=[ToolUseBlock(id="tu_1", name="read", input={})])
    history = [il.user("Read it."), call, tool_result("tu_1", ASKED.content)]
    with opened() as (_, client):
        answer = client.send(history)

    [row] = answer.metadata.losses
    assert (row.path, row.verdict, row.severity) == ("messages[2].content[0]", "rewritten", "content")


def test_lost_content_is_one_warning_for_a_conversation_and_forms_are_none(caplog: pytest.LogCaptureFixture) -> None:
    history = [il.user("Hi", images=[]), il.assistant(" "), ASKED, il.assistant("An invoice.")]
    with opened() as (_, client), caplog.at_level(logging.WARNING, "interlingua"):
        for text in ("And the sum?", "And the date?"):
            history.append(il.user(text))
            history.append(client.send(history))
    assert history[-1].metadata.losses
    assert [row.severity for row in history[-1].metadata.losses] == ["form", "content"]
    assert warnings(caplog) == [
        "not sent for fake: document at messages[2].content[1]: this target takes no document; replaced by a note"
    ]


def test_another_conversation_has_a_warning_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    with opened() as (_, client), caplog.at_level(logging.WARNING, "interlingua"):
        for _ in range(2):
            client.send([il.user("Read.", documents=[PDF]), il.assistant("Done."), il.user("And?")])

    assert len(warnings(caplog)) == 2


def test_both_kinds_of_answers_lead_to_their_rows() -> None:
    with opened() as (server, client):
        server.replies = [Reply(body=STREAM, headers={"content-type": "text/event-stream"})]
        with client.stream([ASKED], allow_loss=True) as stream:
            list(stream)

    assert stream.message.metadata.losses == stream.request.losses != ()


def test_rows_are_not_stored_and_no_part_of_equality() -> None:
    with opened() as (_, client):
        answer = client.send(ASKED, allow_loss=True)

    read = il.codec.decode_message(il.codec.encode_message(answer))
    assert read == answer
    assert (bool(answer.metadata.losses), read.metadata.losses) == (True, ())
