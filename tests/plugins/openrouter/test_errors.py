"""The table of status and body to error class, as this service answers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from interlingua.plugins import WireResponse
from tests.plugins.openrouter.asking import OPENROUTER, context
from tests.support import error_table

TABLE = error_table.rows_of(Path(__file__).parent / "errors.toml")


@pytest.mark.parametrize("row", TABLE, ids=error_table.name_of)
def test_status_and_body_give_the_class(row: dict[str, Any]) -> None:
    error_table.check(row, OPENROUTER, context())


def _limited(metadata: dict[str, Any], headers: dict[str, str] | None = None) -> float | None:
    body = {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-min. ", "metadata": metadata}}
    response = WireResponse(status=429, headers=headers or {}, body=json.dumps(body).encode())
    return OPENROUTER.from_wire_error(response, context()).retry_after


def test_the_reset_time_in_the_body_is_the_wait() -> None:
    """Recorded of the free tier: the limit's headers stand in the body, the time of the reset in milliseconds."""
    names = {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0"}
    soon = str(int((time.time() + 42) * 1000))

    assert _limited({"headers": {**names, "X-RateLimit-Reset": soon}}) == pytest.approx(42, abs=5)
    assert _limited({}, {"x-ratelimit-reset": soon}) == pytest.approx(42, abs=5)
    assert _limited({"headers": {**names, "X-RateLimit-Reset": "1759845420000"}}) == 0  # over
    assert _limited({"headers": {"Retry-After": "7", "X-RateLimit-Reset": soon}}) == 7
    assert _limited({"headers": {"X-RateLimit-Reset": soon}}, {"retry-after": "3"}) == 3
    assert _limited({"headers": names}) is None
