"""`interlingua.testing`: an application's tests without network, keys or a provider's distribution."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

import interlingua as il
from interlingua.errors import APIConnectionError, AuthenticationError, RateLimitError
from interlingua.testing import MemoryTransport, ScriptedModel, SentRequest, call, no_network

ADD = il.ToolDefinition(
    name="add",
    description="Adds two integers.",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    side_effects=il.SideEffects.NONE,
    requires_workspace=False,
)
AGAIN = il.Retry(initial_delay=0.001)


def application(client: il.Client, question: str) -> str:
    history = [il.user(question)]
    while (answer := client.send(history, tools=[ADD])).tool_calls:
        sums = [il.tool_result(one, str(one.input["a"] + one.input["b"])) for one in answer.tool_calls]
        history += [answer, *sums]
    return answer.text


def test_a_tool_turn_of_an_application() -> None:
    model = ScriptedModel([call("add", a=1, b=2), "It is 3."])

    assert application(model.client(), "1 + 2?") == "It is 3."
    (result,) = model.requests[1].messages[-1].tool_results
    assert isinstance(result.content[0], il.TextBlock)
    assert result.content[0].text == "3"
    assert model.requests[0].tools == (ADD,)


def test_parallel_calls_have_their_own_ids() -> None:
    answer = ScriptedModel([[call("add", a=1, b=2), call("add", a=1, b=2)]]).client().send("twice", tools=[ADD])

    assert len({one.id for one in answer.tool_calls}) == 2
    assert answer.stop_reason is il.StopReason.TOOL_USE


def test_errors_are_retried_or_raised_like_those_of_a_service() -> None:
    slow, broken = RateLimitError("slow down", retry_after=0.001), APIConnectionError("gone")
    model = ScriptedModel([slow, broken, "done", AuthenticationError("no key")])
    client = model.client(retry=AGAIN)

    assert client.send("x").text == "done"
    assert len(model.requests) == 3
    with pytest.raises(AuthenticationError, match="no key"):
        client.send("x")


def test_a_stream_delivers_word_by_word() -> None:
    with ScriptedModel(["one two three"]).client().stream("count") as stream:
        assert list(stream.text_stream) == ["one", " two", " three"]
    assert stream.message.usage.output_tokens == 3


def test_a_streamed_call_arrives_whole() -> None:
    with ScriptedModel([["Adding.", call("add", a=1, b=2)]]).client().stream("add", tools=[ADD]) as stream:
        kinds = {event.type for event in stream}
    assert stream.message.tool_calls[0].input == {"a": 1, "b": 2}
    assert "tool_use_end" in kinds


def test_an_answer_by_a_function_and_an_asynchronous_client() -> None:
    def shout(request: SentRequest) -> str:
        return request.messages[-1].text.upper()

    async def main() -> il.Message:
        async with ScriptedModel(shout).async_client() as client:
            return await client.send("hello")

    assert asyncio.run(main()).text == "HELLO"


def test_a_message_is_returned_unchanged() -> None:
    said = il.assistant([il.ThinkingBlock(text="hm"), il.TextBlock(text="yes")])

    assert ScriptedModel([said]).client().send("?").content == said.content


def test_typed_answers() -> None:
    @dataclass
    class Moon:
        name: str

    pytest.importorskip("interlingua_output")
    from interlingua_output import Output

    for output in (Moon, Output(Moon)):
        answer = ScriptedModel(['{"name": "Ganymede"}']).client().send("largest?", output=output)
        assert answer.value == Moon("Ganymede")


def test_capabilities_can_be_changed() -> None:
    model = ScriptedModel(["ok"], supports_tools=False)

    with pytest.raises(il.CapabilityError):
        model.client().send("x", tools=[ADD], tool_choice="required")


def test_a_script_that_ended_says_so() -> None:
    with pytest.raises(AssertionError, match="request 1 has no scripted answer"):
        ScriptedModel([]).client().send("x")


def test_a_preview_takes_no_answer() -> None:
    model = ScriptedModel(["ok"])
    client = model.client()

    client.build_request("x")
    assert not model.requests
    assert client.send("x").text == "ok"


def test_no_network_lets_only_memory_answer() -> None:
    with no_network():
        assert ScriptedModel(["ok"]).client().send("x").text == "ok"
        pytest.importorskip("interlingua_anthropic")
        with (
            il.Client("anthropic:m", api_key="k") as client,
            pytest.raises(AssertionError, match=r"api\.anthropic\.com"),
        ):
            client.send("x")


def test_a_memory_transport_answers_a_real_plugin() -> None:
    pytest.importorskip("interlingua_anthropic")
    body = b"""{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hi."}], "usage": {"input_tokens": 1, "output_tokens": 2}}"""
    transport = MemoryTransport(lambda _: body)

    assert il.Client("anthropic:m", api_key="k", transport=transport).send("x").text == "Hi."
    assert transport.requests[0].headers["x-api-key"] == "k"


@pytest.mark.parametrize("data", [None, 5, True, ["a"], {"a": 1}])
def test_a_wire_object_of_any_kind_is_sent_again(data: object) -> None:
    """The size of messages is measured from the second request of a kind on."""
    blocks = (il.types.OpaqueBlock(kind="k", provider="scripted", data=data), il.types.TextBlock(text="x"))
    messages = [il.user("a"), il.Message(role=il.Role.ASSISTANT, content=blocks), il.user("b")]
    with ScriptedModel(["one", "two"]).client() as client:
        assert [client.send(messages, allow_loss=True).text for _ in range(2)] == ["one", "two"]
