"""The table of shipped presets in the plugin's README says what the presets declare.

Nothing here judges a preset.
"""

from __future__ import annotations

import pytest

from interlingua_chat_completions import presets
from interlingua_chat_completions.presets import Preset
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


def _efforts(preset: Preset) -> str:
    kinds = set()
    for profile in (preset.profile, *preset.profiles):
        shape, values = profile.dialect.effort_shape, profile.dialect.effort_values
        kinds.add("no" if shape == "none" else "some" if values else "any")
    return _word(kinds)


def _flags(preset: Preset, name: str) -> str:
    provider = presets.__getattr__(preset.key)
    models = ["contract-unknown-model", *(info.id for info in preset.models)]
    told = {getattr(provider.capabilities(model, None), name) for model in models}
    if name == "supports_tool_choice":  # a guard takes no tools at all
        told = {profile.dialect.tool_choices >= {"named", "required"} for profile in (preset.profile, *preset.profiles)}
    return _word({"yes" if one else "no" for one in told})


FLAGS = {
    "images": "supports_images",
    "schema": "supports_structured_output",
    "forced tool": "supports_tool_choice",
    "reasoning goes back": "supports_thinking",
}


@pytest.mark.parametrize("line", LINES, ids=[line[0] for line in LINES])
def test_the_table_says_what_the_preset_declares(line: list[str]) -> None:
    preset = presets.__getattr__(line[0].strip("`")).preset
    declared = {column: _flags(preset, name) for column, name in FLAGS.items()} | {"efforts": _efforts(preset)}
    written = dict(zip(declared, line[1:], strict=True))
    wrong = [
        f"column {column!r} has {written[column]!r}, expected {expected!r}"
        for column, expected in declared.items()
        if written[column] != expected
    ]

    assert not wrong, f"{README.relative_to(tree.ROOT)}, row {line[0]}: {'; '.join(wrong)}"
