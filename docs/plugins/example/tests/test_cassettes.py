"""The cassettes hold what the server answers today."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import parrot_server
import pytest
from interlingua_cli.cassettes import RecordedExchange, read_cassettes

EXCHANGES = read_cassettes(Path(__file__).parent / "cassettes")


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.cassette)
def test_the_server_still_answers_so(exchange: RecordedExchange, live_url: str) -> None:
    key = "wrong" if exchange.status == 401 else parrot_server.KEY  # keys are not recorded
    headers = {"parrot-key": key, "content-type": "application/json"}
    again = httpx.post(f"{live_url}/v2/talk", content=json.dumps(exchange.request), headers=headers)

    assert (again.status_code, again.content) == (exchange.status, exchange.body)
