"""Blocks of every type, with the texts and arguments that broke adapters before.

Never makes a message (the neighbour does) and never a block that core would refuse to store.
The strategies room comes in.
"""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from interlingua.types.blocks import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ImageSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
)

EXTREMES = (
    *("", " ", "\n", "a \n", "\x00", "\ud800", "\U0001f701\U0001f702", "\u202eabc", "e\u0301", '"\\/', "\u2028"),
    *("\uffff", "\ufeff", "</system>", "data: x\n\n", "[DONE]", "{", "null", "x" * 300),
)


HUGE = "lorem ipsum " * 2000


PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


PLAIN = base64.b64encode(b"plain").decode()


def texts(*, huge: bool = False) -> st.SearchStrategy[str]:
    """Texts: short ones, control characters, half surrogates, what looks like a wire's own marks; and huge ones."""
    usual = st.one_of(st.sampled_from(EXTREMES), st.text(max_size=12))
    return st.one_of(*[usual] * 12, st.just(HUGE)) if huge else usual


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """Small JSON objects, as tools take them."""
    leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text(max_size=5), st.just(0))
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=2), max_leaves=3)
    return st.dictionaries(st.sampled_from(["path", "q", "n", "z", "a"]), values, max_size=3)


def hints() -> st.SearchStrategy[CacheHint | None]:
    """Cache hints, mostly none."""
    return st.one_of(st.none(), st.none(), st.none(), st.builds(CacheHint, ttl=st.sampled_from([None, "5m", "1h"])))


def media() -> st.SearchStrategy[ContentBlock]:
    """Images, audio, video and documents."""
    inline = st.just(ImageSource(kind="base64", data=PIXEL))
    linked = st.just(ImageSource(kind="url", data="https://example.com/a.png"))
    return st.one_of(
        st.builds(ImageBlock, source=st.one_of(inline, linked), media_type=st.just("image/png"), cache=hints()),
        st.builds(AudioBlock, source=inline, media_type=st.sampled_from(["audio/wav", "audio/mpeg"])),
        st.builds(VideoBlock, source=inline, media_type=st.just("video/mp4")),
        st.builds(
            DocumentBlock,
            source=st.just(ImageSource(kind="base64", data=PLAIN)),
            media_type=st.sampled_from(["text/plain", "application/pdf"]),
            title=st.sampled_from([None, "a title"]),
        ),
    )


def blocks() -> st.SearchStrategy[ContentBlock]:
    """Every block type, each by itself."""
    thinking = st.builds(ThinkingBlock, text=texts(), signature=st.sampled_from([None, "", "c2ln"]))
    raw = st.just({"type": "hologram", "depth": 3})
    return st.one_of(
        st.builds(TextBlock, text=texts(huge=True), cache=hints()),
        thinking,
        st.builds(RedactedThinkingBlock, data=st.just("cmVkYWN0ZWQ=")),
        st.builds(ToolUseBlock, id=st.just("tu_1"), name=st.just("read_file"), input=json_objects()),
        st.builds(ToolResultBlock, tool_use_id=st.just("tu_1"), content=texts(), is_error=st.booleans()),
        media(),
        st.builds(OpaqueBlock, provider=st.just("elsewhere"), kind=st.just("search"), data=json_objects()),
        st.builds(UnknownBlock, raw=raw),
    )
