"""The loop, every way it is run: what the model sees, what comes back and what is stored.

Expectations are docs/agents/README.md; the model is a script.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.codec import dumps_message, loads_message
from interlingua_agents.event_json import EventWriter
from interlingua_agents.results import StopCause
from interlingua_agents.tools import Confirmation, Toolbox, ToolError, ToolOutput, tool
from interlingua_sessions import open_store
from tests.agents.scripted import Say, Theatre, call, playing, playing_async
from tests.agents.ways import WAYS, play


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(side_effects="read")
def fail(why: str) -> str:
    """Fail in the words given."""
    raise ToolError(why)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_is_run_stored_and_answered(tmp_path: Path, way: str) -> None:
    theatre = Theatre(Say(parts=["I add.", call("add", {"a": 2, "b": 3})]), "It is 5.")
    played = play(way, theatre, tmp_path, [add], text="2 + 3?")

    assert played.answer.text == "It is 5."
    assert played.roles == ["user", "assistant", "tool", "assistant"]
    assert theatre.asked[1]["messages"][-1] == {"role": "tool", "results": [{"error": False, "text": "5"}]}
    assert theatre.asked[0]["tools"] == ["add"]
    assert {asked["stream"] for asked in theatre.asked} == {"stream" in way}
    if played.rows is not None:
        (row,) = played.rows
        # the store's words for the life cycle, with its start and end
        assert (row.status, row.provider_id, row.result_message_id) == ("succeeded", "c1", played.messages[2].id)
        assert row.started_at is not None
        assert row.completed_at is not None
        assert row.created_at <= row.started_at <= row.completed_at
        assert played.findings == []


def test_a_toolbox_alone_is_run_with_the_usual_settings(tmp_path: Path) -> None:
    theatre = Theatre(
        Say(parts=[call("add", {"a": 2, "b": 3})]), "5.", Say(parts=[call("add", {"a": 1, "b": 1})]), "2."
    )
    with playing(theatre, tmp_path / "s.db") as session:
        assert session.send("2 + 3?", tools=Toolbox([add])).text == "5."

    async def play() -> str:
        async with playing_async(theatre, tmp_path / "s.db") as again:
            return (await again.send("1 + 1?", tools=Toolbox([add]))).text

    assert asyncio.run(play()) == "2."


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_calls_error_goes_to_the_model_and_into_the_store(tmp_path: Path, way: str) -> None:
    @tool(side_effects="none")
    def divide(a: int, b: int) -> float:
        """Divide."""
        return a / b

    theatre = Theatre(Say(parts=[call("fail", {"why": "no such file"}), call("divide", {"a": 1, "b": 0})]), "Sorry.")
    played = play(way, theatre, tmp_path, [fail, divide])

    assert theatre.results == [("no such file", True), ("ZeroDivisionError: division by zero", True)]
    assert played.statuses() == ["failed", "failed"]
    if played.rows is not None:
        assert [(row.name, row.error) for row in played.rows] == [
            ("fail", "no such file"),
            ("divide", "ZeroDivisionError: division by zero"),
        ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("arguments", "said", "path"),
    [
        ({"a": "two", "b": 3}, "/a: 'two' is not of type 'integer'", "/a"),
        ({"a": 2}, "'b' is a required property", ""),
        ('{"a": 2, "b":', "arguments are not JSON", ""),
    ],
)
def test_case_14_invalid_input_is_answered_to_the_model_and_observed_once(
    tmp_path: Path, arguments: Any, said: str, path: str, way: str
) -> None:
    seen: list[dict[str, Any]] = []

    class Watching:
        @il.plugins.hookimpl
        def observe(self, event: dict[str, Any]) -> None:
            seen.append(event)

    theatre = Theatre(Say(parts=[call("add", arguments)]), "I see.")
    played = play(way, theatre, tmp_path, [add], plugins=[Watching()])

    ((text, is_error),) = theatre.results
    assert is_error
    assert text.startswith("invalid input: ")
    assert said in text
    assert [event["path"] for event in seen if event["type"] == "tool_input_invalid"] == [path]
    assert played.statuses() == ["failed"]
    if played.rows is not None:
        assert played.rows[0].started_at is None  # it never ran


@pytest.mark.parametrize("way", WAYS)
def test_an_input_that_only_the_functions_types_refuse_is_observed_too(tmp_path: Path, way: str) -> None:
    from typing import Annotated

    import msgspec

    seen: list[dict[str, Any]] = []

    class Watching:
        @il.plugins.hookimpl
        def observe(self, event: dict[str, Any]) -> None:
            seen.append(event)

    def pick(number: int) -> int:
        """Pick."""
        return number

    pick.__annotations__["number"] = Annotated[int, msgspec.Meta(ge=1)]  # the subset has no bounds: words only
    theatre = Theatre(Say(parts=[call("pick", {"number": 0})]), "I see.")
    played = play(way, theatre, tmp_path, [tool(side_effects="none")(pick)], plugins=[Watching()])
    asked = played.messages[1]

    assert theatre.results == [("invalid input: Expected `int` >= 1 - at `$.number`", True)]
    (event,) = [event for event in seen if event["type"] == "tool_input_invalid"]
    assert (event["path"], event["rule"]) == ("", "parameters")
    assert (event["tool"], event["message_id"], event["session_id"]) == ("pick", asked.id, asked.session_id)
    assert event["tool_use_id"] == asked.tool_calls[0].id


@pytest.mark.parametrize("way", WAYS)
def test_an_invented_tool_is_answered_with_the_names_there_are(tmp_path: Path, way: str) -> None:
    theatre = Theatre(Say(parts=[call("subtract", {})]), "Oh.")
    play(way, theatre, tmp_path, [add, fail])

    assert theatre.results == [("there is no tool 'subtract'; the tools are: add, fail", True)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("returned", ["terminate", "details"])
def test_outputs_that_say_more_than_content(tmp_path: Path, returned: str, way: str) -> None:
    @tool(side_effects="none")
    def work() -> ToolOutput:
        """Work."""
        if returned == "terminate":
            return ToolOutput(content="bye", terminate=True)
        return ToolOutput(content=[1, {"a": None}], details={"path": Path("x")}, metadata={"ms": 3})

    theatre = Theatre(Say(parts=["Last words.", call("work")]), "More.")
    played = play(way, theatre, tmp_path, [work])
    (result,) = played.results
    assert played.stopped is not None

    if returned == "terminate":
        assert played.answer.text == "Last words."
        assert len(theatre.asked) == 1
        assert played.stopped.cause is StopCause.TERMINATED
        assert result.terminate
    else:
        assert played.stopped.cause is StopCause.DONE
        assert theatre.results == [('[1,{"a":null}]', False)]
        assert (result.details, result.metadata) == ({"path": "x"}, {"ms": 3})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("details", [[1, {"a": None}], "text", 3, 1.5, True, {"a": ["b"]}, []])
def test_details_are_any_json_kept_and_written(tmp_path: Path, details: Any, way: str) -> None:
    @tool(side_effects="none")
    def work() -> ToolOutput:
        """Work."""
        return ToolOutput(content="done", details=details)

    played = play(way, Theatre(Say(parts=[call("work")]), "Done."), tmp_path, [work])
    message = played.messages[2]
    if "session" in way:
        with open_store(tmp_path / "s.db") as store:
            [stored] = [one for one in store.messages(message.session_id) if one.role is il.Role.TOOL]
        assert stored.tool_results[0].details == details

    assert message.tool_results[0].details == details
    assert loads_message(dumps_message(message)) == message
    (written,) = EventWriter().to_wire_messages([message])
    assert written["details"] == details
    assert json.loads(json.dumps(written))["details"] == details


@pytest.mark.parametrize("way", WAYS)
def test_a_failing_model_raises_and_the_history_holds_what_was_done(tmp_path: Path, way: str) -> None:
    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1})]), Say(fail=(400, "no")))
    played = play(way, theatre, tmp_path, [add])

    assert isinstance(played.error, il.errors.BadRequestError)
    assert played.roles == ["user", "assistant", "tool"]


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("async")])
def test_asynchronous_code_may_ask_a_coroutine(tmp_path: Path, way: str) -> None:
    asked: list[str] = []

    async def confirm(question: Confirmation) -> bool:
        await asyncio.sleep(0)
        asked.append(question.tool.name)
        return True

    @tool(side_effects="write")
    def write(name: str) -> str:
        """Write."""
        return name

    parts = [call("add", {"a": 2, "b": 3}), call("write", {"name": "x"}), call("add", {"a": "?", "b": 1})]
    theatre = Theatre(Say(parts=parts), "Done.")
    played = play(way, theatre, tmp_path, [add, write], confirm=confirm)

    assert played.answer.text == "Done."
    assert played.statuses() == ["succeeded", "succeeded", "failed"]
    assert asked == ["write"]
    assert [is_error for _, is_error in theatre.results] == [False, False, True]
    assert theatre.results[0] == ("5", False)


@pytest.mark.parametrize("way", WAYS)
def test_case_22_lone_surrogates_and_nul_from_a_tool_are_stored_and_sent(tmp_path: Path, way: str) -> None:
    @tool(side_effects="read")
    def read() -> str:
        """Read a file that is no text."""
        return "a\ud800b\x00c \N{GRINNING FACE}"

    @tool(side_effects="read")
    def structured() -> dict[str, str]:
        """The same inside a value."""
        return {"name": "\udfff"}

    theatre = Theatre(Say(parts=[call("read"), call("structured")]), "Odd.", "Still here.")
    played = play(way, theatre, tmp_path, [read, structured])
    history = () if "session" in way else played.messages  # a session reads it from the database
    played = play(way, theatre, tmp_path, [read, structured], text="and now?", history=history)

    assert list(played.findings) == []
    assert [is_error for _, is_error in theatre.results] == [False, False]
    text = theatre.results[0][0]
    assert text.startswith("a")
    assert text.endswith("c \N{GRINNING FACE}")
    text.encode()


@pytest.mark.parametrize("way", WAYS)
def test_raw_arguments_go_back_as_they_came(tmp_path: Path, way: str) -> None:
    odd = '{"b" : 3,   "a":2}'
    theatre = Theatre(Say(parts=[call("add", odd)]), "5")
    play(way, theatre, tmp_path, [add])

    sent = theatre.asked[1]["messages"][1]["calls"][0]["json"]
    assert sent == odd
    assert json.loads(sent) == {"a": 2, "b": 3}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_list_of_tools_is_run_and_one_of_definitions_is_offered(tmp_path: Path, asynchronous: bool) -> None:
    @tool(side_effects="read")
    def look(at: int) -> str:
        """Look."""
        return f"seen {at}"

    theatre = Theatre(Say(parts=[call("look", {"at": 1})]), "Done.", Say(parts=[call("look", {"at": 2})]))
    if asynchronous:

        async def play() -> None:
            async with playing_async(theatre, tmp_path / "s.db") as session:
                await session.send("run", tools=[look])
                await session.send("offer", tools=[look.definition])

        asyncio.run(play())
    else:
        with playing(theatre, tmp_path / "s.db") as session:
            session.send("run", tools=[look])
            session.send("offer", tools=[look.definition])

    with open_store(tmp_path / "s.db") as store:
        roles = [message.role.value for message in store.messages("s")]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [one["tools"] for one in theatre.asked] == [["look"]] * 3
