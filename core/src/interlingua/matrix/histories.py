"""The shared set of histories (issue 4), each begun on one provider and ready to be sent to the next.

Never knows who speaks: a speaker is handed in, and what it cannot do it is credited with all the same.
The grid comes in.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import attrs

from interlingua.blocks import ImageBlock, ImageSource, RedactedThinkingBlock, ThinkingBlock, ToolResultBlock
from interlingua.matrix.script import Script, Speaker
from interlingua.messages import MessageMetadata, MessageStatus, Role
from interlingua.tools import SideEffects, ToolDefinition

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
LONG = 400


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


def _plain(script: Script, a: Speaker) -> None:
    script.add(Role.SYSTEM, script.mark("Be brief."))
    script.user("Hello.")
    script.answer(a, script.text("Hello to you."))
    script.user()


def _tools(script: Script, a: Speaker) -> None:
    script.user("Read it.")
    call = script.call(a)
    script.answer(a, script.text("I read it."), call)
    script.result(call)
    script.answer(a, script.text("It says so."))
    script.user()


def _parallel(script: Script, a: Speaker) -> None:
    script.user("Read all three.")
    calls = [script.call(a) for _ in range(3)]
    script.answer(a, *calls)
    for call in reversed(calls):
        script.result(call)


def _tool_error(script: Script, a: Speaker) -> None:
    script.user("Read it.")
    call = script.call(a)
    script.answer(a, call)
    script.result(call, script.text("No such file."), is_error=True)


def _image(script: Script, seed: str) -> ImageBlock:
    # a PNG's signature, and behind it what tells this image from others
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + script.mark(seed).encode() * 3).decode()
    return ImageBlock(source=ImageSource(kind="base64", data=data), media_type="image/png")


def _images(script: Script, a: Speaker) -> None:
    script.user("Look at both.", _image(script, "one"), _image(script, "two"))
    script.answer(a, script.text("I see them."))
    script.user("And this one?", _image(script, "three"))


def _result_images(script: Script, a: Speaker) -> None:
    script.user("Take a picture.")
    call, other = script.call(a), script.call(a)
    script.answer(a, call, other)
    script.result(call, script.text("It shows:"), _image(script, "result"))
    script.result(other)
    script.answer(a, script.text("A picture."))
    script.user()


def _thinking(*thoughts: Callable[[Script], ThinkingBlock | RedactedThinkingBlock]) -> Write:
    def write(script: Script, a: Speaker) -> None:
        script.user("Think, then read it.")
        call = script.call(a)
        script.answer(a, *[thought(script) for thought in thoughts], script.text("I read it."), call)
        script.result(call)
        script.answer(a, *[thought(script) for thought in thoughts], script.text("It says so."))
        script.user()

    return write


def _signed(script: Script) -> ThinkingBlock:
    return ThinkingBlock(text=script.mark("I think."), signature=script.opaque("signature"))


def _unsigned(script: Script) -> ThinkingBlock:
    return ThinkingBlock(text=script.mark("I think."))


def _redacted(script: Script) -> RedactedThinkingBlock:
    return RedactedThinkingBlock(data=script.opaque("redacted"))


def _aborted(script: Script, a: Speaker) -> None:
    script.user("Tell me, then read it.")
    half = script.call(a, input={}, raw_input='{"path": "a.t', parse_error="arguments are not JSON: cut off")
    status = MessageStatus.PARTIAL
    script.answer(a, _unsigned(script), script.text("I was going to"), half, status=status)
    script.user("Again, please.")


def _dangling(script: Script, a: Speaker) -> None:
    script.user("Read both.")
    first, second = script.call(a), script.call(a)
    script.answer(a, script.text("I read them."), first, second)
    script.result(first)
    script.user("Never mind the other.")


def _orphan(script: Script, a: Speaker) -> None:
    script.user("Hello.")
    script.answer(a, script.text("Hello to you."))
    lost = ToolResultBlock(tool_use_id=script.mint(), content=(script.text("Nobody asked."),), tool_name="read_file")
    script.add(Role.TOOL, (lost,), MessageMetadata(parent_tool_use_id=lost.tool_use_id))
    script.user()


_EXTREMES = (
    *("\x00 null", "\u2028 line", "\u202e turned", "e\u0301 combining", "\U0001f469\u200d\U0001f4bb joined"),
    *('"\\/ quoted', "\uffff none", "\ufeff marked", "</system> tagged", "data: [DONE]\n\n", "\ud800 half"),
)


def _unicode(script: Script, a: Speaker) -> None:
    script.user("\n".join(_EXTREMES))
    call = script.call(a, input={"path": script.mark("\n".join(_EXTREMES[:-1])), "\u00fc\U0001f600": ["\u2028"]})
    script.answer(a, *[script.text(f"{text} end") for text in _EXTREMES], call)
    script.result(call, *[script.text(f"{text} end") for text in _EXTREMES])


def _long(script: Script, a: Speaker) -> None:
    script.add(Role.SYSTEM, script.mark("Be brief."))
    while len(script.messages) < LONG - 4:
        script.user()
        call = script.call(a)
        script.answer(a, script.text("I read it."), call)
        script.result(call)
        script.answer(a, script.text("It says so."))
    while len(script.messages) < LONG - 1:
        script.user()
        script.answer(a, script.text())
    script.user()


_CALLS = ("supports_tools", "supports_parallel_tool_calls")
_THINKS = ("supports_thinking", "supports_tools")
HISTORIES: tuple[History, ...] = (
    History(name="plain", needs=("supports_system_prompt",), write=_plain),
    History(name="tools", needs=_CALLS[:1], write=_tools),
    History(name="parallel tools", needs=_CALLS, write=_parallel),
    History(name="tool error", needs=_CALLS[:1], write=_tool_error),
    History(name="images", needs=("supports_images",), write=_images),
    History(
        name="images in results",
        needs=(*_CALLS, "supports_images", "supports_tool_result_images"),
        write=_result_images,
    ),
    History(name="thinking, signed", needs=_THINKS, write=_thinking(_signed)),
    History(name="thinking, redacted", needs=_THINKS, write=_thinking(_signed, _redacted)),
    History(name="thinking, unsigned", needs=(*_THINKS, "accepts_unsigned_thinking"), write=_thinking(_unsigned)),
    History(name="aborted answer", needs=_THINKS, write=_aborted),
    History(name="call never answered", needs=_CALLS, write=_dangling),
    History(name="result of no call", needs=_CALLS[:1], write=_orphan),
    History(name="unicode extremes", needs=_CALLS[:1], write=_unicode),
    History(name="400 messages", needs=_CALLS[:1], write=_long),
)
"""The shared set, in the order of the issue that asks for it."""
