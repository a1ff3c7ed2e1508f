"""Tables in and out: CSV, compressed files, templates; Parquet where pyarrow is installed (`make ray` has it)."""

from __future__ import annotations

import csv
import errno
import gzip
import importlib.util
import io
import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlingua.errors import CallerError, DecodeError
from interlingua_bulk import RowTemplate, read_table
from interlingua_bulk.commands import run as commands
from interlingua_bulk.tables import write_answers
from interlingua_cli.root import cli
from tests.bulk.loopback import loopback
from tests.bulk.support import LOCAL, assert_every_row_once, lines, run, write_rows

HERE = importlib.util.find_spec("pyarrow") is not None
needs_pyarrow = pytest.mark.skipif(not HERE, reason="pyarrow is not installed; .ci/run has it beside Ray")


@needs_pyarrow
def test_rows_are_read_and_answers_written(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, out = tmp_path / "in.parquet", tmp_path / "out.jsonl"
    given: list[dict[str, Any]] = [{"id": f"r{number}", "prompt": f"row {number}"} for number in range(20)]
    given[3] |= {"prompt": None, "messages": '[{"role": "user", "content": "row 3"}]', "options": '{"max_tokens": 9}'}
    for number, row in enumerate(given):
        row |= {"stars": number if number else None, "share": number / 4 if number else 1, "seen": number > 3}
        row |= {"mixed": "none" if number else None, "long": number}
    columns = tuple(given[3])
    table = pa.table({name: [row.get(name) for row in given] for name in columns})
    pq.write_table(table, rows)
    with loopback(latency_ms=1) as server:
        report = run(rows, out, server.url)
        assert run(rows, out, server.url).asked == 0

    assert report.done == 20
    assert_every_row_once(out, 20)
    assert write_answers(out, tmp_path / "out.parquet", "parquet") == 20
    written = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["id"] for row in written] == [f"r{number}" for number in range(20)]
    assert all(row["text"].endswith(f"is {row['index'] ** 2}.") for row in written)
    assert written[0]["input_tokens"] == 20
    for name in ("stars", "share", "seen", "mixed", "long"):
        assert [row[name] for row in written] == [row[name] for row in given]


@needs_pyarrow
def test_bytes_in_parquet_are_text_and_a_damaged_file_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["é".encode(), b"b"], "n": [{"x": [1, None]}, None]}), rows)
    read = list(read_table(rows, RowTemplate("{text}/{n}")))
    pq.write_table(pa.table({"text": [b"a", b"\xff"]}), rows)

    assert [row["prompt"] for row in read] == ['é/{"x":[1,null]}', "b/"]
    with pytest.raises(DecodeError, match="row 2: column 'text' holds bytes that are not text"):
        list(read_table(rows, RowTemplate("{text}")))
    rows.write_bytes(rows.read_bytes()[:-9])
    with pytest.raises(DecodeError, match=r"in\.parquet cannot be read after row 0"):
        list(read_table(rows, RowTemplate("{text}")))


@pytest.mark.skipif(HERE, reason="pyarrow is installed")
def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path) -> None:
    rows = tmp_path / "in.parquet"
    rows.write_bytes(b"PAR1")
    with pytest.raises(CallerError, match=r"interlingua-bulk\[parquet\]"):
        run(rows, tmp_path / "out.jsonl", "http://127.0.0.1:9/v1")


def command(*arguments: Any, **given: Any) -> Result:
    return CliRunner().invoke(cli, ["bulk", *map(str, arguments)], catch_exceptions=False, **given)


