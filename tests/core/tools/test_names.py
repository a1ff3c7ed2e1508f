"""project_names: the laws of DESIGN 3 and 6 (injective, deterministic, first appearance wins)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.errors import CallerError
from interlingua.tools import TOOL_NAME_MAX_LENGTH, TOOL_NAME_PATTERN, project_names

PATTERNS = [
    (r"^[a-zA-Z0-9_-]{1,64}$", 64),
    (r"^[a-zA-Z0-9_-]{1,128}$", 128),  # as one API quotes it in its own 400
    (r"^[a-zA-Z_][a-zA-Z0-9_.-]*$", 24),
    (r"[a-z]+[a-z0-9]*", 12),
    (TOOL_NAME_PATTERN, TOOL_NAME_MAX_LENGTH),
]
some_names = st.lists(st.text(max_size=40) | st.text("aA.-_ä", max_size=4) | st.text("ab", min_size=60, max_size=140))


@pytest.mark.parametrize(("pattern", "max_length"), PATTERNS)
def test_laws(pattern: str, max_length: int) -> None:
    @given(some_names)
    def check(names: list[str]) -> None:
        result = project_names(names, pattern, max_length)
        assert list(result) == list(dict.fromkeys(names))
        assert len(set(result.values())) == len(result)
        for name, projected in result.items():
            assert re.fullmatch(pattern, projected)
            assert len(projected) <= max_length
            if re.fullmatch(pattern, name) and len(name) <= max_length:
                assert projected == name
        assert project_names(list(result.values()), pattern, max_length) == {v: v for v in result.values()}

    check()


def test_first_appearance_keeps_the_plain_form_and_a_fitting_name_keeps_itself() -> None:
    pattern = r"[a-z_]+[0-9a-f_]*"
    assert project_names(["a.b"], pattern, 64) == {"a.b": "a_b"}
    first, second = project_names(["a.b", "a/b"], pattern, 64).values()
    assert first == "a_b"
    assert re.fullmatch("a_b_[0-9a-f]{8}", second)
    reserved = project_names(["a.b", "a_b"], pattern, 64)
    assert reserved["a_b"] == "a_b" != reserved["a.b"]


def test_a_long_name_is_cut_with_a_digest() -> None:
    names = ["x" * 70, "x" * 71]
    projected = list(project_names(names, r"[a-z0-9_]+", 64).values())
    assert all(re.fullmatch("x{55}_[0-9a-f]{8}", name) for name in projected)
    assert projected[0] != projected[1]


def test_names_from_other_protocols_become_canonical() -> None:
    names = project_names(["Get-Weather", "mcp.server/tool"], TOOL_NAME_PATTERN, TOOL_NAME_MAX_LENGTH)
    assert names == {"Get-Weather": "get_weather", "mcp.server/tool": "mcp_server_tool"}


def test_an_impossible_pattern_is_refused() -> None:
    with pytest.raises(CallerError, match="fits"):
        project_names(["a"], r"[!]{3}", 3)
