"""Rules that need the tool definitions: inputs against schemas, and the definitions among themselves.

Never refuses an input: a model's mistake is surfaced as `tool_input_invalid`, and a tool loop answers it with an error.
The check module comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlingua.blocks import ToolUseBlock
from interlingua.invariants.violation import Violation, broken, rule
from interlingua.messages import Message
from interlingua.tools import ToolDefinition, validate_input


@rule
def i23_inputs_fit_definitions(message: Message, definitions: Mapping[str, ToolDefinition]) -> Iterator[Violation]:
    """A call's input fits the schema of its tool, where that is given (seed 003 §4.2, §5).

    An input that could not be parsed does not fit; it is kept, and sent back as it came (REGRESSIONS case 14).
    """
    this = i23_inputs_fit_definitions
    for index, block in enumerate(message.content):
        definition = definitions.get(block.name) if type(block) is ToolUseBlock else None
        if type(block) is not ToolUseBlock or definition is None:
            continue
        path = f"content[{index}].input"
        if block.parse_error is not None:
            yield broken(this, path, block.parse_error, repairable=True)
            continue
        for found in validate_input(definition, block.input):
            yield broken(this, path + found.path, found.message, repairable=True)


@rule
def i24_tool_names_are_unique(tools: Sequence[ToolDefinition]) -> Iterator[Violation]:
    """No two tools of a request share a name (seed 003 §4.5: globally unique)."""
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        if seen.setdefault(tool.name, index) != index:
            text = f"{tool.name!r} is the name of tools[{seen[tool.name]}] too"
            yield broken(i24_tool_names_are_unique, f"tools[{index}].name", text)
