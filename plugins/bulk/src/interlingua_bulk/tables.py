"""Files of other forms: rows from CSV, Parquet and compressed files, answers to CSV and Parquet."""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import itertools
import re
import string
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import attrs
import orjson

from interlingua.errors import CallerError, DecodeError
from interlingua_bulk.answers import last_lines, part_file, read_facts
from interlingua_bulk.rows import ROW_FIELDS, Stopped, find_wrong_field, is_never_stopped, load_row, spool_rows

FORMATS = ("jsonl", "csv", "tsv", "parquet")
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
_COMPRESSED = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}  # the suffix, and how such files begin
_DELIMITERS = ",;\t|"
_CELL_LIMIT = 1 << 26  # characters in one cell
_ESCAPED = 0xDC00  # what is added to a byte that is not UTF-8, with "surrogateescape"
_HEADER_LINES = 100
_MOST_NAMES = 20  # columns in an error
_BLOCK = 4096  # rows of a Parquet file in memory
_JSON = ("messages", "tools", "options", "output_schema", "body", "metadata")  # columns that may hold JSON text
_COLUMNS = ("index", "status", "id", "text", "error", "cost_usd", "input_tokens", "output_tokens", "attempts")
_INTEGERS = ("index", "input_tokens", "output_tokens", "attempts")


