"""Tool definitions over the schema subset of seed 003 §5.4.

Never makes a schema that registering a tool would refuse.
The strategies room comes in.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_contract.strategies.blocks import texts

NAMES = ("read_file", "search", "run_2")


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Object schemas with a few properties."""
    described = st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean"])})
    listed = st.builds(lambda item: {"type": "array", "items": item}, described)
    properties = st.dictionaries(st.sampled_from(["path", "q", "n"]), st.one_of(described, listed), max_size=3)
    return st.builds(
        lambda named, closed: {
            "type": "object",
            "properties": named,
            "required": sorted(named)[:1],
            **({"additionalProperties": False} if closed else {}),
        },
        properties,
        st.booleans(),
    )


def tools(*, most: int = 3) -> st.SearchStrategy[list[ToolDefinition]]:
    """Lists of tools with different names."""
    one = st.builds(
        ToolDefinition,
        name=st.sampled_from(NAMES),
        description=texts(),
        input_schema=schemas(),
        side_effects=st.sampled_from(list(SideEffects)),
    )
    return st.lists(one, max_size=most, unique_by=lambda tool: tool.name)
