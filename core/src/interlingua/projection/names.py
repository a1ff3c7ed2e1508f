"""Tool names on a target's wire: the same for a definition, its calls and their results.

Never looks at other names: a name that does not fit carries a digest of itself, so two never meet (DESIGN 3).
The projection walk and the façade come in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from interlingua.errors import CapabilityError
from interlingua.projection.ids import digest
from interlingua.projection.target import Target
from interlingua.tools import ToolDefinition
from interlingua.wire import Loss

_DIGEST = 8
_LETTERS = (r"[^A-Za-z0-9_-]", r"[^A-Za-z0-9_]", r"[^A-Za-z0-9]")


def wire_name(name: str, target: Target) -> str:
    """Return the name itself where it fits, else what is left of it with its digest.

    Raises:
        CapabilityError: the declared pattern takes no name that could be built.
    """
    limit = target.capabilities.tool_name_max_length
    if len(name) <= limit and target.name_pattern.fullmatch(name):
        return name
    for letters in _LETTERS:
        stem = re.sub(letters, "_", name) if "_" in letters else re.sub(letters, "", name)
        for joint in ("_", ""):
            made = stem[: max(limit - _DIGEST - len(joint), 0)] + joint + digest(name, min(_DIGEST, limit))
            if target.name_pattern.fullmatch(made):
                return made
            if target.name_pattern.fullmatch("t" + made[1:]):
                return "t" + made[1:]
    raise CapabilityError(f"no form of the tool name {name!r} fits the pattern {target.name_pattern.pattern!r}")


def wire_tools(
    tools: Sequence[ToolDefinition], target: Target
) -> tuple[Sequence[ToolDefinition], Mapping[str, str], tuple[Loss, ...]]:
    """Return the definitions under the names their calls have on the wire, the canonical name of each, and the losses.

    Raises:
        CapabilityError: the declared pattern takes no name that could be built.
    """
    if not target.capabilities.supports_tools:
        reason = "this target has no tools"
        rows = [
            Loss(path=f"tools[{at}]", block_type="tool", verdict="dropped", reason=reason) for at in range(len(tools))
        ]
        return (), {}, tuple(rows)
    names = [wire_name(tool.name, target) for tool in tools]
    changed = {name: tool.name for name, tool in zip(names, tools, strict=True) if name != tool.name}
    if changed:
        tools = [attrs.evolve(tool, name=name) for name, tool in zip(names, tools, strict=True)]
    return tools, changed, ()
