"""What is written comes back the same; the oracle for the text is Python's own json module."""

from __future__ import annotations

import json

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua._json import thaw
from interlingua.codec import (
    decode_message,
    decode_messages,
    dumps_message,
    encode_message,
    encode_messages,
    loads_message,
    read_jsonl,
)
from interlingua.types.blocks import TextBlock
from interlingua.types.factories import assistant, user
from interlingua.types.messages import Message, Role
from tests.core.codec import values
from tests.support.counts import examples


@settings(max_examples=examples(300), deadline=None)
@given(values.messages)
def test_decode_of_encode_is_the_message(message: Message) -> None:
    back = decode_message(encode_message(message))

    assert back == message
    assert thaw(back.metadata.provider_raw) == thaw(message.metadata.provider_raw)  # which equality ignores
    assert back.metadata.extra == message.metadata.extra
    assert [type(block) for block in back.content] == [type(block) for block in message.content]
    for name in ("status", "stop_reason", "provenance"):  # an enum of strings would equal its bare string
        assert type(getattr(back.metadata, name)) is type(getattr(message.metadata, name))
    assert type(back.role) is Role


@settings(max_examples=examples(200), deadline=None)
@given(values.messages)
def test_text_round_trip_and_its_second_writing_are_exact(message: Message) -> None:
    line = dumps_message(message)
    back = loads_message(line)

    assert back == message
    assert dumps_message(back) == line
    assert "\n" not in line
    assert json.loads(line) == json.loads(json.dumps(thaw(encode_message(message))))


@settings(max_examples=examples(100), deadline=None)
@given(values.messages, st.data())
def test_unknown_fields_come_back_verbatim_wherever_they_stand(message: Message, data: st.DataObject) -> None:
    stored = json.loads(dumps_message(message))
    places = [stored, stored["metadata"], *stored["content"]]
    places += [stored["metadata"][name] for name in ("usage", "routing", "error") if stored["metadata"].get(name)]
    for block in stored["content"]:
        places += [block[name] for name in ("source", "cache") if block.get(name) and block["type"] in values._KNOWN]
        places += block["content"] if block["type"] == "tool_result" else []
    for place in data.draw(st.lists(st.sampled_from(places), max_size=3)):
        place[data.draw(values.new_names.map("new_".__add__))] = data.draw(values.json_values)

    line = dumps_message(decode_message(stored))

    assert json.loads(line) == stored
    assert dumps_message(loads_message(line)) == line


def test_fields_of_a_block_follow_it_alone() -> None:
    stored = encode_message(assistant([TextBlock(text="one"), TextBlock(text="two")]))
    stored["content"][0]["mood"] = "glad"
    message = decode_message(stored)
    shifted = attrs.evolve(message, content=message.content[1:])
    written = encode_message(shifted)

    assert written["content"] == [{"type": "text", "text": "two"}]  # not glad: that was the other one
    assert "glad" in json.dumps(written["metadata"])  # and not lost


def test_lone_surrogates_are_replaced_in_text_and_pairs_are_untouched() -> None:
    """Case 22; kept in values and in plain data, replaced where bytes are made."""
    message = user("bad \ud83d good \U0001f600 nul \0")

    assert decode_message(encode_message(message)) == message
    assert loads_message(dumps_message(message)).text == "bad \ufffd good \U0001f600 nul \0"
    dumps_message(message).encode("utf-8")


def test_integers_of_any_size_survive() -> None:
    from interlingua.types.blocks import ToolUseBlock

    message = assistant([ToolUseBlock(id="tu_1", name="n", input={"id": 2**70, "small": 9007199254740993})])

    assert loads_message(dumps_message(message)).tool_calls[0].input == {"id": 2**70, "small": 9007199254740993}


def test_conversations_and_jsonl() -> None:
    messages = [user("a"), assistant("b")]

    assert decode_messages(encode_messages(messages)) == messages
    assert list(read_jsonl([dumps_message(messages[0]) + "\n", "\n", dumps_message(messages[1]).encode()])) == messages
