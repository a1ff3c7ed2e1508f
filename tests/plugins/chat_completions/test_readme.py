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


@pytest.mark.parametrize("line", LINES, ids=[line[0] for line in LINES])
def test_the_table_says_what_the_preset_declares(line: list[str]) -> None:
    preset = presets.__getattr__(line[0].strip("`")).preset
    flags = ("supports_images", "supports_structured_output", "supports_tool_choice", "supports_thinking")

    assert line[1:] == [*(_flags(preset, name) for name in flags), _efforts(preset)]


def test_every_preset_of_a_service_is_in_the_table() -> None:
    shipped = {path.stem for path in (tree.ROOT / "plugins/chat-completions").rglob("presets/*.toml")} - {"compatible"}

    assert {line[0].strip("`") for line in LINES} == shipped
