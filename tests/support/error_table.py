"""A checked-in table of (status, body) -> error class and retryable, and how it is put to an adapter."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlingua._plugins.provider import Provider
from interlingua.errors import ProviderError
from interlingua.plugins import RequestContext, WireResponse


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows: `body`, `class`, and where they are told `status` (absent: inside a 200) and `retryable`.

    A row of Anthropic's table has the parts of its body: `type`, `message` and `code`.
    """
    listed: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["error"]
    for row in listed:
        if "body" not in row:
            error: dict[str, Any] = {"type": row["type"], "message": row.get("message", "said so")}
            if "code" in row:
                error["details"] = {"error_code": row["code"]}
            row["body"] = json.dumps({"type": "error", "error": error, "request_id": "req_1"})
    return listed


def name_of(row: dict[str, Any]) -> str:
    """Return a row's name as a test case."""
    return f"{row.get('status', 'inside-200')}-{row['class']}"


def check(row: dict[str, Any], provider: Provider, context: RequestContext) -> None:
    """Assert that the adapter gives what the row says."""
    raw = row["body"].encode()
    if "status" in row:
        error = provider.from_wire_error(WireResponse(status=row["status"], body=raw), context)
        assert (error.status, error.body) == (row["status"], raw)
    else:
        with pytest.raises(ProviderError) as caught:
            provider.from_wire_response(WireResponse(body=raw), context)
        error = caught.value
    assert type(error).__name__ == row["class"]
    assert error.retryable is row.get("retryable", False)
