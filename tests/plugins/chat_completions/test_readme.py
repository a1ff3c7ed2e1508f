"""The table of shipped rows in the plugin's README says what the rows declare.

Nothing here judges a row.
"""

from __future__ import annotations

import pytest

from interlingua_chat_completions import rows
from interlingua_chat_completions.rows import Row
from tests.support import tree

README = tree.ROOT / "plugins" / "chat-completions" / "README.md"
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in README.read_text(encoding="utf-8").split("\n")
    if line.startswith("| `")
]


def _word(found: set[str]) -> str:
    """One word for all profiles, in brackets where they differ."""
    known = found - {"no"}
    return f"[{known.pop()}]" if len(known) == 1 and len(found) > 1 else found.pop()


def _efforts(row: Row) -> str:
    kinds = set()
    for profile in (row.profile, *row.profiles):
        shape, values = profile.dialect.effort_shape, profile.dialect.effort_values
        kinds.add("no" if shape == "none" else "some" if values else "any")
    return _word(kinds)


def _flags(row: Row, name: str) -> str:
    provider = rows.__getattr__(row.key)
    models = ["contract-unknown-model", *(info.id for info in row.models)]
    told = {getattr(provider.capabilities(model, None), name) for model in models}
    if name == "supports_tool_choice":  # a guard takes no tools at all
        told = {profile.dialect.tool_choices >= {"named", "required"} for profile in (row.profile, *row.profiles)}
    return _word({"yes" if one else "no" for one in told})


@pytest.mark.parametrize("line", LINES, ids=[line[0] for line in LINES])
def test_the_table_says_what_the_row_declares(line: list[str]) -> None:
    row = rows.__getattr__(line[0].strip("`")).row
    flags = ("supports_images", "supports_structured_output", "supports_tool_choice", "supports_thinking")

    assert line[1:] == [*(_flags(row, name) for name in flags), _efforts(row)]


def test_every_row_of_a_service_is_in_the_table() -> None:
    shipped = {path.stem for path in (tree.ROOT / "plugins/chat-completions").rglob("rows/*.toml")} - {"compatible"}

    assert {line[0].strip("`") for line in LINES} == shipped
