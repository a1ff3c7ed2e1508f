"""The shared set of histories (issue 4), each begun on one provider and ready to be sent to the next.

Never knows who speaks: a speaker is handed in, and what it cannot do it is credited with all the same.
The grid comes in, and what needs its tools: the recorded histories and the written request.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_contract.matrix import talks, thoughts
from interlingua_contract.matrix.script import Script
from interlingua_contract.matrix.speaker import Speaker

Write = Callable[[Script, Speaker], None]


TOOLS = (
    ToolDefinition(
        name="read_file",
        description="Read a file.",
        input_schema={
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where it is."}},
            "required": ["path"],
        },
        side_effects=SideEffects.READ,
    ),
)


@attrs.frozen(kw_only=True)
class History:
    """One history of the set.

    Attributes:
        name: for people.
        needs: capabilities that a model must declare for all of it to be exercised.
        write: writes it on behalf of a speaker; it ends where a request can be sent.
    """

    name: str
    needs: tuple[str, ...]
    write: Write


_CALLS = ("supports_tools", "supports_parallel_tool_calls")


_THINKS = ("supports_thinking", "supports_tools")


HISTORIES: tuple[History, ...] = (
    History(name="plain", needs=("supports_system_prompt",), write=talks.plain),
    History(name="tools", needs=_CALLS[:1], write=talks.tools),
    History(name="parallel tools", needs=_CALLS, write=talks.parallel),
    History(name="tool error", needs=_CALLS[:1], write=talks.tool_error),
    History(name="images", needs=("supports_images",), write=talks.images),
    History(
        name="images in results",
        needs=(*_CALLS, "supports_images", "supports_tool_result_images"),
        write=talks.result_images,
    ),
    History(name="thinking, signed", needs=_THINKS, write=thoughts.thinking(thoughts.signed)),
    History(name="thinking, redacted", needs=_THINKS, write=thoughts.thinking(thoughts.signed, thoughts.redacted)),
    History(
        name="thinking, unsigned",
        needs=(*_THINKS, "accepts_unsigned_thinking"),
        write=thoughts.thinking(thoughts.unsigned),
    ),
    History(name="aborted answer", needs=_THINKS, write=thoughts.aborted),
    History(name="call never answered", needs=_CALLS, write=thoughts.dangling),
    History(name="result of no call", needs=_CALLS[:1], write=thoughts.orphan),
    History(name="unicode extremes", needs=_CALLS[:1], write=talks.unicode),
    History(name="400 messages", needs=_CALLS[:1], write=talks.long),
)


"""The shared set, in the order of the issue that asks for it."""