def test_columns_fill_a_template_and_come_back() -> None:
    table = b'text,"first name",id\r\n"two\r\nlines, ""quoted""",Zo\xc3\xab,a\r\nplain,,b\r\n'
    template = RowTemplate("Greet {first name}: {text} {{literally}}", "Be brief, {id}.")

    first, second = read_table(io.BytesIO(b"\xef\xbb\xbf" + table), template, form="csv")

    assert first == {
        "id": "a",
        "prompt": 'Greet Zoë: two\r\nlines, "quoted" {literally}',
        "system": "Be brief, a.",
        "metadata": {"text": 'two\r\nlines, "quoted"', "first name": "Zoë"},
    }
    assert second["prompt"] == "Greet : plain {literally}"
    kept = RowTemplate("{text}", id="first name", keep=("text",))
    assert next(read_table(io.BytesIO(table), kept, form="csv")) == {
        "id": "Zoë", "prompt": 'two\r\nlines, "quoted"', "metadata": {"text": 'two\r\nlines, "quoted"'},
    }  # fmt: skip


def test_with_a_template_a_column_named_like_a_field_is_data() -> None:
    table = b"id,messages,model\n1,two hellos,T\n"

    assert list(read_table(io.BytesIO(table), RowTemplate("{messages} {model}"), form="csv")) == [
        {"id": "1", "prompt": "two hellos T", "metadata": {"messages": "two hellos", "model": "T"}}
    ]


def test_columns_that_are_fields_need_no_template() -> None:
    table = b'id;prompt;options;city\n1;Hello;{"max_tokens": 5};Bonn\n'

    assert list(read_table(io.BytesIO(table), form="csv")) == [
        {"id": "1", "prompt": "Hello", "options": {"max_tokens": 5}, "metadata": {"city": "Bonn"}}
    ]


def test_members_of_json_lines_are_columns_of_a_template() -> None:
    source = io.BytesIO(
        b'{"text": "a", "n": 3, "list": [1], "prompt": "old"}\n\n{"text": null, "n": 0.5, "list": {}}\n'
    )

    rows = list(read_table(source, RowTemplate("{text}/{n}/{list}")))

    assert [row["prompt"] for row in rows] == ["a/3/[1]", "/0.5/{}"]
    assert rows[0]["metadata"] == {"text": "a", "n": 3, "list": [1], "prompt": "old"}


@pytest.mark.parametrize(
    ("table", "template", "message"),
    [
        (b"a,b\n1,2\n", {"prompt": "{c}"}, "line 2: no column 'c'; the columns are a, b"),
        (b"a,b\n1,2\n", {"prompt": "{a}", "keep": ("c",)}, "line 2: no column 'c'"),
        (b"a,b\n1,2\n", {}, "line 2: no prompt; name a column in a template, for example --prompt '{a}'"),
        (b'a,b\n"1\n",2\n3\n', {"prompt": "{a}"}, "line 4: 1 cells, but the header has 2"),
        (b"a,a\n1,2\n", {"prompt": "{a}"}, "two columns 'a'"),
        (b"", {"prompt": "{a}"}, "no header"),
        (b'a,b\n"1,2\n', {"prompt": "{a}"}, "line 2: unexpected end of data"),
        (
            b"a,b\n" + b"x,y\n" * 5000 + b"x,caf\xe9\n",
            {"prompt": "{a}"},
            "line 5002, column 'b' is not UTF-8: byte 0xe9",
        ),
        (b"caf\xe9\nx\n", {"prompt": "{a}"}, "line 1 is not UTF-8: byte 0xe9"),
        (",".join(map(str, range(50_000))).encode() + b"\n" + b"," * 49_999, {"prompt": "{a}"}, "19 and 49,980 more"),
        (b"prompt,options\nx,{\n", {}, "line 2: column 'options' is not JSON"),
        (b"prompt,metadata\nx,[1]\n", {}, "line 2: metadata must be an object, not list"),
        (b"prompt,options\nx,[1]\n", {}, "line 2: options must be an object, not list"),
        (b'prompt,options\nx,"{""max_token"": 9}"\n', {}, "line 2: unknown option 'max_token'"),
    ],
)
def test_wrong_tables_are_refused_by_line_and_column(table: bytes, template: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        list(read_table(io.BytesIO(table), RowTemplate(**template), form="csv"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        b"\r\n\r\ntext;n\r\na;1\r\n",  # lines before the header
        b'"te\r\nxt";text\r\n1;a',  # a name of two lines, and no end of the last line
        b'"a,b,c";text;"d""e"\n1;a;2\n',
    ],
)
def test_headers_as_programs_write_them(table: bytes) -> None:
    assert [row["prompt"] for row in read_table(io.BytesIO(table), RowTemplate("{text}"), form="csv")] == ["a"]


def test_a_byte_order_mark_before_json_lines_is_no_part_of_them(tmp_path: Path) -> None:
    rows, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows.write_bytes(b'\xef\xbb\xbf{"id": "r0", "prompt": "row 0"}\r\n\r\n{"id": "r1", "prompt": "row 1"}')
    with loopback(latency_ms=1) as server:
        assert run(rows, out, server.url).done == 2

    assert_every_row_once(out, 2)
    assert [row["prompt"] for row in read_table(rows, RowTemplate("{prompt}"))] == ["row 0", "row 1"]


def test_suffixes_are_read_in_any_case(tmp_path: Path) -> None:
    for name in ("IN.CSV", "In.Csv.GZ"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"text\na\n") if name.endswith("GZ") else b"text\na\n")
        assert [row["prompt"] for row in read_table(path, RowTemplate("{text}"))] == ["a"]


