"""Tools of this service that the caller runs: a shell, a text editor, a computer, a memory (WIRE.md, Tools)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.types import ToolDefinition, ToolKind, WireTool
from interlingua_anthropic.models import API

_TYPE = re.compile(r"(bash|text_editor|computer|memory)_(\d{8})")
_RENAMED = "20250429"  # from this version the editor has another name
_NAMES = {"text_editor": "str_replace_based_edit_tool"}
_OLD_EDITOR = "str_replace_editor"
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_POINT = {"type": "array", "items": _NUMBER}


class _ToolForm(NamedTuple):
    kind: ToolKind
    description: str
    required: tuple[str, ...]
    properties: Mapping[str, Any]


_FILES = {"path": _TEXT, "file_text": _TEXT, "old_str": _TEXT, "new_str": _TEXT, "insert_line": _NUMBER,
          "insert_text": _TEXT, "view_range": _POINT}  # fmt: skip
_FORMS = {
    "bash": _ToolForm(
        ToolKind.EXECUTE, "Runs a command in a shell that stays open; restart begins a new one.", (),
        {"command": _TEXT, "restart": {"type": "boolean"}},
    ),
    "text_editor": _ToolForm(
        ToolKind.EDIT, "Views and edits text files: view, create, str_replace and insert.", ("command", "path"),
        {"command": _TEXT, **_FILES},
    ),
    "computer": _ToolForm(
        ToolKind.OTHER, "Acts on a computer's screen, keyboard and mouse, and returns screenshots.", ("action",),
        {"action": _TEXT, "coordinate": _POINT, "start_coordinate": _POINT, "text": _TEXT, "scroll_direction": _TEXT,
         "scroll_amount": _NUMBER, "duration": {"type": "number"}, "region": _POINT},
    ),
    "memory": _ToolForm(
        ToolKind.OTHER, "Keeps notes as files below /memories: view, create, str_replace, insert, delete and rename.",
        ("command",), {"command": _TEXT, **_FILES, "old_path": _TEXT, "new_path": _TEXT},
    ),
}  # fmt: skip


def client_tool(kind: str, **members: Any) -> WireTool:
    """Return the definition of a tool of the service that the caller runs; other services get it as a plain function.

    Args:
        kind: its type, such as `bash_20250124`, `text_editor_20250728`, `computer_20251124` or `memory_20250818`.
        **members: further members of the definition, such as `display_width_px`.

    Raises:
        ValueError: no such tool.
    """
    match = _TYPE.fullmatch(kind)
    if match is None:
        raise ValueError(f"{kind!r} is not a tool that the caller runs: bash_…, text_editor_…, computer_… or memory_…")
    family, version = match.groups()
    form = _FORMS[family]
    name = _OLD_EDITOR if family == "text_editor" and version < _RENAMED else _NAMES.get(family, family)
    return WireTool(
        name=name,
        description=form.description,
        input_schema={"type": "object", "properties": form.properties, "required": list(form.required)},
        kind=form.kind,
        requires_workspace=False,
        extra={"type": kind, **members},
        api=API,
    )


def from_wire_client_tool(tool: Mapping[str, Any]) -> WireTool | None:
    """Return the definition of a tool in a caller's request; None if it is another tool."""
    kind = tool.get("type")
    if not isinstance(kind, str) or _TYPE.fullmatch(kind) is None or "cache_control" in tool:
        return None
    made = client_tool(kind, **{name: value for name, value in tool.items() if name not in ("type", "name")})
    return made if made.name == tool.get("name") else None


def to_wire_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return the definition of any tool; the service knows description and schema of its tools."""
    extra = tool.extra_of(API)
    if _TYPE.fullmatch(str(extra.get("type"))) is not None:
        return {"type": extra["type"], "name": tool.name, **extra}
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **description, "input_schema": tool.input_schema, **extra}


def beta_of(extra: Mapping[str, Any]) -> str | None:
    """Return the beta feature that the tool needs; None if it needs none."""
    match = _TYPE.fullmatch(str(extra.get("type")))
    if match is None or match[1] != "computer":
        return None
    year, month, day = match[2][:4], match[2][4:6], match[2][6:]
    return f"computer-use-{year}-{month}-{day}"
