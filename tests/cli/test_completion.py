"""Completion in the user's shell: commands, options, models, stored names and files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from interlingua_cli.root import Commands, cli
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support import interrupt


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(run: Run, shell: str) -> None:
    assert "_INTERLINGUA_COMPLETE" in run("completion", shell).stdout


def test_commands_options_and_models_are_completed(server: LocalServer, home: Path) -> None:
    def asked(words: str, at: int) -> dict[str, str]:
        return {"_INTERLINGUA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}

    def complete(words: str, at: int) -> list[str]:
        done = CliRunner(env=asked(words, at)).invoke(
            cli, [], prog_name="interlingua", complete_var="_INTERLINGUA_COMPLETE"
        )
        return [line.partition(",")[2] for line in done.stdout.splitlines() if line]

    environ = {**os.environ, **asked("interlingua send -m here:e", 3)}
    program = subprocess.run([interrupt.PROGRAM], env=environ, capture_output=True, text=True, check=False)
    assert program.stdout == "plain,here:echo\n"

    assert "send" in complete("interlingua se", 1)
    assert "--no-log" in complete("interlingua send --no-", 2)
    assert complete("interlingua send -m here:e", 3) == ["here:echo"]
    assert complete("interlingua send here:e", 2) == ["here:echo"]
    assert complete("interlingua send here:echo h", 3) == []  # that is text
    assert complete("interlingua models her", 2) == ["here"]
    assert complete("interlingua models default here:e", 3) == ["here:echo"]
    for words in ("explain no", "send -a no", "send -f no", "send --schema no"):
        assert complete(f"interlingua {words}", 3) == ["no"]  # of type file: the shell completes it
    (home / "interlingua" / "templates").mkdir()
    (home / "interlingua" / "templates" / "sum.toml").write_text('prompt = "Sum up"', encoding="utf-8")
    assert complete("interlingua send -t s", 3) == ["sum"]


@pytest.mark.parametrize("breaks", [" \t\n:", " \t\n"])
def test_bash_completes_a_word_behind_its_last_colon(server: LocalServer, breaks: str) -> None:
    """As bash calls the function: what it returns stands in place of what is behind the last separator of words."""
    script = """
        eval "$("$0" completion bash)"
        COMP_WORDBREAKS="$1" COMP_LINE="interlingua send 'two words' -m here:e" COMP_POINT=${#COMP_LINE}
        _interlingua_completion "$0"
        echo "${COMPREPLY[*]}"
    """
    done = subprocess.run(["bash", "-c", script, interrupt.PROGRAM, breaks], capture_output=True, text=True, check=True)

    assert done.stdout == ("echo\n" if ":" in breaks else "here:echo\n"), done.stderr


def test_commands_are_completed_without_being_loaded(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Commands, "get_command", lambda *_: pytest.fail("a command was loaded"))
    found = cli.shell_complete(click.Context(cli), "se")
    assert [item.value for item in found] == ["send", "session"]
    assert found[0].help == "Send TEXT to a model and print its answer."
