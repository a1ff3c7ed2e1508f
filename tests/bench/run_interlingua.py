"""interlingua as the benchmark's adapter: the documented client, on both wires.

Nothing private is called here. `bench.py` runs it, and so does any harness with the same `common` and `data` interface.
"""

from __future__ import annotations

from typing import Any

import common
import data

import interlingua
from interlingua import Client, Message, MessageStream, Role, SideEffects, TextBlock, TextDelta, ThinkingDelta, ToolUseBlock


class A(common.Variant):
    """The Messages API."""

    name = "interlingua"
    wire = "anthropic"
    is_async = False
    COLD = "import interlingua\nc = interlingua.Client('anthropic:claude-haiku-4-5', api_key='x', base_url='{base}')\n"
    COLD_REQ = "out = c.send('hi', max_tokens=9).text_content()\n"

    model = f"anthropic:{data.MODEL_ANTHROPIC}"
    below = ""  # what the provider's base URL holds after the server's

    def __init__(self, base: str) -> None:
        self._client = Client(self.model, api_key="x", base_url=base + self.below)
        self._options: dict[str, Any] = {"max_tokens": 1024}
        self._question = [interlingua.system(data.SYSTEM), interlingua.user(data.QUESTION)]
        self._tools = [
            interlingua.ToolDefinition(
                name=data.TOOL_NAME,
                description=data.TOOL_DESC,
                input_schema=data.TOOL_SCHEMA,
                side_effects=SideEffects.WRITE,
            )
        ]

    def close(self) -> None:
        self._client.close()

    def ask(self) -> str:
        return self._client.send(self._question, **self._options).text_content()

    def _stream(self, **more: Any) -> MessageStream:
        return self._client.stream(self._question, **self._options, **more)

    def stream_text(self) -> tuple[int, str]:
        pieces = []
        with self._stream() as stream:
            for event in stream:
                if type(event) is TextDelta:
                    pieces.append(event.text)
        return len(pieces), "".join(pieces)

    def stream_think(self) -> tuple[int, str]:
        pieces = []
        with self._stream() as stream:
            for event in stream:
                if type(event) is ThinkingDelta:
                    pieces.append(event.text)
        return len(pieces), "".join(pieces)

    def stream_tool(self) -> tuple[int, dict[str, Any]]:
        count = 0
        with self._stream(tools=self._tools) as stream:
            for _ in stream:
                count += 1
        return count, stream.message.tool_calls()[0].input

    def build(self, conversation: list[dict[str, Any]]) -> list[Message]:
        return [_message(message) for message in conversation]

    def send(self, messages: list[Message]) -> str:
        conversation = [self._question[0], *messages]
        return self._client.send(conversation, tools=self._tools, **self._options).text_content()


def _message(message: dict[str, Any]) -> Message:
    if message["role"] == "user":
        return interlingua.user(message["text"])
    if message["role"] == "tool":
        return interlingua.tool_result(message["id"], message["content"], tool_name=message["name"])
    content: list[Any] = [TextBlock(text=message["text"])]
    content += [ToolUseBlock(id=call["id"], name=call["name"], input=call["args"]) for call in message["calls"]]
    return Message(role=Role.ASSISTANT, content=tuple(content))


class O(A):  # noqa: E742  the interface's name
    """Chat Completions."""

    wire = "openai"
    COLD = (
        "import interlingua\n"
        "c = interlingua.Client('openai:gpt-4.1', api_key='x', base_url='{base}/v1', settings={'openai': {'api': 'chat'}})\n"
    )

    model = f"openai:{data.MODEL_OPENAI}"
    below = "/v1"

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self._options["api"] = "chat"


if __name__ == "__main__":
    common.main(__file__, [A, O])
