"""What makes the command line one to live in: a default model, files, templates, schemas, tools, completion."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from interlingua.errors import CallerError
from interlingua_cli import chat, conversation
from interlingua_cli.schema import many, parse_short_form
from interlingua_cli.show import find_code
from interlingua_cli.template import Template, read_template, write_template
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support import interrupt
from tests.support.loopback import loopback, send_bytes
from tests.support.terminal import at_terminal

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC")
SEES = ("-o", 'capabilities={"supports_images": true, "supports_image_urls": true}')
KEEPS = ("-o", 'capabilities={"supports_tools": false}')  # asked in words for the schema
TOOLS = '''
from pathlib import Path
from interlingua_agents import tool

Path("imported").touch()

@tool(side_effects="read")
def weather(city: str) -> str:
    """Say the weather."""
    return f"sunny in {city}"

def write(city: str) -> str:
    """Write a file."""
    Path("written").touch()
    return "done"

number = 3
'''


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A module of tools; no test shares its name, because a module is imported once."""
    name = f"tools_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(TOOLS, encoding="utf-8")
    return name


def asked(server: LocalServer) -> list[Any]:
    return [message["content"] for message in server.requests[-1]["messages"]]


# the default model


def test_the_default_model_is_asked_where_none_is_named(run: Run, server: LocalServer) -> None:
    assert run("models", "default").stdout == ""
    assert run("models", "default", "e").exit_code == 0

    assert run("models", "default").stdout == "e\n"
    assert json.loads(run("models", "default", "--json").stdout) == "e"
    assert run("send", "hi there").stdout == "Hello\n"
    assert (server.requests[-1]["model"], asked(server)) == ("echo", ["hi there"])
    run("send", "here:other", "hi")
    assert (server.requests[-1]["model"], asked(server)) == ("other", ["hi"])
    run("send", "-m", "here:third", "e", "is", "a", "letter")
    assert (server.requests[-1]["model"], asked(server)) == ("third", ["e is a letter"])
    run("send", "note: buy milk")
    assert (server.requests[-1]["model"], asked(server)) == ("echo", ["note: buy milk"])
    run("send", "here: and now")
    assert (server.requests[-1]["model"], asked(server)) == ("echo", ["here: and now"])
    run("send", "here:other", "--", "-o", "a", "b")
    assert (server.requests[-1]["model"], asked(server)) == ("other", ["-o a b"])
    assert run("chat", input="hi\n").stdout == "Hello\n"


def test_a_default_that_is_no_model_is_refused_and_the_file_stays(run: Run, server: LocalServer, home: Path) -> None:
    path = home / "interlingua" / "config.toml"
    before = path.read_text("utf-8")

    assert run("models", "default", "nonsense").exit_code == 2
    assert run("models", "default", "nowhere:x").exit_code == 1
    assert path.read_text("utf-8") == before
    run("models", "default", "here:other")
    run("models", "default", "e")
    assert path.read_text("utf-8") == f'default_model = "e"\n{before}'  # once, and above the tables


def test_a_link_to_the_configuration_stays_a_link(run: Run, server: LocalServer, home: Path, tmp_path: Path) -> None:
    path = home / "interlingua" / "config.toml"
    path.rename(tmp_path / "dotfile")
    path.symlink_to(tmp_path / "dotfile")
    run("models", "default", "e")

    assert path.is_symlink()
    assert run("models", "default").stdout == "e\n"


