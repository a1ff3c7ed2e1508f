"""Elements of a body as written, and which texts, objects and places are in it."""

from __future__ import annotations

import pytest

from interlingua.types import ToolUseBlock
from interlingua_contract.matrix.accounting import Body
from interlingua_contract.matrix.crossing import split_elements


@pytest.mark.parametrize(
    ("body", "path", "found"),
    [
        (b'{"m":[{"a":1},[2]," 3"]}', ("m",), ['{"a":1}', "[2]", '" 3"']),
        (b'{ "x" : {"m" : [ 1 , {"a": "\\u00e9"} ] } }', ("x", "m"), ["1", '{"a": "\\u00e9"}']),
        (b"[[1.50],[2]]", (0,), ["1.50"]),
        (b'{"m":[]}', ("m",), []),
        (b'{"m":[1]}', ("n",), []),
        (b'{"m":[1]}', None, []),
    ],
)
def test_elements_are_cut_out_as_they_are_written(
    body: bytes, path: tuple[str | int, ...] | None, found: list[str]
) -> None:
    assert split_elements(body, path) == found


def test_texts_are_found_whole_and_inside_json_strings() -> None:
    body = Body(b'{"a":"one two","b":"{\\"c\\":\\"three\\"}"}')

    assert body.has_text("one")
    assert body.has_text("three")
    assert not body.has_text("one three")
    assert not body.has_text(" ")
    assert Body('{"a":"\ufffd"}'.encode()).has_text("\ud800")


def test_objects_are_found_in_their_key_order_only() -> None:
    body = Body(b'{"input":{"z":0,"a":null},"arguments":"{\\"n\\": 1}"}')

    assert body.has_object('{"z": 0, "a": null}')
    assert not body.has_object('{"a": null, "z": 0}')
    assert body.has_object('{"n":1}')


def test_a_wrapped_text_is_told_from_one_that_stands_as_it_is() -> None:
    assert Body(b'{"input":{"invalid":"{half"},"x":1}').wraps("{half")
    assert not Body(b'{"name":"f","arguments":"{half"}').wraps("{half")


def test_data_stands_with_its_result_or_beside_it() -> None:
    inside = Body(b'{"m":[{"id":"c1","parts":["text",{"picture":"DATA"}]}]}')
    beside = Body(b'{"m":[{"id":"c1","parts":["text"]},{"picture":"DATA"}]}')

    assert inside.holds_together(["text"], {"c1"}, "DATA")
    assert not beside.holds_together(["text"], {"c1"}, "DATA")


def test_what_only_the_user_says_is_told_from_what_stands_in_an_answer() -> None:
    of_user = [
        b'{"m":[{"role":"user","content":[{"text":"from above:"},{"picture":"DATA"}]}]}',
        b'{"m":[{"type":"user_input","content":[{"picture":"DATA"}]}]}',
    ]
    of_model = [
        b'{"m":[{"role":"model","parts":[{"picture":"DATA"}]},{"role":"user","parts":[]}]}',
        b'{"m":[{"role":"user","picture":"DATA"},{"role":"assistant","picture":"DATA"}]}',
        b'{"m":[{"type":"image_generation_call","result":"DATA"},{"role":"user"}]}',
    ]

    assert all(Body(one).is_only_of_user("DATA") for one in of_user)
    assert not any(Body(one).is_only_of_user("DATA") for one in of_model)


@pytest.mark.parametrize(
    ("item", "whole"),
    [
        (b'{"id":"c1","type":"shell_call","action":{"commands":["ls"],"limit":7}}', True),
        (b'{"id":"c1","type":"shell_call","action":{"commands":["ls"]}}', False),
        (b'{"id":"c1","type":"shell_call","action":{"commands":["ls -a"],"limit":7}}', False),
        (b'{"id":"c2","type":"shell_call","action":{"commands":["ls"],"limit":7}}', False),
        (b'{"id":"c1","type":"other_call","action":{"commands":["ls"],"limit":7}}', False),
        (b'{"id":"c1","name":"shell","input":{"commands":["ls"],"n":7}}', False),
    ],
)
def test_a_call_of_a_services_own_tool_has_its_id_name_and_every_argument(item: bytes, whole: bool) -> None:
    call = ToolUseBlock(id="c1", name="shell", input={"commands": ["ls"], "limit": 7})

    assert Body(b'{"input":[%b]}' % item).has_own_call("c1", call) is whole
