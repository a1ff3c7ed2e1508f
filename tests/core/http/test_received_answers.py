"""A received answer is returned: nothing optional may raise between its last byte and the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import interlingua as il
from interlingua.plugins import hookimpl
from tests.support.fake_provider import Reply, registry, served, sse

ADD = il.ToolDefinition(
    name="add",
    description="adds",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    side_effects="none",
)

BODY = json.dumps({"say": "yes", "calls": [["c1", "add", {"a": "one"}]], "end": "tool_use"}).encode()
STREAM = sse({"t": "yes"}, {"use": [3, 2]}, {"end": "end_turn"})


class Scope:
    def __init__(self, error: type[BaseException], method: str) -> None:
        self.error, self.method = error, method

    def fail(self, method: str) -> None:
        if method == self.method:
            raise self.error("a plugin's fault")

    def __enter__(self) -> None:
        self.fail("enter")

    def __exit__(self, *_: object) -> None:
        self.fail("exit")

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        self.fail("end")


class Broken:
    """Raises in one of its hooks, or in one method of what `instrument` returns."""

    def __init__(self, error: type[BaseException], place: str) -> None:
        self.error, self.place = error, place

    @hookimpl
    def observe(self, event: Mapping[str, Any]) -> None:
        if self.place == "observe" and event["type"] == "answer.received":
            raise self.error("a plugin's fault")

    @hookimpl
    def instrument(self, kind: str, facts: Mapping[str, Any]) -> Scope:
        if self.place == "instrument":
            raise self.error("a plugin's fault")
        return Scope(self.error, self.place)


def answers(plugin: Broken) -> Iterator[str]:
    with served(Reply(body=[BODY]), Reply(body=STREAM)) as server:
        client = il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(plugins=[plugin]), retry=0)
        with client:
            yield client.send("hi", tools=[ADD]).text
            with client.stream("hi") as stream:
                yield "".join(event.text for event in stream if isinstance(event, il.TextDelta))
                assert stream.message.text


PLACES = ["observe", "instrument", "enter", "exit", "end"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("error", [ModuleNotFoundError, RecursionError, MemoryError])
def test_a_plugin_that_fails_loses_no_answer(place: str, error: type[BaseException]) -> None:
    assert list(answers(Broken(error, place))) == ["yes", "yes"]


def test_a_report_that_cannot_be_written_loses_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(value: object) -> object:
        raise RecursionError("too deep")

    monkeypatch.setattr("interlingua.codec._writing.write_value", fail)
    assert list(answers(Broken(ValueError, "nowhere"))) == ["yes", "yes"]


@pytest.mark.parametrize("place", PLACES)
def test_a_plugin_may_end_the_process(place: str) -> None:
    with pytest.raises(SystemExit):
        list(answers(Broken(SystemExit, place)))
