"""The table of status and body to error class, on the table's own bodies and on every recorded failure."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlingua.plugins import WireResponse
from tests.plugins.anthropic.asking import ANTHROPIC, context
from tests.support.corpus import Corpus

LISTED = (Path(__file__).parent / "errors.toml").read_text(encoding="utf-8")
TABLE: list[dict[str, Any]] = tomllib.loads(LISTED)["error"]


def _body(row: dict[str, Any]) -> bytes:
    if "text" in row:
        return str(row["text"]).encode()
    error: dict[str, Any] = {"type": row["type"], "message": row.get("message", "said so")}
    if "code" in row:
        error["details"] = {"error_code": row["code"]}
    return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['status']}-{row.get('code', row.get('type', 'text'))}")
def test_status_and_body_give_the_class(row: dict[str, Any]) -> None:
    body = _body(row)
    error = ANTHROPIC.from_wire_error(WireResponse(status=row["status"], body=body), context())

    assert type(error).__name__ == row["class"]
    assert (error.status, error.body, error.provider) == (row["status"], body, "anthropic")
    assert error.request_id == ("req_1" if "text" not in row else None)


def _expected(status: int, detail: dict[str, Any]) -> str:
    """The table's row for a recorded failure: its message where one is listed, else its status and type."""
    rows = [row for row in TABLE if row["status"] == status and row.get("type") == detail["type"]]
    told = [row for row in rows if row.get("message", "").partition(":")[0] == detail["message"].partition(":")[0]]
    plain = [row for row in rows if "message" not in row and "code" not in row]
    found: str = (told or plain)[0]["class"]
    return found


def test_recorded_failures_agree_with_the_table(corpus: Corpus) -> None:
    wrong, seen = {}, 0
    for entry in corpus.entries("anthropic-messages"):
        if entry["status"] < 400:
            continue
        seen += 1
        response = WireResponse(status=entry["status"], body=entry["response_text"].encode())
        error = ANTHROPIC.from_wire_error(response, context())
        expected = _expected(entry["status"], json.loads(entry["response_text"])["error"])
        if type(error).__name__ != expected:
            wrong[entry["id"]] = (type(error).__name__, expected)

    assert seen
    assert not wrong
