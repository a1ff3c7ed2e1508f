"""Paths of rules, against the grammar that `interlingua_cli.lint.rules.parse_path` describes."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua_cli.lint.rules import parse_path

BODY: dict[str, Any] = {
    "model": "m",
    "strict": True,
    "empty": [],
    "none": None,
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "call", "id": "1", "input": {"id": "9"}}],
        },
    ],
}


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("", [""]),
        ("model", ["model"]),
        ("absent.below", []),
        ("messages[*].role", ["messages[0].role", "messages[1].role"]),
        ("messages[-1].role", ["messages[1].role"]),
        ("messages[5]", []),
        ("messages[role=assistant]", ["messages[1]"]),
        ("messages[role!=assistant]", ["messages[0]"]),
        ("messages[role=user|assistant].content[type=call].id", ["messages[1].content[1].id"]),
        ("messages[*].content[type=text|call][id]", ["messages[1].content[1]"]),
        ("messages[*].content[!id]", ["messages[1].content[0]"]),
        ("[strict=true].model", ["model"]),
        ("[strict=false].model", []),
        ("[empty=].model", ["model"]),
        ("[none].model", []),
        ("[!none].model", ["model"]),
        ("messages[*].content[input.id=9]", ["messages[1].content[1]"]),
        ("messages[*].content[1].input.*", ["messages[1].content[1].input.id"]),
        ("**.id", ["messages[1].content[1].id", "messages[1].content[1].input.id"]),
        ("messages[*].content[*].text", ["messages[1].content[0].text"]),
        ("model[*]", []),
    ],
)  # fmt: skip
def test_a_path_leads_to(path: str, places: list[str]) -> None:
    assert [hit.path for hit in parse_path(path).select(BODY)] == places


def test_a_place_starts_where_it_is_told() -> None:
    [hit] = parse_path("content[type=call].id").select(BODY["messages"][1], "messages[1]")

    assert hit == ("messages[1].content[1].id", "1")


@pytest.mark.parametrize("path", ["messages[", "messages[role==]x]", "a..[", "messages[!role=user]", "[]", 7])
def test_a_path_that_cannot_be_read_is_refused(path: Any) -> None:
    with pytest.raises(ValueError, match="path"):
        parse_path(path)
