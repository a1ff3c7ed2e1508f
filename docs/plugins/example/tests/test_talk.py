"""Conversations with the parrot, each run twice: over loopback with its server, and from its cassette.

Expected values come from what the server is documented to do: it repeats what it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import parrot_server
import pytest
from interlingua import AsyncClient, Client, system, tool_result, user
from interlingua.errors import AuthenticationError, ModelNotFoundError, OverloadedError, ProviderError
from interlingua.types import Message, SideEffects, StopReason, ToolDefinition

PROMPT = "Good morning, and thank you very much for the crackers that I was given."
TRICKS = 'do read_file {"path": "a.txt"}\ndo read_file {"path": "b.txt", "lines": [1, 2]}'
READ_FILE = ToolDefinition(
    name="read_file",
    description="Read a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    side_effects=SideEffects.READ,
)


def parrot(url: str, key: str = parrot_server.KEY) -> Client:
    return Client("parrot:grey-1", settings={"parrot": {"base_url": url, "api_key": key}}, retry=0, environ={})


class Talk:
    """The conversations; a subclass has the fixture `url`."""

    @pytest.fixture
    def client(self, url: str) -> Iterator[Client]:
        with parrot(url) as client:
            yield client

    def test_words(self, client: Client) -> None:
        answer = client.send([system("Be brief."), user(PROMPT)])

        assert answer.text == f"Be brief. You said: {PROMPT}"
        assert answer.stop_reason is StopReason.END_TURN
        assert answer.usage is not None
        assert answer.usage.input_tokens == 24  # 9 and 72 characters, four a token, and 3 for a message
        assert answer.usage.cost_usd is not None

    def test_words_streamed(self, client: Client) -> None:
        with client.stream([system("Be brief."), user(PROMPT)]) as stream:
            pieces = list(stream.text_stream)

        assert len(pieces) > 10
        assert "".join(pieces) == stream.message.text == f"Be brief. You said: {PROMPT}"

    def test_tricks(self, client: Client) -> None:
        self.check_tricks(client, client.send([user(TRICKS)], tools=[READ_FILE]))

    def test_tricks_streamed(self, client: Client) -> None:
        with client.stream([user(TRICKS)], tools=[READ_FILE]) as stream:
            for _ in stream:
                pass

        self.check_tricks(client, stream.message)

    def check_tricks(self, client: Client, answer: Message) -> None:
        calls = answer.tool_calls
        assert [call.input for call in calls] == [{"path": "a.txt"}, {"path": "b.txt", "lines": [1, 2]}]
        assert [call.provider_id for call in calls] == ["trick.1", "trick.2"]
        assert answer.stop_reason is StopReason.TOOL_USE

        results = [tool_result(calls[0], "all quiet"), tool_result(calls[1], "no such file", is_error=True)]
        final = client.send([user(TRICKS), answer, *results], tools=[READ_FILE])

        assert final.text == "The trick says: no such file"

    def test_one_trick_of_a_budgie(self, client: Client) -> None:
        answer = client.send([user(TRICKS)], tools=[READ_FILE], model="parrot:budgie-1")

        assert [call.input["path"] for call in answer.tool_calls] == ["a.txt"]

    def test_cut_short(self, client: Client) -> None:
        answer = client.send(PROMPT, max_tokens=3)

        assert answer.text == "You said: Go"
        assert answer.stop_reason is StopReason.MAX_TOKENS

    def test_asleep(self, client: Client) -> None:
        with pytest.raises(OverloadedError, match="The parrot is asleep") as failed:
            client.send("be asleep")

        assert failed.value.retry_after == 2
        assert failed.value.retryable

    def test_no_such_bird(self, client: Client) -> None:
        with pytest.raises(ModelNotFoundError, match="There is no bird dodo here"):
            client.send("Hello?", model="parrot:dodo")

    def test_bad_key(self, url: str) -> None:
        with parrot(url, key="cracker") as client, pytest.raises(AuthenticationError, match="not the key"):
            client.send("Open up.")

    def test_fallen_in_the_middle(self, client: Client) -> None:
        with (
            pytest.raises(ProviderError, match="fell off its perch") as failed,
            client.stream("please drop dead") as stream,
        ):
            for _ in stream:
                pass

        assert failed.value.partial.text == "You said: please drop "


class TestLive(Talk):
    """Over loopback, to the server in another thread."""

    @pytest.fixture
    def url(self, live_url: str) -> str:
        return live_url

    def test_in_an_event_loop(self, live_url: str) -> None:
        async def talk() -> Message:
            settings = {"parrot": {"base_url": live_url, "api_key": parrot_server.KEY}}
            async with AsyncClient("parrot:grey-1", settings=settings, environ={}) as client:
                return await client.send("Hello.")

        assert asyncio.run(talk()).text == "You said: Hello."


@pytest.mark.vcr
class TestRecorded(Talk):
    """From the cassettes, or while they are recorded."""

    @pytest.fixture
    def url(self, recorded_url: str) -> str:
        return recorded_url
