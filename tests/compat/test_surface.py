"""The surface of the contract changes only with its version, and no public name goes without a deprecation."""

from __future__ import annotations

import json
import sys
import types
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from interlingua._lazy import lazy_names
from interlingua.plugins import CONTRACT_VERSION
from tests.compat import surface

WRITE = "python -m tests.compat.surface"


def differences(before: dict[str, Any], now: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return what needs a new contract version, and what only has to be written down.

    Before the first release nothing is published: there a difference of the first list is written down as well.
    """
    bump, note = [], []
    for hook in sorted({*before["hooks"], *now["hooks"]}):
        old, new = before["hooks"].get(hook), now["hooks"].get(hook)
        if old is None:
            note.append(f"hook {hook} is new")
        elif new is None:
            bump.append(f"hook {hook} is gone")
        else:
            bump += [f"hook {hook}: argument {name} is gone" for name in old if name not in new]
            note += [f"hook {hook}: argument {name} is new" for name in new if name not in old]
    for cls in sorted({*before["values"], *now["values"]}):
        if cls not in before["values"]:
            note.append(f"class {cls} is new")
        elif cls not in now["values"]:
            bump.append(f"class {cls} is gone, or has no fields any more")
        else:
            _compare_fields(cls, before["values"][cls], now["values"][cls], bump, note)
    for facade in before["names"]:
        old_names, new_names = set(before["names"][facade]), set(now["names"].get(facade, ()))
        note += [f"{facade}.{name} is gone, with a deprecation" for name in sorted(old_names - new_names)]
        note += [f"{facade}.{name} is new" for name in sorted(new_names - old_names)]
    return bump, note


def _compare_fields(cls: str, old: dict[str, Any], new: dict[str, Any], bump: list[str], note: list[str]) -> None:
    for field in sorted({*old, *new}):
        if field not in new:
            bump.append(f"{cls}.{field} is gone")
        elif field not in old:
            required = new[field] == surface.REQUIRED
            (bump if required else note).append(f"{cls}.{field} is new" + (" and required" if required else ""))
        elif old[field] != new[field] and old[field] != surface.REQUIRED:
            bump.append(f"{cls}.{field}: the default was {old[field]!r} and is {new[field]!r}")
        elif old[field] != new[field]:
            note.append(f"{cls}.{field} has a default now")


def test_the_surface_is_that_of_the_contract() -> None:
    before, now = json.loads(surface.PAGE.read_text(encoding="utf-8")), surface.surface()
    bump, note = differences(before, json.loads(json.dumps(now)))
    assert not bump, (
        f"plugins of contract {CONTRACT_VERSION} rely on this: raise CONTRACT_VERSION, "
        "add a step to _plugins/contract.py, "
        f"describe it in docs/plugins/how-to/move-to-contract-{CONTRACT_VERSION + 1}.md and run `{WRITE}` "
        "(before the first release: only run it):\n" + "\n".join(bump)
    )
    assert not note, f"plugins survive this, so the version stays: run `{WRITE}`:\n" + "\n".join(note)


@pytest.mark.parametrize("facade", surface.FACADES)
def test_a_public_name_is_not_removed_without_a_deprecation(facade: str) -> None:
    written = json.loads(surface.PAGE.read_text(encoding="utf-8"))["names"][facade]
    module = import_module(facade)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        gone = [name for name in written if not hasattr(module, name)]
    assert not gone, (
        f"{facade} lost {', '.join(gone)}: name the new places in `moved=` of its lazy_names "
        f"(before the first release: run `{WRITE}`)"
    )


def test_every_older_contract_that_is_supported_has_its_file_and_a_page_on_leaving_it() -> None:
    from interlingua._plugins.contract import OLDEST_CONTRACT

    root = Path(__file__).parents[2]
    for version in range(OLDEST_CONTRACT, CONTRACT_VERSION + 1):
        assert surface.PAGE.with_name(f"contract-{version}.json").exists()
        page = root / f"docs/plugins/how-to/move-to-contract-{version}.md"
        assert version == 1 or page.exists()


def test_a_difference_is_judged_by_whether_old_plugins_survive_it() -> None:
    before = {
        "hooks": {"kept": ["a", "b"], "gone": []},
        "values": {"V": {"a": "required", "b": None, "c": 1}, "Gone": {}},
        "names": {"interlingua": ["One", "Two"]},
    }
    now = {
        "hooks": {"kept": ["a", "c"], "new": []},
        "values": {"V": {"a": None, "c": 2, "d": "required", "e": 0}, "New": {}},
        "names": {"interlingua": ["Two", "Three"]},
    }
    bump, note = differences(before, now)
    assert bump == [
        "hook gone is gone",
        "hook kept: argument b is gone",
        "class Gone is gone, or has no fields any more",
        "V.b is gone",
        "V.c: the default was 1 and is 2",
        "V.d is new and required",
    ]
    assert note == [
        "hook kept: argument c is new",
        "hook new is new",
        "class New is new",
        "V.a has a default now",
        "V.e is new",
        "interlingua.One is gone, with a deprecation",
        "interlingua.Three is new",
    ]


def test_a_moved_name_resolves_with_a_warning_and_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "interlingua.new", types.ModuleType("interlingua.new"))
    moved = {"Old": ("interlingua.types.Usage", "0.4")}
    monkeypatch.setattr("interlingua._lazy.DEPRECATIONS", {})
    get, listed, public = lazy_names("interlingua.new", {"types.messages": "Message"}, moved)
    import interlingua.types

    with pytest.warns(DeprecationWarning, match=r"in 0\.6: use interlingua\.types\.Usage$") as warned:
        assert get("Old") is interlingua.types.Usage
    assert warned[0].filename == __file__
    assert get("Message") is interlingua.types.Message
    assert listed() == public == ["Message"]
    with pytest.raises(AttributeError, match=r"'interlingua\.new' has no attribute 'Older'"):
        get("Older")
