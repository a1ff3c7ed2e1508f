"""Hypothesis strategies for conversations: all block types, swaps between two origins, parallel calls, failures."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from interlingua.types.blocks import (
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.types.messages import (
    Message,
    MessageMetadata,
    MessageStatus,
    Origin,
    Provenance,
    Role,
    StopReason,
    Usage,
)

EXTREMES = (
    *("", " ", "\n", "a \n", "\x00", "\ud800", "\U0001f701\U0001f702", "\u202eabc", "e\u0301", '"\\/', "\u2028"),
    *("\uffff", "<system>", "x" * 300),
)
NAMES = ("read_file", "search", "run_2")
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()

texts = st.one_of(st.sampled_from(EXTREMES), st.text(max_size=12))
hints = st.one_of(st.none(), st.none(), st.none(), st.builds(CacheHint, ttl=st.sampled_from([None, "5m", "1h"])))
inputs = st.dictionaries(
    st.sampled_from(["path", "q", "n"]),
    st.one_of(st.text(max_size=5), st.integers(), st.none(), st.lists(st.booleans(), max_size=2)),
    max_size=3,
)
images = st.builds(
    ImageBlock,
    source=st.one_of(
        st.just(MediaSource(kind="base64", data=PIXEL)),
        st.just(MediaSource(kind="url", data="https://example.com/a.png")),
    ),
    media_type=st.just("image/png"),
    cache=hints,
)
documents = st.builds(
    DocumentBlock,
    source=st.just(MediaSource(kind="base64", data=base64.b64encode(b"plain").decode())),
    media_type=st.sampled_from(["text/plain", "application/pdf"]),
    title=st.sampled_from([None, "a title"]),
)
text_blocks = st.builds(TextBlock, text=texts, cache=hints)


@st.composite
def _assistant(draw: st.DrawFn, origin: Origin, number: int) -> Message:
    """One answer of an origin, or one written by hand."""
    content: list[ContentBlock] = []
    if draw(st.booleans()):
        signature = draw(st.sampled_from([None, "", f"sig-{number}"]))
        content.append(ThinkingBlock(text=draw(texts), signature=signature))
    if draw(st.integers(0, 5)) == 0:
        content.append(RedactedThinkingBlock(data=f"redacted-{number}"))
    cited = draw(st.integers(0, 5)) == 0
    citations: tuple[dict[str, Any], ...] = ({"type": "char_location", "cited_text": "x"},) if cited else ()
    content.append(TextBlock(text=draw(texts), citations=citations, cache=draw(hints)))
    if draw(st.integers(0, 6)) == 0:
        data = {"type": "server_tool_use", "id": f"srv_{number}", "name": "web_search", "input": {}}
        answer = {"type": "web_search_tool_result", "tool_use_id": f"srv_{number}", "content": []}
        content.append(OpaqueBlock(provider=origin.provider, kind="server_tool_use", data=data))
        content.append(OpaqueBlock(provider=origin.provider, kind="web_search_tool_result", data=answer))
    calls = draw(st.integers(0, 3))
    content.extend(draw(_call(number, at)) for at in range(calls))
    if draw(st.integers(0, 7)) == 0:
        return Message(role=Role.ASSISTANT, content=tuple(content))
    metadata = MessageMetadata(
        model=f"{origin.provider}:{origin.model}",
        provider=origin.provider,
        api=origin.api,
        usage=Usage(),
        status=draw(st.sampled_from([*[MessageStatus.COMPLETE] * 4, MessageStatus.PARTIAL, MessageStatus.CANCELLED])),
        stop_reason=StopReason.TOOL_USE if calls else StopReason.END_TURN,
        provenance=Provenance.GENERATED,
    )
    return Message(role=Role.ASSISTANT, content=tuple(content), metadata=metadata)


@st.composite
def _call(draw: st.DrawFn, number: int, at: int) -> ToolUseBlock:
    broken = draw(st.integers(0, 7)) == 0
    issued = draw(st.sampled_from([None, f"toolu_{number}_{at}", f"call {number}|{at}", "same", "x" * 70]))
    return ToolUseBlock(
        id=f"tu_{number}_{at}",
        name=draw(st.sampled_from(NAMES)),
        input={} if broken else draw(inputs),
        provider_id=issued,
        raw_input='{"cut": ' if broken else None,
        parse_error="arguments are not JSON" if broken else None,
        cache=draw(hints),
    )


@st.composite
def _results(draw: st.DrawFn, answer: Message) -> list[Message]:
    """Results for some of the calls, in any order, and now and then one that nobody asked for."""
    made = []
    for call in draw(st.permutations(answer.tool_calls)):
        if draw(st.integers(0, 4)) == 0:
            continue  # dangling
        content = draw(st.lists(st.one_of(text_blocks, images, documents), max_size=3))
        block = ToolResultBlock(
            tool_use_id=call.id,
            content=tuple(content),
            is_error=draw(st.booleans()),
            tool_name=call.name,
            cache=draw(hints),
        )
        made.append(_tool(block))
    if draw(st.integers(0, 6)) == 0:
        made.append(_tool(ToolResultBlock(tool_use_id="tu_nobody", content="orphan")))
    return made


def _tool(block: ToolResultBlock) -> Message:
    metadata = MessageMetadata(parent_tool_use_id=block.tool_use_id)
    return Message(role=Role.TOOL, content=(block,), metadata=metadata)


@st.composite
def histories(draw: st.DrawFn, first: Origin, second: Origin, *, turns: int = 6) -> list[Message]:
    """A conversation in which two origins answer in any order.

    Args:
        draw: Hypothesis's own.
        first: one origin.
        second: the other; the same one for a conversation without swaps.
        turns: the most answers.
    """
    made: list[Message] = [
        Message(role=Role.SYSTEM, content=(draw(text_blocks),)) for _ in range(draw(st.integers(0, 2)))
    ]
    for number in range(draw(st.integers(1, turns))):
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 0]))):
            blocks = draw(st.lists(st.one_of(text_blocks, images, documents), min_size=1, max_size=3))
            made.append(Message(role=Role.USER, content=tuple(blocks)))
        if draw(st.integers(0, 5)) == 0:
            made.append(Message(role=Role.SYSTEM, content=(draw(text_blocks),)))
        answer = draw(_assistant(draw(st.sampled_from([first, second])), number))
        made.append(answer)
        results = draw(_results(answer))
        if results and draw(st.integers(0, 5)) == 0:
            results.insert(0, Message(role=Role.SYSTEM, content=(draw(text_blocks),)))
        made.extend(results)
    if draw(st.booleans()):
        made.append(Message(role=Role.USER, content=(TextBlock(text="go on"),)))
    return made


def request_points(messages: list[Message]) -> list[list[Message]]:
    """Return the conversation at each point where a request is made: before every answer, and at the end."""
    points = [messages[:at] for at, message in enumerate(messages) if message.role is Role.ASSISTANT and at]
    return [*points, messages]
