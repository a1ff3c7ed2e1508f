"""The doctor on files: lines that are no messages, the diff, the repaired file, its copy, and the command."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from interlingua import CallerError
from interlingua.codec import dumps_message, read_jsonl
from interlingua.types import (
    Message,
    MessageMetadata,
    Role,
    TextBlock,
    ToolUseBlock,
    assistant,
    image_block,
    tool_result,
    user,
)
from interlingua_cli.doctor.examine import examine
from interlingua_cli.doctor.repair import diff_repair, write_repaired
from interlingua_cli.root import cli

LINT_SOURCE = "WIRE.md, Turns; recorded 400"
CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})


@pytest.fixture
def ill(tmp_path: Path) -> Path:
    """A session whose writer crashed: an orphan, a dangling call, and a line cut off."""
    path = tmp_path / "session.jsonl"
    messages = [user("go"), tool_result("tu_0", "old"), assistant([CALL]), user("and?"), user("so?")]
    path.write_text("".join(f"{dumps_message(message)}\n\n" for message in messages) + '{"id": "01', encoding="utf-8")
    return path


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_lines_that_are_no_message_are_never_taken_out() -> None:
    newer = json.loads(dumps_message(user("x")))
    newer["role"] = "oracle"
    lost = tool_result("tu_0", "of a call in a line that cannot be read")
    read = [b"not json\n", json.dumps(newer).encode() + b"\n", dumps_message(lost).encode() + b"\n"]
    found = examine(read)

    assert [(each.line, each.rule, each.remedy) for each in found.findings] == [
        (1, "not-json", None),
        (2, "not-a-message", None),
    ]
    assert len(found.left) == 2
    assert [line.text.encode() + b"\n" for line in found.after] == read
    assert found.messages == [lost]


def test_a_half_repaired_file_keeps_what_cannot_be_read(tmp_path: Path) -> None:
    path, out = tmp_path / "s.jsonl", tmp_path / "out.jsonl"
    empty = Message(role=Role.USER, content=[TextBlock(text="so?"), TextBlock(text=" ")])
    path.write_text(f'{{"id": "01", "role": "user", "cont\n{dumps_message(empty)}\n', encoding="utf-8")
    code, shown, _ = run(str(path), "--repair", str(out))

    assert (code, "by hand" in shown) == (1, True)
    assert out.read_text().splitlines()[0] == '{"id": "01", "role": "user", "cont'
    assert [block.text for block in examine(lines(out)).messages[0].content] == ["so?"]  # type: ignore[union-attr]


def test_what_the_rules_forbid_and_nothing_mends_is_told() -> None:
    wrong = Message(role=Role.USER, content=[CALL])
    found = examine([dumps_message(user("go")).encode(), dumps_message(wrong).encode()])

    assert [(each.line, each.rule, each.path, each.remedy) for each in found.findings] == [
        (2, "rule-04", "content[0]", None)
    ]


def test_the_diff_shows_each_change_by_line(ill: Path) -> None:
    shown = list(diff_repair(examine(lines(ill)), "session.jsonl"))

    assert "--- session.jsonl:3" in shown  # line 2 is blank
    assert "+++ session.jsonl: inserted after line 5" in shown
    assert "--- session.jsonl:11" in shown
    assert '-{"id": "01' in shown
    assert not [line for line in shown if line.startswith("---") and ":1 " in f"{line} "]


def test_a_moved_line_is_shown_as_moved() -> None:
    messages = [user("go"), assistant([CALL]), user("?"), tool_result(CALL, "real")]
    found = examine([dumps_message(message).encode() for message in messages])

    assert list(diff_repair(found, "s")) == ["--- s:3", "+++ s: moved after line 4"] or list(
        diff_repair(found, "s")
    ) == [
        "--- s:4",
        "+++ s: moved after line 2",
    ]


def test_a_repair_writes_a_new_file_and_what_was_taken_out(ill: Path, tmp_path: Path) -> None:
    diagnosis = examine(lines(ill))
    out = tmp_path / "mended.jsonl"
    before = ill.read_bytes()

    written = write_repaired(diagnosis, out)
    assert written == [out, tmp_path / "mended.jsonl.removed.jsonl"]
    assert ill.read_bytes() == before
    assert examine(lines(out)).findings == ()
    kept = [json.loads(line) for line in written[1].read_text().splitlines()]
    assert [(each["rule"], each["line"]) for each in kept] == [
        ("orphan-result", 3),
        ("dangling-call", 5),
        ("not-json", 11),
    ]
    assert kept[0]["was"]["content"][0]["content"][0]["text"] == "old"
    assert kept[2]["was"] == '{"id": "01'
    untouched = [line for line in before.split(b"\n") if b'"go"' in line or b'"so?"' in line]
    assert all(line in out.read_bytes() for line in untouched)
    with pytest.raises(CallerError, match="exists already"):
        write_repaired(diagnosis, out)


def test_every_line_is_in_the_repaired_file_or_beside_it(ill: Path, tmp_path: Path) -> None:
    diagnosis = examine(lines(ill))
    write_repaired(diagnosis, tmp_path / "out.jsonl")
    kept = (tmp_path / "out.jsonl").read_text() + (tmp_path / "out.jsonl.removed.jsonl").read_text()
    for message_id in (json.loads(text)["id"] for text in diagnosis.before.values() if text.endswith("}")):
        assert message_id in kept


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, ["doctor", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_shows_and_writes_nothing_unasked(ill: Path) -> None:
    before = sorted(ill.parent.iterdir())
    code, out, err = run(str(ill))

    assert code == 1
    assert "orphan-result" in out
    assert "+++ session.jsonl: inserted after line 5" in out
    assert "nothing was changed" in err
    assert sorted(ill.parent.iterdir()) == before


def test_the_command_repairs_into_a_new_file(ill: Path, tmp_path: Path) -> None:
    code, _, err = run(str(ill), "--repair", str(tmp_path / "new.jsonl"))

    assert (code, "wrote" in err) == (0, True)
    assert run(str(tmp_path / "new.jsonl"))[:2] == (0, "nothing to find\n")
    with (tmp_path / "new.jsonl").open("rb") as file:
        assert len(list(read_jsonl(file))) == 5
    assert run(str(ill), "--repair", str(tmp_path / "new.jsonl"))[0] == 1  # it exists already


def test_the_command_repairs_in_place_with_a_copy(ill: Path) -> None:
    before = ill.read_bytes()

    assert run(str(ill), "--in-place")[0] == 0
    assert ill.with_name("session.jsonl.bak").read_bytes() == before
    assert run(str(ill))[0] == 0
    assert run(str(ill), "--in-place")[0] == 0  # healthy: neither written nor copied again
    assert not ill.with_name("session.jsonl.bak1").exists()
    assert run("-", "--in-place")[0] == 2


def test_a_file_without_any_line_is_no_healthy_conversation(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    code, out, err = run(str(tmp_path / "empty.jsonl"))

    assert (code, out, "has no message" in err) == (1, "", True)


def test_the_command_as_json(ill: Path) -> None:
    code, out, _ = run(str(ill), "--json")
    report = json.loads(out)

    assert code == 1
    assert (report["repairable"], report["left"], report["written"]) == (3, 0, [])
    assert report["findings"][0]["was"]["role"] == "tool"
    assert report["diff"]


def stored(tmp_path: Path, *messages: Message) -> str:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f"{dumps_message(message)}\n" for message in messages))
    return str(path)


def asked(path: str, model: str, exit_code: int = 1) -> list[tuple[str, str, str]]:
    code, out, _ = run(path, "--to", model, "--json")
    assert code == exit_code
    return [(each["rule"], each["path"], each["citation"]) for each in json.loads(out)["findings"]]


def test_case_40_a_target_says_by_its_linter_that_it_continues_no_answer(tmp_path: Path) -> None:
    path = stored(tmp_path, user("go"), assistant("done"))

    assert asked(path, "anthropic:claude-opus-4-8", 0)[1] == ("no-prefill", "request.messages[1]", LINT_SOURCE)
    assert [rule for rule, *_ in asked(path, "anthropic:claude-sonnet-4-5", 0)] == ["ends-with-answer"]  # continues it


def test_a_conversation_that_ends_with_an_answer_is_well_and_its_other_faults_are_not(tmp_path: Path) -> None:
    well = stored(tmp_path, user("go"), assistant("done"))
    for model in ((), ("--to", "anthropic:claude-opus-4-8"), ("--to", "mistral:mistral-large-latest")):
        code, out, _ = run(well, *model, "--json")
        report = json.loads(out)
        assert (code, report["left"]) == (0, 0)
        assert {each["note"] for each in report["findings"]} == {True}

    long = stored(tmp_path, user("word " * 150_000), assistant("done"))
    assert "too-long" in [rule for rule, *_ in asked(long, "openai:gpt-4o")]


def test_limits_of_a_target_are_found(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (8100, 1)).save(picture, "PNG")
    path = stored(tmp_path, user("see", images=[picture.getvalue()]))

    assert [found[:2] for found in asked(path, "anthropic:claude-opus-4-8")] == [("cannot", "messages[0].content[1]")]
    assert run(path, "--to", "mistral:mistral-medium-latest")[0] == 0


def test_a_critical_block_and_a_window_too_small_are_found(tmp_path: Path) -> None:
    png = image_block(b"\x89PNG\r\n\x1a\n" + bytes(20))
    kept = Message(role=Role.USER, content=[TextBlock(text="see"), png], metadata=MessageMetadata(critical=(1,)))
    assert [found[:2] for found in asked(stored(tmp_path, kept), "openai:o3-mini")] == [
        ("cannot", "messages[0].content[1]")
    ]
    long = stored(tmp_path, user("word " * 150_000))
    assert [found[:2] for found in asked(long, "openai:gpt-4o")] == [("too-long", "request")]
