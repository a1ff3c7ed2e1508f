"""The table of status and body to error class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plugins.cohere.wire import COHERE, context
from tests.support import error_table

TABLE = error_table.rows_of(Path(__file__).parent / "errors.toml")


@pytest.mark.parametrize("row", TABLE, ids=error_table.name_of)
def test_status_and_body_give_the_class(row: dict[str, Any]) -> None:
    error_table.check(row, COHERE, context())
