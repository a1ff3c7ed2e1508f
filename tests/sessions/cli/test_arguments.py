"""`-c` and `--cid` bring back what a conversation was asked with, and `logs` filters by it and prints its data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support.raw_sql import rows
from tests.support.terminal import at_terminal

KEEPS = ("-o", 'capabilities={"supports_tools": false}')  # asked in words for the schema
TOOLS = '''
from pathlib import Path
from interlingua_agents import tool

Path("imported").touch()

@tool(side_effects="read")
def weather(city: str) -> str:
    """Say the weather."""
    return f"sunny in {city}"
'''


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A module of tools; no test shares its name, because a module is imported once."""
    name = f"kept_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(TOOLS, encoding="utf-8")
    return name


def offered(server: LocalServer) -> list[str]:
    return [tool["function"]["name"] for tool in server.requests[-1].get("tools", [])]


def logged(run: Run, *options: str) -> list[dict[str, Any]]:
    result = run("logs", "--json", *options)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


# going on


def test_options_and_schema_of_a_conversation_come_back(run: Run, server: LocalServer) -> None:
    first = run("send", "here:json", *KEEPS, "-o", "temperature", "0.5", "-o", "stop=END", "-o", "stop=FIN",
                "--schema", "name, age int", "a dog")  # fmt: skip
    again = run("send", "-c", "-o", "temperature=1", "another")

    assert (first.exit_code, again.exit_code) == (0, 0), first.output + again.output
    assert json.loads(again.stdout) == {"name": "Rex", "age": 3}
    assert (server.requests[-1]["temperature"], server.requests[-1]["stop"]) == (1, ["END", "FIN"])
    assert "(as before: -o 'capabilities=" in again.stderr
    assert "-o stop=END -o stop=FIN --schema 'name, age int'; --plain omits these)" in again.stderr
    third = run("send", "-c", "a third")  # what was changed last counts
    assert server.requests[-1]["temperature"] == 1
    assert "-o temperature=1.0" in third.stderr


def test_plain_forgets_what_a_conversation_was_asked_with(run: Run, server: LocalServer) -> None:
    run("send", "here:json", *KEEPS, "-o", "temperature=0.5", "--schema", "name, age int", "a dog")
    plain = run("send", "-c", "--plain", "in words")
    after = run("send", "-c", "and now")

    for result in (plain, after):
        assert (result.exit_code, result.stdout) == (0, '{"name": "Rex", "age": 3}\n'), result.output
        assert "as before" not in result.stderr
    assert "temperature" not in server.requests[-1]
    assert run("send", "e", "--plain", "hi").exit_code == 2


def test_what_a_template_brought_comes_back_and_its_words_do_not(run: Run, server: LocalServer, home: Path) -> None:
    folder = home / "interlingua" / "templates"
    folder.mkdir()
    text = 'prompt = "Sum up: $input"\nsystem = "Be brief."\nmodel = "here:other"\noptions = { temperature = 0.5 }\n'
    (folder / "sum.toml").write_text(text, encoding="utf-8")
    run("send", "-t", "sum", "the log")
    again = run("send", "-c", "shorter")

    assert again.exit_code == 0, again.output
    assert [one["content"] for one in server.requests[-1]["messages"]] == [
        "Be brief.", "Sum up: the log", "Hello", "shorter"
    ]  # fmt: skip
    assert (server.requests[-1]["model"], server.requests[-1]["temperature"]) == ("other", 0.5)


def test_a_chat_goes_on_with_options_and_without_a_schema(run: Run, server: LocalServer) -> None:
    run("send", "here:json", *KEEPS, "-o", "temperature=0.5", "--schema", "name, age int", "a dog")
    result = run("chat", "-c", input="hi\n")

    assert (result.exit_code, result.stdout) == (0, '{"name": "Rex", "age": 3}\n'), result.output
    assert server.requests[-1]["temperature"] == 0.5
    assert "response_format" not in server.requests[-1]
    assert "-o temperature=0.5" in result.stderr
    assert "--schema" not in result.stderr


def test_the_address_comes_back_for_its_provider_alone(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "compatible:x", "--url", server.url, "hi")
    again = run("send", "-c", "and now")

    assert (again.exit_code, again.stdout) == (0, "Hello\n"), again.output
    assert f"--url {server.url}" in again.stderr
    other = run("send", "-c", "-m", "here:echo", "hi")
    assert (other.exit_code, "--url" in other.stderr) == (0, False), other.output


def test_what_may_be_a_secret_is_not_stored(run: Run, server: LocalServer, place: Path) -> None:
    secret = server.url.replace("http://", "http://me:hunter2@")
    run("send", "compatible:x", "--url", secret, "-o", 'headers={"x-key": "hunter2"}', "-o", "temperature=0", "hi")

    ((data,),) = rows(str(place), "SELECT data_json FROM session_entries")
    assert json.loads(data) == {"options": ["temperature=0.0"]}
    assert b"hunter2" not in place.read_bytes()


