"""docs/reference/opentelemetry.md names what is recorded, and nothing else is."""

from __future__ import annotations

import re
from typing import Any

from interlingua_otel import names
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
    unset = {"gen_ai.prompt.name", "gen_ai.prompt.version", "gen_ai.prompt.variable", "gen_ai.conversation.compacted"}
    named = set(re.findall(rf"`({PREFIXES}\.[a-z_.]+)`", PAGE))
    assert named - _in_code() == unset
    for name in unset:
        [row] = [line for line in PAGE.splitlines() if f"`{name}`" in line]
        assert "not set" in row
