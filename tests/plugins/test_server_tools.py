"""Server-side tools, their results, and citations: kept exact, sent back to the service they came from, to no other.

Each answer has the shape its service documents; `MARK` stands in it for what only its service can read. Targets are all
installed providers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import WireRequest, WireResponse, build_request
from interlingua.types.blocks import ImageBlock, OpaqueBlock, TextBlock, ToolUseBlock
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.messages import Message
from interlingua.types.options import RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.support.driving import context

REGISTRY = Registry()
KEYS = [provider.key for provider in REGISTRY.providers()]
MARK = "MARK-only-for-its-origin"


@attrs.frozen
class Answer:
    """An answer with a server tool or a citation: who gave it, its body, and the elements to be sent back as they were.

    `kinds` are the opaque blocks it should give, `home` whether the service takes the elements back.
    """

    model: str
    api: str
    body: dict[str, Any]
    elements: list[Any]
    kinds: tuple[str, ...] = ()
    home: bool = True

    @property
    def key(self) -> str:
        return self.model.partition(":")[0]


def anthropic(*content: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [*content],
            "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}  # fmt: skip


def responses(*output: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5.5",
            "output": [*output], "usage": usage}  # fmt: skip


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [*parts]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}


def chat(message: dict[str, Any], model: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": MARK}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": MARK}],
}
RUN = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "bash_code_execution", "input": {"command": "ls"}}
RAN = {
    "type": "bash_code_execution_tool_result",
    "tool_use_id": "srvtoolu_2",
    "content": {"type": "bash_code_execution_result", "stdout": MARK, "stderr": "", "return_code": 0, "content": []},
}
CITED = {
    "type": "text",
    "text": "It is so.",
    "citations": [
        {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "encrypted_index": MARK,
         "cited_text": "so"}
    ],
}  # fmt: skip
SAID = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "It is so.", "annotations": []}]}  # fmt: skip
WEB = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "queries": [MARK]}}
DRAWN = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
PICTURE = {"id": f"ig_{MARK}", "type": "image_generation_call", "status": "completed", "result": DRAWN}
CODE = {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": MARK, "container_id": "c",
        "outputs": None}  # fmt: skip
MCP = {"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "n", "arguments": "{}", "output": MARK}
NOTE = {"type": "url_citation", "start_index": 0, "end_index": 5, "url": f"https://{MARK}.example", "title": "A"}
ANNOTATED = {**SAID, "content": [{"type": "output_text", "text": "It is so.", "annotations": [NOTE]}]}
PYTHON = {"executableCode": {"language": "PYTHON", "code": f"print('{MARK}')"}}
PRINTED = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": MARK}}
ASKED = {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": [MARK]}}}
TOLD = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"search_suggestions": MARK}}}
REFERENCE = {"type": "reference", "reference_ids": [1, MARK]}

ANSWERS = {
    "anthropic search": Answer(
        "anthropic:claude-opus-5-5", "messages", anthropic(SEARCH, FOUND, CITED), [SEARCH, FOUND, CITED],
        ("server_tool_use", "web_search_tool_result"),
    ),
    "anthropic code": Answer(
        "anthropic:claude-opus-5-5", "messages", anthropic(RUN, RAN, {"type": "text", "text": "It is so."}), [RUN, RAN],
        ("server_tool_use", "bash_code_execution_tool_result"),
    ),
    "responses search": Answer("openai:gpt-5.5", "responses", responses(WEB, SAID), [WEB], ("web_search_call",)),
    "responses picture": Answer("openai:gpt-5.5", "responses", responses(PICTURE, SAID), [PICTURE]),
    "responses code": Answer("openai:gpt-5.5", "responses", responses(CODE, SAID), [CODE], ("code_interpreter_call",)),
    "responses mcp": Answer("openai:gpt-5.5", "responses", responses(MCP, SAID), [MCP], ("mcp_call",)),
    "responses citation": Answer("openai:gpt-5.5", "responses", responses(ANNOTATED), [ANNOTATED["content"]]),
    "gemini code": Answer("google:gemini-3.8-flash", "generate", gemini(PYTHON, PRINTED, {"text": "It is so."}),
                          [PYTHON, PRINTED], ("executableCode", "codeExecutionResult")),
    "gemini search": Answer("google:gemini-3.8-flash", "generate", gemini(ASKED, TOLD, {"text": "It is so."}),
                            [ASKED, TOLD], ("toolCall", "toolResponse")),
    "mistral reference": Answer(
        "mistral:mistral-medium-latest", "chat",
        chat({"content": [{"type": "text", "text": "It is so."}, REFERENCE]}, "mistral-medium-latest"), [REFERENCE],
        ("reference",),
    ),
    "chat citation": Answer(
        "openai:gpt-4o", "chat",
        chat({"content": "It is so.", "annotations": [{"type": "url_citation", "url_citation": {
            "url": f"https://{MARK}.example", "title": "A", "start_index": 0, "end_index": 5}}]}, "gpt-4o"), [],
        home=False,
    ),
}  # fmt: skip
CANONICAL = ("responses picture",)  # the picture is an image that every service may see; the rest of its item is not


def read(answer: Answer) -> Message:
    asked = context(answer.key, answer.api, answer.model.partition(":")[2])
    response = WireResponse(body=json.dumps(answer.body).encode())
    return REGISTRY.provider(answer.key).from_wire_response(response, asked)


def next_turn(answer: Answer, key: str, model: str, api: str | None = None) -> WireRequest:
    messages = [user("What is it?"), read(answer), user("Sure?")]
    return build_request(REGISTRY.provider(key), messages, [], RequestOptions(model=model, api=api))


SERVICE_TOOLS = {
    "anthropic:claude-opus-5-5": {"type": "web_search_20260318", "name": "web_search"},
    "openai:gpt-5.5": {"type": "web_search"},
    "google:gemini-3.8-flash": {"googleSearch": {}},
    "zai:glm-5.3": {"type": "web_search", "web_search": {"enable": True}},
    "openrouter:anthropic/claude-opus-5.5": {"type": "openrouter:web_search"},
}


@pytest.mark.parametrize("model", SERVICE_TOOLS)
def test_the_services_own_tools_stand_behind_the_declared_ones(model: str) -> None:
    name, own = REGISTRY.resolve(model), SERVICE_TOOLS[model]
    provider = REGISTRY.provider(name.provider)
    options = RequestOptions(model=name.name, provider_options={"tools": [own]})
    declared = ToolDefinition(
        name="look", description="", input_schema={"type": "object", "properties": {}}, side_effects=SideEffects.READ
    )
    both = json.loads(build_request(provider, [user("q")], [declared], options).body)["tools"]
    alone = json.loads(build_request(provider, [user("q")], [], options).body)["tools"]

    assert (len(both), both[1], "look" in json.dumps(both[0]), alone) == (2, own, True, [own])


def test_a_history_with_calls_and_only_the_services_tools_may_use_them() -> None:
    call = ToolUseBlock(id="tu_1", name="look", input={})
    messages = [user("q"), assistant([call]), tool_result(call, "x"), user("now search")]
    own = SERVICE_TOOLS["anthropic:claude-opus-5-5"]
    options = RequestOptions(model="claude-opus-5-5", provider_options={"tools": [own]})
    sent = json.loads(build_request(REGISTRY.provider("anthropic"), messages, [], options).body)

    assert sent["tools"] == [own]
    assert "tool_choice" not in sent


def values(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from values(inner)


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in CANONICAL])
def test_what_is_not_canonical_is_kept_exact(name: str) -> None:
    message = read(ANSWERS[name])

    assert tuple(block.kind for block in message.content if isinstance(block, OpaqueBlock)) == ANSWERS[name].kinds
    assert message.text == "It is so."
    kept = [block.data for block in message.content if isinstance(block, OpaqueBlock)]
    kept += [dict(each) for block in message.content if isinstance(block, TextBlock) for each in block.citations]
    assert MARK in json.dumps(kept)


@pytest.mark.parametrize("name", ANSWERS)
def test_it_goes_back_to_its_origin_element_for_element(name: str) -> None:
    answer = ANSWERS[name]
    request = next_turn(answer, answer.key, answer.model.partition(":")[2], answer.api)
    sent = list(values(json.loads(request.body)))

    assert all(element in sent for element in answer.elements)
    assert (MARK in request.body.decode()) == answer.home
    assert bool(request.losses) != answer.home  # what does not go back is told


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", ANSWERS)
def test_it_goes_nowhere_else_and_the_ledger_says_so(name: str, key: str) -> None:
    answer = ANSWERS[name]
    if key == answer.key:
        key, api = ("openai", "chat" if answer.api == "responses" else "responses") if key == "openai" else (key, None)
        if key != "openai":
            return  # the other wires of this provider: there are none
    else:
        api = None
    request = next_turn(answer, key, "a-model-nobody-lists", api)
    message = read(answer)

    assert MARK not in request.body.decode()
    assert "It is so." in request.body.decode()
    touched = {loss.path for loss in request.losses}
    for at, block in enumerate(message.content):
        if isinstance(block, OpaqueBlock | ImageBlock) or (isinstance(block, TextBlock) and block.citations):
            assert f"messages[1].content[{at}]" in touched


@pytest.mark.parametrize("key", KEYS)
def test_a_picture_goes_to_every_service_that_takes_images(key: str) -> None:
    answer = ANSWERS["responses picture"]
    request = next_turn(answer, key, "a-model-nobody-lists")
    takes = REGISTRY.provider(key).capabilities("a-model-nobody-lists").supports_images

    assert [block.source.data for block in read(answer).content if isinstance(block, ImageBlock)] == [DRAWN]
    assert (DRAWN in request.body.decode()) == takes
