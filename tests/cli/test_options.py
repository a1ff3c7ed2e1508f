"""`--option name=value` takes its type from the field of RequestOptions."""

from __future__ import annotations

from typing import Any

import attrs
import click
import pytest

from interlingua.types import RequestOptions, ToolChoice
from interlingua_cli.input import _option_readers, option_pairs, read_options


def read(*pairs: str) -> dict[str, Any]:
    return read_options(click.Context(click.Command("x")), click.Option(["--option"]), pairs)


def test_every_field_can_be_given() -> None:
    assert set(_option_readers()) == set(attrs.fields_dict(RequestOptions)) - {"model", "stream", "connection"}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("temperature=0", 0.0),
        ("max_tokens=0", 0),
        ("seed=12345678901234567890", 12345678901234567890),
        ("thinking=false", False),
        ("thinking_as_text=yes", True),
        ("effort=high", "high"),
        ("cache=auto", "auto"),
        ("tool_choice=required", "required"),
        ("tool_choice=look_up", ToolChoice("look_up")),
        ("user_id=a=b", "a=b"),
        ('response_schema={"type": "object"}', {"type": "object"}),
        ("stop=END", ("END",)),
    ],
)
def test_values(pair: str, value: Any) -> None:
    name = pair.partition("=")[0]
    found = read(pair)
    assert read(*option_pairs(found)) == found

    assert found == {name: value}
    assert type(found[name]) is type(value)
    assert getattr(RequestOptions(model="m", **found), name) == value


def test_stop_may_be_repeated_and_a_later_value_wins_elsewhere() -> None:
    assert read("stop=a", "stop=b", "seed=1", "seed=2") == {"stop": ("a", "b"), "seed": 2}


@pytest.mark.parametrize(
    "pair",
    [
        "temperature",
        "heat=1",
        "max_tokens=many",
        "thinking=maybe",
        "effort=huge",
        "cache=always",
        "headers=[]",
        "headers={",
        "stream=1",
    ],
)
def test_mistakes_are_wrong_usage(pair: str) -> None:
    with pytest.raises(click.BadParameter):
        read(pair)
