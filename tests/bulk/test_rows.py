"""The input: what rows may be, and what is refused before anything is sent."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from interlingua import AsyncClient
from interlingua.codec import encode_message
from interlingua.errors import CallerError, DecodeError
from interlingua.types import ToolChoice, ToolDefinition, user
from interlingua_bulk import rows as rows_module
from interlingua_bulk.rows import (
    content_key,
    inspect_input,
    iterate_rows,
    load_row,
    read_options,
    read_row,
    split_input,
    write_asked,
)
from interlingua_bulk.wire_rows import WireReader
from tests.bulk.support import LOCAL, write_rows

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
WIRE_TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": SCHEMA}}


def test_a_prompt_is_a_conversation() -> None:
    plain = read_row(4, {"prompt": "hello"})
    whole = read_row(4, {"id": 7, "prompt": "hello", "system": "Be brief.", "options": {"max_tokens": 5}})

    assert (plain.id, plain.messages) == ("5", "hello")
    assert whole.id == "7"
    assert [(message.role, message.text) for message in whole.messages] == [  # type: ignore[union-attr]
        ("system", "Be brief."), ("user", "hello"),
    ]  # fmt: skip
    assert whole.options == {"max_tokens": 5}


def test_messages_are_canonical_or_plain() -> None:
    canonical = encode_message(user("hello"))
    row = read_row(0, {"messages": [{"role": "system", "content": "Be brief."}, canonical], "tools": [WIRE_TOOL],
                       "output_schema": SCHEMA, "model": "acme:small"})  # fmt: skip

    assert [message.text for message in row.messages] == ["Be brief.", "hello"]  # type: ignore[union-attr]
    assert [type(tool) for tool in row.tools] == [ToolDefinition]
    assert row.options == {"response_schema": SCHEMA}
    assert row.model == "acme:small"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"prompt": 5},
        {"messages": "hello"},
        {"prompt": "x", "messages": []},
        {"prompt": "x", "temperature": 1},
        {"prompt": "x", "options": [1]},
    ],
)
def test_what_is_no_request_is_refused(data: Any) -> None:
    with pytest.raises(CallerError):
        read_row(0, data)


def test_the_one_tool_to_call_is_given_by_its_name_and_kept_so() -> None:
    row = read_row(0, {"prompt": "Hello", "options": {"tool_choice": {"name": "look"}, "temperature": 0}})

    assert row.options == {"tool_choice": ToolChoice("look"), "temperature": 0}
    kept = json.loads(json.dumps(write_asked("vllm:small", row.options, ())))
    assert kept["options"] == {"tool_choice": {"name": "look"}, "temperature": 0}
    assert read_options(kept["options"]) == row.options


def test_a_body_needs_a_reader() -> None:
    with pytest.raises(CallerError, match="batch file"):
        read_row(0, {"custom_id": "a", "url": "/v1/x", "body": {}})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}\n', "row 2: 'a' is the id of row 1 too"),
        (
            "".join(f'{{"id": "{name}", "prompt": "x"}}\n' for name in ("a", "b", "c", "c", "b", "1")),
            "row 4: 'c' is the id of row 3 too",
        ),
        ('{"id": "1", "prompt": "x"}\n{"custom_id": 1, "body": {}}\n', "row 2: 1 is the id of row 1 too"),
        ('{"prompt": "x"}\n{"id": "a", "prompt": "y"}\n', "row 2 has an id, but rows before it have none"),
        ('{"id": "a", "prompt": "x"}\n{"prompt": "y"}\n', "row 2 has no id, but other rows have"),
        ('{"id": "a", "prompt": "x"}\n\n{"id": \n', "line 3"),
        ("[1]\n", "line 1"),
        ('{"id": ["a"], "prompt": "x"}\n', "row 1"),
        ("\n", "no row"),
        ('{"prompt": "x"}\n{"promt": "y"}\n', "row 2: a row has no field 'promt'"),
        ('{"prompt": "x"}\n{"prompt": 5}\n', "row 2: prompt must be a string, not int"),
        ('{"prompt": "x", "options": [1]}\n', "row 1: options must be an object, not list"),
        ('{"prompt": "x", "options": {"max_tokens": "9"}}\n', "row 1: option max_tokens: expected int, got str"),
        ('{"prompt": "x", "options": {"max_token": 9}}\n', "row 1: unknown option 'max_token'"),
        ('{"prompt": "x", "messages": []}\n', "row 1: a row has either a prompt or messages"),
        ('{"id": "a"}\n', "row 1: a row has either"),
        ('{"prompt": "x", "metadata": {"n": -18446744073709551615}}\n', "line 1: an integer has more than 64 bits"),
        ('{"prompt": "x"}\n{"prompt": "y", "metadata": [18446744073709551616]}\n', "line 2: an integer has more than"),
    ],
)
def test_an_input_that_would_mix_rows_up_is_refused(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(text)

    with pytest.raises(DecodeError, match=place):
        inspect_input(path, None, LOCAL)


def test_long_numbers_that_are_exact_are_read() -> None:
    line = (
        b'{"prompt": "is 123456789012345678901234567890", "metadata": [18446744073709551615, 0.12345678901234567890]}'
    )

    assert load_row(line, "in.jsonl", 1)["metadata"] == [(1 << 64) - 1, 0.1234567890123456789]


def test_ids_with_equal_hashes_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "hash", lambda _: 7, raising=False)
    given = [{"id": f"r{number}", "prompt": "x"} for number in range(50)]

    assert inspect_input(write_rows(tmp_path / "in.jsonl", given), None, LOCAL).rows == 50
    with pytest.raises(DecodeError, match="row 51: 'r8' is the id of row 9 too"):
        inspect_input(write_rows(tmp_path / "in.jsonl", [*given, given[8]]), None, LOCAL)


def test_comparing_ids_takes_few_bytes_a_row(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", ({"id": f"row-{number}", "prompt": "x"} for number in range(100_000)))
    tracemalloc.start()
    try:
        inspect_input(rows, None, LOCAL)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # 8 bytes a row, and 1 MB to read the file; a set of integers takes more than 6 MB
    assert peak < 3_500_000


def test_rows_without_any_model_are_refused(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", [{"prompt": "x", "model": LOCAL}, {"prompt": "y"}])

    assert inspect_input(rows, None, LOCAL).rows == 2
    with pytest.raises(DecodeError, match="row 2 has no model"):
        inspect_input(rows)


def test_an_input_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "in.jsonl", 3)
    first = inspect_input(path, None, LOCAL)
    path.write_text(path.read_text() + "\n")
    second = inspect_input(path, None, LOCAL)

    assert (first.rows, second.rows) == (3, 3)
    assert first.sha256 != second.sha256
    assert inspect_input(path, second.sha256, LOCAL) == second
    assert [index for index, _ in iterate_rows(second, lambda index: index != 1)] == [0, 2]


def test_the_key_of_a_content_knows_no_ids() -> None:
    def key(data: dict[str, Any], model: str = "acme:small", **options: Any) -> str:
        return content_key(read_row(0, data), model, options)

    one = key({"id": "a", "prompt": "hello"})
    assert one == key({"id": "b", "messages": [encode_message(user("hello"))]})
    different = [
        key({"prompt": "hello!"}),
        key({"prompt": "hello", "system": "Be brief."}),
        key({"prompt": "hello", "options": {"temperature": 0}}),
        key({"prompt": "hello"}, temperature=0.5),
        key({"prompt": "hello"}, model="acme:large"),
        key({"prompt": "hello", "tools": [WIRE_TOOL]}),
        key({"prompt": "hello", "output_schema": SCHEMA}),
    ]
    assert len({one, *different}) == 8
    assert key({"prompt": "hello", "options": {"temperature": 0}}) == key({"prompt": "hello"}, temperature=0)


def test_a_line_of_a_batch_file_is_read_by_a_provider_that_serves_its_url() -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "system": "Be brief.", "temperature": 0.5,
            "messages": [{"role": "user", "content": "hello"}]}  # fmt: skip
    line = {"custom_id": "a", "method": "POST", "url": "/v1/messages", "body": body}
    reader = WireReader(AsyncClient())
    own, other = read_row(0, line, reader.read, None), read_row(0, line, reader.read, "vllm:small")

    assert (own.id, own.model) == ("a", "anthropic:claude-sonnet-4-5")
    assert other.model is None
    for row in (own, other):
        assert [message.text for message in row.messages] == ["Be brief.", "hello"]  # type: ignore[union-attr]
        assert row.options["max_tokens"] == 50
        assert row.options["temperature"] == 0.5
    with pytest.raises(CallerError, match="/v1/nowhere"):
        read_row(0, {**line, "url": "/v1/nowhere"}, reader.read, None)


def test_an_input_is_split_into_parts_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"prompt": "0"}\n\n{"prompt": "1"}\n{"prompt": "2"}\n\n', encoding="utf-8")
    source = inspect_input(path, model="m")
    parts = list(split_input(source, 2))

    assert [(part.rows, part.start, part.line) for part in parts] == [(2, 0, 1), (1, 33, 4)]
    assert sum(part.size for part in parts) == source.size
    assert [data["prompt"] for part in parts for _, data in iterate_rows(part)] == ["0", "1", "2"]
    path.write_text(path.read_text().replace('"2"', "'2'"))
    with pytest.raises(DecodeError, match="line 4 is not JSON"):
        list(iterate_rows(parts[1]))
    with pytest.raises(DecodeError, match="was changed"):
        list(split_input(source, 2))
