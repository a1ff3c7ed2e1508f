"""`send` and `chat` against a local server: what is printed, what is kept, what a swap and a failure do."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from interlingua.codec import read_jsonl
from interlingua.types import Message, MessageStatus
from interlingua_cli import conversation
from interlingua_cli.chat import Chat, run_chat
from interlingua_cli.input import write_conversation
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support import interrupt
from tests.support.terminal import limited


def saved(path: Path) -> list[Message]:
    return list(read_jsonl(path.read_text(encoding="utf-8").splitlines()))


def test_send_streams_text_to_stdout_and_the_bill_to_stderr(run: Run, server: LocalServer) -> None:
    result = run("send", "here:echo", "hi", "there", "--system", "be brief", "-o", "temperature=0", "-o", "stop=END")

    assert result.exit_code == 0, result.output
    assert result.stdout == "Hello\n"
    assert "1,000 in" in result.stderr
    assert "$0.003" in result.stderr  # 1,000 * 2 / 1e6 + 100 * 10 / 1e6
    (request,) = server.requests
    assert [(m["role"], m["content"]) for m in request["messages"]] == [("system", "be brief"), ("user", "hi there")]
    assert request["temperature"] == 0
    assert request["stop"] in ("END", ["END"])
    assert server.headers[0]["authorization"] == "Bearer key-for-tests"  # from the variable the configuration names


CANNOT_STREAM = ("-o", 'capabilities={"supports_streaming": false}')


def test_a_model_that_cannot_stream_answers_whole(run: Run, server: LocalServer) -> None:
    sent = run("send", "here:echo", "hi", *CANNOT_STREAM)
    talked = run("chat", "here:echo", *CANNOT_STREAM, input="hi\n")

    assert (sent.stdout, sent.exit_code) == ("Hello\n", 0), sent.output
    assert "Hello\n" in talked.stdout
    assert "error" not in talked.output
    assert [request.get("stream", False) for request in server.requests] == [False, False]


def test_send_json_prints_the_canonical_message_and_nothing_else(run: Run, server: LocalServer) -> None:
    result = run("send", "e", "hi", "--json")

    message = json.loads(result.stdout)
    assert message["content"][0]["text"] == "Hello"
    assert message["metadata"]["model"] == "here:echo"
    assert message["metadata"]["usage"]["cost_usd"] == "0.003000"


def test_send_takes_a_file_and_standard_input(run: Run, server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("buy milk", encoding="utf-8")
    result = run("send", "here:echo", "-f", "note.txt", "--no-stream", "-", input="what is this?")

    assert result.stdout == "Hello\n"
    said = json.dumps(server.requests[0]["messages"])
    assert "buy milk" in said
    assert "what is this?" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("Summarise:",), "the log\nSummarise:"),
        ((), "the log"),
        (("What is", "-", "about?"), "What is the log about?"),
    ],
)
def test_piped_text_stands_before_the_argument_or_where_the_dash_is(
    run: Run, server: LocalServer, words: tuple[str, ...], said: str
) -> None:
    for command in (("send", "here:echo"), ("session", "send", "s1", "-m", "here:echo", "--store", "s.db")):
        result = run(*command, *words, input="the log\n")
        assert result.exit_code == 0, result.output
        assert server.requests[-1]["messages"][-1]["content"] == said


@pytest.mark.parametrize("command", [("send", "e", "hi"), ("chat", "e"), ("session", "send", "s1", "-m", "e", "hi")])
def test_an_address_without_a_scheme_is_told_by_the_option(
    run: Run, server: LocalServer, command: tuple[str, ...]
) -> None:
    result = run(*command, "--url", server.url.removeprefix("http://"))

    assert (result.exit_code, server.requests) == (2, [])
    assert "'--url': an address begins with http:// or https://" in result.stderr


def test_errors_speak_of_options_and_not_of_python(run: Run, server: LocalServer) -> None:
    no_key = run("send", "anthropic:claude-opus-4-8", "hi").stderr
    nobody = run("send", "llamacpp:m", "hi", "--url", "http://127.0.0.1:9").stderr
    listed = run("models", "llamacpp", "--live", "--url", "http://127.0.0.1:9").stderr

    assert "no API key: set ANTHROPIC_API_KEY or set api_key_env to its variable in the configuration" in no_key
    for said in (nobody, listed):
        assert "is the service running there? --url sets another address" in said


def test_an_open_pipe_that_nothing_comes_through_is_said(server: LocalServer, home: Path) -> None:
    command = [interrupt.PROGRAM, "send", "here:echo", "hi", "--no-stream"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process, limited(process):  # type: ignore[call-overload]
        assert process.stderr is not None
        assert b"reading standard input" in process.stderr.readline()
        out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (b"Hello\n", 0)


@pytest.mark.parametrize("command", ["send", "chat"])
def test_a_missing_model_says_how_one_is_named_and_which_there_are(
    run: Run, server: LocalServer, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (("hi",), ()):
        result = run(command, *arguments, input="hi")
        assert (result.exit_code, server.requests) == (2, [])
        assert "MODEL is PROVIDER:NAME or an alias, such as here:echo" in result.stderr
        assert "a key is set for here" in result.stderr
        assert "llamacpp" in result.stderr
    assert "'hi' is not a model. " in run(command, "hi").stderr
    assert "'gpt-5o' is not a model; did you mean openai:gpt-5?" in run(command, "gpt-5o").stderr
    monkeypatch.delenv("MY_OWN_KEY")
    assert "no key is set" in run(command, "hi").stderr


def test_a_model_of_a_local_server_without_a_catalogue_is_no_news(run: Run, server: LocalServer) -> None:
    result = run("send", "llamacpp:gemma", "hi", "--url", server.url)

    assert (result.exit_code, result.stdout) == (0, "Hello\n")
    assert "warning" not in result.stderr


def test_an_empty_file_is_not_attached(run: Run, server: LocalServer) -> None:
    Path("note.txt").touch()
    result = run("send", "here:echo", "-f", "note.txt", "what is this?")

    assert (result.exit_code, server.requests) == (1, [])
    assert "note.txt is empty" in result.stderr


def test_send_without_anything_to_say_is_wrong_usage(run: Run, server: LocalServer) -> None:
    for command in (("send", "here:echo"), ("session", "send", "s1", "-m", "here:echo", "--store", "s.db")):
        assert run(*command, input="").exit_code == 2
        assert run(*command, " ", input="\n").exit_code == 2
    assert server.requests == []


def test_url_reaches_another_server(run: Run, server: LocalServer) -> None:
    result = run("send", "compatible:echo", "hi", "--url", server.url)

    assert result.stdout == "Hello\n"


def test_a_failure_of_the_service_is_one_line_and_exit_1(run: Run, server: LocalServer) -> None:
    result = run("send", "here:refused", "hi")

    assert result.exit_code == 1
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: bad key")
    assert "here:refused" in last


def test_chat_streams_saves_and_resumes(run: Run, server: LocalServer) -> None:
    run_chat = '"""first\nsecond"""\n\nagain\n/quit\n'
    result = run("chat", "here:echo", "--system", "be brief", "--save", "talk.jsonl", input=run_chat)

    assert result.exit_code == 0, result.output
    assert result.stdout == "Hello\nHello\n"
    messages = saved(Path("talk.jsonl"))
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert messages[1].text == "first\nsecond"

    again = run("chat", "here:echo", "--resume", "talk.jsonl", input="more")
    assert again.exit_code == 0, again.output
    assert len(saved(Path("talk.jsonl"))) == 7
    assert len(server.requests[-1]["messages"]) == 6


def test_chat_does_not_write_over_another_conversation(run: Run, server: LocalServer) -> None:
    Path("talk.jsonl").write_text("something\n", encoding="utf-8")

    assert run("chat", "here:echo", "--save", "talk.jsonl", input="hi").exit_code == 2
    assert Path("talk.jsonl").read_text(encoding="utf-8") == "something\n"


def test_a_chat_that_cannot_be_saved_goes_on_and_is_saved_elsewhere(
    run: Run, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, messages: Sequence[Message]) -> None:
        if path.name == "full.jsonl":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write_conversation(path, messages)

    monkeypatch.setattr(conversation, "write_conversation", full)
    Path("other.jsonl").write_text("something\n", encoding="utf-8")
    said = "hi\n/save other.jsonl\n/save new.jsonl\n/save\nmore\n"
    result = run("chat", "here:echo", "--save", "full.jsonl", input=said)

    assert result.exit_code == 0, result.output
    assert "error: full.jsonl: No space left on device" in result.stderr
    assert "other.jsonl exists already" in result.stderr
    assert "\nkept as new.jsonl\n" in result.stderr  # /save alone
    assert [message.text for message in saved(Path("new.jsonl"))] == ["hi", "Hello", "more", "Hello"]
    assert Path("other.jsonl").read_text(encoding="utf-8") == "something\n"


def test_chat_refuses_a_folder_that_is_not_there_before_anything_is_said(run: Run, server: LocalServer) -> None:
    result = run("chat", "here:echo", "--save", "nowhere/talk.jsonl", input="hi\n")

    assert result.exit_code == 2
    assert server.requests == []


def test_a_swap_is_in_the_routing_record(run: Run, server: LocalServer) -> None:
    run("chat", "here:other", "--save", "talk.jsonl", input="hi\n/model e\nagain\n")

    before, after = (message.metadata.routing for message in saved(Path("talk.jsonl"))[1::2])
    assert before is not None
    assert after is not None
    assert (after.mode, after.chosen_model, after.reason) == ("manual", "here:echo", "user swap via /model command")
    assert before.reason != after.reason


def test_chat_swaps_models_and_shows_the_ledger(run: Run, server: LocalServer) -> None:
    result = run("chat", "here:echo", input="hi\n/model compatible:other\n/model nowhere:x\n/model\n/what\n")

    assert result.exit_code == 0, result.output
    assert "now compatible:other" in result.stderr
    assert "nothing is lost" in result.stderr
    assert "no provider 'nowhere'" in result.stderr
    assert result.stderr.splitlines().count("compatible:other") == 1  # /model alone says which one it is
    assert "unknown command /what" in result.stderr


def test_chat_keeps_what_came_before_a_failure_and_goes_on(run: Run, server: LocalServer) -> None:
    result = run("chat", "here:broken", "--save", "talk.jsonl", input="hi\n/model here:refused\nhm\n/model e\nhi\n")

    assert result.exit_code == 0, result.output
    assert "the question is removed" in result.stderr  # refused: nothing to keep
    statuses = [message.metadata.status for message in saved(Path("talk.jsonl"))[1::2]]
    assert statuses == [MessageStatus.ERROR, MessageStatus.COMPLETE]


def test_a_person_is_told_how_to_keep_and_how_to_end(
    run: Run, server: LocalServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("/quit\n"))
    run_chat(cast("Chat", None))

    told = capsys.readouterr().err
    assert "/save FILE" in told
    assert "Ctrl-D ends" in told
    assert "/save" not in run("chat", "here:echo", input="hi\n").stderr  # a pipe is no person


@pytest.mark.usefixtures("hears_ctrl_c", "server")
def test_ctrl_c_keeps_the_partial_answer_and_returns_to_the_prompt() -> None:
    interrupt.interrupted_chat("--save", "talk.jsonl")

    messages = saved(Path("talk.jsonl"))
    assert [message.text for message in messages] == ["hi", "Hel", "again", "Hello"]
    assert messages[1].metadata.status is MessageStatus.CANCELLED


def test_json_of_an_answer_that_breaks_off_is_what_came(run: Run, server: LocalServer) -> None:
    result = run("send", "here:broken", "hi", "--json")

    assert result.exit_code == 1
    message = json.loads(result.stdout)
    assert (message["content"][0]["text"], message["metadata"]["status"]) == ("Hel", "error")
    assert result.stderr.splitlines()[-1].startswith("error: ")


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_during_send_is_exit_130(home: Path, server: LocalServer) -> None:
    command = [interrupt.PROGRAM, "send", "here:slow", "hi"]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **pipes) as send, limited(send):  # type: ignore[call-overload]
        assert send.stdout is not None
        assert send.stdout.read(3) == b"Hel"
        send.send_signal(signal.SIGINT)
        send.communicate(timeout=30)

    assert send.returncode == 130
