"""`interlingua session …` against a local server and its own store: what is printed, what is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlingua.codec import read_jsonl
from interlingua.types.factories import user
from interlingua.types.messages import Message, MessageStatus
from interlingua_sessions import open_store
from interlingua_sessions.commands import _COMMANDS, session
from interlingua_sessions.commands import maintenance as moving
from interlingua_sessions.commands import shared as progress
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support.raw_sql import rows


def stored(place: Path, session: str = "moon") -> list[Message]:
    with open_store(place) as store:
        return list(store.messages(session))


def test_send_begins_a_session_and_goes_on_with_it(run: Run, server: LocalServer, place: Path) -> None:
    first = run("session", "send", "moon", "hi", "there", "-m", "here:echo", "-s", "Be brief.", "-o", "temperature=0")
    run("session", "switch", "moon", "e")
    second = run("session", "send", "moon", input="and now?\n")

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert (first.stdout, second.stdout) == ("Hello\n", "Hello\n")
    assert "(new session moon)" in first.stderr
    assert "new session" not in second.stderr
    assert "1,000 in" in second.stderr
    told = [(one["role"], one["content"]) for one in server.requests[-1]["messages"]]
    assert told == [("system", "Be brief."), ("user", "hi there"), ("assistant", "Hello"), ("user", "and now?")]
    modes = [one.metadata.routing.mode.value for one in stored(place) if one.metadata.routing]
    assert modes == ["override", "manual"]


def test_the_model_a_session_was_begun_with_answers_until_another_is_named(
    run: Run, server: LocalServer, place: Path
) -> None:
    run("session", "send", "moon", "one", "-m", "here:echo")
    run("session", "send", "moon", "for once", "-m", "here:other")
    second = run("session", "send", "moon", "two")
    talked = run("chat", "--session", "moon", input="three\n")

    assert (second.exit_code, talked.exit_code) == (0, 0), second.output + talked.output
    assert [request["model"] for request in server.requests] == ["echo", "other", "echo", "echo"]
    run("session", "switch", "moon", "here:other")
    run("session", "send", "moon", "four")
    assert server.requests[-1]["model"] == "other"


def test_url_goes_to_the_model_that_answers(run: Run, server: LocalServer, place: Path) -> None:
    first = run("session", "send", "moon", "one", "-m", "llamacpp:gemma", "--url", server.url)
    second = run("session", "send", "moon", "two", "--url", server.url)
    assert (first.stdout, second.stdout) == ("Hello\n", "Hello\n"), first.output + second.output

    nobody = run("session", "send", "sun", "one", "--url", server.url)
    assert nobody.exit_code == 2
    assert "--url is the address of a model's provider: set the model, too" in nobody.stderr
    assert "base_url" not in nobody.stderr


def test_json_prints_the_stored_answer(run: Run, server: LocalServer, place: Path) -> None:
    result = run("session", "send", "moon", "hi", "-m", "e", "--json")

    message = json.loads(result.stdout)
    assert message["id"] == stored(place)[-1].id
    assert message["metadata"]["routing"]["chosen_model"] == "here:echo"


def test_a_failure_keeps_the_question_and_again_answers_it(run: Run, server: LocalServer, place: Path) -> None:
    failed = run("session", "send", "moon", "hi", "-m", "here:refused")
    again = run("session", "send", "moon", "--again", "-m", "e")

    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-1].startswith("error: bad key")
    assert "--again instead of TEXT" in failed.stderr.splitlines()[-2]
    assert again.stdout == "Hello\n"
    assert [one.text for one in stored(place)] == ["hi", "Hello"]


def test_an_answer_that_breaks_off_is_kept(run: Run, server: LocalServer, place: Path) -> None:
    result = run("session", "send", "moon", "hi", "-m", "here:broken")

    assert result.exit_code == 1
    assert [one.text for one in stored(place)] == ["hi", "Hel"]
    assert stored(place)[-1].metadata.status is MessageStatus.ERROR


def test_json_of_an_answer_that_breaks_off_is_what_was_stored(run: Run, server: LocalServer, place: Path) -> None:
    broken = run("session", "send", "moon", "hi", "-m", "here:broken", "--json")
    refused = run("session", "send", "moon", "more", "-m", "here:refused", "--json")

    assert (broken.exit_code, refused.exit_code) == (1, 1)
    assert json.loads(broken.stdout)["id"] == stored(place)[1].id
    assert json.loads(broken.stdout)["content"][0]["text"] == "Hel"
    assert refused.stdout == ""  # the earlier answer is no answer to this


def test_nothing_to_say_is_wrong_usage(run: Run, server: LocalServer) -> None:
    assert run("session", "send", "moon", "-m", "e", input="").exit_code == 2


def test_a_new_session_needs_a_model_and_leaves_nothing_behind_without_one(
    run: Run, server: LocalServer, place: Path
) -> None:
    for command in (("session", "send", "moon", "hi"), ("chat", "--session", "moon")):
        result = run(*command, input="hi\n")
        assert result.exit_code == 2
        assert "there is no session 'moon'" in result.stderr

    listed = run("session", "list")
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert "no session is here yet" in listed.stderr
    assert json.loads(run("session", "list", "--json").stdout) == []


def test_list_and_show(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "e")
    listed = run("session", "list", "--json")
    shown = run("session", "show", "moon", "--json", "--limit", "1")

    (row,) = json.loads(listed.stdout)
    assert (row["id"], row["messages"], row["active_model"]) == ("moon", 2, None)
    assert row["workspace_path"] == str(Path.cwd())
    assert [one["role"] for one in json.loads(shown.stdout)["messages"]] == ["assistant"]
    assert "moon" in run("session", "list").stdout
    table = run("session", "show", "moon").stdout
    assert "here:echo (override: the caller named this model for this message)" in table
    missing = run("session", "show", "sun")
    assert missing.exit_code == 1
    assert "sun" in missing.stderr


def test_switch_says_who_answers_now(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "e")

    assert "now here:echo" in run("session", "switch", "moon", "e", "--reason", "cheaper").stderr
    with open_store(place) as store:
        assert store.session("moon").active_model == "here:echo"
    assert "cheaper" in json.loads(run("session", "list", "--json").stdout)[0]["routing_policy"]["manual_reason"]
    assert "the policy decides" in run("session", "switch", "moon", "--clear").stderr
    assert run("session", "switch", "moon").exit_code == 2
    unknown = run("session", "switch", "moon", "nowhere:x")
    assert (unknown.exit_code, unknown.stderr[:26]) == (1, "error: no provider 'nowher")


def test_verify_tells_what_is_wrong(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "here:unpriced")
    assert run("session", "verify").stdout == "nothing is wrong\n"
    assert json.loads(run("session", "verify", "moon", "--json").stdout) == []

    rows(str(place), "UPDATE messages SET content_json = '{' WHERE role = 'user'")
    broken = run("session", "verify", "--json")
    assert broken.exit_code == 1
    assert json.loads(broken.stdout)[0]["session_id"] == "moon"


def test_a_damaged_store_is_repaired_into_a_new_file(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "here:unpriced")
    before = stored(place)
    whole = run("session", "verify", "--repair", str(place.with_name("same.db")))
    assert (whole.exit_code, whole.stdout) == (0, "nothing is lost\n"), whole.output
    assert "2 messages of 1 sessions" in whole.stderr
    with place.open("r+b") as file:
        file.write(b"\xa5" * 4096)
    damaged = place.read_bytes()

    result = run("session", "verify", "--repair", str(place.with_name("new.db")), "--json")
    assert result.exit_code == 1
    assert [one["message"] for one in json.loads(result.stdout)] == ["page 1 of the file cannot be read"]
    assert stored(place.with_name("new.db")) == before
    assert place.read_bytes() == damaged
    assert run("session", "verify", "moon", "--repair", "x.db").exit_code == 2


def test_a_backup_is_the_store_as_it_is(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "here:unpriced")
    copy = place.with_name("copy.db")
    assert run("session", "backup", str(copy)).exit_code == 0
    assert stored(copy) == stored(place)
    assert "already exists" in run("session", "backup", str(copy)).stderr


def test_reprice_keeps_the_old_price(run: Run, server: LocalServer, place: Path, home: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "e")
    config = home / "interlingua" / "config.toml"
    config.write_text(config.read_text().replace('input_per_mtok_usd = "2"', 'input_per_mtok_usd = "4"'))
    result = run("session", "reprice", "moon", "--json")

    (row,) = json.loads(result.stdout)
    assert (row["old"]["cost_usd"], row["new"]["cost_usd"]) == ("0.003000", "0.005000")  # 1,000 in and 100 out
    usage = stored(place)[-1].metadata.usage
    assert usage is not None
    assert str(usage.cost_usd) == "0.005000"
    with open_store(place) as store:
        assert str(store.price_history("moon")[0].old.cost_usd) == "0.003000"
    assert "0 repriced" in run("session", "reprice").stderr


def test_export_and_import(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "e")
    assert run("session", "export", "moon", "moon.jsonl").exit_code == 0
    assert run("session", "export", "moon", "moon.jsonl").exit_code == 2  # not over another file
    result = run("session", "import", "moon.jsonl", "--id", "copy")

    assert result.stdout == "copy\n"
    assert "2 messages" in result.stderr
    assert [one.text for one in stored(place, "copy")] == ["hi", "Hello"]


def test_an_id_that_is_taken_names_the_option_for_another(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "e")
    run("session", "export", "moon", "moon.jsonl")
    taken = run("session", "import", "moon.jsonl")

    assert (taken.exit_code, "choose another id with --id SESSION" in taken.stderr) == (1, True)
    assert run("session", "import", "moon.jsonl", "--id", "sun").stdout == "sun\n"


def test_the_context_of_a_session_is_a_conversation_for_the_other_commands(
    run: Run, server: LocalServer, place: Path
) -> None:
    run("session", "send", "moon", "hi", "-m", "e", "-s", "Be brief.")
    piped = run("session", "export", "moon", "-", "--context")
    assert run("session", "export", "moon", "moon.jsonl", "--context").exit_code == 0

    assert Path("moon.jsonl").read_text(encoding="utf-8") == piped.stdout
    assert list(read_jsonl(piped.stdout.splitlines())) == stored(place)
    explained = json.loads(run("explain", "-", "--to", "compatible:other", "--json", input=piped.stdout).stdout)
    assert explained["model"] == "compatible:other"
    assert run("session", "export", "none", "-", "--context").exit_code == 1


def test_the_doctor_does_not_take_an_export_for_a_conversation(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "e")
    run("session", "export", "moon", "moon.jsonl")
    before = Path("moon.jsonl").read_bytes()
    result = run("doctor", "moon.jsonl", "--in-place")

    assert result.exit_code == 1
    assert "looks like an export of a stored session" in result.stderr
    assert "interlingua session import" in result.stderr
    assert Path("moon.jsonl").read_bytes() == before


def test_store_names_another_place(run: Run, server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    run("session", "send", "moon", "hi", "-m", "e", "--store", "other.db")
    assert json.loads(run("session", "list", "--json").stdout) == []
    monkeypatch.setenv("INTERLINGUA_SESSIONS", "other.db")
    assert [row["id"] for row in json.loads(run("session", "list", "--json").stdout)] == ["moon"]


def test_a_saved_chat_of_core_can_be_imported(run: Run, server: LocalServer, place: Path) -> None:
    run("chat", "e", "--save", "talk.jsonl", input="hi\n")
    result = run("session", "import", "talk.jsonl", "--id", "moon")

    assert result.exit_code == 0, result.output
    with Path("talk.jsonl").open("rb") as lines:
        assert [one.text for one in read_jsonl(lines)] == [one.text for one in stored(place)]


def test_the_group_lists_what_the_commands_say(run: Run) -> None:
    """The list is written beside the names so that help loads no command; it must say the same."""
    group = session
    for name, (_, summary) in _COMMANDS.items():
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert (command.name, (command.help or "").partition("\n")[0]) == (name, summary)
    assert "Check stored sessions for faults." in run("session", "--help").stdout


def test_help_opens_no_database(home: Path) -> None:
    code = (
        "import sys\nfrom interlingua_cli import main\nsys.argv = ['interlingua', *sys.argv[1:], '--help']\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "print(sorted({'httpx', 'sqlite3', 'interlingua_sessions.store'} & set(sys.modules)))"
    )
    for words in ([], ["session"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]", words
        assert "session" in done.stdout


def test_export_and_import_take_a_dash_for_a_pipe(run: Run, server: LocalServer, place: Path, tmp_path: Path) -> None:
    run("session", "send", "moon", "hällo", "-m", "here:echo")
    exported = run("session", "export", "moon", "-")

    assert exported.exit_code == 0
    assert not Path("-").exists()
    run("session", "export", "moon", str(tmp_path / "moon.jsonl"))
    assert exported.stdout_bytes == (tmp_path / "moon.jsonl").read_bytes()
    assert run("session", "import", "-", "--id", "copy", input=exported.stdout_bytes).stdout == "copy\n"
    assert [one.text for one in stored(place, "copy")] == ["hällo", "Hello"]


def test_a_store_of_another_kind_is_refused_by_its_scheme(run: Run, server: LocalServer) -> None:
    result = run("session", "list", "--store", "mysql://here/there")

    assert result.exit_code == 2
    assert "a file or a postgresql:// URL, not mysql://" in result.stderr


def test_what_was_never_stored_is_not_asked_again(run: Run, server: LocalServer, place: Path) -> None:
    run("session", "send", "moon", "hi", "-m", "e")
    refused = run("session", "send", "moon", "and now?", "-m", "nobody:nothing")

    assert refused.exit_code == 1
    assert "--again" not in refused.stderr
    assert len(stored(place)) == 2


def test_long_work_shows_how_far_it_is(
    run: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: LocalServer
) -> None:
    told: dict[str, list[int]] = {}

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
        told[what] = [total]
        yield told[what].append

    place.parent.mkdir(parents=True)
    with open_store(place) as store:
        store.create_session("long")
        store.extend([user(str(number), session_id="long") for number in range(1200)])
    monkeypatch.setattr(progress, "shown", bar)
    monkeypatch.setattr(moving, "shown", bar)
    monkeypatch.setattr(progress, "_seen", lambda: True)
    file = tmp_path / "long.jsonl"
    for line in ("export long {}", "import {} --id copy", "verify long", "reprice long"):
        result = run("session", *[word.format(file) for word in line.split()])
        assert result.exit_code == 0, result.output

    assert told["exported"] == [1200, 500, 500]
    assert told["imported"][0] == sum(told["imported"][1:]) == file.stat().st_size
    assert told["verified"] == told["looked at"] == [1200, 500, 500, 200]
