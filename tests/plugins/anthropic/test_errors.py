"""The table of status and body to error class, on the table's own bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlingua.plugins import WireResponse
from tests.plugins.anthropic.asking import ANTHROPIC, context
from tests.support.error_table import rows_of

TABLE = rows_of(Path(__file__).parent / "errors.toml")


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['status']}-{row.get('code', row.get('type', 'text'))}")
def test_status_and_body_give_the_class(row: dict[str, Any]) -> None:
    body = row["body"].encode()
    error = ANTHROPIC.from_wire_error(WireResponse(status=row["status"], body=body), context())

    assert type(error).__name__ == row["class"]
    assert (error.status, error.body, error.provider) == (row["status"], body, "anthropic")
    assert error.request_id == ("req_1" if "type" in row else None)
