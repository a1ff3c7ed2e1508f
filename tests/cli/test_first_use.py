"""Messages about mistyped commands and files that cannot be attached say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.local import LocalServer

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6360000000020001e221bc330000000049454e44ae426082")  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(
    ("words", "near"),
    [(["sned", "hi"], "send"), (["provider"], "providers"), (["session", "lst"], "list"), (["bulk", "rnu"], "run")],
)
def test_an_unknown_command_suggests(run: Run, words: list[str], near: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert f"Did you mean {near!r}?" in result.stderr


def test_the_first_send_names_the_default_model(run: Run) -> None:
    result = run("send", "hi")
    assert result.exit_code == 2
    assert "`interlingua models default MODEL` sets the model to use without MODEL" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("folder", None, "folder is a folder: attach its files"),
        ("program", b"\x7fELF" + bytes(60), "is application/x-executable, which no model reads; --at"),
        ("blob", b"\x00\x01\xfe\xff" * 20, "neither an image, audio, a video, a document nor UTF-8 text"),
        ("nothing", b"", "is empty"),
        ("missing", ..., "no such file: missing"),
    ],
)
def test_what_cannot_be_attached_is_named_before_anything_is_sent(
    run: Run, server: LocalServer, tmp_path: Path, name: str, content: Any, expected: str
) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    elif content is not ...:
        (tmp_path / name).write_bytes(content)
    result = run("send", "-n", "here:echo", "-a", name, "look")
    assert result.exit_code != 0
    assert expected in result.stderr
    assert not server.requests
    chatted = run("chat", "-n", "here:echo", input=f"/attach {name}\n")
    assert expected in chatted.stderr


def test_a_chat_takes_attachments(run: Run, server: LocalServer, home: Path, tmp_path: Path) -> None:
    with (home / "interlingua" / "config.toml").open("a") as config:
        config.write('[[presets.here.models]]\nid = "eyes"\ncapabilities = {supports_images = true}\n')
    (tmp_path / "cat.png").write_bytes(PNG)
    (tmp_path / "notes.txt").write_text("blue")
    result = run("chat", "-n", "here:eyes", input="/attach cat.png\n/attach notes.txt\nlook\nagain\n")
    assert result.exit_code == 0
    first, second = (request["messages"][-1]["content"] for request in server.requests)
    assert [part["type"] for part in first] == ["image_url", "text", "text"]
    assert "blue" in first[1]["text"]
    assert second == "again"


@pytest.mark.parametrize("logged", [True, False], ids=["stored", "not stored"])
def test_a_chat_goes_on_without_a_file_that_the_model_does_not_read(
    run: Run, server: LocalServer, tmp_path: Path, logged: bool
) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 ...")
    model = ["here:echo"] if logged else ["-n", "here:echo"]
    result = run("chat", *model, input="/attach a.pdf\nread\nand now?\n")

    assert "here:echo cannot read the document (application/pdf)" in result.stderr
    assert "(its attachments are removed)" in result.stderr
    assert [request["messages"] for request in server.requests] == [[{"role": "user", "content": "and now?"}]]


def test_a_file_is_not_sent_twice_after_a_failure(run: Run, server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("blue")
    run("chat", "here:refused", input="/attach notes.txt\nread\n/model here:echo\nand now?\n")

    assert sum(str(message["content"]).count("blue") for message in server.requests[-1]["messages"]) == 1
