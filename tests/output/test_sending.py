"""Typed answers over both clients: sent, corrected, cut off, refused, streamed."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from decimal import Decimal
from importlib.metadata import entry_points
from typing import Any

import attrs
import pydantic
import pytest

from interlingua import (
    AsyncClient,
    CallerError,
    Client,
    Timeout,
    ToolDefinition,
    assistant,
    system,
    user,
    validate_conversation,
)
from interlingua.errors import (
    APITimeoutError,
    CapabilityError,
    ContentRefusedError,
)
from interlingua.output import InvalidOutputError, OutputTruncatedError
from interlingua.plugins import Registry
from interlingua_output import Output
from tests.output.scripted import MODEL, Service, said, streamed

READ = ToolDefinition(
    name="read_file",
    description="",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
    side_effects="read",
)


@attrs.frozen
class Line:
    """One line of an invoice."""

    what: str
    count: int = 1


@attrs.frozen
class Invoice:
    """An invoice."""

    lines: list[Line]
    total: Decimal


GOOD = json.dumps({"lines": [{"what": "tea", "count": 2}, {"what": "cup"}], "total": "7.50"})
VALUE = Invoice([Line("tea", 2), Line("cup")], Decimal("7.50"))
BAD = json.dumps({"lines": [{"what": "CANARY", "count": "2"}], "total": "7.50"})
CALL = ("invoice", json.loads(GOOD))


def send(service: Service, both: str, messages: Any = "Read this.", **arguments: Any) -> Any:
    if both == "sync":
        return service.client().send(messages, **arguments)
    return asyncio.run(service.async_client().send(messages, **arguments))


def wait(answer: Any) -> Any:
    return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer


@pytest.fixture(params=["sync", "async"])
def both(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_native_answer_is_a_value(both: str) -> None:
    service = Service(said(GOOD))
    answer = send(service, both, output=Invoice)
    assert answer.value == VALUE
    assert answer.mode == "native"
    assert answer.messages == (answer.message,)
    assert len(answer.attempts) == 1
    sent = service.bodies[0]["output_config"]["format"]["schema"]
    assert sent["required"] == ["lines", "total"]
    assert sent["additionalProperties"] is False
    assert "output" not in service.bodies[0]


def test_without_output_a_message_is_returned_as_before(both: str) -> None:
    assert send(Service(said("hi")), both).text == "hi"


def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong(both: str) -> None:
    service = Service(said(BAD, tokens=3), said(GOOD, tokens=4))
    answer = send(service, both, output=Invoice)
    assert answer.value == VALUE
    assert [len(one.errors) for one in answer.attempts] == [1, 0]
    assert answer.messages == (answer.message,), "failed attempts stay out of the history"
    asked, failed, correction = service.bodies[1]["messages"]
    assert asked["role"] == "user"
    assert failed["role"] == "assistant"
    assert "lines/0/count: has to be of type integer, not string" in correction["content"][0]["text"]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (200, 7)
    assert answer.usage.cost_usd == sum(one.message.metadata.usage.cost_usd for one in answer.attempts)
    assert any("did not force it" in loss.reason for loss in answer.losses)


def test_corrections_replace_each_other(both: str) -> None:
    service = Service(said(BAD), said(BAD), said(BAD), said(GOOD))
    answer = send(service, both, output=Invoice, output_retries=3)
    assert [len(body["messages"]) for body in service.bodies] == [1, 3, 3, 3]
    assert len(answer.attempts) == 4


def test_without_retries_left_the_error_holds_everything_but_the_models_words(both: str) -> None:
    with pytest.raises(InvalidOutputError) as raised:
        send(Service(said(BAD), said(BAD)), both, output=Invoice)
    error = raised.value
    assert "CANARY" not in str(error)
    assert "lines/0/count" in str(error)
    assert [one.path for one in error.errors] == ["lines/0/count"]
    assert len(error.attempts) == 2
    assert error.usage.input_tokens == 200
    assert error.cost_usd == error.usage.cost_usd > 0


def test_prose_is_an_attempt(both: str) -> None:
    answer = send(Service(said("I can't say."), said(f"Here:\n```json\n{GOOD}\n```")), both, output=Invoice)
    assert answer.value == VALUE
    assert [one.message for one in answer.attempts[0].errors] == ["is not a JSON object"]


@pytest.mark.parametrize("text", [GOOD[:30], GOOD])
def test_an_answer_that_was_cut_off_is_not_asked_for_again(both: str, text: str) -> None:
    service = Service(said(text, stop="max_tokens"))
    with pytest.raises(OutputTruncatedError) as raised:
        send(service, both, output=Invoice, output_retries=3)
    assert len(service.bodies) == len(raised.value.attempts) == 1
    assert "tea" not in str(raised.value)
    assert raised.value.usage.output_tokens == 10


def test_a_refusal_is_not_asked_for_again(both: str) -> None:
    service = Service(said("No.", stop="refusal"))
    with pytest.raises(ContentRefusedError) as raised:
        send(service, both, output=Invoice)
    assert raised.value.partial.text == "No."
    assert len(service.bodies) == 1


def test_a_tool_takes_the_answer_where_it_is_wanted(both: str) -> None:
    service = Service(said(CALL, stop="tool_use"))
    history = [user("Read this.")]
    answer = send(service, both, history, output=Output(Invoice, mode="tool"))
    assert answer.value == VALUE
    assert service.bodies[0]["tool_choice"] == {"type": "tool", "name": "invoice"}
    assert [loss.path for loss in answer.losses] == ["output"]
    assert answer.messages[1].tool_results[0].tool_use_id == answer.message.tool_calls[0].id
    assert not validate_conversation([*history, *answer.messages])


def test_a_call_that_does_not_fit_gets_an_error_as_its_result(both: str) -> None:
    service = Service(said(("invoice", json.loads(BAD)), stop="tool_use"), said(CALL, stop="tool_use"))
    answer = send(service, both, output=Output(Invoice, mode="tool"))
    assert answer.value == VALUE
    result = service.bodies[1]["messages"][2]["content"][0]
    assert result["is_error"]
    assert "lines/0/count" in json.dumps(result["content"])
    assert len(answer.messages) == 2


def test_text_in_the_place_of_the_call_is_an_attempt(both: str) -> None:
    service = Service(said(GOOD), said(CALL, stop="tool_use"))
    answer = send(service, both, output=Output(Invoice, mode="tool"))
    assert [one.message for one in answer.attempts[0].errors] == ["the tool invoice was not called"]
    assert service.bodies[1]["messages"][2]["role"] == "user"


def test_thinking_with_a_budget_leaves_the_tool_unforced() -> None:
    service = Service(said(CALL, stop="tool_use"))
    answer = service.client().send("Read.", output=Output(Invoice, mode="tool"), thinking_budget=2000, max_tokens=9000)
    assert answer.value == VALUE
    assert service.bodies[0]["tool_choice"] == {"type": "auto"}
    assert service.bodies[0]["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert "by calling the tool invoice" in json.dumps(service.bodies[0]["system"])


def test_words_ask_for_it_in_mode_prompt(both: str) -> None:
    service = Service(said(GOOD))
    answer = send(service, both, [system("Be short."), user("Read.")], output=Output(Invoice, mode="prompt"))
    assert answer.mode == "prompt"
    sent = json.dumps(service.bodies[0]["system"])
    assert sent.index("Be short.") < sent.index("JSON Schema")
    assert "output_config" not in service.bodies[0]


def test_calls_of_the_callers_tools_are_no_answer_yet(both: str) -> None:
    service = Service(said(("read_file", {"path": "x"}), stop="tool_use"))
    answer = send(service, both, tools=[READ], output=Invoice)
    assert [call.name for call in answer.message.tool_calls] == ["read_file"]
    assert answer.messages == (answer.message,)
    assert answer.usage.output_tokens == 10
    with pytest.raises(CallerError, match="the model called read_file"):
        _ = answer.value


def test_an_answer_beside_other_calls_is_not_taken(both: str) -> None:
    service = Service(said(("read_file", {"path": "x"}), CALL, stop="tool_use"))
    answer = send(service, both, tools=[READ], output=Output(Invoice, mode="tool"))
    assert [one.tool_results[0].is_error for one in answer.messages[1:]] == [True]
    with pytest.raises(CallerError):
        _ = answer.value


def test_what_cannot_be_is_said_before_anything_is_sent() -> None:
    service = Service()
    with pytest.raises(CapabilityError, match="keeps to no schema"):
        service.client().send(
            "q", output=Output(Invoice, mode="native"), capabilities={"supports_structured_output": False}
        )
    with pytest.raises(CallerError, match="one of the two"):
        service.client().send("q", output=Invoice, response_schema={"type": "object"})
    with pytest.raises(CallerError, match="cannot be the type of an answer"):
        service.client().send("q", output=Service)
    assert not service.bodies


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_a_stream_shows_what_has_arrived_and_ends_in_the_value(both: str, mode: Any) -> None:
    content = said(CALL, stop="tool_use") if mode == "tool" else said(GOOD)
    service = Service(streamed(content))
    wanted = Output(Invoice, mode=mode)
    if both == "sync":
        with service.client().stream("Read.", output=wanted) as stream:
            parts = list(stream.partials)
            answer = stream.answer
    else:

        async def run() -> Any:
            async with service.async_client().stream("Read.", output=wanted) as stream:
                return [part async for part in stream.partials], await stream.answer

        parts, answer = asyncio.run(run())
    assert answer.value == VALUE
    assert answer.mode == mode
    values = [part.value for part in parts]
    assert values[-1] == json.loads(GOOD)
    assert {"lines": [{"what": "te"}]} in values or {"lines": [{"what": "tea"}]} in values
    lines = [part for part in parts if "lines" in part.closed]
    assert all(part.value["lines"] == values[-1]["lines"] for part in lines)
    assert "" in parts[-1].closed
    assert "" not in parts[-2].closed


def test_a_stream_that_does_not_fit_says_so() -> None:
    with Service(streamed(said(BAD))).client().stream("Read.", output=Invoice) as stream:
        list(stream)
    with pytest.raises(InvalidOutputError):
        _ = stream.answer


def test_the_plan_is_what_a_loop_needs() -> None:
    plan = Service().client().plan_output(Output(Invoice, mode="tool"), tools=[READ])
    assert [tool.name for tool in plan.tools] == ["read_file", "invoice"]
    assert plan.options == {"tool_choice": "required"}
    assert plan.losses
    history = [user("Read.")]
    assert plan.messages(history) == history
    assert plan.is_answer(assistant("text"))


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_a_prepared_request_is_the_one_that_is_sent(both: str, mode: Any) -> None:
    output = Output(Invoice, mode=mode)
    service = Service(said(GOOD) if mode != "tool" else said(CALL, stop="tool_use"))
    send(service, both, output=output)
    client = service.client() if both == "sync" else service.async_client()
    plan = client.plan_output(output)

    for given in (output, plan):
        exchange: Any = wait(client.prepare("Read this.", output=given))
        assert json.loads(exchange.request.wire.body) == service.bodies[0]
        assert exchange.request.wire.losses[: len(plan.losses)] == plan.losses


def test_without_its_distribution_the_error_says_what_to_install(both: str) -> None:
    service = Service(said(GOOD))
    registry = Registry(entry_points=entry_points(group="interlingua.providers"))
    client = service.client(registry=registry) if both == "sync" else service.async_client(registry=registry)
    with pytest.raises(CallerError, match=r"pip install 'interlingua\[output\]'"):
        wait(client.send("Read this.", output=Invoice))
    assert not service.bodies


def test_thinking_that_was_asked_for_and_did_not_come_is_a_row(both: str) -> None:
    quiet = said(GOOD)
    thinking = said(GOOD)
    thinking["content"].insert(0, {"type": "thinking", "thinking": "Two cups.", "signature": "s"})
    asked = {"output": Invoice, "thinking": True, "max_tokens": 4000}

    missed = send(Service(quiet), both, **asked)
    rows = [loss for loss in missed.losses if loss.path == "options.thinking"]
    assert [(row.verdict, "answer 1" in row.reason) for row in rows] == [("dropped", True)]
    assert not [loss for loss in send(Service(thinking), both, **asked).losses if loss.path == "options.thinking"]
    assert not [loss for loss in send(Service(quiet), both, output=Invoice).losses if loss.path == "options.thinking"]


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_validators_run_once_and_on_whole_answers_only(mode: Any) -> None:
    seen: list[Any] = []

    class Checked(pydantic.BaseModel):
        name: str
        total: int

        @pydantic.model_validator(mode="before")
        @classmethod
        def look(cls, value: Any) -> Any:
            seen.append(value)
            return value

    def keep(_instance: Any, _attribute: Any, value: Any) -> None:
        seen.append(value)

    @attrs.frozen
    class Kept:
        name: str
        total: int = attrs.field(validator=keep)

    whole = {"name": "tea", "total": 3}
    for kind, expected in ((Checked, [whole]), (Kept, [3]), (list[Kept], [3, 3]), (Checked | Kept, [whole])):
        seen.clear()
        value: Any = {"value": [whole, whole]} if kind == list[Kept] else whole
        value = {"value": {"kind": "Checked", **whole}} if kind == Checked | Kept else value
        answer = said(("answer" if kind not in (Checked, Kept) else kind.__name__.lower(), value))
        events = streamed(answer if mode == "tool" else said(json.dumps(value)), 1)
        with Service(events).client().stream("Read this.", output=Output(kind, mode=mode)) as stream:
            parts = list(stream.partials)
            assert not seen
            assert len(parts) > 3
            _ = stream.answer
        assert seen == expected


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_what_is_required_is_required_at_the_end_of_a_stream(mode: Any) -> None:
    value = {"lines": []}
    events = streamed(said(("invoice", value)) if mode == "tool" else said(json.dumps(value)))
    with Service(events).client().stream("Read this.", output=Output(Invoice, mode=mode)) as stream:
        assert list(stream.partials)
        with pytest.raises(InvalidOutputError) as caught:
            _ = stream.answer
    assert [(one.path, one.message) for one in caught.value.errors] == [("total", "is missing")]


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_a_service_that_compiles_a_schema_for_ever_meets_the_time_limit(both: str, mode: Any) -> None:
    """Compiling takes up to 180 s (anthropic/WIRE.md, Structured output): `first_byte` holds for it too."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        limits = {"base_url": address, "api_key": "k", "timeout": Timeout(first_byte=0.3), "retry": 0}
        asked = {"output": Output(Invoice, mode=mode), "thinking": True, "max_tokens": 4000}
        clients = {"sync": Client, "async": AsyncClient}
        began = time.monotonic()
        with pytest.raises(APITimeoutError):
            wait(clients[both](MODEL, **limits).send("Read this.", **asked))
        assert time.monotonic() - began < 5


def test_what_a_types_own_checks_refuse_is_no_fault_of_the_service(both: str) -> None:
    class Box(pydantic.BaseModel):
        size: int = pydantic.Field(ge=1)
        name: str

    answers = ('{"size": 0, "name": "a"}', '{"size": "1", "name": "a"}', '{"size": 2, "name": "a"}')
    answer = send(Service(*map(said, answers)), both, output=Box, output_retries=2)
    assert answer.value == Box(size=2, name="a")
    assert [[one.path for one in attempt.errors] for attempt in answer.attempts] == [["size"], ["size"], []]
    rows = [
        loss.reason for loss in answer.losses if loss.path == "options.response_schema" and loss.verdict == "dropped"
    ]
    assert [reason[:8] for reason in rows] == ["answer 2"]  # the first kept to the schema, where no bound can be
