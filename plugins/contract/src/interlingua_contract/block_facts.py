"""How each kind of block is written: one small request for each, as a fact of the wire."""

from __future__ import annotations

import base64
import json
from typing import Any, Literal

import attrs

from interlingua.errors import CapabilityError
from interlingua.types import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    VideoBlock,
    system,
    tool_result,
    user,
)
from interlingua_contract.scenes import READ, assistant_turn, call, own_origin
from interlingua_contract.subject import Aim, Subject

_DATA = MediaSource(kind="base64", data=base64.b64encode(b"contract").decode())
_LIFETIMES: dict[str, Literal["5m", "1h"]] = {"5 minutes": "5m", "an hour": "1h"}
_LINK = MediaSource(kind="url", data="https://example.com/a")


def _blocks() -> dict[str, tuple[str, ContentBlock]]:
    """Return the blocks of a question by name, each with the capabilities that it needs."""
    return {
        "a PNG": ("supports_images", ImageBlock(source=_DATA, media_type="image/png")),
        "a JPEG in detail": ("supports_images", ImageBlock(source=_DATA, media_type="image/jpeg", detail="high")),
        "an image by URL": ("supports_images supports_image_urls", ImageBlock(source=_LINK, media_type="image/png")),
        "a WAV": ("supports_audio", AudioBlock(source=_DATA, media_type="audio/wav")),
        "an MP3": ("supports_audio", AudioBlock(source=_DATA, media_type="audio/mpeg")),
        "a video": ("supports_video", VideoBlock(source=_DATA, media_type="video/mp4")),
        "a PDF": ("supports_documents", DocumentBlock(source=_DATA, media_type="application/pdf", title="a.pdf")),
        "a text file": (
            "supports_documents",
            DocumentBlock(source=_DATA, media_type="text/plain", title="a.txt", context="Of today."),
        ),
        "a cached text": ("supports_prompt_caching", TextBlock(text="t", cache=CacheHint())),
        "text cached for 5 minutes": ("supports_prompt_caching", TextBlock(text="t", cache=CacheHint(ttl="5m"))),
        "text cached for an hour": ("supports_prompt_caching", TextBlock(text="t", cache=CacheHint(ttl="1h"))),
    }


_IN_RESULTS = {
    "a PNG": "supports_tools supports_tool_result_images",
    "a PDF": "supports_tools supports_tool_result_documents",
    "a text file": "supports_tools supports_tool_result_documents",
    "text cached for an hour": "supports_tools supports_prompt_caching",
}


_CACHED_TOOLS = {f"a tool cached for {name}": CacheHint(ttl=ttl) for name, ttl in _LIFETIMES.items()}


def tools_of(name: str) -> list[ToolDefinition]:
    """Return the tools that the conversation of this name has."""
    if name in _CACHED_TOOLS:
        return [attrs.evolve(READ, cache=_CACHED_TOOLS[name])]
    return [READ] if "result" in name or "call" in name else []


def block_scenes(subject: Subject, aim: Aim) -> dict[str, list[Message]]:
    """Return a small conversation for each kind of block that an aim declares, by name."""
    can = aim.capabilities
    own = own_origin(subject, aim)
    found: dict[str, list[Message]] = {}
    blocks = _blocks()
    for name, (flags, block) in blocks.items():
        if all(getattr(can, flag) for flag in flags.split()):
            found[name] = [user([TextBlock(text="q"), block])]
    if can.supports_system_prompt:
        found["a system prompt"] = [system("s"), user("q")]
        hint = TextBlock(text="s", cache=CacheHint(ttl="1h"))
        found["a cached system prompt"] = [Message(role=Role.SYSTEM, content=(hint,)), user("q")]
        found["a later system prompt"] = [
            user("q"),
            assistant_turn([TextBlock(text="a")], None),
            system("s"),
            user("n"),
        ]
    if can.supports_tools:
        made = call(1)
        begun = [user("q"), assistant_turn([TextBlock(text="a"), made], None)]
        found["a call and its result"] = [*begun, tool_result(made, "r")]
        failed = ToolResultBlock(tool_use_id=made.id, content="r", is_error=True)
        found["a failed result"] = [*begun, attrs.evolve(tool_result(made, "r"), content=(failed,))]
        for name, flags in _IN_RESULTS.items():
            if all(getattr(can, flag) for flag in flags.split()):
                held = ToolResultBlock(tool_use_id=made.id, content=(TextBlock(text="r"), blocks[name][1]))
                found[f"{name} in a result"] = [*begun, attrs.evolve(tool_result(made, "r"), content=(held,))]
        for name in _CACHED_TOOLS if can.supports_prompt_caching else ():
            found[name] = [user("q")]
        broken = attrs.evolve(made, input={}, raw_input='{"cut', parse_error="arguments are not JSON")
        found["a broken call"] = [user("q"), assistant_turn([broken], None), tool_result(broken, "r")]
    thoughts: list[ContentBlock] = [ThinkingBlock(text="h", signature="c2ln"), RedactedThinkingBlock(data="ZGF0YQ==")]
    cited = TextBlock(text="a", citations=({"type": "char_location", "cited_text": "c", "start_char_index": 3},))
    found["own reasoning"] = [user("q"), assistant_turn([*thoughts, TextBlock(text="a")], own), user("n")]
    found["own citations"] = [user("q"), assistant_turn([cited], own), user("n")]
    return found


def block_fact(subject: Subject, aim: Aim, name: str, history: list[Message]) -> str:
    """Return the body of a request for a conversation, without what every request has, and its losses."""
    offered = tools_of(name)
    try:
        request = subject.write(aim, history, offered)
    except CapabilityError:
        return "refused"
    body: dict[str, Any] = json.loads(request.body)
    usual = [READ] if offered and name != "a call and its result" else []
    plain = subject.body(aim, [user("q")], usual)
    kept = {name: value for name, value in body.items() if plain.get(name) != value or name not in plain}
    lost = [f"{loss.block_type} {loss.verdict}" for loss in request.losses]
    return " ".join([json.dumps(kept, ensure_ascii=False, separators=(",", ":")), *lost])