@attrs.frozen
class RowTemplate:
    """How the columns of a table become requests.

    Without `prompt`, columns with the name of a row's field are that field. With it, every column is data.

    Attributes:
        prompt: the user message; `{name}` is replaced by the column, `{{` is a brace.
        system: the system message, in the same form.
        id: the column with the rows' ids; the default is `id` if there is one.
        keep: the columns that come back in an answer's `metadata`; the default is all.

    Raises:
        CallerError: a template has another form.
    """

    prompt: str | None = None
    system: str | None = None
    id: str | None = None
    keep: tuple[str, ...] | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("prompt", "system"):
            if (template := getattr(self, name)) is not None:
                _parts(name, template)

    def write_row(self, columns: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Return the row for one line of a table.

        Args:
            columns: the cells by name; an empty cell is None.
            place: file and line, for errors.

        Raises:
            DecodeError: a named column does not exist.
        """
        fields = ROW_FIELDS
        if self.prompt is not None:
            fields = frozenset({"id"})
        else:
            columns = {name: _read_cell(name, cell, place) for name, cell in columns.items()}
        row = {name: columns[name] for name in fields & columns.keys() if columns[name] not in (None, "")}
        if self.id is not None:
            row["id"] = self._cell(columns, self.id, place)
        for name in ("prompt", "system"):
            if (template := getattr(self, name)) is not None:
                row[name] = self._fill(name, template, columns, place)
        kept = (
            self.keep if self.keep is not None else [name for name in columns if name not in row or name not in fields]
        )
        own = row.get("metadata", {})
        if not isinstance(own, Mapping):
            raise DecodeError(f"{place}: metadata must be an object, not {type(own).__name__}")
        if metadata := {**own, **{name: self._cell(columns, name, place) for name in kept}}:
            row["metadata"] = metadata
        if not row.keys() & {"prompt", "messages", "body"}:
            example = next(iter(columns), "text")
            raise DecodeError(f"{place}: no prompt; name a column in a template, for example --prompt '{{{example}}}'")
        if wrong := find_wrong_field(row):
            raise DecodeError(f"{place}: {wrong}")
        return row

    def _fill(self, name: str, template: str, columns: Mapping[str, Any], place: str) -> str:
        parts = (literal + ("" if column is None else _text(self._cell(columns, column, place)))
                 for literal, column in _parts(name, template))  # fmt: skip
        return "".join(parts)

    def _cell(self, columns: Mapping[str, Any], name: str, place: str) -> Any:
        if name not in columns:
            known = ", ".join(map(str, itertools.islice(columns, _MOST_NAMES))) or "none"
            more = f" and {len(columns) - _MOST_NAMES:,} more" if len(columns) > _MOST_NAMES else ""
            raise DecodeError(f"{place}: no column {name!r}; the columns are {known}{more}")
        return columns[name]


def read_table(
    source: str | Path | IO[bytes], template: RowTemplate | None = None, *, form: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, each as the JSON object of a line of JSON Lines.

    Args:
        source: a path or an open binary file, also compressed by gzip or Zstandard.
        template: how columns become requests.
        form: `jsonl`, `csv`, `tsv` or `parquet`; the default follows from the path's suffix, else `jsonl`.

    Raises:
        CallerError: a library for this form is not installed.
        DecodeError: a line or a cell cannot be read; the message has the place.
    """
    template = template if template is not None else RowTemplate()
    name = "standard input" if not isinstance(source, (str, Path)) else str(source)
    form = form or table_form(name)
    if form == "parquet":
        if not isinstance(source, (str, Path)):
            raise CallerError("a Parquet file cannot be read from standard input: pass its path")
        for number, row in enumerate(_parquet_rows(Path(source)), 1):
            yield template.write_row(row, f"{name}, row {number}")
        return
    with _open(source, name) as file:
        if form == "jsonl":
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _write_json_row(load_row(line, name, number), template, f"{name}, line {number}")
        else:
            for place, columns in _csv_rows(file, name, "\t" if form == "tsv" else None):
                yield template.write_row(columns, place)


def table_form(name: str) -> str:
    """Return the form that a file's suffix says: `jsonl` for every other one."""
    path = Path(name.lower())
    return _SUFFIXES.get((path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix, "jsonl")


def prepare_input(
    rows: str | Path | Iterable[Mapping[str, Any]],
    out: Path,
    template: RowTemplate | None = None,
    *,
    form: str | None = None,
    stopped: Stopped = is_never_stopped,
) -> Path:
    """Return a file of JSON Lines with a run's rows: the given one, or else a copy, `<out>.in.jsonl`.

    Raises:
        CallerError: the output has the suffix of a table, or the copy cannot be written.
        DecodeError: the table cannot be read.
        InspectionStoppedError: `stopped` returned True.
    """
    if out.suffix.lower() in (".parquet", ".csv", ".tsv"):
        text = f"an output is JSON Lines, not {out.suffix}: write {out.with_suffix('.jsonl')}, and then a table from it"
        raise CallerError(f"{text} with `interlingua bulk compact --parquet` or `--csv`")
    if isinstance(rows, (str, Path)):
        path = Path(rows)
        plain = (form or table_form(str(rows))) == "jsonl" and template in (None, RowTemplate())
        if plain and (not path.exists() or (path.is_file() and not _is_compressed(path))):  # a pipe is read once
            return path
        rows = read_table(rows, template, form=form)
    known = (read_facts(out) or {}).get("input", {}).get("sha256")
    return spool_rows(rows, out.with_name(out.name + ".in.jsonl"), known, stopped)


def write_answers(out: Path, path: Path, form: str = "parquet") -> int:
    """Write an output as a table in the input's order: common fields, the kept columns, and each line in full.

    Args:
        out: the output of a run.
        path: the table.
        form: `parquet`, or `csv`, which has no full lines.

    Returns:
        The number of rows.

    Raises:
        CallerError: the table cannot be written; an earlier one is left.
    """
    kept: dict[str, set[str]] = {}  # the types of each kept column
    for line in last_lines(out):
        for name, value in (orjson.loads(line).get("metadata") or {}).items():
            kept.setdefault(name, set()).add(_arrow_type(value))
    names: dict[str, str] = {}
    for name in kept:
        column = name
        while column in (*_COLUMNS, "line") or (column != name and column in kept):
            column = f"input_{column}"
        names[name] = column
    types = {name: _common_type(found) if form == "parquet" else "string" for name, found in kept.items()}
    rows = (_columns(line, names, types) for line in last_lines(out))
    columns = dict.fromkeys(_COLUMNS, "string") | dict.fromkeys(_INTEGERS, "int64")
    columns |= {names[name]: kind for name, kind in types.items()}
    write = _write_parquet if form == "parquet" else _write_csv
    with part_file(path) as part:
        count = write(part, columns, rows)
        part.replace(path)
    return count


# -- in ---------------------------------------------------------------------------------------------------------


def _write_json_row(data: Mapping[str, Any], template: RowTemplate, place: str) -> dict[str, Any]:
    """Return a line of JSON Lines as a row: with a template its members are columns, else they are fields."""
    return template.write_row(data, place) if template != RowTemplate() else dict(data)


def _is_compressed(path: Path) -> bool:
    with path.open("rb") as file:
        return _find_compression(path.name, file.read(4)) is not None


def _find_compression(name: str, head: bytes) -> str | None:
    """Return `.gz` or `.zst` for a file with this suffix, or that begins like one; else None."""
    suffix = Path(name).suffix.lower()
    if suffix in _COMPRESSED:
        return suffix
    return next((suffix for suffix, start in _COMPRESSED.items() if head.startswith(start)), None)


@contextmanager
def _open(source: str | Path | IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """Open a file, and decompress it if it is compressed."""
    damaged: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error)
    try:
        with ExitStack() as opened:
            file: Any = source
            if isinstance(source, (str, Path)):
                file = opened.enter_context(Path(source).open("rb", buffering=1 << 20))
            elif not hasattr(source, "peek"):
                file = io.BufferedReader(file)
                opened.callback(file.detach)  # the caller's file stays open
            compression = _find_compression(name, file.peek(4))
            if compression == ".gz":
                file = opened.enter_context(gzip.open(file, "rb"))
            elif compression == ".zst":
                zstd = _zstd()
                damaged = (EOFError, zstd.ZstdError)
                file = opened.enter_context(zstd.open(file, "rb"))
            yield file
    except damaged as error:
        raise DecodeError(f"{name} cannot be decompressed: {error}") from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise DecodeError(f"{name} cannot be read: {error.strerror or error}") from error


def _zstd() -> Any:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"  # the latter needs the extra
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        how = "pip install 'interlingua-bulk[zstd]'"
        raise CallerError(f"files compressed as .zst need {name}: {how}") from None


def _csv_rows(file: IO[bytes], name: str, delimiter: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the columns of each row of a CSV file with a header."""
    before = csv.field_size_limit(_CELL_LIMIT)  # process-wide, set again below for other users of the module
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    start = 1
    try:
        head = _read_header(text)
        if delimiter is None:
            outside = re.sub(r'"[^"]*"', "", "".join(head))
            delimiter = max(_DELIMITERS, key=outside.count)
        reader = csv.reader(itertools.chain(head, text), delimiter=delimiter, strict=True)
        header = next(filter(None, reader), None)
        if not header:
            raise DecodeError(f"{name} has no header line with the names of its columns")
        _require_utf8(header, [""] * len(header), f"{name}, line 1")
        if len(set(header)) < len(header):
            twice = next(column for column, count in Counter(header).items() if count > 1)
            raise DecodeError(f"{name} has two columns {twice!r}")
        start = reader.line_num + 1
        for cells in reader:
            place, start = f"{name}, line {start}", reader.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                raise DecodeError(f"{place}: {len(cells)} cells, but the header has {len(header)}")
            _require_utf8(cells, header, place)
            yield place, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DecodeError(f"{name}, line {start}: {error}") from None
    finally:
        csv.field_size_limit(before)
        text.detach()


def _read_header(text: IO[str]) -> list[str]:
    """Return the lines of a CSV file up to the end of its header, which a quoted name may continue on the next line."""
    lines: list[str] = []
    quotes = 0
    while len(lines) < _HEADER_LINES and (line := text.readline()):
        lines.append(line)
        quotes += line.count('"')
        if line.strip() and quotes % 2 == 0:
            break
    return lines


def _require_utf8(cells: Sequence[str], header: Sequence[str], place: str) -> None:
    """Raise an error with the column of the first cell that has bytes which are not UTF-8."""
    for column, cell in zip(header, cells, strict=True):
        if not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError as error:
                byte = ord(cell[error.start]) - _ESCAPED
                where = f"{place}, column {column!r}" if column else place
                raise DecodeError(f"{where} is not UTF-8: byte 0x{byte:02x}; convert the file first") from None


def _read_cell(name: str, value: Any, place: str) -> Any:
    """Return a cell, read as JSON if its column holds JSON."""
    if name not in _JSON or not isinstance(value, str) or not value:
        return value
    try:
        return orjson.loads(value)
    except ValueError as error:
        raise DecodeError(f"{place}: column {name!r} is not JSON: {error}") from None


def _parts(name: str, template: str) -> list[tuple[str, str | None]]:
    """Return a template as pairs of literal text and the column after it."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise CallerError(f"the {name} template cannot be read: {error}; write {{{{ for a brace") from None
    for _, column, form, conversion in parts:
        if column == "" or form or conversion:
            raise CallerError(f"the {name} template takes {{column}} only; write {{{{ for a brace")
    return [(literal, column) for literal, column, _, _ in parts]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  needs the extra
    except ModuleNotFoundError:
        how = "pip install 'interlingua-bulk[parquet]'"
        raise CallerError(f"Parquet files need pyarrow: {how}") from None
    return pyarrow


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the columns of each row; bytes are decoded."""
    arrow, number = _pyarrow(), 0
    try:
        with arrow.parquet.ParquetFile(path) as file:
            for block in file.iter_batches(batch_size=_BLOCK):
                for row in block.to_pylist():
                    number += 1
                    yield {name: _read_bytes(name, cell, f"{path}, row {number}") for name, cell in row.items()}
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        raise DecodeError(f"{path} cannot be read after row {number}: {error}") from error


def _read_bytes(name: str, cell: Any, place: str) -> Any:
    """Decode a cell of bytes: some programs write strings in that way."""
    if not isinstance(cell, bytes):
        return cell
    try:
        return cell.decode()
    except UnicodeDecodeError:
        raise DecodeError(f"{place}: column {name!r} holds bytes that are not text") from None


# -- out --------------------------------------------------------------------------------------------------------


def _arrow_type(value: Any) -> str:
    """Return Arrow's name for the type of a kept value."""
    if isinstance(value, bool):
        return "bool_"
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return "int64"
    return "float64" if isinstance(value, float) else "null" if value is None else "string"


def _common_type(found: set[str]) -> str:
    """Return the type of a column with values of these types: a string if they have nothing in common."""
    found = found - {"null"}
    return "float64" if found == {"int64", "float64"} else found.pop() if len(found) == 1 else "string"


def _columns(line: bytes, names: Mapping[str, str], types: Mapping[str, str]) -> dict[str, Any]:
    """Return a line's common fields, its kept columns under their names in the table, and the line."""
    data = orjson.loads(line)
    usage = data.get("usage") or {}
    blocks = (data.get("message") or {}).get("content", ())
    text = "".join(block["text"] for block in blocks if block["type"] == "text") if data["status"] == "ok" else None
    counts = {name: usage.get(name) for name in ("input_tokens", "output_tokens")}
    own = {name: data.get(name) for name in ("index", "status", "id", "cost_usd", "attempts")}
    error = (data.get("error") or {}).get("message")
    metadata = data.get("metadata") or {}
    kept = {column: _kept_cell(metadata.get(name), types[name]) for name, column in names.items()}
    return {**own, **counts, "text": text, "error": error, **kept, "line": line.decode().rstrip("\n")}


def _kept_cell(value: Any, kind: str) -> Any:
    return _text(value) if kind == "string" and value is not None else value


def _write_csv(path: Path, columns: Mapping[str, str], rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def _write_parquet(path: Path, columns: Mapping[str, str], rows: Iterator[dict[str, Any]]) -> int:
    arrow = _pyarrow()
    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, kind in {**columns, "line": "string"}.items()])
    count = 0
    with arrow.parquet.ParquetWriter(path, schema) as writer:
        block: list[dict[str, Any]] = []
        for row in rows:
            block.append(row)
            count += 1
            if len(block) == _BLOCK:
                writer.write_table(arrow.Table.from_pylist(block, schema))
                block = []
        if block:
            writer.write_table(arrow.Table.from_pylist(block, schema))
    return count
