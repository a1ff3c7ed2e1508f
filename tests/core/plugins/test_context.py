"""What the request context gives an adapter, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext
from interlingua.types.messages import Origin, StopReason

ORIGIN = Origin("acme", "chat", "m")


def test_names_that_were_changed_for_the_wire_come_back_canonical() -> None:
    context = RequestContext(origin=ORIGIN, tool_names={"read-file": "read_file"})

    assert (context.tool_name("read-file"), context.tool_name("other")) == ("read_file", "other")


@pytest.mark.parametrize("name", [None, 7, ["read"], {"name": "read"}])
def test_a_name_that_is_no_text_is_a_malformed_answer(name: Any) -> None:
    with pytest.raises(MalformedResponseError, match="the name of a called tool must be a string"):
        RequestContext(origin=ORIGIN).tool_name(name)


def test_an_answer_that_says_nothing_holds_one_empty_text() -> None:
    """Seed 003 §4.1: content is not empty; recorded answers sometimes are."""
    message = RequestContext(origin=ORIGIN).message((), stop_reason=StopReason.END_TURN)

    assert [(block.type, block.text) for block in message.content] == [("text", "")]  # type: ignore[union-attr]
