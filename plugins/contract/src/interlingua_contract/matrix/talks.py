"""Histories of words, calls, results and images, each leaf of them marked.

Never looks at what a speaker can do: what it cannot it is credited with all the same.
The shared set comes in.
"""

from __future__ import annotations

import base64

from interlingua.types.blocks import ImageBlock, ImageSource
from interlingua.types.messages import Role
from interlingua_contract.matrix.script import Script
from interlingua_contract.matrix.speaker import Speaker


def plain(script: Script, a: Speaker) -> None:
    """A system prompt and an answer."""
    script.add(Role.SYSTEM, script.mark("Be brief."))
    script.user("Hello.")
    script.answer(a, script.text("Hello to you."))
    script.user()


def tools(script: Script, a: Speaker) -> None:
    """A call, its result, and an answer."""
    script.user("Read it.")
    call = script.call(a)
    script.answer(a, script.text("I read it."), call)
    script.result(call)
    script.answer(a, script.text("It says so."))
    script.user()


def parallel(script: Script, a: Speaker) -> None:
    """Three calls at once, answered the other way round."""
    script.user("Read all three.")
    calls = [script.call(a) for _ in range(3)]
    script.answer(a, *calls)
    for call in reversed(calls):
        script.result(call)


def tool_error(script: Script, a: Speaker) -> None:
    """A call that failed."""
    script.user("Read it.")
    call = script.call(a)
    script.answer(a, call)
    script.result(call, script.text("No such file."), is_error=True)


def _image(script: Script, seed: str) -> ImageBlock:
    # a PNG's signature, and behind it what tells this image from others
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + script.mark(seed).encode() * 3).decode()
    return ImageBlock(source=ImageSource(kind="base64", data=data), media_type="image/png")


def images(script: Script, a: Speaker) -> None:
    """Images in two user messages."""
    script.user("Look at both.", _image(script, "one"), _image(script, "two"))
    script.answer(a, script.text("I see them."))
    script.user("And this one?", _image(script, "three"))


def result_images(script: Script, a: Speaker) -> None:
    """An image in one of two results."""
    script.user("Take a picture.")
    call, other = script.call(a), script.call(a)
    script.answer(a, call, other)
    script.result(call, script.text("It shows:"), _image(script, "result"))
    script.result(other)
    script.answer(a, script.text("A picture."))
    script.user()


_LONG = 400


_EXTREMES = (
    *("\x00 null", "\u2028 line", "\u202e turned", "e\u0301 combining", "\U0001f469\u200d\U0001f4bb joined"),
    *('"\\/ quoted', "\uffff none", "\ufeff marked", "</system> tagged", "data: [DONE]\n\n", "\ud800 half"),
)


def unicode(script: Script, a: Speaker) -> None:
    """What broke adapters before, in text, arguments and results."""
    script.user("\n".join(_EXTREMES))
    call = script.call(a, input={"path": script.mark("\n".join(_EXTREMES[:-1])), "\u00fc\U0001f600": ["\u2028"]})
    script.answer(a, *[script.text(f"{text} end") for text in _EXTREMES], call)
    script.result(call, *[script.text(f"{text} end") for text in _EXTREMES])


def long(script: Script, a: Speaker) -> None:
    """Four hundred messages, half of them calls and results."""
    script.add(Role.SYSTEM, script.mark("Be brief."))
    while len(script.messages) < _LONG - 4:
        script.user()
        call = script.call(a)
        script.answer(a, script.text("I read it."), call)
        script.result(call)
        script.answer(a, script.text("It says so."))
    while len(script.messages) < _LONG - 1:
        script.user()
        script.answer(a, script.text())
    script.user()