def test_tools_come_back_with_consent_alone(server: LocalServer, run: Run, tools: str, tmp_path: Path) -> None:
    """Code by a name may be another by now, so each run asks, naming the file; without a terminal it is left out."""
    run("send", "here:caller", "-T", f"{tools}:weather", "weather?")
    Path("imported").unlink()
    without = run("send", "-c", "-m", "here:echo", "and now?")

    assert (without.exit_code, without.stdout, offered(server)) == (0, "Hello\n", []), without.output
    assert f"-T {tools}:weather allows them" in without.stderr
    for answer, names in ((b"n\n", []), (b"y\n", ["weather"])):
        shown, code = at_terminal([(b"Use them again?", answer)], "send", "-c", "-m", "here:echo", "and now?")
        assert (code, offered(server), Path("imported").exists()) == (0, names, bool(names)), shown
        assert str(tmp_path / f"{tools}.py").encode() in shown.replace(b"\r\n", b"")
    run("send", "-c", "--plain", "-m", "here:echo", "and now?")
    assert "allows them" not in run("send", "-c", "and now?").stderr


def test_a_question_that_is_the_same_stores_its_arguments_once(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "here:echo", "hi")
    for _ in range(3):
        run("send", "-c", "-o", "temperature=0", "hi")

    assert rows(str(place), "SELECT count(*) FROM session_entries") == [(1,)]


# logs


@pytest.fixture
def kept(run: Run, server: LocalServer, tools: str) -> None:
    run("send", "here:caller", "-T", f"{tools}:weather", "weather?")
    run("send", "-c", "--plain", "-m", "e", "thanks")
    run("send", "here:json", *KEEPS, "--schema", "name, age int", "a dog")
    run("send", "here:caller", "-T", f"{tools}:weather", "--schema", "city", "a city")
    run("send", "-c", "--plain", "-m", "e", "bye")


@pytest.mark.usefixtures("kept")
def test_logs_of_a_tool(run: Run, tools: str) -> None:
    for options in (("-T", "weather"), ("-T", f"{tools}:weather"), ("--tools",)):
        turns = logged(run, *options)
        assert [(turn["prompt"], turn["tools"]) for turn in turns] == [
            ("weather?", ["weather"]),
            ("a city", ["weather"]),
        ]
        assert turns[0]["arguments"] == {"tools": [f"{tools}:weather"]}
    assert logged(run, "-T", "weather", "-T", "answer") == []
    assert logged(run, "-T", "answer") == []  # it takes the answer to a schema, and is no tool of the user's


@pytest.mark.usefixtures("kept")
def test_logs_of_a_schema_and_its_data(run: Run) -> None:
    (dog,) = logged(run, "--schema", "name, age int")
    assert (dog["prompt"], dog["arguments"]["schema"]["required"]) == ("a dog", ["name", "age"])
    lines = [json.loads(line) for line in run("logs", "--data").stdout.splitlines()]
    assert lines == [{"name": "Rex", "age": 3}, {"city": "Rome"}]  # as words, and as a tool's input
    assert json.loads(run("logs", "--schema", "city", "--data-array").stdout) == [{"city": "Rome"}]
    (with_ids,) = map(json.loads, run("logs", "--schema", "name, age int", "--data-ids").stdout.splitlines())
    assert with_ids == {"name": "Rex", "age": 3, "response_id": dog["id"], "conversation_id": dog["conversation"]}
    assert "--schema 'name, age int'" in run("logs").stdout
    assert run("logs", "--schema", "name", "--schema-multi", "name").exit_code == 2


def test_data_of_a_list_is_one_object_a_line(run: Run, server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.cli import local

    monkeypatch.setitem(local.TEXTS, "json", 'Here:\n```json\n{"items": [{"name": "Rex"}, {"name": "Ada"}]}\n```')
    sent = run("send", "here:json", *KEEPS, "--schema-multi", "name", "dogs")

    assert sent.exit_code == 0, sent.output
    lines = run("logs", "--schema-multi", "name", "--data-key", "items").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"name": "Rex"}, {"name": "Ada"}]
    assert [json.loads(line) for line in run("logs", "--data").stdout.splitlines()] == [json.loads(sent.stdout)]


@pytest.mark.usefixtures("kept")
def test_logs_after_an_id(run: Run) -> None:
    every = logged(run, "-n", "0")
    ids = [turn["id"] for turn in every]

    assert [turn["id"] for turn in logged(run, "-n", "0", "--id-gt", ids[1])] == ids[2:]
    assert [turn["id"] for turn in logged(run, "-n", "0", "--id-gte", ids[1])] == ids[1:]
    assert ids[-1] in run("logs", "-n", "1").stdout
    assert f'id: "{ids[-1]}"' in run("logs", "-n", "1", "-s").stdout


def test_truncated_logs(run: Run, server: LocalServer) -> None:
    run("send", "e", "word " * 50)

    (turn,) = logged(run, "-t")
    assert (len(turn["prompt"]), "messages" in turn) == (101, False)
    assert "word " * 25 not in run("logs", "-t").stdout
    assert "word " * 25 in run("logs").stdout


@pytest.mark.parametrize("both", [("--json", "-s"), ("--json", "-r"), ("-x", "--data"), ("-s", "--data-key", "items")])
def test_two_forms_of_output_are_refused(run: Run, server: LocalServer, both: tuple[str, ...]) -> None:
    result = run("logs", *both)

    assert result.exit_code == 2
    assert "two forms of output" in result.stderr
