"""Plugins of a range of contracts are loaded; older ones are adapted, others are refused with the way out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytest

from interlingua.errors import PluginError
from interlingua.plugins import ModelInfo, Provider, Registry, hookimpl
from tests.support.fake_provider import Fake

CONTRACT = "interlingua._plugins.contract"


def load(version: Any = None) -> Provider:
    fake = Fake()
    if version is not None:
        vars(fake)["contract_version"] = version
    return Registry(providers={"fake": fake}, entry_points=[]).provider("fake")


@pytest.fixture
def third(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interlingua of contract 3 that supports contract 2 as well."""
    monkeypatch.setattr(f"{CONTRACT}.CONTRACT_VERSION", 3)
    monkeypatch.setattr(f"{CONTRACT}.OLDEST_CONTRACT", 2)


def test_the_current_version_is_loaded_silently() -> None:
    for version in (None, 1):  # a plugin without a version was written for the first
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert load(version).key == "fake"


@pytest.mark.parametrize("version", ["1", True, 1.0])
def test_a_version_is_an_integer(version: Any) -> None:
    with pytest.raises(PluginError, match=r"'fake' from passed explicitly: contract_version must be an integer, not"):
        load(version)


def test_a_newer_plugin_needs_a_newer_interlingua(third: None) -> None:
    with pytest.raises(PluginError, match=r"needs contract 4, but .* supports 2 to 3: upgrade interlingua"):
        load(4)


@pytest.mark.parametrize("version", [None, 1])
def test_a_plugin_that_is_too_old_is_refused(third: None, version: int | None) -> None:
    with pytest.raises(PluginError, match=r"contract 1, which is no longer supported \(2 to 3\): upgrade the plugin"):
        load(version)


def test_an_older_plugin_runs_with_a_warning_that_names_the_page(third: None) -> None:
    with pytest.warns(DeprecationWarning, match=r"'fake' from .* uses contract 2.*move-to-contract-3\.md"):
        assert load(2).model("known") is not None


def test_an_older_plugin_is_adapted_step_by_step(third: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Newer(Fake):
        def __init__(self, old: Fake) -> None:
            super().__init__()
            self.old = old

        @hookimpl
        def models(self) -> Sequence[ModelInfo]:
            return [ModelInfo(id=f"{model.id}-adapted") for model in self.old.models()]

    monkeypatch.setattr(f"{CONTRACT}._STEPS", {2: Newer})
    with pytest.warns(DeprecationWarning, match="contract 2"):
        assert load(2).model("known-adapted") is not None
    assert load(3).model("known-adapted") is None
