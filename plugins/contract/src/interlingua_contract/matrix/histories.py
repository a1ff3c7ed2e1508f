"""The shared set of histories that are swapped, written message by message with fixed ids and times."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from interlingua.types import (
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    MessageStatus,
    ModelCapabilities,
    Provenance,
    RedactedThinkingBlock,
    Role,
    SideEffects,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    tool_result,
    user,
)
from interlingua_contract import json_paths
from interlingua_contract.matrix.sides import Speaker

_FORMS = ("call_{}", "{}")
_LENGTHS = (24, 9)


def make_issued_id(speaker: Speaker, number: int) -> str | None:
    """Return a call id as this speaker would issue it, or None if its wire carries none."""
    return _matching_id(speaker, number) if _carries_ids(speaker) else None


def _matching_id(speaker: Speaker, number: int) -> str | None:
    declared: ModelCapabilities = speaker.side.capabilities(speaker.model)
    fits = re.compile(declared.tool_id_pattern).fullmatch
    digits = hashlib.sha256(f"{speaker.side.name} {number}".encode()).hexdigest()
    made = [form.format(digits[:length]) for length in _LENGTHS for form in _FORMS]
    return next((one for one in made if len(one) <= declared.tool_id_max_length and fits(one)), None)


def _carries_ids(speaker: Speaker) -> bool:
    """Tell whether this wire carries call ids; found once for each model."""
    known = speaker.side.issuing
    if speaker.model not in known:
        issued = _matching_id(speaker, 0)
        call = ToolUseBlock(id=issued or "tu_0", name="ask", provider_id=issued)
        metadata = _credit_to(speaker, provenance=Provenance.IMPORTED)
        answer = Message(role=Role.ASSISTANT, content=(call,), metadata=metadata)
        history = [user("q"), answer, tool_result(call, "r")]
        body = json.loads(speaker.side.write(speaker.model, history, ()).body)
        known[speaker.model] = issued in json_paths.texts(body)
    return known[speaker.model]


def _credit_to(speaker: Speaker, **facts: Any) -> MessageMetadata:
    origin = speaker.side.origin(speaker.model)
    model = f"{origin.provider}:{origin.model}"
    return MessageMetadata(model=model, provider=origin.provider, api=origin.api, **facts)


THEN = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = "matrix"
_TIME = "01KDVBKF00"  # the first ten letters of a ULID of that day


class Script:
    """Writes a history, message by message."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.answered_at: list[int] = []
        self._calls = 0
        self._mark = 0

    def fork(self) -> Script:
        """Return an independent copy; the messages are the same objects."""
        copy = Script()
        copy.messages, copy.answered_at = self.messages[:], self.answered_at[:]
        copy._calls, copy._mark = self._calls, self._mark
        return copy

    @property
    def next_id(self) -> str:
        """The id of the message that comes next."""
        return f"{_TIME}{len(self.messages):016d}"

    def mark(self, text: str = "") -> str:
        """Return a string that appears nowhere else in the history."""
        self._mark += 1
        return f"mk{self._mark}q {text}".rstrip() if text else f"mk{self._mark}q"

    def opaque(self, seed: str) -> str:
        """Return base64, the form of signatures and encoded thinking, that appears nowhere else in the history."""
        return base64.b64encode(self.mark(seed).encode() * 4).decode()

    def add(
        self, role: Role, content: Iterable[ContentBlock] | str, metadata: MessageMetadata | None = None
    ) -> Message:
        """Add a message."""
        message = Message(
            id=self.next_id,
            session_id=SESSION,
            role=role,
            content=content if isinstance(content, str) else tuple(content),
            metadata=metadata or MessageMetadata(),
            created_at=THEN + timedelta(seconds=len(self.messages)),
        )
        return self.take(message)

    def take(self, message: Message) -> Message:
        """Add a message that is ready."""
        if message.role is Role.ASSISTANT:
            self.answered_at.append(len(self.messages))
        self.messages.append(message)
        return message

    def user(self, text: str = "Go on.", *blocks: ContentBlock) -> None:
        """Add a user's message."""
        self.add(Role.USER, [TextBlock(text=self.mark(text)), *blocks])

    def mint(self) -> str:
        """Return a canonical call id."""
        self._calls += 1
        return f"tu_{_TIME}{self._calls:016d}"

    def call(self, speaker: Speaker, **facts: Any) -> ToolUseBlock:
        """Return a call as the speaker would make it."""
        made = self.mint()
        given = {"input": {"path": self.mark()}, **facts}
        return ToolUseBlock(id=made, name="read_file", provider_id=make_issued_id(speaker, self._calls), **given)

    def answer(
        self,
        speaker: Speaker,
        *content: ContentBlock,
        status: MessageStatus = MessageStatus.COMPLETE,
        reason: StopReason = StopReason.END_TURN,
    ) -> Message:
        """Add an answer of a speaker; one with calls stopped for them."""
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        whole = status is MessageStatus.COMPLETE
        metadata = _credit_to(
            speaker,
            usage=Usage() if whole else None,
            status=status,
            stop_reason=(StopReason.TOOL_USE if calls else reason) if whole else None,
            provenance=Provenance.GENERATED,
        )
        return self.add(Role.ASSISTANT, content, metadata)

    def text(self, text: str = "Said.") -> TextBlock:
        """Return a text block with a unique text."""
        return TextBlock(text=self.mark(text))

    def result(self, call: ToolUseBlock, *parts: ContentBlock, is_error: bool = False) -> None:
        """Answer a call."""
        content = parts or (self.text("Read."),)
        block = ToolResultBlock(tool_use_id=call.id, content=content, is_error=is_error, tool_name=call.name)
        self.add(Role.TOOL, (block,), MessageMetadata(parent_tool_use_id=call.id))


