"""`send` and `chat` keep what is said, `-c` and `--cid` go on with it, `logs` lists and searches it."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from interlingua.types.messages import Message, MessageStatus
from interlingua_sessions import open_store
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support import interrupt
from tests.support.terminal import at_terminal, limited


def conversations(place: Path) -> dict[str, list[Message]]:
    with open_store(place) as store:
        return {one.id: list(store.messages(one.id)) for one in store.sessions()}


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def test_each_prompt_is_kept_in_a_file_of_the_user_alone(run: Run, server: LocalServer, place: Path) -> None:
    for question in ("one", "two"):
        assert run("send", "here:echo", question).stdout == "Hello\n"

    assert sorted(texts(kept) for kept in conversations(place).values()) == [["one", "Hello"], ["two", "Hello"]]
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_model_of_nobody_leaves_no_conversation(run: Run, server: LocalServer, place: Path) -> None:
    assert run("send", "nowhere:x", "one").exit_code == 1

    assert conversations(place) == {}


def test_a_store_that_others_could_read_is_closed_to_them(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "here:echo", "one")
    place.chmod(0o644)
    run("send", "here:echo", "two")

    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_continue_goes_on_with_the_last_conversation_and_its_model(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "here:other", "one", "-s", "be brief")
    result = run("send", "-c", "two")

    assert (result.exit_code, result.stdout) == (0, "Hello\n"), result.output
    ((name, kept),) = conversations(place).items()
    assert f"(continues {name}, here:other)" in result.stderr
    assert texts(kept) == ["be brief", "one", "Hello", "two", "Hello"]
    assert server.requests[-1]["model"] == "other"
    assert [one["content"] for one in server.requests[-1]["messages"]] == ["be brief", "one", "Hello", "two"]


def test_another_model_answers_a_continued_conversation_once(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "here:echo", "one")
    run("send", "-c", "here:other", "two")
    run("send", "-c", "-m", "here:other", "three")
    run("send", "-c", "four")

    assert [request["model"] for request in server.requests] == ["echo", "other", "other", "echo"]
    assert len(conversations(place)) == 1


def test_cid_names_the_conversation_and_an_unknown_one_is_an_error(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "here:echo", "one")
    (first,) = conversations(place)
    run("send", "here:echo", "two")
    third = run("send", "--cid", first, "three")
    wrong = run("send", "here:echo", "--cid", "nonsense", "four")

    assert third.exit_code == 0
    assert texts(conversations(place)[first]) == ["one", "Hello", "three", "Hello"]
    assert (wrong.exit_code, len(server.requests)) == (1, 3)
    assert "no session 'nonsense'" in wrong.stderr
    assert len(conversations(place)) == 2


def test_continue_without_any_conversation_is_wrong_usage(run: Run, server: LocalServer, place: Path) -> None:
    result = run("send", "-c", "hi")

    assert result.exit_code == 2
    assert "no conversation to continue" in result.stderr


def test_no_log_and_logs_off_keep_nothing(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "-n", "here:echo", "one")
    assert not place.exists()
    assert run("logs", "off").exit_code == 0
    run("send", "here:echo", "two")
    run("chat", "here:echo", input="two\n")
    assert not place.exists()
    assert "log            off" in run("logs", "status").stdout
    run("logs", "on")
    run("send", "here:echo", "three")

    assert [texts(kept) for kept in conversations(place).values()] == [["three", "Hello"]]
    assert run("logs", "path").stdout.strip() == str(place)
    assert json.loads(run("logs", "status", "--json").stdout)["conversations"] == 1
    assert 'format = "chat-completions"' in (place.parents[2] / "interlingua" / "config.toml").read_text("utf-8")


def test_continued_without_keeping_it_reads_the_history_alone(run: Run, server: LocalServer, place: Path) -> None:
    run("send", "here:echo", "one")
    run("send", "-c", "-n", "two")

    assert [one["content"] for one in server.requests[-1]["messages"]] == ["one", "Hello", "two"]
    assert [texts(kept) for kept in conversations(place).values()] == [["one", "Hello"]]


def test_a_store_that_cannot_be_opened_does_not_stop_the_answer(run: Run, server: LocalServer, place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no database, but long enough to be told apart from one" * 40)
    result = run("send", "here:echo", "one")

    assert (result.exit_code, result.stdout) == (0, "Hello\n")
    assert "warning: not stored" in result.stderr
    assert run("send", "-c", "two").exit_code == 1


def test_a_folder_that_cannot_be_made_does_not_stop_the_answer(run: Run, server: LocalServer, home: Path) -> None:
    (home / "data").write_text("no folder", encoding="utf-8")
    result = run("send", "here:echo", "one")

    assert (result.exit_code, result.stdout) == (0, "Hello\n")
    assert f"warning: not stored: {home / 'data' / 'interlingua'}: Not a directory" in result.stderr


def test_what_broke_off_is_kept_and_the_way_to_ask_again_is_said(run: Run, server: LocalServer, place: Path) -> None:
    broken = run("send", "here:broken", "one")
    refused = run("send", "here:refused", "two")

    assert (broken.exit_code, refused.exit_code) == (1, 1)
    assert sorted(texts(kept) for kept in conversations(place).values()) == [["one", "Hel"], ["two"]]
    name = next(name for name, kept in conversations(place).items() if len(kept) == 1)
    assert f"`interlingua session send {name} --again` asks again" in refused.stderr


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_loses_nothing(server: LocalServer, place: Path) -> None:
    command = [interrupt.PROGRAM, "send", "here:slow", "hi"]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **pipes) as send, limited(send):  # type: ignore[call-overload]
        assert send.stdout is not None
        assert send.stdout.read(3) == b"Hel"
        send.send_signal(signal.SIGINT)
        send.communicate(timeout=30)

    assert send.returncode == 130
    (kept,) = conversations(place).values()
    assert texts(kept) == ["hi", "Hel"]
    assert kept[1].metadata.status is MessageStatus.CANCELLED


def test_a_chat_is_kept_and_goes_on(run: Run, server: LocalServer, place: Path) -> None:
    first = run("chat", "here:echo", input="one\n")
    second = run("chat", "-c", input="two\n/save talk.jsonl\n")

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    ((name, kept),) = conversations(place).items()
    assert texts(kept) == ["one", "Hello", "two", "Hello"]
    assert f"(continues {name}, here:echo)" in second.stderr
    assert len(Path("talk.jsonl").read_text("utf-8").splitlines()) == 4


def test_a_model_that_cannot_stream_is_kept_once(run: Run, server: LocalServer, place: Path) -> None:
    result = run("send", "here:echo", "hi", "-o", 'capabilities={"supports_streaming": false}')

    assert (result.exit_code, result.stdout) == (0, "Hello\n"), result.output
    assert [texts(kept) for kept in conversations(place).values()] == [["hi", "Hello"]]


def test_what_tools_did_is_kept(run: Run, server: LocalServer, place: Path, tmp_path: Path) -> None:
    text = "from interlingua_agents import tool\n@tool(side_effects='read')\ndef weather(city: str) -> str:\n"
    (tmp_path / "kept_tools.py").write_text(f'{text}    """Weather."""\n    return "sunny in " + city\n', "utf-8")
    result = run("send", "here:caller", "-T", "kept_tools:weather", "weather?")

    assert (result.exit_code, result.stdout) == (0, "Hello\n"), result.output
    (kept,) = conversations(place).values()
    assert [one.role for one in kept] == ["user", "assistant", "tool", "assistant"]
    assert "sunny in Rome" in str(kept[2].content)


# logs


@pytest.fixture
def kept(run: Run, server: LocalServer) -> None:
    for question in ("about apples", "about pears", "about apples and apples", "about plums"):
        run("send", "here:echo", question)
    run("send", "here:coder", "write code")


def prompts(text: str) -> list[str]:
    return [turn["prompt"] for turn in json.loads(text)]


@pytest.mark.usefixtures("kept")
def test_logs_lists_the_last_three_the_oldest_first(run: Run) -> None:
    assert prompts(run("logs", "--json").stdout) == ["about apples and apples", "about plums", "write code"]
    assert prompts(run("logs", "-n", "1", "--json").stdout) == ["write code"]
    assert len(prompts(run("logs", "-n", "0", "--json").stdout)) == 5
    shown = run("logs").stdout
    assert "## Prompt\n\nabout plums\n\n## Answer\n\nHello" in shown
    assert "model: here:echo" in shown
    assert "input_tokens: 1000" in run("logs", "-u").stdout


@pytest.mark.usefixtures("kept")
def test_logs_searches_questions_and_answers_by_relevance_or_date(run: Run) -> None:
    found = prompts(run("logs", "-q", "APPLES", "--json", "-n", "0").stdout)
    assert found[::-1] == ["about apples and apples", "about apples"]
    assert prompts(run("logs", "-q", "apples", "-l", "-n", "1", "--json").stdout) == ["about apples and apples"]
    assert prompts(run("logs", "-q", "about plums", "--json").stdout) == ["about plums"]
    assert prompts(run("logs", "-q", "hello pears", "--json").stdout) == ["about pears"]  # one in each
    assert prompts(run("logs", "-q", "text", "--json").stdout) == []  # a key of the stored JSON
    assert "nothing is found" in run("logs", "-q", "nowhere").stderr


@pytest.mark.usefixtures("kept")
def test_logs_of_a_model_and_of_a_conversation(run: Run, place: Path) -> None:
    assert prompts(run("logs", "-m", "here:coder", "--json").stdout) == ["write code"]
    assert len(prompts(run("logs", "-m", "e", "--json", "-n", "0").stdout)) == 4
    run("send", "-c", "more")
    assert prompts(run("logs", "-c", "--json").stdout) == ["write code", "more"]
    name = next(name for name, one in conversations(place).items() if texts(one)[0] == "about pears")
    assert prompts(run("logs", "--cid", name, "--json").stdout) == ["about pears"]
    assert run("logs", "--cid", "nonsense").exit_code == 1


@pytest.mark.usefixtures("kept")
def test_logs_prints_one_answer_alone_or_its_code(run: Run) -> None:
    assert run("logs", "-r").stdout.startswith("Two ways:")
    assert run("logs", "-x").stdout == "print(1)\n"
    assert run("logs", "--xl").stdout == "echo 2\n"
    assert run("logs", "-x", "-m", "here:echo").exit_code == 1


@pytest.mark.usefixtures("kept")
def test_short_logs_are_yaml(run: Run) -> None:
    import yaml

    items = yaml.safe_load(run("logs", "-s", "-u").stdout)
    assert [item["prompt"] for item in items] == ["about apples and apples", "about plums", "write code"]
    assert items[0]["answer"] == "Hello"
    assert items[0]["cost_usd"] == "0.003000"


def test_words_of_other_languages_are_found(run: Run, server: LocalServer) -> None:
    run("send", "here:echo", 'Über "Äpfel"\nund 日本 \\ 100%')

    for words in ("äpfel", "ÜBER", "日本", '"äpfel"', "100%", "\\"):
        assert len(prompts(run("logs", "-q", words, "--json").stdout)) == 1, words
    assert prompts(run("logs", "-q", "x%", "--json").stdout) == []


def test_logs_before_anything_was_said(run: Run, home: Path) -> None:
    result = run("logs")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing is kept here yet" in result.stderr
    assert json.loads(run("logs", "--json").stdout) == []


def test_at_a_terminal_the_prompt_is_typed_and_its_id_is_shown(server: LocalServer, place: Path) -> None:
    """With neither text nor a pipe, `send` waits for the terminal."""
    shown, code = at_terminal([(b"Ctrl-D ends it", b"typed here\n\x04")], "send", "here:echo")

    assert code == 0, shown
    assert b"Hello" in shown
    ((name, messages),) = conversations(place).items()
    assert texts(messages) == ["typed here", "Hello"]
    assert f"[kept as {name}]".encode() in shown
