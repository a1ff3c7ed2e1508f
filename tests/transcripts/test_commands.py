"""`interlingua transcript import`, `export`, `resume`, `convert --redact`, and the files that other commands name."""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from interlingua_sessions import open_store
from interlingua_transcripts import read_transcript
from interlingua_transcripts.commands import move, shared
from interlingua_transcripts.secrets import SecretSearch
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support.terminal import at_terminal
from tests.transcripts.test_files import CALL, FILE, HEADER, entry, lines

pytestmark = pytest.mark.usefixtures("place")
KEY = "sk-ant-" + "a1b2c3d4" * 5
CHAT_FT = b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}\n'


@pytest.fixture
def file() -> Path:
    path = Path("s.jsonl")
    path.write_bytes(FILE)
    return path


def test_a_session_goes_through_the_store_byte_for_byte(run: Run, file: Path, place: Path) -> None:
    imported = run("transcript", "import", str(file))
    assert imported.exit_code == 0, imported.output
    assert imported.stdout == "s1\n"
    assert "transcript resume" in imported.stderr

    assert run("transcript", "export", "s1", "--to", "pi").stdout_bytes == FILE
    with open_store(place) as store:
        assert store.session("s1").workspace_path == "/home/me"
        assert [one.id for one in store.messages("s1")] == [one.id for one in read_transcript(FILE).messages]


def test_a_session_is_imported_once_and_copied_by_another_id(run: Run, file: Path) -> None:
    run("transcript", "import", str(file))

    again = run("transcript", "import", str(file))
    assert again.exit_code == 1
    assert "s1 is in the store already" in again.stderr
    assert "transcript resume s1" in again.stderr

    assert run("transcript", "import", str(file), "--id", "copy").exit_code == 0
    assert run("transcript", "export", "copy", "--to", "pi").stdout_bytes == FILE  # though its calls have other ids


def test_calls_whose_ids_a_publisher_blanked_stay_as_the_file_has_them(run: Run, file: Path) -> None:
    """The store gives each of them an id of its own."""
    call = orjson.dumps(CALL)
    file.write_bytes(FILE.replace(call, call + b"," + orjson.dumps({**CALL, "arguments": {"path": "b"}})))
    run("transcript", "import", str(file))
    for system in ("wolo", "pi", "codex"):
        exported = run("transcript", "export", "s1", "--to", system).stdout_bytes
        assert exported == run("transcript", "convert", str(file), "--to", system).stdout_bytes


@pytest.mark.parametrize("old", [None, 0o604])
@pytest.mark.parametrize("source", ["s.jsonl", "."])
def test_a_written_file_has_the_mode_of_others(
    run: Run, file: Path, source: str, old: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made, page = tmp_path_factory.mktemp("made") / "s.jsonl", Path("page.html")
    if old is not None:
        for path in (made, page):
            path.touch()
            path.chmod(old)
    before = os.umask(0o027)
    try:
        assert run("transcript", "convert", source, "--to", "pi", "--out", str(made.parent), "--force").exit_code == 0
        assert run("transcript", "fidelity", "s.jsonl", "--html", "page.html").exit_code == 0
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (made, page)] == [old or 0o640] * 2
    assert list(made.parent.iterdir()) == [made]


