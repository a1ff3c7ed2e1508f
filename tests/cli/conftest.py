"""Fixtures of the command line's tests: an empty configuration folder, a local server, and a way to run a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.local import LocalServer

Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("INTERLINGUA_CONFIG", "INTERLINGUA_PLUGINS", "INTERLINGUA_CORPUS_EXCLUDE", "INTERLINGUA_SESSIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("MY_OWN_KEY", "key-for-tests")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def server(home: Path) -> Iterator[LocalServer]:
    with LocalServer() as server:
        server.configure(home)
        yield server


@pytest.fixture
def run(home: Path) -> Run:
    """Run the command line in process; stdout and stderr apart."""
    from interlingua_cli.root import cli

    def invoke(*arguments: str, input: str | bytes | None = None) -> Result:  # noqa: A002
        return CliRunner().invoke(cli, list(arguments), input=input, prog_name="interlingua")

    return invoke
