"""docs/reference/opentelemetry.md lists everything that is recorded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest

import interlingua as il
from interlingua_otel import names
from tests.otel.asking import answer, ask
from tests.otel.conftest import Telemetry
from tests.support.fake_provider import STREAM, Fake, Reply, served
from tests.support.tree import ROOT

PAGE = (ROOT / "docs" / "reference" / "opentelemetry.md").read_text(encoding="utf-8")
PREFIXES = r"(?:gen_ai|server|error|exception|interlingua|http|url|network|client|user_agent)"
NAME = re.compile(PREFIXES + r"\.[a-z_.]+")


def _texts(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value} if NAME.fullmatch(value) else set()
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return {text for item in items for text in _texts(item)}


def _in_code() -> set[str]:
    return {text for name, value in vars(names).items() if name.isupper() or "_1_41" in name for text in _texts(value)}


def test_every_name_of_the_code_is_on_the_page() -> None:
    assert len(_in_code()) > 60
    missing = sorted(name for name in _in_code() if f"`{name}`" not in PAGE)
    assert not missing, missing


def test_every_name_on_the_page_is_recorded_or_said_not_to_be() -> None:
    unset = {"gen_ai.prompt.name", "gen_ai.prompt.version", "gen_ai.prompt.variable"}
    named = set(re.findall(rf"`({PREFIXES}\.[a-z_.]+)`", PAGE))
    assert named - _in_code() == unset
    for name in unset:
        [row] = [line for line in PAGE.splitlines() if f"`{name}`" in line]
        assert "not set" in row


EVERY = {
    "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.request.max_tokens",
    "server.address", "server.port", "gen_ai.response.finish_reasons", "interlingua.attempts", "interlingua.losses",
}  # fmt: skip
BUSY = Reply(status=503, body=[b"{}"])
ENDS: dict[str, tuple[Sequence[Reply], type[BaseException] | None, bool]] = {
    "whole": ([Reply(body=[answer()])], None, False),
    "streamed": ([Reply(body=list(STREAM))], None, True),
    "failed": ([Reply(status=401, body=[b"{}"])], il.errors.AuthenticationError, False),
    "cut off": ([Reply(body=[STREAM[2], STREAM[0], None])], il.errors.StreamInterruptedError, True),
    "cancelled": ([Reply(wait=2.0)], TimeoutError, False),
    "retried": ([BUSY, Reply(body=[answer()])], None, False),
}


def _said(end: str) -> set[str]:
    """The attributes that the page's table has for a request that ended so."""
    lines = PAGE.partition("| attribute | whole |")
    header, _, *rows = (lines[1] + lines[2]).partition("\n\n")[0].splitlines()
    at = [cell.strip() for cell in header.split("|")].index(end)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return {row[1].strip("`") for row in cells if row[at] == "yes"}


async def _send(url: str, telemetry: Telemetry) -> None:
    found = il.plugins.Registry([telemetry.plugin()], providers={"fake": Fake()}, entry_points=[])
    async with il.AsyncClient("fake:known", registry=found, base_url=url, api_key="k", environ={}) as client:
        await client.send("hi", max_tokens=9)


@pytest.mark.parametrize(
    ("end", "blocking"),
    [(end, blocking) for end in ENDS for blocking in (True, False) if end != "cancelled" or not blocking],
)  # only a task is cancelled
def test_a_span_has_what_the_page_says_of_its_end_and_nothing_else(
    telemetry: Telemetry, end: str, blocking: bool
) -> None:
    replies, raised, stream = ENDS[end]
    with served(*replies) as server, nullcontext() if raised is None else pytest.raises(raised):
        if end == "cancelled":
            asyncio.run(asyncio.wait_for(_send(server.url, telemetry), 0.3))
        else:
            ask(blocking, server.url, telemetry.plugin(), stream=stream, max_tokens=9)

    [span] = telemetry.spans
    assert set(span.attributes or {}) == EVERY | _said(end)
