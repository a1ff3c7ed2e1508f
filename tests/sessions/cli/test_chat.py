"""`interlingua chat --session`: core's chat, kept in the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.types.messages import Message, MessageStatus
from interlingua_sessions import open_store
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support import interrupt


def stored(place: Path) -> list[Message]:
    with open_store(place) as store:
        return list(store.messages("moon"))


def test_a_chat_is_stored_and_gone_on_with(run: Run, server: LocalServer, place: Path) -> None:
    first = run("chat", "here:echo", "--session", "moon", "--system", "be brief", input="hi\n")
    second = run("chat", "--session", "moon", input="again\n/model\n")

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert (first.stdout, second.stdout) == ("Hello\n", "Hello\n")
    assert "here:echo" in second.stderr.splitlines()
    assert [one.role for one in stored(place)] == ["system", "user", "assistant", "user", "assistant"]
    assert len(server.requests[-1]["messages"]) == 4


def test_model_switches_the_session_for_good(run: Run, server: LocalServer, place: Path) -> None:
    talk = "hi\n/model compatible:other\n/model nowhere:x\n/what\n"
    result = run("chat", "e", "--session", "moon", input=talk)

    assert result.exit_code == 0, result.output
    assert "now compatible:other" in result.stderr
    assert "error: no provider 'nowhere'" in result.stderr
    assert "unknown command /what" in result.stderr
    with open_store(place) as store:
        record = store.session("moon")
    assert record.active_model == "compatible:other"
    assert record.routing_policy == {"manual_reason": "user swap via /model command"}


def test_failures_keep_what_came_and_the_chat_goes_on(run: Run, server: LocalServer, place: Path) -> None:
    talk = "hi\n/model here:refused\nhm\n/model e\nhi\n"
    result = run("chat", "here:broken", "--session", "moon", input=talk)

    assert result.exit_code == 0, result.output
    assert result.stderr.count("error:") == 2
    said = [(one.text, one.metadata.status) for one in stored(place)]
    assert said == [
        ("hi", MessageStatus.COMPLETE), ("Hel", MessageStatus.ERROR), ("hm", MessageStatus.COMPLETE),
        ("hi", MessageStatus.COMPLETE), ("Hello", MessageStatus.COMPLETE),
    ]  # fmt: skip


def test_a_file_and_a_store_are_one_too_many(run: Run, server: LocalServer) -> None:
    assert run("chat", "e", "--session", "moon", "--save", "x.jsonl", input="hi").exit_code == 2


def test_without_a_session_a_model_is_still_needed(run: Run, server: LocalServer) -> None:
    assert run("chat", input="hi").exit_code == 2
    assert run("chat", "e", input="hi\n").stdout == "Hello\n"


@pytest.mark.usefixtures("hears_ctrl_c", "server")
def test_ctrl_c_keeps_the_partial_answer_and_returns_to_the_prompt(place: Path) -> None:
    interrupt.interrupted_chat("--session", "moon")

    assert [one.text for one in stored(place)] == ["hi", "Hel", "again", "Hello"]
    assert stored(place)[1].metadata.status is MessageStatus.CANCELLED
