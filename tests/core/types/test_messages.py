"""Messages as values: accessors, factories, equality, hashing, pickling, the flat response."""

from __future__ import annotations

import base64
import copy
import pickle
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings

from interlingua.errors import CallerError
from interlingua.types import (
    Message,
    MessageMetadata,
    MessageStatus,
    Origin,
    Role,
    Usage,
)
from interlingua.types.blocks import (
    AudioBlock,
    ImageBlock,
    MediaSource,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.types.factories import (
    assistant,
    media_type_of,
    split_tool_results,
    system,
    tool_result,
    user,
)
from tests.core.codec import values
from tests.support.counts import examples

CALL = ToolUseBlock(id="tu_1", name="read", input={"path": "a"})
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
# the specifications' magic numbers
IMAGES = [
    (b"\xff\xd8\xff\xe0" + bytes(8), "image/jpeg"),
    (PNG, "image/png"),
    (b"GIF89a" + bytes(8), "image/gif"),
    (b"GIF87a" + bytes(8), "image/gif"),
    (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
]
AUDIO = [
    (b"ID3\x04" + bytes(12), "audio/mpeg"),
    (b"\xff\xfb\x90\0" + bytes(8), "audio/mpeg"),
    (b"\xff\xf3\x90\0" + bytes(8), "audio/mpeg"),
    (b"\xff\xf2\x90\0" + bytes(8), "audio/mpeg"),
    (b"OggS" + bytes(12), "audio/ogg"),
    (b"fLaC" + bytes(12), "audio/flac"),
    (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
    (b"unrecognised bytes", "audio/mpeg"),
]


@pytest.mark.parametrize(("data", "media_type"), IMAGES)
def test_images_by_their_first_bytes(data: bytes, media_type: str) -> None:
    assert media_type_of(data, "image") == media_type
    encoded = base64.b64encode(data).decode()
    expected = ImageBlock(source=MediaSource(kind="base64", data=encoded), media_type=media_type)
    assert user(images=[data, encoded, f"data:{media_type};base64,{encoded}"]).content == (expected,) * 3


@pytest.mark.parametrize(("data", "media_type"), AUDIO)
def test_audio_by_its_first_bytes(data: bytes, media_type: str, tmp_path: Path) -> None:
    encoded = base64.b64encode(data).decode()
    path = tmp_path / "clip"
    path.write_bytes(data)
    expected = AudioBlock(source=MediaSource(kind="base64", data=encoded), media_type=media_type)
    assert user("hear", audio=[data, encoded, f"file:{path}", path]).content[1:] == (expected,) * 4


def test_an_image_url_is_passed_through() -> None:
    url = "https://example.org/a.png"

    assert user(images=[url]).content == (ImageBlock(source=MediaSource(kind="url", data=url)),)


class Picture:
    """What PIL images have: `format` and `save`."""

    format = "PNG"

    def save(self, buffer: Any, format: str) -> None:  # noqa: A002
        assert format == "PNG"
        buffer.write(PNG)


def test_a_pil_image_is_written_in_its_own_format() -> None:
    assert user(images=[Picture()]).content == user(images=[PNG]).content


@pytest.mark.parametrize("bad", [b"not an image at all", "no base64 !", 3, b""])
def test_what_is_no_image_is_refused(bad: Any) -> None:
    with pytest.raises(CallerError):
        user(images=[bad])


def test_factories_and_accessors() -> None:
    message = assistant([ThinkingBlock(text="hm"), TextBlock(text="a"), CALL, TextBlock(text="b")])

    assert message.text == "ab"
    assert message.tool_calls == [CALL]
    assert message.thinking_blocks == [ThinkingBlock(text="hm")]
    assert (user("x").role, system("x").role, message.role) == (Role.USER, Role.SYSTEM, Role.ASSISTANT)
    answer = tool_result(CALL, {"n": 1}, is_error=True, details={"k": 1}, terminate=True)
    block = answer.tool_results[0]
    assert answer.metadata.parent_tool_use_id == block.tool_use_id == "tu_1"
    assert (block.tool_name, block.is_error, block.details, block.terminate) == ("read", True, {"k": 1}, True)


@pytest.mark.parametrize("make", [user, system, assistant])
def test_what_says_nothing_is_no_message(make: Any) -> None:
    for nothing in (None, 3):
        with pytest.raises(CallerError, match="a string or content blocks"):
            make(nothing)


def test_a_word_is_the_role_and_the_status_it_names() -> None:
    made = Message(role="assistant", content="b", metadata=MessageMetadata(status="cancelled"))  # type: ignore[arg-type]

    assert made.role is Role.ASSISTANT  # adapters ask by `is`: as a mere word it would be sent as the user's
    assert made.metadata.status is MessageStatus.CANCELLED
    with pytest.raises(CallerError, match="user, assistant, system, tool"):
        Message(role="model", content="b")  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="complete, partial"):
        MessageMetadata(status="done")  # type: ignore[arg-type]


def test_provider_raw_is_not_part_of_equality_or_hash() -> None:
    """format.md, Usage."""
    plain = user("x")
    raw = attrs.evolve(plain, metadata=MessageMetadata(provider_raw={"replay": {"k": [1]}}))

    assert raw == plain
    assert hash(raw) == hash(plain)
    assert attrs.evolve(plain, metadata=MessageMetadata(user_id="u")) != plain


@settings(max_examples=examples(100), deadline=None)
@given(values.messages)
def test_messages_pickle_copy_and_hash(message: Message) -> None:
    for back in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):  # noqa: S301
        assert back == message
        assert hash(back) == hash(message)
        assert back.metadata.provider_raw == message.metadata.provider_raw


def test_messages_are_frozen() -> None:
    message = attrs.evolve(user("x"), metadata=MessageMetadata(provider_raw={"a": [1]}, extra={"b": {}}))

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        message.role = Role.TOOL  # type: ignore[misc]
    with pytest.raises(TypeError):
        message.metadata.provider_raw["a"].append(1)  # type: ignore[index]
    with pytest.raises(TypeError):
        message.metadata.extra["b"]["c"] = 1


def test_buckets_are_disjoint_and_nothing_is_counted_twice() -> None:
    """Case 18: totals are inclusive; the disjoint view sums to input + output."""
    usage = Usage(input_tokens=100, output_tokens=50, cached_input_tokens=60, cache_creation_input_tokens=10,
                  reasoning_tokens=20)  # fmt: skip

    assert usage.buckets() == (30, 60, 10, 30, 20)
    assert usage.buckets().total == 150
    assert Usage().buckets().total == 0
    assert Usage().input_tokens is None  # case 19: not reported is not 0


def test_cumulative_counts_replace_and_absent_ones_stay() -> None:
    """Case 18."""
    start = Usage(input_tokens=10, output_tokens=1, cached_input_tokens=4)

    assert start.updated(Usage(output_tokens=7)) == Usage(input_tokens=10, output_tokens=7, cached_input_tokens=4)
    assert start.updated(Usage(output_tokens=0)).output_tokens == 0
    assert start.updated(Usage()) is start


def test_origin() -> None:
    metadata = MessageMetadata(provider="acme", model="acme:m:7b", api="chat")

    assert metadata.origin == Origin("acme", "chat", "m:7b")
    assert MessageMetadata().origin is None


def test_tool_results_in_a_users_message_are_split_off_in_front_of_it() -> None:
    """format.md, Rule 5: a tool message holds one result and nothing else, and results are in tool messages only."""
    results = [ToolResultBlock(tool_use_id=f"tu_{at}", content="x") for at in range(2)]
    text = TextBlock(text="and now?")
    metadata = MessageMetadata(user_id="u", critical=(1, 2))
    mixed = Message(role=Role.USER, content=(results[0], text, results[1]), metadata=metadata)
    parts = split_tool_results(mixed)

    assert [(one.role, one.content) for one in parts] == [
        (Role.TOOL, (results[0],)),
        (Role.TOOL, (results[1],)),
        (Role.USER, (text,)),
    ]
    assert [one.metadata.parent_tool_use_id for one in parts] == ["tu_0", "tu_1", None]
    assert [one.metadata.critical for one in parts] == [(), (0,), (0,)]
    assert {one.metadata.user_id for one in parts} == {"u"}
    assert [one.id for one in parts] == sorted({one.id for one in parts})
    assert parts[-1].id == mixed.id
    assert [split_tool_results(one) for one in parts] == [[one] for one in parts]


def test_a_tool_message_of_two_results_is_two_and_other_messages_stay_as_they_are() -> None:
    results = tuple(ToolResultBlock(tool_use_id=f"tu_{at}", content="x") for at in range(2))
    for message_id in ("01HZ0000000000000000000000", "not-a-ulid"):
        both = Message(id=message_id, role=Role.TOOL, content=results)
        first, second = split_tool_results(both)
        assert (first.content, second.content, second.id) == (results[:1], results[1:], message_id)
        assert first.id != second.id
    for other in (user("hi"), assistant("ho"), Message(role=Role.USER, content=())):
        assert split_tool_results(other) == [other]
