"""The converter is a strategy others can use, and it costs nothing before it is used."""

from __future__ import annotations

import subprocess
import sys

import attrs
import cattrs
import pytest

from interlingua.codec.converter import configure_converter, make_converter
from interlingua.codec.stored import encode_message
from interlingua.types.factories import user
from interlingua.types.messages import Message

LOADED = """
import interlingua.codec, sys
from interlingua.types.factories import user
before = {"cattrs", "httpx", "jsonschema", "ulid", "pluggy"} & set(sys.modules)
line = interlingua.codec.stored.dumps_message(user("x"))
interlingua.codec.stored.loads_message(line)
usual = "cattrs" in sys.modules
interlingua.codec.stored.loads_message(line.replace("{", '{"new": 1,', 1))
print(sorted(before), usual, "cattrs" in sys.modules, "httpx" in sys.modules)
"""


@attrs.frozen
class Row:
    """A plugin's own value around a message."""

    number: int
    message: Message


def test_any_converter_can_be_configured() -> None:
    converter = cattrs.Converter()
    configure_converter(converter)
    row = Row(3, user("hi"))

    assert converter.structure(converter.unstructure(row), Row) == row
    assert converter.unstructure(row)["message"] == encode_message(row.message)


def test_a_made_converter_reads_what_the_codec_writes() -> None:
    message = user("hi")

    assert make_converter().structure(encode_message(message), Message) == message


def test_cattrs_loads_with_the_first_unusual_value() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout.split("\n")[0] == "[] False True False"


def test_other_names_are_refused() -> None:
    import interlingua.codec

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        interlingua.codec.nothing  # noqa: B018


def test_a_text_message_and_its_line_load_little_of_the_standard_library() -> None:
    code = (
        "import sys, attrs, orjson; before = set(sys.modules); import interlingua.codec as c;"
        "from interlingua.types.factories import user; c.loads_message(c.dumps_message(user('x')));"
        "print(sorted({'hashlib', 'logging', 'pathlib', 'urllib.parse'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