def test_what_is_no_file_is_not_written_over(run: Run, server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLINGUA_CONFIG", os.devnull)
    result = run("models", "default", "anthropic:claude-haiku-4-5")

    assert result.exit_code == 1
    assert "is not a file" in result.stderr
    assert not Path(os.devnull).is_file()


# what goes with a question


def test_fragments_stand_before_the_prompt_and_media_are_told_by_their_bytes(
    run: Run, server: LocalServer, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("buy milk", encoding="utf-8")
    (tmp_path / "picture").write_bytes(PNG)
    result = run("send", "here:sees", *SEES, "-f", "note.txt", "-a", "picture", "-f", "-", "what?", input="piped text")

    assert result.exit_code == 0, result.output
    (content,) = asked(server)
    assert [part["type"] for part in content] == ["text", "text", "image_url", "text"]
    assert content[0]["text"] == "note.txt:\nbuy milk"
    assert content[1]["text"] == "piped text"
    assert content[2]["image_url"]["url"].startswith("data:image/png;base64,")
    assert content[3]["text"] == "what?"


def test_a_fragment_is_stored_once_under_a_name(run: Run, server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("buy milk\n", encoding="utf-8")
    assert run("fragments", "--json").stdout == "[]\n"
    stored = run("fragments", "set", "shop", "note.txt")
    (tmp_path / "note.txt").unlink()

    assert stored.exit_code == 0, stored.output
    assert run("fragments", "set", "piped", "-", input="from a pipe").exit_code == 0
    assert run("fragments", "show", "shop").stdout == "buy milk\n"
    assert json.loads(run("fragments", "--json").stdout) == [
        {"name": "piped", "text": "from a pipe"}, {"name": "shop", "text": "buy milk\n"}
    ]  # fmt: skip
    assert run("fragments").stdout.splitlines()[2].split() == ["shop", "9", "buy", "milk"]
    assert run("send", "here:echo", "-f", "shop", "what?").exit_code == 0
    assert [part["text"] for part in asked(server)[0]] == ["shop:\nbuy milk\n", "what?"]
    assert run("send", "here:echo", "-f", "shop", "Do it", "--save", "todo").exit_code == 0
    assert run("send", "-t", "todo").exit_code == 0
    assert asked(server)[0][0]["text"] == "shop:\nbuy milk\n"
    assert run("fragments", "remove", "shop").exit_code == 0
    for result in (run("fragments", "show", "shop"), run("send", "-t", "todo"), run("fragments", "remove", "shop")):
        assert result.exit_code == 1
        assert "`interlingua fragments` lists" in result.stderr
    assert run("send", "here:echo", "-f", "shop", "what?").exit_code == 2
    assert run("fragments", "set", "../up", "-", input="x").exit_code == 1


def test_an_image_is_piped_in_or_given_a_type(run: Run, server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(PNG)
    assert run("send", "here:sees", *SEES, "-a", "-", "what?", input=PNG).exit_code == 0
    assert asked(server)[0][0]["image_url"]["url"].startswith("data:image/png")
    assert run("send", "here:sees", *SEES, "--at", "picture", "image/webp", "what?").exit_code == 0
    assert asked(server)[0][0]["image_url"]["url"].startswith("data:image/webp")
    assert run("send", "here:sees", *SEES, "--at", "https://example.com/a", "image/gif", "what?").exit_code == 0
    assert asked(server)[0][0]["image_url"]["url"] == "https://example.com/a"
    assert run("send", "here:sees", *SEES, "--at", "picture", "nonsense", "what?").exit_code == 2


def test_an_address_is_fetched(run: Run, server: LocalServer) -> None:
    def answer(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        found = {"/a.png": PNG, "/note.txt": b"buy milk"}.get(handler.path)
        send_bytes(handler, 200 if found else 404, "application/octet-stream", found or b"")

    with loopback(answer) as base:
        assert run("send", "here:sees", *SEES, "-a", f"{base}/a.png", "-f", f"{base}/note.txt", "what?").exit_code == 0
        missing = run("send", "here:echo", "-a", f"{base}/none", "what?")

    assert [part["type"] for part in asked(server)[0]] == ["text", "image_url", "text"]
    assert (missing.exit_code, len(server.requests)) == (1, 1)
    assert "cannot fetch " in missing.stderr
    assert "HTTP Error 404" in missing.stderr


def test_files_that_are_not_there_or_no_text_are_said(run: Run, server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(PNG)
    assert run("send", "here:echo", "-a", "nowhere", "hi").exit_code == 2
    result = run("send", "here:echo", "-f", "picture", "hi")

    assert (result.exit_code, server.requests) == (1, [])
    assert "-a attaches images" in result.stderr


# how an answer is shown


@pytest.mark.parametrize(
    ("options", "shown"),
    [(("-x",), "print(1)\n"), (("--xl",), "echo 2\n"), (("-x", "--no-stream"), "print(1)\n")],
)
def test_only_the_code_of_an_answer_is_printed(
    run: Run, server: LocalServer, options: tuple[str, ...], shown: str
) -> None:
    assert run("send", "here:coder", "hi", *options).stdout == shown


def test_code_blocks() -> None:
    assert find_code("no code") is None
    assert find_code("```\na\n```") == "a"
    assert find_code("````md\n```\na\n```\n````\n~~~\nb\n~~~") == "```\na\n```"
    assert find_code("```\na\n```\n\n~~~x\nb\n~~~", last=True) == "b"
    assert find_code("an open one\n```\na") is None


def test_formats(run: Run, server: LocalServer) -> None:
    assert json.loads(run("send", "here:echo", "hi", "--format", "json").stdout)["content"][0]["text"] == "Hello"
    assert run("send", "here:coder", "hi", "--format", "markdown").stdout.startswith("Two ways:")  # a pipe gets it raw
    assert run("send", "here:echo", "hi", "--format", "text").stdout == "Hello\n"


def test_options_take_two_words_or_one(run: Run, server: LocalServer) -> None:
    assert run("send", "here:echo", "-o", "temperature", "0.5", "-o", "max_tokens=7", "hi").exit_code == 0

    assert server.requests[-1]["temperature"] == 0.5
    assert 7 in server.requests[-1].values()
    assert run("send", "here:echo", "hi", "-o", "temperature").exit_code == 2
    stored = run("session", "send", "s", "-m", "e", "-p", "json", "-o", "temperature", "0.25", "hi")
    assert stored.exit_code == 0, stored.output  # -p is a plugin's module here
    assert server.requests[-1]["temperature"] == 0.25


# templates


def test_a_template_fills_in_the_prompt_and_brings_the_rest(run: Run, server: LocalServer, home: Path) -> None:
    folder = home / "interlingua" / "templates"
    folder.mkdir()
    (folder / "sum.toml").write_text(
        'prompt = "Cost $$5. ${who}, in $words words: $input"\nsystem = "Be $mood."\nmodel = "here:other"\n'
        'options = { temperature = 0.5, max_tokens = 9 }\ndefaults = { words = "ten", who = "Ada" }\n',
        encoding="utf-8",
    )
    result = run("send", "-t", "sum", "-p", "mood", "kind", "-p", "who=Bob", input="the log\n")

    assert result.exit_code == 0, result.output
    assert asked(server) == ["Be kind.", "Cost $5. Bob, in ten words: the log"]
    assert (server.requests[-1]["model"], server.requests[-1]["temperature"]) == ("other", 0.5)
    run("send", "-t", "sum", "-m", "e", "-o", "temperature", "1", "-p", "mood", "calm", "text")
    assert (server.requests[-1]["model"], server.requests[-1]["temperature"]) == ("echo", 1)
    missing = run("send", "-t", "sum", "text")
    assert (missing.exit_code, len(server.requests)) == (2, 2)
    assert "-p mood VALUE" in missing.stderr
    assert run("chat", "-t", "sum", "-p", "mood", "kind", input="hi\n").exit_code == 0
    assert asked(server) == ["Be kind.", "Cost $5. Ada, in ten words: hi"]
    assert run("send", "e", "-p", "mood", "kind", "hi").exit_code == 2


def test_text_is_appended_where_a_template_has_no_place_for_it() -> None:
    template = Template(name="t", prompt="Summarise:", system="Be brief.")

    assert template.fill_prompt("the log", {}) == "Summarise:\nthe log"
    assert template.fill_prompt("", {}) == "Summarise:"
    assert Template(system="About $input").fill_system("it", {}) == "About it"
    assert Template(prompt="$input twice: $input").fill_prompt("a", {}) == "a twice: a"
    assert Template(prompt="say $a").fill_prompt("", {"a": "$b $$"}) == "say $b $$"  # a value is no template


def test_a_command_line_is_saved_as_a_template(run: Run, server: LocalServer, home: Path) -> None:
    saved = run(
        "send", "here:other", "Say $what", "-s", 'Be "brief"\n', "-o", "temperature=0.5", "-o", "stop=END",
        "--schema", "name, age int", "-T", "mod:fn", "-p", "what", "hi", "--save", "mine",
    )  # fmt: skip

    assert (saved.exit_code, server.requests) == (0, []), saved.output
    template = read_template("mine", {"XDG_CONFIG_HOME": str(home)})
    assert template == Template(
        name="mine", prompt="Say $what", system='Be "brief"\n', model="here:other",
        options={"temperature": 0.5, "stop": ["END"]}, schema="name, age int", tools=["mod:fn"],
        defaults={"what": "hi"},
    )  # fmt: skip
    assert json.loads(run("templates", "--json").stdout)[0]["name"] == "mine"
    assert "mine" in run("templates").stdout
    assert 'model = "here:other"' in run("templates", "show", "mine").stdout
    assert run("send", "here:other", "-a", __file__, "hi", "--save", "x").exit_code == 2
    assert run("templates", "path").stdout.strip() == str(home / "interlingua" / "templates")


def test_stop_sequences_and_a_chosen_tool_survive_in_a_template(run: Run, server: LocalServer, tools: str) -> None:
    options = ("-o", "stop=END", "-o", "stop=FIN", "-o", "tool_choice=weather", "-T", f"{tools}:weather")
    saved = run("send", "here:caller", *options, "weather?", "--save", "kept")
    result = run("send", "-t", "kept", "-T", f"{tools}:weather")

    assert (saved.exit_code, result.exit_code) == (0, 0), saved.output + result.output
    assert server.requests[0]["stop"] == ["END", "FIN"]
    assert server.requests[0]["tool_choice"]["function"]["name"] == "weather"


@pytest.mark.parametrize(
    "text", ["nonsense = 1", "prompt = 1", "tools = [1]", "defaults = { a = 1 }", "prompt = ", "options = 1"]
)
def test_a_mistake_in_a_template_names_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(CallerError, match=r"bad\.toml"):
        read_template(str(path), {})


def test_any_text_survives_in_a_template(tmp_path: Path) -> None:
    text = 'a "quoted" \\ line\nÜ 日本 \x01 \x7f \u2028 $x'
    written = Template(name=str(tmp_path / "t.toml"), prompt=text, options={"provider_options": {"a b": [1, True]}})
    write_template(written, {})

    assert read_template(written.name, {}) == written


# schemas


def test_the_short_form() -> None:
    assert parse_short_form("name, age int, tags: a hint") == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "tags": {"type": "string", "description": "a hint"},
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": False,
    }
    lines = parse_short_form("name: first, then last\n  ok bool\nsize float\n")
    assert lines["properties"] == {
        "name": {"type": "string", "description": "first, then last"},
        "ok": {"type": "boolean"},
        "size": {"type": "number"},
    }
    assert many(lines)["properties"]["items"]["items"] == lines
    for wrong in ("", "age number", "1st", "a b c"):
        with pytest.raises(CallerError):
            parse_short_form(wrong)


def test_what_is_not_stored_is_said(run: Run, home: Path) -> None:
    for command, lists in (("schemas", "0123456789abcdef"), ("schemas", "name"), ("templates", "name")):
        result = run(command, "show", lists)
        assert result.exit_code == 1
        assert f"`interlingua {command}` lists" in result.stderr


def test_schemas_dsl_prints_the_json(run: Run) -> None:
    assert json.loads(run("schemas", "dsl", "name, age int").stdout) == parse_short_form("name, age int")
    assert json.loads(run("schemas", "dsl", "name", "--multi").stdout) == many(parse_short_form("name"))


@pytest.mark.parametrize("keep", [("-n",), ()])
def test_an_answer_of_a_schema_is_checked_json(run: Run, server: LocalServer, keep: tuple[str, ...]) -> None:
    result = run("send", "here:json", *keep, *KEEPS, "--schema", "name, age int", "a dog")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"name": "Rex", "age": 3}
    assert "1,000 in" in result.stderr
    wrong = run("send", "here:json", *keep, *KEEPS, "--schema", "name, size int", "a dog")
    assert wrong.exit_code == 1
    assert "does not fit" in wrong.stderr
    assert ("the question is kept" in wrong.stderr) is not bool(keep)
    assert len(server.requests) == 3  # the second was asked again


def test_a_schema_is_a_file_json_or_a_stored_id(run: Run, server: LocalServer, tmp_path: Path) -> None:
    schema = parse_short_form("name, age int")
    (tmp_path / "dog.json").write_text(json.dumps(schema), encoding="utf-8")
    assert run("send", "here:json", *KEEPS, "--schema", "dog.json", "a dog").exit_code == 0
    assert run("send", "here:json", *KEEPS, "--schema", json.dumps(schema), "a dog").exit_code == 0
    ((stored),) = json.loads(run("schemas", "--json").stdout)  # equal ones share an id

    assert stored["schema"] == schema
    assert stored["id"] in run("schemas").stdout
    assert "name, age int" in run("schemas").stdout
    assert json.loads(run("schemas", "show", stored["id"]).stdout) == schema
    assert run("send", "here:json", *KEEPS, "--schema", stored["id"], "a dog").exit_code == 0
    assert run("send", "-c", *KEEPS, "--schema", stored["id"], "another").exit_code == 0
    run("send", "here:json", "--schema", "name, age int", "Invent $what", "--save", "dog")
    of_template = run("send", "here:json", *KEEPS, "--schema", "t:dog", "a dog")
    assert json.loads(of_template.stdout) == {"name": "Rex", "age": 3}
    assert run("send", "here:json", "--schema", "0123456789abcdef", "a dog").exit_code == 1
    assert "no such file: cat.json" in run("send", "here:json", "--schema", "cat.json", "a cat").stderr
    assert run("send", "here:json", "--schema", "a", "--schema-multi", "b", "a dog").exit_code == 2


# tools


def test_a_tool_that_reads_runs_and_what_it_did_is_shown(run: Run, server: LocalServer, tools: str) -> None:
    result = run("send", "here:caller", "-n", "-T", f"{tools}:weather", "--td", "weather?")

    assert (result.exit_code, result.stdout) == (0, "Hello\n"), result.output
    assert "[runs weather({'city': 'Rome'})]" in result.stderr
    assert "[result: sunny in Rome]" in result.stderr
    assert [message["role"] for message in server.requests[-1]["messages"]] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("keep", [("-n",), ()])
def test_an_answer_of_a_schema_may_need_tools(run: Run, server: LocalServer, tools: str, keep: tuple[str, ...]) -> None:
    asked_for = ("--schema", "city", "-T", f"{tools}:weather", "--td")
    result = run("send", "here:caller", *keep, *asked_for, "weather?")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"city": "Rome"}
    assert "[runs weather({'city': 'Rome'})]" in result.stderr
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["weather", "answer"]


def test_what_changes_something_is_refused_without_a_terminal(run: Run, server: LocalServer, tools: str) -> None:
    result = run("send", "here:caller", "-n", "-T", f"{tools}:write", "write!")

    assert (result.exit_code, result.stdout) == (0, "Hello\n"), result.output
    assert "refused, because there is no terminal to ask on" in result.stderr
    assert not Path("written").exists()
    reads = run("send", "here:caller", "-n", "-T", f"{tools}:weather", "--ta", "weather?")
    assert "refused, because there is no terminal" in reads.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere_at_all:x", "cannot import"), ("{}:nothing", "no function 'nothing'"), ("{}:number", "no function")],
)
def test_a_tool_that_is_not_there_is_said(run: Run, server: LocalServer, tools: str, name: str, said: str) -> None:
    result = run("send", "here:caller", "-T", name.format(tools), "hi")

    assert (result.exit_code, server.requests) == (1, [])
    assert said in result.stderr


def test_without_interlingua_agents_tools_say_how_to_get_it(
    run: Run, server: LocalServer, tools: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "interlingua_agents", None)
    result = run("send", "here:caller", "-n", "-T", f"{tools}:weather", "hi")

    assert (result.exit_code, server.requests) == (1, [])
    assert "pip install interlingua-agents" in result.stderr
    assert run("send", "-n", "here:echo", "hi").stdout == "Hello\n"


def test_a_module_alone_means_all_its_tools(run: Run, server: LocalServer, tools: str) -> None:
    run("send", "here:caller", "-T", tools, "hi")

    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["weather"]


def test_the_chain_limit_ends_it(run: Run, server: LocalServer, tools: str) -> None:
    result = run("send", "here:caller", "-T", f"{tools}:weather", "--cl", "1", "hi")

    assert len(server.requests) == 1
    assert "stopped after 1 answers" in result.stderr


def test_a_template_with_tools_runs_no_code_without_consent(
    run: Run, server: LocalServer, tools: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.toml"
    path.write_text(f'model = "here:caller"\ntools = ["{tools}:weather"]\n', encoding="utf-8")
    refused = run("send", "-t", str(path), "hi")

    assert (refused.exit_code, server.requests) == (2, [])
    assert f"allow them with -T {tools}:weather" in refused.stderr
    assert not Path("imported").exists()
    allowed = run("send", "-t", str(path), "-T", f"{tools}:weather", "hi")
    assert (allowed.exit_code, allowed.stdout) == (0, "Hello\n"), allowed.output


@pytest.mark.parametrize(("answer", "written"), [(b"y\n", True), (b"n\n", False)])
def test_at_a_terminal_what_changes_something_is_asked_for(
    server: LocalServer, tools: str, answer: bytes, written: bool
) -> None:
    shown, code = at_terminal(
        [(b"Run write (runs code)", answer)], "send", "here:caller", "-n", "-T", f"{tools}:write", "write!"
    )

    assert (code, Path("written").exists()) == (0, written), shown


def test_at_a_terminal_a_template_asks_before_its_code_is_imported(
    server: LocalServer, tools: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.toml"
    path.write_text(f'model = "here:caller"\ntools = ["{tools}:weather"]\n', encoding="utf-8")

    shown, code = at_terminal([(b"Use them?", b"n\n")], "send", "-n", "-t", str(path), "hi")
    assert (code, Path("imported").exists()) == (2, False), shown
    shown, code = at_terminal([(b"Use them?", b"y\n")], "send", "-n", "-t", str(path), "hi")
    assert (code, Path("imported").exists()) == (0, True), shown


# chat


def test_a_chat_reads_several_lines_an_editor_and_fragments(
    run: Run, server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "note.txt").write_text("buy milk", encoding="utf-8")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho " edited" >> "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    talked = "!multi\none\n!end here\ntwo\n!end\n!multi x\na\n!end\nb\n!end x\n!edit draft\n!fragment note.txt\nlast\n"
    result = run("chat", "here:echo", "-n", input=talked)

    assert result.exit_code == 0, result.output
    assert asked(server)[0:-1:2] == ["one\n!end here\ntwo", "a\n!end\nb", "draft\n edited"]
    assert [part["text"] for part in asked(server)[-1]] == ["note.txt:\nbuy milk", "last"]


def test_a_chat_at_a_terminal_stops_an_answer_and_goes_on(server: LocalServer, home: Path) -> None:
    """Ctrl-C during an answer keeps what came, at the prompt it says how to end."""
    answers = [(b">>> ", b"one\n"), (b"Hel", b"\x03"), (b">>> ", b"\x03"), (b">>> ", b"/quit\n")]
    shown, code = at_terminal(answers, "chat", "here:slow")

    assert (code, answers) == (0, []), shown
    assert b"/quit ends)" in shown
    done = subprocess.run([interrupt.PROGRAM, "logs", "--json"], capture_output=True, check=True)
    (kept,) = json.loads(done.stdout)
    assert (kept["prompt"], kept["answer"]) == ("one", "Hel")


def test_pasted_lines_are_one_message(server: LocalServer, home: Path) -> None:
    answers = [(b">>> ", b"one\ntwo\n\nthree\n"), (b"Hello", b""), (b">>> ", b"/model\n"), (b">>> ", b"\x04")]
    shown, code = at_terminal(answers, "chat", "here:echo")

    assert (code, answers) == (0, []), shown
    assert asked(server) == ["one\ntwo\n\nthree"]
    assert b"here:echo, kept as 01" in shown
    assert shown.endswith(b">>> \r\n")  # the shell's prompt begins a line of its own


def test_lines_typed_ahead_are_messages_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, program = pty.openpty()
    os.write(terminal, b"one\ntwo\n")
    with os.fdopen(program, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert [chat.read_input(), chat.read_input()] == ["one", "two"]
    os.close(terminal)


def test_a_chat_runs_tools(run: Run, server: LocalServer, tools: str) -> None:
    result = run("chat", "here:caller", "-n", "-T", f"{tools}:weather", input="weather?\n")

    assert (result.exit_code, result.stdout) == (0, "Hello\n"), result.output


# the rest


def test_without_a_store_it_is_said_once_how_to_get_one(
    run: Run, server: LocalServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an environment without interlingua-sessions: nothing extends the commands."""
    from interlingua_cli.root import Commands

    monkeypatch.setattr(Commands, "_extensions", lambda *_: ())
    first, second = run("send", "here:echo", "hi"), run("send", "here:echo", "hi")

    assert (first.stdout, second.stdout) == ("Hello\n", "Hello\n")
    assert f"(not stored: {conversation.NO_STORE})" in first.stderr
    assert conversation.NO_STORE not in second.stderr
    assert run("send", "-c", "hi").exit_code == 2
    assert "pip install interlingua-sessions" in run("send", "-c", "hi").stderr
