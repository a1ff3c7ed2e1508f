"""Calls of the service's tools that the caller runs: computer, shells, patches, approvals (WIRE.md, Caller's calls)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.plugins import BlockLoss, dumps, loads
from interlingua.types import ToolKind, ToolResultBlock, WireTool
from interlingua_openai.catalogue import RESPONSES


class CallForm(NamedTuple):
    """How calls of one tool are written.

    Attributes:
        name: the tool's canonical name.
        kind: its kind for user interfaces.
        held: the member whose members are the arguments; "" if the arguments are members of the item.
        arguments: the arguments, with the values that a call without them gets.
        result: the item type of the result.
        call: the member of the result that holds the call's id.
        needs_id: an item of this type is refused without the id that the service gave it.
        prefix: prefix of these items' ids.
        tools: the types of tools that are called so.
        description: description of the tool for another service's model.
        schema: the schema of the arguments for another service.
    """

    name: str
    kind: ToolKind
    held: str
    arguments: Mapping[str, Any]
    result: str
    call: str
    needs_id: bool
    prefix: str
    tools: tuple[str, ...]
    description: str
    schema: Mapping[str, Any]


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_TEXTS = {"type": "array", "items": _TEXT}
_OPTIONAL = {"type": ["integer", "null"]}
_POINT = _object(("x", "y"), x=_NUMBER, y=_NUMBER)
_ACTIONS = ("click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait")
_ACTION = _object(
    ("type",), type={"type": "string", "enum": list(_ACTIONS)}, x=_NUMBER, y=_NUMBER, button=_TEXT,
    keys={**_TEXTS, "type": ["array", "null"]},
    path={"type": "array", "items": _POINT}, scroll_x=_NUMBER, scroll_y=_NUMBER, text=_TEXT,
)  # fmt: skip
_OPERATIONS = ("create_file", "update_file", "delete_file")

FORMS: Mapping[str, CallForm] = {
    "computer_call": CallForm(
        "computer", ToolKind.OTHER, "", {"actions": [], "pending_safety_checks": []},
        "computer_call_output", "call_id", True, "cu", ("computer", "computer_use_preview"),
        "Acts on a computer's screen, keyboard and mouse, in order, and returns a screenshot.",
        _object(("actions",), actions={"type": "array", "items": _ACTION}),
    ),
    "shell_call": CallForm(
        "shell", ToolKind.EXECUTE, "action", {"commands": [], "timeout_ms": None, "max_output_length": None},
        "shell_call_output", "call_id", False, "sh", ("shell",),
        "Runs shell commands and returns what each wrote, with its exit code.",
        _object(("commands",), commands=_TEXTS, timeout_ms=_OPTIONAL, max_output_length=_OPTIONAL),
    ),
    "local_shell_call": CallForm(
        "local_shell", ToolKind.EXECUTE, "action", {"type": "exec", "command": [], "env": {}},
        "local_shell_call_output", "id", True, "lsh", ("local_shell",),
        "Runs one command, given as its arguments, and returns what it wrote.",
        _object(("command",), command=_TEXTS, timeout_ms=_OPTIONAL, working_directory=_TEXT),
    ),
    "apply_patch_call": CallForm(
        "apply_patch", ToolKind.EDIT, "operation", {"type": "update_file", "path": ""},
        "apply_patch_call_output", "call_id", False, "apc", ("apply_patch",),
        "Creates, updates or deletes one file. A diff holds lines that begin with '+', '-' or a space, and '@@' between"
        " its parts; the diff of a new file has '+' lines only.",
        _object(("type", "path"), type={"type": "string", "enum": list(_OPERATIONS)}, path=_TEXT, diff=_TEXT),
    ),
    "mcp_approval_request": CallForm(
        "mcp_approval", ToolKind.OTHER, "", {"server_label": "", "name": "", "arguments": "{}"},
        "mcp_approval_response", "approval_request_id", True, "mcpr", ("mcp_approval",),
        "Decides whether a remote MCP server may run a tool. Never call it: the service asks by itself.",
        _object(("server_label", "name", "arguments"), server_label=_TEXT, name=_TEXT, arguments=_TEXT),
    ),
}  # fmt: skip
"""By item type."""
RESULT_FORMS: Mapping[str, str] = {form.result: kind for kind, form in FORMS.items()}
"""Type of a result item -> type of the call it answers."""
_BY_TOOL: Mapping[str, str] = {tool: kind for kind, form in FORMS.items() for tool in form.tools}
_CALLED_ONLY = "mcp_approval"  # no tool of a request: the tools of MCP servers cause these calls
_ENVELOPE = ("id", "type", "status", "call_id", "caller", "environment", "agent", "created_by")
_EMPTY_PICTURE = (  # one transparent pixel: a result of this type without a picture is refused
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
)


def is_client_call(item: Mapping[str, Any]) -> bool:
    """Return whether the caller must run this call; in a container the service runs it by itself."""
    environment = item.get("environment")
    hosted = isinstance(environment, Mapping) and environment.get("type") == "container_reference"
    return item.get("type") in FORMS and not hosted and not item.keys().isdisjoint(("id", "call_id"))


def arguments_in(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call that the caller runs, in the item's own order."""
    form = FORMS[item["type"]]
    if form.held:
        held = item.get(form.held)
        return held if isinstance(held, Mapping) else {}
    return {name: value for name, value in item.items() if name not in _ENVELOPE}


