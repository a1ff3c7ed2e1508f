"""Tools -> `tools`, with what the server would drop from a schema already gone, and told (sheet ollama §2).

Never changes the definition it is given (REGRESSIONS case 23). `to_wire` and `estimate` come in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlingua.json import dumps
from interlingua.plugins.encoding import json_array
from interlingua.plugins.wire import Loss
from interlingua.types.tool_schemas import to_wire_function_tool
from interlingua.types.tools import ToolDefinition

# of what a canonical schema may hold; the server also knows `$defs` at the root and `anyOf` in properties
_ROOT = frozenset(("type", "items", "required", "properties"))
_PROPERTY = frozenset(("type", "items", "description", "enum", "properties", "required"))


def to_wire_tools(tools: Sequence[ToolDefinition]) -> tuple[bytes, tuple[Loss, ...]]:
    """Return the tool list and what it lost."""
    wire: list[bytes] = []
    losses: list[Loss] = []
    for at, tool in enumerate(tools):
        gone: list[str] = []
        wrapped = to_wire_function_tool(tool)
        schema = _pruned(tool.input_schema, _ROOT, "input_schema", gone)
        wrapped["function"]["parameters"] = {"type": "object", "properties": {}, **schema}
        wire.append(dumps(wrapped))
        reason = "the server does not read this part of a schema"
        losses += [Loss(path=f"tools[{at}].{path}", block_type="tool", verdict="dropped", reason=reason)
                   for path in gone]  # fmt: skip
        if tool.cache is not None:
            reason = "this wire has no cache markers; its own caching applies"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=reason))
    return json_array(wire), tuple(losses)


def _pruned(schema: Mapping[str, Any], kept: frozenset[str], path: str, gone: list[str]) -> dict[str, Any]:
    """Return the part of a schema that the server decodes; what stands in `items` it takes as it is."""
    gone += [f"{path}.{key}" for key in schema if key not in kept]
    return {key: value for key, value in _members(schema, path, gone) if key in kept}


def _members(schema: Mapping[str, Any], path: str, gone: list[str]) -> Iterator[tuple[str, Any]]:
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            inner = {name: _property(item, f"{path}.properties.{name}", gone) for name, item in value.items()}
            yield key, inner
        else:
            yield key, value


def _property(value: Any, path: str, gone: list[str]) -> Any:
    return _pruned(value, _PROPERTY, path, gone) if isinstance(value, Mapping) else value
