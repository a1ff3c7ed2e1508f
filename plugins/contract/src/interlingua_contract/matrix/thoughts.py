"""Histories of thinking, and histories that were broken off: what providers bind, drop or refuse.

Never repairs anything (projection does).
The shared set comes in.
"""

from __future__ import annotations

from collections.abc import Callable

from interlingua.types.blocks import RedactedThinkingBlock, ThinkingBlock, ToolResultBlock
from interlingua.types.messages import MessageMetadata, MessageStatus, Role
from interlingua_contract.matrix.script import Script
from interlingua_contract.matrix.speaker import Speaker


def thinking(*thoughts: Callable[[Script], ThinkingBlock | RedactedThinkingBlock]) -> Callable[[Script, Speaker], None]:
    """Return a history with thoughts before a call and before an answer."""

    def write(script: Script, a: Speaker) -> None:
        script.user("Think, then read it.")
        call = script.call(a)
        script.answer(a, *[thought(script) for thought in thoughts], script.text("I read it."), call)
        script.result(call)
        script.answer(a, *[thought(script) for thought in thoughts], script.text("It says so."))
        script.user()

    return write


def signed(script: Script) -> ThinkingBlock:
    """Return signed thinking."""
    return ThinkingBlock(text=script.mark("I think."), signature=script.opaque("signature"))


def unsigned(script: Script) -> ThinkingBlock:
    """Return thinking that nobody signed."""
    return ThinkingBlock(text=script.mark("I think."))


def redacted(script: Script) -> RedactedThinkingBlock:
    """Return thinking the provider encoded."""
    return RedactedThinkingBlock(data=script.opaque("redacted"))


def aborted(script: Script, a: Speaker) -> None:
    """An answer cut off in the middle of a call."""
    script.user("Tell me, then read it.")
    half = script.call(a, input={}, raw_input='{"path": "a.t', parse_error="arguments are not JSON: cut off")
    status = MessageStatus.PARTIAL
    script.answer(a, unsigned(script), script.text("I was going to"), half, status=status)
    script.user("Again, please.")


def dangling(script: Script, a: Speaker) -> None:
    """Two calls, one never answered."""
    script.user("Read both.")
    first, second = script.call(a), script.call(a)
    script.answer(a, script.text("I read them."), first, second)
    script.result(first)
    script.user("Never mind the other.")


def orphan(script: Script, a: Speaker) -> None:
    """A result of a call nobody made."""
    script.user("Hello.")
    script.answer(a, script.text("Hello to you."))
    lost = ToolResultBlock(tool_use_id=script.mint(), content=(script.text("Nobody asked."),), tool_name="read_file")
    script.add(Role.TOOL, (lost,), MessageMetadata(parent_tool_use_id=lost.tool_use_id))
    script.user()