def greeting(script: Script, a: Speaker) -> None:
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
    """Three calls at once, answered in reverse order."""
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
    # a PNG's signature, followed by what makes this image unique
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + script.mark(seed).encode() * 3).decode()
    return ImageBlock(source=MediaSource(kind="base64", data=data), media_type="image/png")


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


def documents(script: Script, a: Speaker) -> None:
    """A PDF with a title before its question, and an answer."""
    data = base64.b64encode(b"%PDF-1.4\n" + script.mark("document").encode() * 3).decode()
    source = MediaSource(kind="base64", data=data)
    script.user("Read this.", DocumentBlock(source=source, title=script.mark("report, May.pdf")))
    script.answer(a, script.text("I read it."))
    script.user()


def cited(script: Script, a: Speaker) -> None:
    """An answer with a citation, in the form of its provider that is documented best."""
    script.user("What is written there?")
    where = {"type": "char_location", "cited_text": script.mark("Written."), "document_index": 0,
             "document_title": script.mark("Book"), "start_char_index": 0, "end_char_index": 8}  # fmt: skip
    script.answer(a, TextBlock(text=script.mark("It says so."), citations=(where,)), script.text("No more."))
    script.user()


def cached(script: Script, a: Speaker) -> None:
    """A system prompt and a question with cache hints."""
    hint = CacheHint(ttl="1h")
    script.add(Role.SYSTEM, [TextBlock(text=script.mark("Be brief."), cache=hint)])
    script.add(Role.USER, [TextBlock(text=script.mark("Hello."), cache=CacheHint())])
    script.answer(a, script.text("Hello to you."))
    script.user()


def refused(script: Script, a: Speaker) -> None:
    """A refusal instead of an answer."""
    script.user("Tell me.")
    script.answer(a, script.text("I cannot help with that."), reason=StopReason.REFUSAL)
    script.user("Something else, then.")


_LONG = 400

_EXTREMES = (
    *("\x00 null", "\u2028 line", "\u202e turned", "e\u0301 combining", "\U0001f469\u200d\U0001f4bb joined"),
    *('"\\/ quoted', "\uffff none", "\ufeff marked", "</system> tagged", "data: [DONE]\n\n", "\ud800 half"),
)


