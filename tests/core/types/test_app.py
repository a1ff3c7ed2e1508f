"""What applications keep on a message: kept by every way to write, read and copy it, and never sent."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from interlingua._request.rules import check_message
from interlingua.codec import decode_message, dumps_message, encode_message, loads_message
from interlingua.types import Message, MessageMetadata, user

NOTES: dict[str, Any] = {"acme-notes": {"rating": 5, "tags": ["a", None]}, "other": "secret word"}
NOTED = attrs.evolve(user("hi"), metadata=MessageMetadata(app=NOTES))


def test_it_is_written_and_read_and_part_of_equality() -> None:
    assert encode_message(NOTED)["metadata"]["app"] == NOTES
    assert decode_message(encode_message(NOTED)) == loads_message(dumps_message(NOTED)) == NOTED
    assert attrs.evolve(NOTED, metadata=MessageMetadata()) != NOTED
    assert (
        "app" not in encode_message(user("hi"))["metadata"]
    )  # a field that came later is written where it says something
    assert check_message(NOTED) == ()


def pickled(value: Message) -> Message:
    """Return what pickle makes of it."""
    copied: Message = pickle.loads(pickle.dumps(value))  # noqa: S301  our own
    return copied


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_keeps_it(copied: Callable[[Message], Message]) -> None:
    assert copied(NOTED).metadata.app == NOTES
    assert attrs.evolve(NOTED, content="new").metadata.app == NOTES
