"""A recorded exchange becomes a message or a typed error, read by the provider that its host and endpoint name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlingua.codec import dumps_message
from interlingua.errors import UnknownProviderError
from interlingua.plugins import Connection, ConnectionSettings, hookimpl
from interlingua.types import MessageStatus
from interlingua_cli.replay.exchange import Matcher, Outcome, ReplayReport, make_context, outcome_to_json, replay
from interlingua_cli.replay.source import read_entry
from tests.cli.replay.acme import Acme, line, registry

SERVICES = {
    "acme": Acme(hosts=("api.acme.test",)),
    "acme_eu": Acme(hosts=("eu.api.acme.test", "acme.cloud.test")),
    "compatible": Acme(),
    "local": Acme(hosts=("localhost:9999",)),
    "other": Acme(hosts=("api.other.test",), endpoint="/(messages|v2:talk)"),
}


@pytest.mark.parametrize(
    ("url", "fields", "expected"),
    [
        ("https://api.acme.test/v1/say", {}, "acme"),
        ("https://API.acme.test:443/v1/say?alt=sse", {}, "acme"),
        ("https://eu.api.acme.test/v1/say", {}, "acme_eu"),  # two names fit: the longer one
        ("https://us1-acme.cloud.test/say", {}, "acme_eu"),  # regions stand before a hyphen
        ("https://notapi.acme.test/say", {}, "compatible"),
        ("https://api.other.test/v1/say", {}, "compatible"),  # a known host, an endpoint it does not declare
        ("https://nobody.test/v1/say", {}, "compatible"),
        ("https://nobody.test/v1/say", {"provider": "acme"}, "acme"),  # the recorder's word
        ("http://localhost:9999/v1/say", {}, "local"),
        ("http://localhost:1/v1/say", {}, "compatible"),
        ("https://nobody.test/models/v2:talk", {}, "other"),
        ("https://proxy.test/v1/say/", {}, "compatible"),
        ("https://proxy.test/opaque", {"endpoint": "messages"}, "other"),
        ("", {"endpoint": "say", "provider": "acme"}, "acme"),
    ],
)
def test_match(url: str, fields: dict[str, str], expected: str) -> None:
    match = Matcher(registry(**SERVICES)).match(read_entry(line("{}", url=url, **fields), ""))

    assert match.provider.key == expected
    assert match.api == "say"


def test_an_endpoint_nobody_has_is_an_error() -> None:
    entry = read_entry(line("{}", url="https://api.acme.test/v1/saying"), "")

    with pytest.raises(UnknownProviderError, match=r"api\.acme\.test/v1/saying"):
        Matcher(registry(**SERVICES)).match(entry)


STREAM = 'data: {"piece": "Hel"}\n\ndata: {"piece": "lo"}\n\ndata: {"call": "look_up"}\n\ndata: {"stop": true}\n\n'


def run(body: str, *, chunk: int | None = None, **fields: Any) -> Outcome:
    return replay(read_entry(line(body, **fields), ""), Matcher(registry(acme=Acme(("api.acme.test",)))), chunk=chunk)


def test_a_whole_body() -> None:
    outcome = run('{"text": "hello"}', response_headers={"Date": "Tue, 03 Mar 2026 04:05:06 GMT"})

    assert outcome.decoded
    message = outcome.message
    assert message is not None
    assert message.text == "hello"
    assert message.metadata.origin == ("acme", "say", "m1")
    assert message.created_at.isoformat() == "2026-03-03T04:05:06+00:00"


@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_a_stream_at_any_chunk_size(chunk: int | None) -> None:
    outcome = run(STREAM, kind="sse", chunk=chunk)

    assert outcome.message is not None
    assert outcome.message.text == "Hello"
    assert [call.name for call in outcome.message.tool_calls] == ["look_up"]


def test_ids_have_their_shape_and_come_from_the_entry() -> None:
    first, again, other = run(STREAM, kind="sse"), run(STREAM, kind="sse", chunk=3), run(STREAM, kind="sse", id="b/2")
    assert first.message is not None
    assert again.message is not None
    assert other.message is not None

    assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", first.message.id)
    assert re.fullmatch("tu_[0-7][0-9A-HJKMNP-TV-Z]{25}", first.message.tool_calls[0].id)
    assert dumps_message(first.message) == dumps_message(again.message)
    assert other.message.id != first.message.id
    assert other.message.tool_calls[0].id != first.message.tool_calls[0].id


def test_a_failed_answer_is_its_typed_error() -> None:
    assert outcome_to_json(run("{}", status=400)) == {
        "id": "acme-say/1",
        "error": {"type": "BadRequestError", "message": "no", "status": 400, "retryable": False, "retry_after": None},
    }
    assert type(run("", status=503).error).__name__ == "OverloadedError"  # by status alone


def test_an_error_in_a_200_counts_as_decoded() -> None:
    outcome = run('{"error": "slow down"}')

    assert outcome.decoded
    assert outcome_to_json(outcome)["error"] == {
        "type": "RateLimitError", "message": "slow down", "status": 200, "retryable": True, "retry_after": 2.0,
    }  # fmt: skip


def test_an_error_in_a_stream_keeps_what_came_before() -> None:
    outcome = run('data: {"piece": "Hel"}\n\ndata: {"error": "slow down"}\n\n', kind="sse")
    line_ = outcome_to_json(outcome)

    assert outcome.decoded
    assert line_["error"]["type"] == "RateLimitError"
    assert line_["partial"]["content"][0]["text"] == "Hel"
    assert line_["partial"]["metadata"]["status"] == MessageStatus.ERROR


@pytest.mark.parametrize(
    ("body", "fields", "error"),
    [
        ('data: {"piece": "Hel"}\n\n', {"kind": "sse"}, "StreamInterruptedError"),
        ("nonsense", {}, "MalformedResponseError"),
        ('{"crash": 1}', {}, "AssertionError"),
        ("{}", {"url": "https://nobody.test/x"}, "UnknownProviderError"),
    ],
)
def test_what_cannot_be_read_is_a_failure_and_never_an_exception(body: str, fields: dict[str, Any], error: str) -> None:
    outcome = run(body, **fields)

    assert not outcome.decoded
    assert type(outcome.error).__name__ == error


def test_the_report_counts() -> None:
    report = ReplayReport()
    for outcome in (
        run('{"text": "a"}'),
        run('{"opaque": {}}'),
        run("{}", status=400),
        run("nonsense"),
        run('{"text": ""}'),
    ):
        report.add(outcome)
    report.exclude("acme-say")

    assert report.failed == 1
    tally = report.as_json()["acme-say"]
    failures = tally.pop("failures")
    assert tally == {
        "entries": 6, "decoded": 4, "failed": 1, "opaque": 1, "excluded": 1, "not_read": 0,
        "errors": {"BadRequestError": 1},
    }  # fmt: skip
    assert failures[0]["id"] == "acme-say/1"
    assert failures[0]["error"].startswith("MalformedResponseError: ")


class Partly(Acme):
    """Reads one API of its service, with the model in the path, and knows another."""

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return Connection(
            base_url="https://acme.test",
            hosts=("talk.*.acme.test",),
            endpoints={"say": r"/model/(?P<model>[^/]+)/say"},
            unread_endpoints={"old": r"/model/[^/]+/invoke"},
        )


def test_an_endpoint_that_is_known_and_not_read_is_no_failure() -> None:
    report, matcher = ReplayReport(), Matcher(registry(acme=Partly(hosts=())))
    url = "https://talk.eu-1.acme.test/model/arn%3Ax%2Fy"
    for number, path in enumerate(("say", "invoke")):
        entry = read_entry(line('{"text": "hi"}', url=f"{url}/{path}", id=f"acme/{number}", model="other"), "")
        outcome = replay(entry, matcher)
        report.add(outcome)
        if path == "say":
            assert matcher.match(entry).model == "arn:x/y"
            assert make_context(entry, matcher.match(entry)).origin == ("acme", "say", "arn:x/y")
        else:
            assert outcome_to_json(outcome) == {"id": "acme/1", "not_read": True}

    tally = report.as_json()["acme"]
    assert (tally["entries"], tally["not_read"], report.failed) == (2, 1, tally["failed"])