def unicode(script: Script, a: Speaker) -> None:
    """Texts that often break adapters, in text, arguments and results."""
    script.user("\n".join(_EXTREMES))
    call = script.call(a, input={"path": script.mark("\n".join(_EXTREMES[:-1])), "\u00fc\U0001f600": ["\u2028"]})
    script.answer(a, *[script.text(f"{text} end") for text in _EXTREMES], call)
    script.result(call, *[script.text(f"{text} end") for text in _EXTREMES])


def four_hundred_messages(script: Script, a: Speaker) -> None:
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
    """Return unsigned thinking."""
    return ThinkingBlock(text=script.mark("I think."))


def redacted(script: Script) -> RedactedThinkingBlock:
    """Return thinking the provider encoded."""
    return RedactedThinkingBlock(data=script.opaque("redacted"))


def aborted(script: Script, a: Speaker) -> None:
    """An answer cut off in the middle of a call."""
    script.user("Tell me, then read it.")
    half = script.call(a, input={}, raw_input='{"path": "a.t', parse_error="arguments are not JSON: cut off")
    script.answer(a, unsigned(script), script.text("I was going to"), half, status=MessageStatus.PARTIAL)
    script.user("Again, please.")


def dangling(script: Script, a: Speaker) -> None:
    """Two calls, one never answered."""
    script.user("Read both.")
    first, second = script.call(a), script.call(a)
    script.answer(a, script.text("I read them."), first, second)
    script.result(first)
    script.user("Never mind the other.")


def orphan(script: Script, a: Speaker) -> None:
    """A result of a call that does not exist."""
    script.user("Hello.")
    script.answer(a, script.text("Hello to you."))
    lost = ToolResultBlock(tool_use_id=script.mint(), content=(script.text("Nobody asked."),), tool_name="read_file")
    script.add(Role.TOOL, (lost,), MessageMetadata(parent_tool_use_id=lost.tool_use_id))
    script.user()


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
        name: name for people.
        needs: capabilities that a model must declare for all of it to be exercised.
        write: writes it on behalf of a speaker; it ends where a request can be sent.
    """

    name: str
    needs: tuple[str, ...]
    write: Write


_CALLS = ("supports_tools", "supports_parallel_tool_calls")
_THINKS = ("supports_thinking", "supports_tools")

HISTORIES: tuple[History, ...] = (
    History(name="plain", needs=("supports_system_prompt",), write=greeting),
    History(name="tools", needs=_CALLS[:1], write=tools),
    History(name="parallel tools", needs=_CALLS, write=parallel),
    History(name="tool error", needs=_CALLS[:1], write=tool_error),
    History(name="images", needs=("supports_images",), write=images),
    History(
        name="images in results", needs=(*_CALLS, "supports_images", "supports_tool_result_images"), write=result_images
    ),
    History(name="documents", needs=("supports_documents",), write=documents),
    History(name="cited answer", needs=("supports_citations",), write=cited),
    History(name="cached prompt", needs=("supports_prompt_caching", "supports_system_prompt"), write=cached),
    History(name="refused answer", needs=(), write=refused),
    History(name="thinking, signed", needs=_THINKS, write=thinking(signed)),
    History(name="thinking, redacted", needs=_THINKS, write=thinking(signed, redacted)),
    History(name="thinking, unsigned", needs=(*_THINKS, "accepts_unsigned_thinking"), write=thinking(unsigned)),
    History(name="aborted answer", needs=_THINKS, write=aborted),
    History(name="call never answered", needs=_CALLS, write=dangling),
    History(name="result of no call", needs=_CALLS[:1], write=orphan),
    History(name="unicode extremes", needs=_CALLS[:1], write=unicode),
    History(name="400 messages", needs=_CALLS[:1], write=four_hundred_messages),
)
"""The shared set."""
