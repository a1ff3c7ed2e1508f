"""`install`, `uninstall`, the directory, and errors that name the distribution to install."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import pytest

from interlingua_cli import directory
from interlingua_cli.commands import packages
from tests.cli.conftest import Run
from tests.support.tree import ROOT

# Written by `uv tool install ./interlingua --with ./other --with-editable ./third` (uv 0.9).
RECEIPT = """
[tool]
requirements = [
    { name = "interlingua", extras = ["cli"], specifier = ">=0.1" },
    { name = "interlingua-openai" },
    { name = "third", editable = "/src/third" },
]
entrypoints = [{ name = "interlingua", install-path = "/bin/interlingua", from = "interlingua-cli" }]
"""


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Pretend that interlingua came from an index; return the folder of its environment."""
    monkeypatch.setattr(packages, "_direct_url", dict)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_a_checkout_installs_its_own_folders() -> None:
    folder = str(ROOT / "plugins" / "chat-completions")
    assert packages.find_sources("groq")[-1] == folder
    assert packages.find_sources("interlingua-chat-completions")[-1] == folder
    assert packages.install_command([folder])[-2:] == ["-e", folder]


def test_wheels_beside_the_one_of_core_are_installed_with_what_they_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    origin = tmp_path / "interlingua-0.1.0-py3-none-any.whl"
    names = ("interlingua_openai", "interlingua_chat_completions")
    for name in names:
        (tmp_path / f"{name}-0.1.0-py3-none-any.whl").touch()
    monkeypatch.setattr(packages, "_direct_url", lambda: {"url": origin.as_uri(), "archive_info": {}})
    monkeypatch.setattr(packages, "is_installed", lambda _name: False)
    found = [Path(one).name.partition("-")[0] for one in packages.find_sources("openai")]
    assert found == ["interlingua_chat_completions", "interlingua_openai"]
    with pytest.raises(packages.CallerError, match="no wheel of interlingua-zai"):
        packages.find_sources("zai")


@pytest.mark.usefixtures("published")
def test_names_of_an_index_are_given_as_they_are() -> None:
    assert packages.find_sources("groq") == ["interlingua-chat-completions"]
    assert packages.find_sources("interlingua-acme") == ["interlingua-acme"]
    with pytest.raises(packages.CallerError, match="did you mean 'groq'"):
        packages.find_sources("groqq")


def test_pipx_installs_into_the_same_environment(published: Path) -> None:
    (published / "pipx_metadata.json").write_text("{}")
    assert packages.install_command(["interlingua-zai"]) == ["pipx", "inject", published.name, "interlingua-zai"]
    assert packages.uninstall_command(["interlingua-zai"]) == ["pipx", "uninject", published.name, "interlingua-zai"]


def test_uv_makes_the_tool_again_with_all_that_stood_beside_it(published: Path) -> None:
    (published / "uv-receipt.toml").write_text(RECEIPT)
    begun = ["uv", "tool", "install", "interlingua[cli]>=0.1", "--force"]
    kept = ["--with", "interlingua-openai", "--with-editable", "/src/third"]
    assert packages.install_command(["interlingua-zai"]) == [*begun, *kept, "--with", "interlingua-zai"]
    assert packages.uninstall_command(["interlingua-openai"]) == [*begun, "--with-editable", "/src/third"]


def test_the_program_itself_and_what_is_not_there_are_not_removed(run: Run) -> None:
    assert "remove the program itself" in run("uninstall", "interlingua").stderr
    assert "not installed: interlingua-nothing" in run("uninstall", "interlingua-nothing").stderr


def test_the_directory_is_listed(run: Run) -> None:
    rows = json.loads(run("providers", "--directory", "--json").stdout)
    assert {"interlingua", "interlingua-gateway"} <= {row["distribution"] for row in rows if row["installed"]}
    assert "interlingua-gateway" in run("providers", "--directory").stdout


def test_a_command_of_a_missing_distribution_names_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    row = directory.ListedDistribution(distribution="interlingua-dance", summary="", tier="ours", version="1")
    row = attrs.evolve(row, commands=("dance", "chat.slowly"), keys=("waltz",))
    monkeypatch.setattr(directory, "read_directory", lambda: (row,))
    hint = "interlingua install interlingua-dance"
    assert hint in run("dance").stderr
    assert hint in run("chat", "anthropic:x", "--slowly").stderr
    assert "`interlingua install waltz` installs interlingua-dance" in run("send", "-m", "waltz:x", "hi").stderr