@pytest.mark.parametrize("template", ["{", "{}", "{a!r}", "{a:>5}", "a}"])
def test_wrong_templates_are_refused(template: str) -> None:
    with pytest.raises(CallerError, match="prompt template"):
        RowTemplate(template)


def compress(path: Path, data: bytes) -> None:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    else:
        module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        path.write_bytes(pytest.importorskip(module).compress(data))


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl.zst"])
def test_compressed_files_are_read_and_damaged_ones_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"in{suffix}"
    rows = 2000
    made = [f"row {number}" for number in range(rows)]
    table = "text\n" + "\n".join(made) if "csv" in suffix else "\n".join(json.dumps({"text": text}) for text in made)
    compress(path, table.encode())

    assert [row["prompt"] for row in read_table(path, RowTemplate("{text}"))] == made
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DecodeError):
        list(read_table(path, RowTemplate("{text}")))
    path.write_bytes(b"no archive")
    with pytest.raises(DecodeError, match="decompressed"):
        list(read_table(path, RowTemplate("{text}")))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files_are_recognised_without_their_suffix(tmp_path: Path, suffix: str) -> None:
    path, rows, out = tmp_path / f"in{suffix}", tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    compress(path, b'{"id": "r0", "prompt": "row 0"}')
    path.rename(rows)
    with io.BytesIO(rows.read_bytes()) as source, loopback(latency_ms=1) as server:
        assert [row["prompt"] for row in read_table(source)] == ["row 0"]
        assert not source.closed
        assert run(rows, out, server.url).done == 1

    assert_every_row_once(out, 1)


def test_a_csv_file_is_run_resumed_and_written_as_csv(tmp_path: Path) -> None:
    table, out, answers = tmp_path / "in.csv", tmp_path / "out.jsonl", tmp_path / "answers.csv"
    table.write_text("id,number,note\n" + "".join(f'r{n},{n},"a, {n}"\n' for n in range(6)))
    with loopback(latency_ms=1, bad_rows=[4]) as server:
        arguments = ("run", table, "--out", out, "-m", LOCAL, "--url", server.url, "--prompt", "row {number}")
        first = command(*arguments, "--keep", "note")
        again = command(*arguments, "--keep", "note", "--json")
        other = command(*arguments)
    compacted = command("compact", out, "--csv", answers)

    assert first.exit_code == 1, first.output
    assert json.loads(again.stdout)["asked"] == 0
    assert "different input" in other.stderr
    assert compacted.exit_code == 0, compacted.output
    with answers.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["note"] for row in written] == [f"a, {n}" for n in range(6)]
    assert [row["status"] for row in written] == ["ok"] * 4 + ["error", "ok"]
    assert written[2]["text"].endswith("row 2 is 4.")
    assert written[4]["error"]


