"""Helpers for bulk tests: inputs, clients, outputs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import interlingua_bulk as bulk
from interlingua import AsyncClient, Retry

LOCAL = "vllm:small"  # a provider of one's own machines: no key, no price
PRICED = "openai:gpt-5.6-sol"


def write_rows(path: Path, rows: int | Iterable[Mapping[str, Any]]) -> Path:
    """Write an input: rows as given, or so many prompts that say their number."""
    if isinstance(rows, int):
        rows = ({"id": f"r{number}", "prompt": f"row {number}: say something"} for number in range(rows))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(rows: Path, out: Path, url: str, *, model: str = LOCAL, **arguments: Any) -> bulk.BulkReport:
    """Run over a file with its own client for this server."""

    async def main() -> bulk.BulkReport:
        async with AsyncClient(model, base_url=url, api_key="test-key", retry=Retry(max_attempts=1)) as client:
            return await bulk.arun(rows, out, client=client, **arguments)

    return asyncio.run(main())


def lines(out: Path) -> list[dict[str, Any]]:
    """Return the output's objects."""
    return list(bulk.read_answers(out))


def assert_every_row_once(out: Path, rows: int) -> None:
    """Hold that each row has one line, and that its answer is its own."""
    found = lines(out)
    assert sorted(line["index"] for line in found) == list(range(rows))
    for line in found:
        number = line["index"]
        assert line["id"] == f"r{number}"
        assert line["status"] == "ok", line
        assert line["message"]["content"][0]["text"].endswith(f"row {number} is {number * number}.")
