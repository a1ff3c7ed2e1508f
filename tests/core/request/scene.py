"""A made-up target and its conversations, for the projection laws."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

from interlingua._plugins.provider import ProjectionTarget
from interlingua.types.blocks import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Provenance, Role
from interlingua.types.options import ModelCapabilities

ABLE = ModelCapabilities(
    supports_thinking=True,
    supports_images=True,
    supports_tools=True,
    supports_system_prompt=True,
    supports_prompt_caching=True,
    supports_tool_result_images=True,
    accepted_image_media_types=("image/png",),
    thinking_scope="model",
    signed_blocks=("text", "tool_use"),
    api="chat",
)
NARROW = attrs.evolve(
    ABLE,
    supports_tool_result_images=False,
    supports_thinking=False,
    supports_prompt_caching=False,
    tool_id_pattern=r"[A-Za-z0-9]{9}",
    tool_id_max_length=9,
    thinking_scope="never",
)
IMAGE = ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png")


def target(capabilities: ModelCapabilities = ABLE, **facts: Any) -> ProjectionTarget:
    return ProjectionTarget(**{"provider": "acme", "model": "m", "capabilities": capabilities, **facts})


def made(*content: ContentBlock, provider: str = "acme", model: str = "m", api: str = "chat", **facts: Any) -> Message:
    metadata = MessageMetadata(
        provider=provider, model=f"{provider}:{model}", api=api, provenance=Provenance.GENERATED, **facts
    )
    return Message(role=Role.ASSISTANT, content=content, metadata=metadata)


def call(id: str, provider_id: str | None = None, name: str = "read", **facts: Any) -> ToolUseBlock:  # noqa: A002
    return ToolUseBlock(id=id, name=name, provider_id=provider_id, **facts)


_ids = st.sampled_from(["tu_1", "tu_2", "call_x|fc_y", "functions.todo:0", "a" * 450, "abcdefghi", "trailing_", ""])
_provider_ids = st.none() | st.sampled_from(["abcdefghi", "123456789", "toolu_01", "call_x|fc_y"])
_calls = st.builds(call, _ids, _provider_ids, parse_error=st.sampled_from([None, None, "cut"]))
_said = st.sampled_from(["", "  ", "yes", "no"])
_spoken = st.one_of(
    st.builds(TextBlock, text=_said, signature=st.sampled_from([None, "sig"])),
    st.builds(ThinkingBlock, text=_said, signature=st.sampled_from([None, "sig", ""])),
    st.builds(RedactedThinkingBlock, data=st.just("blob")),
    st.builds(OpaqueBlock, provider=st.sampled_from(["acme", "other"]), kind=st.just("k"), data=st.just({"a": 1})),
    st.just(UnknownBlock(raw={"type": "hologram"})),
    _calls,
)
_assistants = st.builds(
    lambda content, provider, status: made(*content, provider=provider, status=status),
    st.lists(_spoken, max_size=4),
    st.sampled_from(["acme", "other"]),
    st.sampled_from([MessageStatus.COMPLETE, MessageStatus.COMPLETE, MessageStatus.CANCELLED]),
)
_asked = st.one_of(st.builds(TextBlock, text=_said), st.just(IMAGE), st.just(AudioBlock(source=IMAGE.source)))
_users = st.builds(lambda content: Message(role=Role.USER, content=content), st.lists(_asked, max_size=3).map(tuple))
_systems = st.builds(lambda text: Message(role=Role.SYSTEM, content=text), _said)
_results = st.builds(
    lambda answers, content: Message(role=Role.TOOL, content=(ToolResultBlock(tool_use_id=answers, content=content),)),
    _ids,
    st.lists(_asked, max_size=2).map(tuple),
)
_answered = st.builds(
    lambda message: [message, *(Message(role=Role.TOOL, content=(ToolResultBlock(tool_use_id=each.id, content="ok"),))
                                for each in reversed(message.tool_calls))],
    _assistants,
)  # fmt: skip
_plain = st.builds(
    lambda text, ids, missing: [
        made(*([TextBlock(text=text)] if text else []), *[call(each) for each in ids]),
        *[Message(role=Role.TOOL, content=(ToolResultBlock(tool_use_id=each, content="ok", tool_name="read"),))
          for each in ids[: len(ids) - missing]],
    ],
    st.sampled_from(["", "let me see"]),
    st.lists(st.sampled_from(["tu_1", "tu_2", "abcdefghi", "bcdefghij", "cdefghijk"]), min_size=1, max_size=3),
    st.sampled_from([0, 0, 1]),
)  # fmt: skip
"""Calls as most histories hold them, with their results in order right behind; now and then one is missing."""
_steps = st.one_of(
    *[each.map(lambda one: [one]) for each in (_assistants, _users, _systems, _results)], _answered, _plain
)
histories = st.lists(_steps, max_size=8).map(lambda steps: [message for step in steps for message in step])
"""Conversations with dangling and orphan calls, later system messages, foreign state, empty and unfinished turns."""
