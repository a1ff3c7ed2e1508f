"""The coverage page shows the table, the table comes from the SDKs that it names, and the probes notice losses."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua_anthropic.response
from interlingua.plugins import WireRequest
from tests.tools.coverage import readings, requests, sdks
from tests.tools.coverage.page import PAGE, page
from tests.tools.coverage.sdk_types import Maker, leaves
from tests.tools.coverage.table_file import new_words, read_table, unplaced
from tests.tools.coverage.wire import Part, Wire

ANSWER: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Hello."}], "usage": {"input_tokens": 5, "output_tokens": 7},
}  # fmt: skip
STREAM = (
    {"type": "message_start", "message": {**ANSWER, "content": [], "stop_reason": None}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
)
FIELDS = Part("", (), {"container": str})


def wire(**more: Any) -> Wire:
    """Return a small API of one provider, with the words that a test asks about."""
    known: dict[str, Any] = {"parameters": {}, "answer": ANSWER, "parts": (FIELDS,), "stream": STREAM, "event_at": -1}
    return Wire(name="a", sdk="a", key="anthropic", api="messages", models=("claude-opus-5",), **{**known, **more})


def test_the_page_is_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_table()), "run python -m tests.tools.coverage"


def test_every_word_of_eleven_sdks_has_a_place() -> None:
    table = read_table()

    assert set(table["sdks"]) == set(sdks.NAMES)
    assert len(sdks.NAMES) == 11
    assert unplaced(table) == []
    assert sum(len(rows) for api in table["apis"].values() for rows in api["groups"].values()) > 1500


def test_the_table_is_that_of_the_sdks_it_names() -> None:
    if absent := sdks.missing(sdks.FOLDER, read_table()["sdks"]):
        pytest.skip(f"not in .cache/sdks, where python -m tests.tools.coverage install puts it: {', '.join(absent)}")

    assert sdks.table(sdks.FOLDER) == read_table(), "run python -m tests.tools.coverage"


def test_a_field_that_an_adapter_drops_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    read = lambda body: readings.read_whole(wire(), body)  # noqa: E731
    assert dict(readings.members_of(wire(), FIELDS, ANSWER, read, {}))["container"] == ("kept", "provider_raw")

    names = (*interlingua_anthropic.response._READ, "container")
    monkeypatch.setattr(interlingua_anthropic.response, "_READ", names)

    found = dict(readings.members_of(wire(), FIELDS, ANSWER, read, {}))["container"]
    assert found == ("unplaced", "the message is the same without it")


def test_a_parameter_that_is_not_in_the_body_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = wire(parameters={"speed": str, "max_tokens": int})
    assert {name: place.state for name, place in requests.parameters(asked)} == {
        "speed": "passes",
        "max_tokens": "typed",
    }
    build = requests.build

    def without(*given: Any, **more: Any) -> WireRequest:
        made = build(*given, **more)
        body = {name: value for name, value in json.loads(made.body).items() if name != "speed"}
        return WireRequest(path=made.path, body=json.dumps(body).encode(), api=made.api)

    monkeypatch.setattr(requests, "build", without)
    assert {name: place.state for name, place in requests.parameters(asked)}["speed"] == "unplaced"


def test_a_block_without_one_of_its_values_has_no_place() -> None:
    with_block = readings.read_whole(
        wire(), {**ANSWER, "content": [*ANSWER["content"], {"type": "new", "a": "zq70001"}]}
    )
    plain = readings.read_whole(wire(), ANSWER)

    assert readings.judge(plain, with_block, {"a": "zq70001"}) == ("kept", "OpaqueBlock")
    assert readings.judge(plain, with_block, {"a": "zq70001", "b": "zq70002"}) == ("unplaced", "not in the message: b")


def test_an_event_with_content_that_nobody_reads_has_no_place() -> None:
    read_by_none = {"text_of_tomorrow": dict[str, str]}
    asked = wire(events={kind: _event_type() for kind in read_by_none})

    assert [place.state for _, place in readings.events(asked)] == ["unplaced"]


def _event_type() -> Any:
    from typing_extensions import TypedDict

    return TypedDict("_event_type", {"type": str, "piece": str})  # type: ignore[operator]


def test_each_text_and_number_that_is_made_occurs_once() -> None:
    made = [Maker().make(dict[str, list[int]]), Maker().make(list[str])]
    assert all(len(set(leaves(value).values())) == len(leaves(value)) > 0 for value in made)


def test_a_word_that_only_newer_sdks_have_is_named() -> None:
    old, new = read_table(), read_table()
    new["apis"]["Anthropic Messages"]["groups"]["parameters"]["zeal"] = ["unplaced", "not in the body"]

    assert new_words(old, new) == ["Anthropic Messages: parameters: zeal: unplaced"]
    assert unplaced(new) == ["Anthropic Messages: parameters: zeal: not in the body"]
