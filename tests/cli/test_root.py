"""The group itself: help stays cheap, plugins add commands and wrap hooks, errors and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from interlingua.codec import dumps_message
from interlingua.types import user
from interlingua_cli.root import cli
from tests.cli.conftest import Run
from tests.cli.local import LocalServer

PROGRAM = str(Path(sys.executable).with_name("interlingua"))
PLUGIN = '''
import click
from interlingua._plugins.hookspecs import hookimpl

@hookimpl
def register_commands(cli):
    @cli.command("greet")
    def greet():
        """Say hello."""
        click.echo("hello from a plugin")

@hookimpl
def prepare_request(messages, tools, options):
    import attrs
    return messages, tools, attrs.evolve(options, max_tokens=77)
'''

EXTENSION = """
import copy
import click
from interlingua.plugins import hookimpl

@hookimpl
def register_commands(cli):
    def louder(command):
        changed = copy.copy(command)
        changed.params = [*command.params, click.Option(("--louder",), is_flag=True)]
        return changed
    cli.extend("chat", louder)
    cli.extend("send", louder)
"""


DISTRIBUTION = '''
import copy
import click

@click.command("greet")
@click.argument("name")
def greet(name):
    """Say hello to NAME."""
    click.echo(f"hello {name}")

def with_louder(command):
    changed = copy.copy(command)
    changed.params = [*command.params, click.Option(("--louder",), is_flag=True)]
    return changed
'''

ENTRY_POINTS = """[interlingua.commands]
greet = acme_commands:greet
price.louder = acme_commands:with_louder
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with an installed distribution that has commands."""
    folder = tmp_path / "site"
    info = folder / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    (folder / "acme_commands.py").write_text(DISTRIBUTION, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_plugin.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "my_plugin"


def start(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], env={**os.environ, **environ}, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        check=False, timeout=120,
    )  # fmt: skip


def test_help_loads_no_http_no_database_and_no_rich(home: Path) -> None:
    code = (
        "import sys\nfrom interlingua_cli import main\nsys.argv = ['interlingua', '--help']\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "print(sorted({'httpx', 'cattrs', 'rich.console', 'sqlite3', 'interlingua._http.client'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
    assert "corpus" in done.stdout


def test_the_cycle_collector_runs_seldom_in_a_command(home: Path) -> None:
    code = (
        "import gc, sys\nfrom interlingua_cli import main\nsys.argv = ['interlingua', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    print(gc.get_threshold()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "50000"


def test_help_imports_no_command(home: Path) -> None:
    code = (
        "import sys\nfrom interlingua_cli import main\nsys.argv = ['interlingua', '--help']\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "heads = ('interlingua_cli.commands', 'interlingua_cli.demo', 'interlingua_contract', 'interlingua_sessions')\n"
        "print([name for name in sys.modules if name.startswith(heads)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
    assert {"check", "send", "session"} <= {line.split()[0] for line in done.stdout.splitlines() if line.strip()}


def test_a_distribution_adds_a_command_and_extends_another(home: Path, acme: Path) -> None:
    assert "Say hello to NAME." in start("--help").stdout
    assert start("greet", "Ada").stdout == "hello Ada\n"
    assert "--louder" in start("price", "--help").stdout
    assert "--louder" not in start("send", "--help").stdout


def test_a_name_that_two_distributions_use_is_a_warning(home: Path, acme: Path) -> None:
    info = acme / "bolt-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bolt\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[interlingua.commands]\ngreet = bolt_commands:greet\n", encoding="utf-8")
    done = start("greet", "Ada")

    assert done.stdout == "hello Ada\n"
    assert done.stderr == "warning: acme and bolt both have a command 'greet'; the first is used\n"


def test_a_broken_distribution_is_one_warning(home: Path, acme: Path) -> None:
    (acme / "acme_commands.py").unlink()
    shown, run = start("--help"), start("greet", "Ada")

    assert (shown.returncode, run.returncode) == (0, 2)
    assert "\n  send " in shown.stdout
    assert "greet" not in shown.stdout
    assert shown.stderr == (
        "warning: 'greet' of acme cannot be loaded: ModuleNotFoundError: No module named 'acme_commands'\n"
    )
    assert "No such command 'greet'" in run.stderr
    price = start("price", "--help")
    assert (price.returncode, price.stderr.count("warning: ")) == (0, 1)


def test_a_plugin_adds_a_command_and_changes_requests(home: Path, server: LocalServer, plugin: str) -> None:
    assert "Say hello." in start("-p", plugin, "--help").stdout
    assert start("-p", plugin, "greet").stdout == "hello from a plugin\n"
    assert start("greet", INTERLINGUA_PLUGINS=plugin).stdout == "hello from a plugin\n"
    assert start("greet").returncode == 2

    for arguments in (["-p", plugin, "send", "here:echo", "hi"], ["send", "here:echo", "hi", "--plugin", plugin]):
        assert start(*arguments).returncode == 0
        assert 77 in server.requests[-1].values()


OWN = {"new-plugin", "bulk", "session", "transcript", "uploads"}  # asks none, or its commands take one


@pytest.mark.parametrize("name", sorted({*cli.installed_commands()} - OWN))
def test_every_command_that_asks_plugins_takes_one(name: str) -> None:
    """An option before the command's name is easily forgotten."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert any("--plugin" in parameter.opts for parameter in command.params)


def test_a_plugin_extends_chat_alone(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wider.py").write_text(EXTENSION, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert "--louder" in start("-p", "wider", "chat", "--help").stdout
    assert "--louder" not in start("chat", "--help").stdout
    assert "'send' cannot be extended; only chat can" in start("-p", "wider", "chat", "--help").stderr


def test_a_plugin_that_cannot_be_loaded_is_one_line(home: Path) -> None:
    done = start("-p", "no_such_plugin", "providers")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: plugin 'no_such_plugin' cannot be loaded")


def test_errors_are_one_line_and_debug_shows_where(run: Run) -> None:
    short, long = run("price", "nowhere:x"), run("--debug", "price", "nowhere:x")

    assert (short.exit_code, long.exit_code) == (1, 1)
    assert short.stderr.startswith("error: no provider 'nowhere'")
    assert short.stderr.count("\n") == 1
    assert "Traceback" in long.stderr


def test_wrong_usage_is_exit_2(run: Run) -> None:
    assert run("wire").exit_code == 2
    assert run("no-such-command").exit_code == 2


def test_python_m_runs_the_command_line(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interlingua", "--version"], capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("interlingua, version ")


def test_python_m_without_the_command_line_says_what_to_install(home: Path) -> None:
    code = (
        "import importlib.metadata, runpy\n"
        "importlib.metadata.entry_points = lambda **_: importlib.metadata.EntryPoints()\n"
        "runpy.run_module('interlingua', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr == "the command line is not installed: pip install 'interlingua[cli]'\n"


def test_version(run: Run) -> None:
    from importlib.metadata import version

    assert run("--version").stdout == f"interlingua, version {version('interlingua')}\n"


def test_a_plugin_in_the_making_says_what_is_to_be_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    assert run("new-plugin", "acme", "--into", str(tmp_path)).exit_code == 0
    monkeypatch.syspath_prepend(str(tmp_path / "interlingua-acme" / "src"))
    (tmp_path / "talk.jsonl").write_text(f"{dumps_message(user('hi'))}\n", encoding="utf-8")
    result = run("-p", "acme=interlingua_acme.plugin:plugin", "explain", "talk.jsonl", "--to", "acme:any")

    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("error: messages.py: write ")