def test_columns_of_a_table_keep_their_values_whatever_their_names(tmp_path: Path) -> None:
    table, out, answers = tmp_path / "in.csv", tmp_path / "out.jsonl", tmp_path / "answers.csv"
    table.write_text("index,input_index,line,number\n7,8,9,3\n")
    with loopback(latency_ms=1) as server:
        command("run", table, "--out", out, "-m", LOCAL, "--url", server.url, "--prompt", "row {number}")
    assert command("compact", out, "--csv", answers).exit_code == 0

    with answers.open(newline="") as file:
        (written,) = csv.DictReader(file)
    kept = {name: written[name] for name in ("index", "input_input_index", "input_index", "input_line")}
    assert kept == {"index": "0", "input_input_index": "7", "input_index": "8", "input_line": "9"}


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes are files on POSIX")
def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe, out = tmp_path / "pipe", tmp_path / "out.jsonl"
    os.mkfifo(pipe)
    text = "".join(json.dumps({"id": f"r{n}", "prompt": f"row {n}"}) + "\n" for n in range(3))
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    with loopback(latency_ms=1) as server:
        done = command("run", pipe, "--out", out, "-m", LOCAL, "--url", server.url)
    writer.join()

    assert done.exit_code == 0, done.output
    assert_every_row_once(out, 3)


def test_answers_that_cannot_be_printed_are_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 3)
    with loopback(latency_ms=1) as server:
        monkeypatch.setattr(commands, "last_lines", _broken_pipe)
        done = command("run", rows, "--out", "-", "-m", LOCAL, "--url", server.url)

    assert done.exit_code == 1
    assert "could not be printed (Broken pipe)" in done.stderr
    kept = Path(done.stderr.split("they are in ")[1].strip())
    assert_every_row_once(kept, 3)
    shutil.rmtree(kept.parent)


def _broken_pipe(_path: Path) -> list[bytes]:
    raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_standard_input_and_output_are_a_pipe(tmp_path: Path) -> None:
    given = "".join(json.dumps({"id": f"r{n}", "prompt": f"row {n}", "metadata": {"n": n}}) + "\n" for n in range(5))
    with loopback(latency_ms=1) as server:
        done = command("run", "-", "--out", "-", "-m", LOCAL, "--url", server.url, input=given)
        both = command("run", "-", "--out", "-", "-m", LOCAL, "--url", server.url, "--json", input=given)

    assert done.exit_code == 0, done.output
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["index"] for line in answers] == list(range(5))
    assert [line["metadata"] for line in answers] == [{"n": n} for n in range(5)]
    assert both.exit_code == 2


def test_printed_answers_are_told_without_commands_for_a_file_that_is_removed(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", [{"prompt": "row 0"}, {"prompt": "row 1"}])
    with loopback(latency_ms=1, bad_rows=[1]) as server:
        failed = command("run", rows, "--out", "-", "-m", LOCAL, "--url", server.url)
    with loopback(latency_ms=1, refuse_from=1) as server:
        stopped = command("run", rows, "--out", "-", "-m", LOCAL, "--url", server.url)

    assert [json.loads(line)["status"] for line in failed.stdout.splitlines()] == ["ok", "error"]
    assert "1 row failed" in failed.stderr
    assert (failed.exit_code, stopped.exit_code) == (1, 1)
    for done in (failed, stopped):
        assert "interlingua-bulk-" not in done.stderr
        assert "again" not in done.stderr


def test_a_row_that_shares_an_answer_keeps_its_own_metadata(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", [
        {"id": "a", "prompt": "row 1", "metadata": {"n": 1}}, {"id": "b", "prompt": "row 1"},
        {"id": "c", "prompt": "row 1", "metadata": {"n": 3}},
    ])  # fmt: skip
    with loopback(latency_ms=1) as server:
        assert run(rows, tmp_path / "out.jsonl", server.url, dedupe=True).asked == 1

    found = {line["id"]: line.get("metadata") for line in lines(tmp_path / "out.jsonl")}
    assert found == {"a": {"n": 1}, "b": None, "c": {"n": 3}}