def test_an_interrupted_conversion_leaves_the_old_file(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Path("made.jsonl")
    made.write_bytes(b"old")

    def interrupted(*_: object) -> Iterator[bytes]:
        yield FILE[:100]
        raise KeyboardInterrupt

    monkeypatch.setattr(move, "write_pieces", interrupted)
    before = sorted(Path().iterdir())
    result = run("transcript", "convert", "s.jsonl", "--to", "pi", "--out", "made.jsonl", "--force")
    assert result.exit_code != 0
    assert made.read_bytes() == b"old"
    assert sorted(Path().iterdir()) == before


def test_reading_a_large_file_is_shown_at_a_terminal_and_interrupted() -> None:
    path, parent = Path("large.jsonl"), None
    with path.open("wb") as large:
        large.write(lines(HEADER))
        for number in range(20_000):
            own = f"{number:08x}"
            large.write(lines(entry(own, parent, role="user", content=f"{number} {'x' * 1_000}")))
            parent = own
    before = sorted(Path().iterdir())
    shown, code = at_terminal([(b"%", b"\x03")], "transcript", "check", "large.jsonl")
    assert b"large.jsonl" in shown
    assert b"checking was interrupted: 0 of 1 files were done" in shown
    assert code == 1
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize("command", ["show", "check", "import", "resume", "fidelity", "convert"])
def test_every_command_reads_gzip(run: Run, file: Path, server: LocalServer, command: str) -> None:
    packed = Path("s.jsonl.gz")
    packed.write_bytes(gzip.compress(FILE))
    more = {"resume": ("--model", "here:echo"), "convert": ("--to", "pi")}.get(command, ())
    done = run("transcript", command, str(packed), *more, input="More?\n")
    assert done.exit_code == 0, done.output
    if command == "convert":
        assert done.stdout_bytes == FILE

    packed.write_bytes(gzip.compress(FILE)[:-9])
    damaged = run("transcript", command, str(packed), *more)
    assert damaged.exit_code == 1
    assert "s.jsonl.gz: the gzip file is damaged" in damaged.output


def test_a_folder_of_gzip_files_is_read(run: Run, file: Path) -> None:
    file.rename("a.jsonl")
    Path("b.jsonl.gz").write_bytes(gzip.compress(FILE))
    Path("c.json.gz").write_bytes(gzip.compress(FILE)[:40])
    done = run("transcript", "convert", ".", "--to", "pi", "--out", "made")
    assert done.exit_code == 1
    assert "2 written, 1 not" in done.stderr
    assert {path.name: path.read_bytes() for path in Path("made").iterdir()} == {"a.jsonl": FILE, "b.jsonl": FILE}


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_two_files_never_become_one(run: Run, file: Path, force: tuple[str, ...]) -> None:
    Path("s.json").write_bytes(FILE[:-1])
    done = run("transcript", "convert", ".", "--to", "pi", "--out", "made", *force)
    assert done.exit_code == 1
    assert "s.jsonl: made/s.jsonl was already converted: s.json became it" in done.stderr


def test_the_title_is_kept(run: Run, file: Path) -> None:
    title = {"type": "session_info", "id": "aaaaaaa7", "parentId": "aaaaaaa6", "timestamp": "x", "name": "About A"}
    file.write_bytes(FILE + orjson.dumps(title) + b"\n")
    run("transcript", "import", str(file))

    written = run("transcript", "export", "s1", "--to", "wolo").stdout_bytes
    assert orjson.loads(written)["session"]["title"] == "About A"


def test_one_bad_file_does_not_stop_the_others(run: Run, file: Path) -> None:
    Path("bad.jsonl").write_bytes(b'{"hello":1}\n')
    both = run("transcript", "import", ".")

    assert both.exit_code == 1
    assert both.stdout == "s1\n"
    assert "bad.jsonl: not a session file of a known system" in both.stderr
    assert "1 imported, 1 not" in both.stderr


@pytest.mark.parametrize("command", [("import", "."), ("convert", ".", "--to", "pi", "--out", "made"), ("check", ".")])
def test_an_interrupted_command_says_how_far_it_came(
    run: Run, file: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file is where the user presses Ctrl-C."""
    file.with_name("t.jsonl").write_bytes(FILE)
    source = shared._source

    def interrupted(path: Path, redact: bool | None) -> Path | bytes:
        if path.name == "t.jsonl":
            raise KeyboardInterrupt
        return source(path, redact)

    monkeypatch.setattr(shared, "_source", interrupted)
    result = run("transcript", *command)
    assert result.exit_code != 0
    assert "was interrupted: 1 of 2 files were done" in result.stderr


@pytest.mark.parametrize("source", ["s.jsonl", "."])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_file_that_cannot_be_written_to_its_end_is_not_there(
    run: Run, file: Path, source: str, old: bytes | None
) -> None:
    """The system refuses what is past the first half of the file, as a full disk does."""
    resource = pytest.importorskip("resource")
    made = Path("made/s.jsonl")
    made.parent.mkdir()
    if old is not None:
        made.write_bytes(old)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(FILE) // 2, limits[1]))
    try:
        result = run("transcript", "convert", source, "--to", "pi", "--out", "made", "--force")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert result.exit_code != 0
    assert {path: path.read_bytes() for path in made.parent.iterdir()} == ({} if old is None else {made: old})


def test_what_is_written_to_stays_a_link_or_a_pipe(run: Run, file: Path) -> None:
    target = Path("target.jsonl")
    target.write_bytes(b"old")
    link = Path("link.jsonl")
    link.symlink_to(target)
    assert run("transcript", "convert", str(file), "--to", "pi", "--out", str(link), "--force").exit_code == 0
    assert link.is_symlink()
    assert target.read_bytes() == FILE

    assert run("transcript", "convert", str(file), "--to", "pi", "--out", os.devnull, "--force").exit_code == 0
    assert not Path(os.devnull).is_file()


def test_each_conversation_of_a_file_is_a_session(run: Run) -> None:
    Path("f.jsonl").write_bytes(CHAT_FT * 2)
    first, second = run("transcript", "import", "f.jsonl").stdout.split()
    assert re.fullmatch("chat-ft-f-[0-9a-f]{12}-1", first)
    assert second == f"{first[:-1]}2"


def test_conversations_of_a_file_are_not_joined(run: Run) -> None:
    Path("f.jsonl").write_bytes(CHAT_FT * 2)
    for command in (
        ("convert", "f.jsonl", "--to", "codex"),
        ("resume", "f.jsonl", "--in", "codex"),
        ("resume", "f.jsonl", "--model", "openai:gpt-5"),
    ):
        refused = run("transcript", *command)
        assert refused.exit_code == 2
        assert "f.jsonl holds 2 conversations" in refused.stderr
    assert run("transcript", "convert", "f.jsonl", "--to", "chat-ft").exit_code == 0


def test_files_of_one_name_are_different_sessions(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    for folder in ("a", "b"):
        Path(folder).mkdir()
        said = orjson.dumps([{"role": "user", "content": f"I am {folder}"}, {"role": "assistant", "content": "Hi"}])
        Path(folder, "messages.json").write_bytes(said)
    first, second = (run("transcript", "import", f"{folder}/messages.json").stdout.strip() for folder in ("a", "b"))
    assert first != second
    assert "in the store already" in run("transcript", "import", "a/messages.json").stderr
    for source, words in (
        ("a/messages.json", "I am a"),
        ("b/messages.json", "I am b"),
        (first, "I am a"),
        (second, "I am b"),
    ):
        shown = run("transcript", "resume", source, "--in", "codex")
        assert shown.exit_code == 0, shown.output
        (path,) = Path(tmp_path, ".codex").rglob(f"*{shown.stdout.split()[-1]}.jsonl")
        assert words in path.read_text()


def test_only_what_the_model_would_see_next(run: Run, file: Path, place: Path) -> None:
    summary = {
        "type": "compaction",
        "id": "aaaaaaa7",
        "parentId": "aaaaaaa6",
        "timestamp": "2026-02-01T11:00:00.000Z",
        "summary": "S",
        "firstKeptEntryId": "aaaaaaa6",
        "tokensBefore": 9,
    }
    file.write_bytes(FILE + orjson.dumps(summary) + b"\n")
    whole = run("transcript", "import", str(file), "--id", "all")
    assert "2 of its 5 messages" in whole.stderr

    run("transcript", "import", str(file), "--context")
    with open_store(place) as store:
        assert [one.role for one in store.messages("s1")] == ["user", "assistant"]


def test_a_session_goes_on_with_another_model_and_is_written_back(run: Run, file: Path, server: LocalServer) -> None:
    shown = run("transcript", "resume", str(file), "--model", "here:echo", input="More?\n")
    assert shown.exit_code == 0, shown.output
    assert "imported as session s1" in shown.stderr
    assert "nothing is lost" in shown.stderr
    assert shown.stdout == "Hello\n"
    assert len(server.requests[-1]["messages"]) == 5

    again = run("transcript", "resume", "s1", "--model", "here:echo", input="And?\n")
    assert again.exit_code == 0, again.output
    written = run("transcript", "export", "s1", "--to", "pi").stdout_bytes
    assert written.startswith(FILE)
    said = [message.text for message in read_transcript(written).messages]
    assert said[-4:] == ["More?", "Hello", "And?", "Hello"]


def test_a_file_and_its_stored_session_are_one(run: Run, file: Path, server: LocalServer) -> None:
    run("transcript", "import", str(file))
    shown = run("transcript", "resume", str(file), "--model", "here:echo", input="More?\n")
    assert "imported" not in shown.stderr
    assert run("transcript", "resume", "nobody", "--model", "here:echo").exit_code == 2


@pytest.mark.parametrize("command", [("convert", "s.jsonl"), ("import", "s.jsonl"), ("export", "s1")])
def test_secrets_are_named_and_replaced_on_request(run: Run, file: Path, command: tuple[str, ...]) -> None:
    file.write_bytes(FILE.replace(b'"Hi"', f'"my key is {KEY}"'.encode()))
    if command[0] == "export":
        run("transcript", "import", str(file))
    target = () if command[0] == "import" else ("--to", "pi")

    named = run("transcript", *command, *target)
    assert "Anthropic key (1); --redact replaces them" in named.stderr
    assert KEY not in named.stderr

    Path("home/data/interlingua/sessions.db").unlink() if command[0] == "import" else None
    replaced = run("transcript", *command, *target, "--redact")
    assert "replaced" in replaced.stderr
    if command[0] == "import":
        replaced = run("transcript", "export", "s1", "--to", "pi")
    assert KEY.encode() not in replaced.stdout_bytes
    assert b"my key is [Anthropic key]" in replaced.stdout_bytes


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ghp_" + "a1" * 18, "GitHub token"),
        ("AKIA" + "ABCD1234" * 2, "AWS access key"),
        ("-----BEGIN RSA " + "PRIVATE KEY-----\\nMIIE" + "x" * 40 + "\\n-----END RSA PRIVATE KEY-----", "private key"),
        ("postgres://me:hunter22@db.example/x", "password in a URL"),
        ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0.abcdefghijk", "JSON web token"),
    ],
)
def test_secrets_have_forms(text: str, kind: str) -> None:
    line = f'{{"a":"x {text} y"}}'.encode()
    search, again = SecretSearch(redact=True), SecretSearch()
    redacted = b"".join(search.through([line, line]))
    assert search.found == {kind: 1}
    assert kind in json.loads(redacted[: len(redacted) // 2])["a"]
    assert b"".join(again.through([redacted])) == redacted
    assert again.found == {}


@pytest.mark.parametrize(
    "text", ["https://example.com:8080/a@b", "sk-short", "data:image/png;base64,AKIAABCD1234ABCD1234x"]
)
def test_other_texts_are_no_secrets(text: str) -> None:
    search = SecretSearch(redact=True)
    assert b"".join(search.through([text.encode()])) == text.encode()
    assert search.found == {}
