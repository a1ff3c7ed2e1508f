"""canonical_names: injective, deterministic, first appearance wins (format.md, Tools)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from interlingua.types import TOOL_NAME_MAX_LENGTH, TOOL_NAME_PATTERN
from interlingua_agents import canonical_names

some_names = st.lists(st.text(max_size=40) | st.text("aA.-_ä", max_size=4) | st.text("ab", min_size=60, max_size=140))


@given(some_names)
def test_laws(names: list[str]) -> None:
    result = canonical_names(names)
    assert list(result) == list(dict.fromkeys(names))
    assert len(set(result.values())) == len(result)
    for name, canonical in result.items():
        assert re.fullmatch(TOOL_NAME_PATTERN, canonical)
        assert len(canonical) <= TOOL_NAME_MAX_LENGTH
        if re.fullmatch(TOOL_NAME_PATTERN, name) and len(name) <= TOOL_NAME_MAX_LENGTH:
            assert canonical == name
    assert canonical_names(result.values()) == {name: name for name in result.values()}


def test_names_of_other_protocols_stay_readable() -> None:
    names = canonical_names(["Get-Weather", "mcp.server/tool", "2fa"])
    assert names == {"Get-Weather": "get_weather", "mcp.server/tool": "mcp_server_tool", "2fa": "t2fa"}


def test_first_appearance_keeps_the_plain_form_and_a_canonical_name_keeps_itself() -> None:
    first, second = canonical_names(["a.b", "a/b"]).values()
    assert first == "a_b"
    assert re.fullmatch("a_b_[0-9a-f]{8}", second)
    reserved = canonical_names(["a.b", "a_b"])
    assert reserved["a_b"] == "a_b" != reserved["a.b"]


def test_a_long_name_is_cut_with_a_digest() -> None:
    names = ["x" * 70, "x" * 71]
    made = list(canonical_names(names).values())
    assert all(re.fullmatch("x{55}_[0-9a-f]{8}", name) for name in made)
    assert made[0] != made[1]
