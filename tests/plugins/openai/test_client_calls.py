"""Calls of the service's tools that the caller runs (WIRE.md, Caller's calls), by the SDK's types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import ResponseInputItemParam, ToolParam
from pydantic import TypeAdapter

from interlingua.errors import StreamInterruptedError
from interlingua.types import (
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    StopReason,
    ToolChoice,
    ToolKind,
    tool_result,
    user,
)
from interlingua_openai import client_tool
from tests.plugins.openai.wire import (
    body_of,
    call,
    decoder,
    events_of,
    reasoning,
    request,
    response,
    sse,
    streamed,
    whole,
)

CHECK = {"id": "sc_1", "code": "malicious_instructions", "message": "Check the page."}
COMPUTER = {
    "id": "cu_1", "type": "computer_call", "status": "completed", "call_id": "call_1",
    "actions": [{"type": "click", "button": "left", "x": 3, "y": 4}, {"type": "wait"}],
    "pending_safety_checks": [CHECK],
}  # fmt: skip
SHELL = {
    "id": "sh_1", "type": "shell_call", "status": "completed", "call_id": "call_2", "environment": {"type": "local"},
    "action": {"commands": ["ls", "pwd"], "timeout_ms": None, "max_output_length": 4096},
}  # fmt: skip
LOCAL_SHELL = {
    "id": "lsh_1", "type": "local_shell_call", "status": "completed", "call_id": "call_3",
    "action": {"type": "exec", "command": ["ls", "-a"], "env": {}, "working_directory": "/root"},
}  # fmt: skip
PATCH = {
    "id": "apc_1", "type": "apply_patch_call", "status": "completed", "call_id": "call_4",
    "operation": {"type": "create_file", "diff": "+hello\n", "path": "hello.txt"},
}  # fmt: skip
APPROVAL = {
    "id": "mcpr_1", "type": "mcp_approval_request", "arguments": "{ \"q\": 1.0 }", "name": "ask",
    "server_label": "wiki",
}  # fmt: skip
CALLS = {item["type"]: item for item in (COMPUTER, SHELL, LOCAL_SHELL, PATCH, APPROVAL)}
NAMES = ["computer", "shell", "local_shell", "apply_patch", "mcp_approval"]
KINDS = [ToolKind.OTHER, ToolKind.EXECUTE, ToolKind.EXECUTE, ToolKind.EDIT, ToolKind.OTHER]
PICTURE = ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png")
SHOWN = {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}

ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def _read(*items: dict[str, Any], stream: bool) -> Message:
    return streamed(events_of(response(*items))) if stream else whole(response(*items))


def _items(*history: Message, **options: Any) -> list[Any]:
    items = body_of(list(history), **options)["input"]
    TypeAdapter(list[ResponseInputItemParam]).validate_python(items)
    return list(items)


@ways
@pytest.mark.parametrize("item", CALLS.values(), ids=NAMES)
def test_a_call_waits_for_the_caller_and_goes_back_unchanged(item: dict[str, Any], stream: bool) -> None:
    answer = _read(reasoning(), item, stream=stream)

    (made,) = answer.tool_calls
    at = list(CALLS.values()).index(item)
    assert answer.metadata.stop_reason is StopReason.TOOL_USE
    assert (made.name, made.kind, made.parse_error) == (NAMES[at], KINDS[at], None)
    assert made.provider_id == item.get("call_id", item["id"])
    sent = _items(user("go"), answer, tool_result(made, "done"))
    assert json.dumps(sent[2]) == json.dumps(item)  # the order of its members too


def test_the_arguments_are_those_of_the_item() -> None:
    inputs = [dict(_read(item, stream=False).tool_calls[0].input) for item in CALLS.values()]

    assert inputs == [
        {"actions": COMPUTER["actions"], "pending_safety_checks": [CHECK]},
        SHELL["action"],
        LOCAL_SHELL["action"],
        PATCH["operation"],
        {"arguments": APPROVAL["arguments"], "name": "ask", "server_label": "wiki"},
    ]


RAN = [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
       {"stdout": "", "stderr": "late", "outcome": {"type": "timeout"}}]  # fmt: skip
RESULTS = {
    "screenshot": (COMPUTER, PICTURE, False, [{"type": "computer_call_output", "call_id": "call_1", "output": SHOWN,
                                               "acknowledged_safety_checks": [CHECK]}]),
    "shell": (SHELL, {"output": RAN}, False, [{"type": "shell_call_output", "call_id": "call_2", "output": RAN,
                                               "max_output_length": 4096}]),
    "shell text": (SHELL, "no such file", True, [
        {"type": "shell_call_output", "call_id": "call_2", "max_output_length": 4096, "output": [
            {"stdout": "no such file", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]}]),
    "local shell": (LOCAL_SHELL, "a b", False, [{"type": "local_shell_call_output", "id": "call_3", "output": "a b"}]),
    "patch": (PATCH, "Created.", False, [{"type": "apply_patch_call_output", "call_id": "call_4",
                                          "status": "completed", "output": "Created."}]),
    "failed patch": (PATCH, "It exists.", True, [{"type": "apply_patch_call_output", "call_id": "call_4",
                                                  "status": "failed", "output": "It exists."}]),
    "approved": (APPROVAL, True, False, [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1",
                                          "approve": True}]),
    "denied": (APPROVAL, {"approve": False, "reason": "not now"}, False, [
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "not now"}]),
    "failed approval": (APPROVAL, "rejected by the user", True, [
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False,
         "reason": "rejected by the user"}]),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_the_form_of_its_call(name: str) -> None:
    item, result, is_error, expected = RESULTS[name]
    answer = whole(response(item))

    assert _items(user("go"), answer, tool_result(answer.tool_calls[0], result, is_error=is_error))[2:] == expected


def test_a_failed_screenshot_sends_its_words_and_accepts_no_check() -> None:
    answer = whole(response(COMPUTER))

    shown, words = _items(user("go"), answer, tool_result(answer.tool_calls[0], "The page is gone.", is_error=True))[2:]
    assert shown["output"]["image_url"].startswith("data:image/png;base64,")
    assert "acknowledged_safety_checks" not in shown
    assert words == {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "The page is gone."}],
    }  # fmt: skip


@ways
def test_what_a_container_runs_is_no_call(stream: bool) -> None:
    hosted = SHELL | {"environment": {"type": "container_reference", "container_id": "cntr_1"}}
    output = {"id": "sho_1", "type": "shell_call_output", "status": "completed", "call_id": "call_2", "output": RAN,
              "max_output_length": None}  # fmt: skip
    answer = _read(hosted, output, stream=stream)

    assert [type(block) for block in answer.content] == [OpaqueBlock, OpaqueBlock]
    assert answer.metadata.stop_reason is StopReason.END_TURN
    assert _items(user("go"), answer, user("more"))[1:3] == [hosted, output]


@ways
def test_results_of_calls_that_a_program_made_name_it(stream: bool) -> None:
    caller = {"type": "program", "caller_id": "call_9"}
    program = {"id": "cm_1", "type": "program", "call_id": "call_9", "code": "await tools.f()", "fingerprint": "fp"}
    made = call("{}", name="f") | {"status": "in_progress", "caller": caller}
    answer = _read(program, made, stream=stream)

    assert answer.metadata.stop_reason is StopReason.TOOL_USE
    sent = _items(user("go"), answer, tool_result(answer.tool_calls[0], "7"))
    assert sent[1:] == [program, made, {"type": "function_call_output", "call_id": "call_1", "output": "7",
                                        "caller": caller}]  # fmt: skip


def test_another_model_gets_what_needs_no_id_and_plain_calls_of_the_rest() -> None:
    answer = whole(response(*CALLS.values()))
    results = [tool_result(made, "done") for made in answer.tool_calls]
    made = request([user("go"), answer, *results], model="gpt-4.1")
    items = json.loads(made.body)["input"][1:]

    kinds = [item["type"] for item in items]
    assert kinds == [
        "function_call", "shell_call", "function_call", "apply_patch_call", "function_call",
        "function_call_output", "shell_call_output", "function_call_output", "apply_patch_call_output",
        "function_call_output",
    ]  # fmt: skip
    assert not any("id" in item for item in items)
    assert [loss.path for loss in made.losses if loss.verdict == "rewritten"] == [
        f"messages[1].content[{at}]" for at in (0, 2, 4)
    ]
    TypeAdapter(list[ResponseInputItemParam]).validate_python(items)


def test_another_service_gets_plain_calls_and_tools() -> None:
    answer = whole(response(SHELL))
    history = [user("go"), answer, tool_result(answer.tool_calls[0], {"output": RAN})]
    body = body_of(history, tools=[client_tool("shell")], api="chat")

    (made,) = body["messages"][1]["tool_calls"]
    assert json.loads(made["function"]["arguments"]) == SHELL["action"]
    assert json.loads(body["messages"][2]["content"]) == {"output": RAN}
    assert body["tools"][0]["function"]["name"] == "shell"
    assert body["tools"][0]["function"]["parameters"]["required"] == ["commands"]


def test_tools_are_written_as_the_service_knows_them() -> None:
    tools = [client_tool("computer"), client_tool("shell", environment={"type": "local"}), client_tool("apply_patch"),
             client_tool("local_shell"), client_tool("mcp_approval")]  # fmt: skip
    body = body_of([user("go")], tools=tools, tool_choice=ToolChoice("apply_patch"))

    assert body["tools"] == [{"type": "computer"}, {"type": "shell", "environment": {"type": "local"}},
                             {"type": "apply_patch"}, {"type": "local_shell"}]  # fmt: skip
    assert body["tool_choice"] == {"type": "apply_patch"}
    TypeAdapter(list[ToolParam]).validate_python(body["tools"])


@pytest.mark.parametrize("name", ["apply_patch", "shell"])
def test_a_stream_that_breaks_keeps_what_came_of_a_call(name: str) -> None:
    if name == "shell":
        begun = SHELL | {"status": "in_progress", "action": SHELL["action"] | {"commands": []}}
        pieces = [{"type": "response.shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": "rm -"}]
    else:
        begun = PATCH | {"status": "in_progress", "operation": PATCH["operation"] | {"diff": ""}}
        kind = "response.apply_patch_call_operation_diff.delta"
        pieces = [{"type": kind, "output_index": 0, "item_id": "apc_1", "delta": text} for text in ("+hel", "lo")]
    start = events_of(response())[0]
    made = decoder(sse([start, {"type": "response.output_item.added", "output_index": 0, "item": begun}, *pieces]))

    with pytest.raises(StreamInterruptedError) as caught:
        made.message()
    assert caught.value.partial is not None
    (broken,) = caught.value.partial.tool_calls
    assert broken.name == name
    assert ("rm -" if name == "shell" else "+hello") in str(broken.raw_input)
    assert broken.parse_error is not None  # it must not be run