def without_arguments(item: Mapping[str, Any], instead: Any) -> dict[str, Any]:
    """Return the item with `instead` for its arguments."""
    held = FORMS[item["type"]].held
    names = (held,) if held else arguments_in(item)
    return {name: instead if name in names else value for name, value in item.items()}


def with_arguments(shell: Mapping[str, Any], arguments: Mapping[str, Any], instead: Any) -> dict[str, Any]:
    """Return an item of `without_arguments` with arguments in their places."""
    held = FORMS[shell["type"]].held
    if held:
        return {**shell, held: arguments}
    return {name: arguments.get(name) if value is instead else value for name, value in shell.items()}


def new_call(kind: str, call_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a call of this type, without an id, with arguments that another service's model wrote."""
    form = FORMS[kind]
    whole = {**form.arguments, **arguments}
    named = {} if form.call == "approval_request_id" else {"call_id": call_id}
    return {"type": kind, **named, **({form.held: whole} if form.held else whole)}


# ---- tools


def client_tool(kind: str, **members: Any) -> WireTool:
    """Return the definition of a tool of the service that the caller runs; other services get it as a plain function.

    Args:
        kind: `computer`, `computer_use_preview`, `shell`, `local_shell` or `apply_patch`; `mcp_approval` stands for
            the approvals that the tools of MCP servers ask for.
        **members: further members of the definition, such as `environment`.

    Raises:
        KeyError: no such tool.
    """
    form = FORMS[_BY_TOOL[kind]]
    return WireTool(
        name=form.name,
        description=form.description,
        input_schema=form.schema,
        kind=form.kind,
        requires_workspace=False,
        extra={"type": kind, **members},
        api=RESPONSES,
    )


def from_wire_client_tool(tool: Mapping[str, Any]) -> WireTool | None:
    """Return the definition of a tool in a caller's request; None if the service runs it, or it is a function."""
    kind, environment = tool.get("type"), tool.get("environment")
    hosted = isinstance(environment, Mapping) and environment.get("type") != "local"
    if kind not in _BY_TOOL or kind == _CALLED_ONLY or hosted or not isinstance(kind, str):
        return None
    return client_tool(kind, **{name: value for name, value in tool.items() if name != "type"})


def call_type_of(definition: Mapping[str, Any]) -> str | None:
    """Return the item type of the calls of a tool of the service; None for a function or a custom tool."""
    return _BY_TOOL.get(str(definition.get("type")))


def is_declared(definition: Mapping[str, Any]) -> bool:
    """Return whether a tool is written in the list of tools."""
    return definition.get("type") != _CALLED_ONLY


# ---- results


def to_wire_client_result(
    call: Mapping[str, Any], block: ToolResultBlock, parts: Sequence[Mapping[str, Any]], at: int, lost: list[BlockLoss]
) -> list[dict[str, Any]]:
    """Write the result of a call in the form that its type has.

    Args:
        call: the call's item as it is sent.
        block: the result.
        parts: its content as parts of a message.
        at: place of the block, for rows.
        lost: takes the rows.
    """
    form = FORMS[call["type"]]
    text = "\n".join([part["text"] for part in parts if part["type"] == "input_text"])
    made: dict[str, Any] = {"type": form.result, form.call: block.tool_use_id}
    others = [part for part in parts if part["type"] != "input_text"]
    if form.name == "computer":
        return _computer_result(call, made, text, others)
    if others:
        lost.append(BlockLoss(at, block.type, "rewritten", f"a result of {form.name} holds text only here", "content"))
    if form.name == "shell":
        made["output"] = _shell_output(text, is_error=block.is_error)
        most = arguments_in(call).get("max_output_length")
        if most is not None:
            made["max_output_length"] = most
    elif form.name == "apply_patch":
        made["status"] = "failed" if block.is_error else "completed"
        if block.content:
            made["output"] = text
    elif form.name == "mcp_approval":
        made |= _decision(text, is_error=block.is_error)
    else:
        made["output"] = text
    if "caller" in call:
        made["caller"] = call["caller"]
    return [made]


def _computer_result(
    call: Mapping[str, Any], made: dict[str, Any], text: str, media: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the screenshot, and words beside it as a message; a caller that ran the call accepts its safety checks."""
    picture = next((part for part in media if part["type"] == "input_image"), None)
    shown = {name: picture[name] for name in ("file_id", "image_url") if name in picture} if picture else {}
    made["output"] = {"type": "computer_screenshot", **(shown or {"image_url": _EMPTY_PICTURE})}
    checks = call.get("pending_safety_checks")
    if checks and picture is not None:
        made["acknowledged_safety_checks"] = checks
    rest: list[Any] = [{"type": "input_text", "text": text}] if text.strip() else []
    rest += [part for part in media if part is not picture]
    return [made, {"type": "message", "role": "user", "content": rest}] if rest else [made]


def _shell_output(text: str, *, is_error: bool) -> list[Any]:
    """Return what commands wrote: a result in this API's own form unchanged, other text as one command's output."""
    value = _json(text)
    own = value if isinstance(value, list) else value.get("output") if isinstance(value, dict) else None
    if isinstance(own, list) and own and all(isinstance(one, dict) and "outcome" in one for one in own):
        return own
    return [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": int(is_error)}}]


def _decision(text: str, *, is_error: bool) -> dict[str, Any]:
    value = _json(text)
    if isinstance(value, dict) and isinstance(value.get("approve"), bool):
        return {name: value[name] for name in ("approve", "reason") if name in value}
    if isinstance(value, bool):
        return {"approve": value and not is_error}
    return {"approve": False, "reason": text}


def _json(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


class ClientResult(NamedTuple):
    """A result item of a caller's request.

    Attributes:
        call_id: the id of the call.
        content: parts of a message, or text.
        is_error: the call failed.
        rest: the further members, sent back unchanged.
    """

    call_id: str
    content: Any
    is_error: bool
    rest: dict[str, Any]


def read_client_result(item: Mapping[str, Any]) -> ClientResult:
    """Read a result item of one of these types."""
    form = FORMS[RESULT_FORMS[item["type"]]]
    output, call_id = item.get("output"), str(item.get(form.call))
    named = ("type", form.call, "output")
    rest = {name: value for name, value in item.items() if name not in named}
    if form.name == "mcp_approval":
        kept = {name: rest.pop(name) for name in ("approve", "reason") if name in rest}
        return ClientResult(call_id, dumps(kept).decode(), not kept.get("approve"), rest)
    if form.name == "computer" and isinstance(output, Mapping):
        return ClientResult(call_id, [{**output, "type": "input_image"}], False, rest)
    failed = item.get("status") == "failed"
    if output is None or isinstance(output, str):
        return ClientResult(call_id, output or [], failed, rest)
    return ClientResult(call_id, dumps(output).decode(), failed, rest)
