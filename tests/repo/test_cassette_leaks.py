"""Field case 31: a recording keeps no cookie, account or key: in no header, body or query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.repo.test_secrets import KEYS
from tests.support import tree
from tests.support.cassettes import LOADER, REQUEST_HEADERS, RESPONSE_HEADERS

CASSETTES = sorted((tree.ROOT / "cassettes").rglob("*.yaml"))
SECRET_QUERY = {"key", "api_key", "api-key", "access_token", "token", "sig", "signature"}


def leaks(cassette: dict[str, Any], text: str) -> Iterator[str]:
    """Yield what a cassette must not hold; header names count in any letter case."""
    for at, item in enumerate(cassette["interactions"]):
        sides = (("request", REQUEST_HEADERS), ("response", RESPONSE_HEADERS))
        for side, allowed in sides:
            for name in item[side].get("headers") or {}:
                if name.lower() not in allowed:
                    yield f"exchange {at}: {side} header {name}"
        for name in parse_qs(urlsplit(item["request"]["uri"]).query):
            if name.lower() in SECRET_QUERY:
                yield f"exchange {at}: query parameter {name}"
    for match in KEYS.finditer(text):
        yield f"key-like text {match[0][:12]}…"


@pytest.mark.parametrize("path", CASSETTES, ids=lambda path: str(path.relative_to(tree.ROOT / "cassettes")))
def test_case_31_no_cassette_leaks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = list(leaks(yaml.load(text, LOADER), text))  # noqa: S506 a safe loader

    assert not found, f"{path.name} must be recorded again or cleaned by hand: {found}"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"response": {"headers": {"Set-Cookie": ["a=b"]}}}, "Set-Cookie"),
        ({"response": {"headers": {"SET-COOKIE": ["a=b"]}}}, "SET-COOKIE"),
        ({"response": {"headers": {"openai-organization": ["user-x"]}}}, "openai-organization"),
        ({"response": {"headers": {"Request-Id": ["req_1"]}}}, "Request-Id"),
        ({"request": {"headers": {"X-Api-Key": ["k"]}, "uri": "http://h/p"}}, "X-Api-Key"),
        ({"request": {"headers": {}, "uri": "http://h/p?Key=abc"}}, "query parameter Key"),
    ],
)
def test_case_31_planted_leaks_are_found(change: dict[str, Any], why: str) -> None:
    clean: dict[str, Any] = {"request": {"headers": {}, "uri": "http://h/p"}, "response": {"headers": {}}}

    assert list(leaks({"interactions": [clean]}, "")) == []
    assert any(why in leak for leak in leaks({"interactions": [clean | change]}, ""))


def test_case_31_keys_in_bodies_are_found() -> None:
    body = "x: " + "sk-ant-" + "a" * 30

    assert list(leaks({"interactions": []}, body))
