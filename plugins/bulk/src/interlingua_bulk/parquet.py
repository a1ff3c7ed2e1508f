"""Parquet files in and out (extra `parquet`), read and written in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from interlingua.errors import CallerError
from interlingua_bulk.answers import last_lines

_ROWS = 4096  # in a block
_JSON = ("messages", "tools", "options", "output_schema", "body")  # columns that may hold JSON text
_COLUMNS = ("index", "status", "id", "text", "cost_usd", "input_tokens", "output_tokens", "attempts", "line")


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except ModuleNotFoundError:
        how = "pip install 'interlingua-bulk[parquet]'"
        raise CallerError(f"Parquet files need pyarrow: {how}") from None
    return pyarrow


def count_rows(path: Path) -> int:
    """Return the number of rows, from the file's footer."""
    rows: int = _pyarrow().parquet.ParquetFile(path).metadata.num_rows
    return rows


def read_objects(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield each row as the equivalent JSON object, without empty cells."""
    with _pyarrow().parquet.ParquetFile(path) as file:
        for block in file.iter_batches(batch_size=_ROWS):
            for row in block.to_pylist():
                yield {name: _cell(name, value) for name, value in row.items() if value is not None}


def _cell(name: str, value: Any) -> Any:
    return orjson.loads(value) if name in _JSON and isinstance(value, str) else value


def write_answers(out: Path, path: Path) -> int:
    """Write an output as Parquet in the input's order: columns of the common fields, and each line in full.

    Returns:
        The number of rows.
    """
    arrow = _pyarrow()
    kinds = {"index": arrow.int64(), "input_tokens": arrow.int64(), "output_tokens": arrow.int64()}
    kinds["attempts"] = arrow.int64()
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in _COLUMNS])
    temporary = path.with_name(f".{path.name}.part")
    count = 0
    with arrow.parquet.ParquetWriter(temporary, schema) as writer:
        block: list[dict[str, Any]] = []
        for line in last_lines(out):
            block.append(_columns(line))
            count += 1
            if len(block) == _ROWS:
                writer.write_table(arrow.Table.from_pylist(block, schema))
                block = []
        if block:
            writer.write_table(arrow.Table.from_pylist(block, schema))
    temporary.replace(path)
    return count


def _columns(line: bytes) -> dict[str, Any]:
    data = orjson.loads(line)
    usage = data.get("usage") or {}
    blocks = (data.get("message") or {}).get("content", ())
    text = "".join(block["text"] for block in blocks if block["type"] == "text") if data["status"] == "ok" else None
    counts = {name: usage.get(name) for name in ("input_tokens", "output_tokens")}
    own = {name: data.get(name) for name in ("index", "status", "id", "cost_usd", "attempts")}
    return {**own, **counts, "text": text, "line": line.decode().rstrip("\n")}
