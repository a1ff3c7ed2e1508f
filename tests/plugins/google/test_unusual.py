"""Answers that leave out what others hold: what they say is kept.

Expected values: what was put in.
"""

from __future__ import annotations

import pytest

from interlingua.types.blocks import OpaqueBlock, TextBlock
from interlingua.types.messages import StopReason
from tests.plugins.google.wire import chunk, read, streamed


def test_an_answer_of_counts_alone_is_the_models_failure() -> None:
    message = read({"usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}, "modelVersion": "m"})

    assert message.content == (TextBlock(text=""),)
    assert message.metadata.stop_reason is StopReason.ERROR
    assert message.metadata.usage is not None
    assert message.metadata.usage.input_tokens == 7


@pytest.mark.parametrize("name", [None, ""])
def test_arguments_of_a_call_without_a_name_are_kept(name: str | None) -> None:
    part = {"functionCall": {"args": {"path": "a"}} | ({} if name is None else {"name": name})}

    for message in (read(chunk(part, finish="STOP")), streamed(chunk(part), chunk(finish="STOP"))):
        (block,) = message.content
        assert isinstance(block, OpaqueBlock)
        assert block.data == part


def test_a_call_that_says_nothing_is_none() -> None:
    assert read(chunk({"functionCall": {}}, {"text": "a"}, finish="STOP")).content == (TextBlock(text="a"),)


def test_what_stands_beside_a_parts_content_does_not_name_it() -> None:
    """Members of the official SDK's `Part` that hold no content."""
    part = {"speechMetadata": {"speaker": "A"}, "audioTranscription": {"text": "Hello"}}
    (block,) = read(chunk(part, finish="STOP")).content

    assert isinstance(block, OpaqueBlock)
    assert (block.kind, block.data) == ("audioTranscription", part)
