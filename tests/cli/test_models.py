"""`providers`, `models`, `price`: what is installed and configured, with nothing but JSON under --json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlingua.codec import dumps_message
from interlingua.types import user
from tests.cli.conftest import Run
from tests.cli.local import LocalServer


def test_providers_shows_rows_distributions_and_keys(run: Run, server: LocalServer) -> None:
    rows = {row["key"]: row for row in json.loads(run("providers", "--json").stdout)}

    assert rows["here"]["kind"] == "user preset"
    assert rows["here"]["base_url"] == server.url
    assert rows["here"]["env"] == ["HERE_KEY"]
    assert rows["here"]["apis"]
    assert rows["anthropic"]["distribution"] == "interlingua-anthropic"
    assert rows["here"]["distribution"] == "your configuration"
    table = run("providers").stdout
    assert "HERE_KEY" in table
    assert "key-for-tests" not in table


def test_a_broken_row_is_listed_with_its_reason_and_the_rest_works(run: Run, home: Path) -> None:
    (home / "interlingua").mkdir()
    (home / "interlingua" / "config.toml").write_text('[presets.odd]\nbase_url = "nonsense"\n', encoding="utf-8")
    result = run("providers", "--json")

    assert result.exit_code == 0
    rows = {row["key"]: row for row in json.loads(result.stdout)}
    assert "base_url" in rows["odd"]["broken"]
    assert "broken" not in rows["anthropic"]
    assert "odd is broken" in run("providers").stdout


def test_models(run: Run, server: LocalServer) -> None:
    (row,) = json.loads(run("models", "here", "--json").stdout)

    assert row["model"] == "here:echo"
    assert (row["max_context_tokens"], row["input_per_mtok_usd"], row["output_per_mtok_usd"]) == (1000, "2", "10")
    everything = json.loads(run("models", "--json").stdout)
    assert row in everything
    assert len(everything) > 20
    assert "here:echo" in run("models", "here").stdout
    assert run("models", "nowhere").exit_code == 1


def test_a_provider_without_a_catalogue_says_who_knows_its_models(run: Run, home: Path) -> None:
    listed = run("models", "llamacpp")

    assert (listed.exit_code, listed.stdout) == (0, "")
    assert "--live" in listed.stderr
    assert json.loads(run("models", "llamacpp", "--json").stdout) == []


def test_price_of_a_model_and_of_tokens(run: Run, server: LocalServer) -> None:
    assert json.loads(run("price", "e", "--json").stdout)["cached_read_per_mtok_usd"] == "0.2"
    cost = json.loads(run("price", "e", "--input", "1000000", "--cached", "500000", "--output", "10", "--json").stdout)

    # 500,000 at 2 and 500,000 at 0.2, 10 at 10, per million
    assert cost["cost_usd"] == "1.1001000"
    assert "cost_usd" in run("price", "here:echo", "--input", "10").stdout


def test_an_unknown_price_is_not_zero(run: Run, server: LocalServer) -> None:
    facts = json.loads(run("price", "here:unheard-of", "--input", "5", "--json").stdout)

    assert facts["cost_usd"] is None
    assert facts["cost_note"] == "model not in the catalogue"
    assert "no price known" in run("price", "here:unheard-of").stdout


def test_a_price_that_is_asked_for_by_a_near_name_shows_the_names(run: Run, server: LocalServer) -> None:
    result = run("price", "here:ecco", "--json")

    assert "there is echo" in result.stderr
    assert json.loads(result.stdout)["model"] == "here:ecco"
    assert "there" not in run("price", "here:unheard-of").stderr


def test_settings_for_a_provider_that_is_not_there_are_told_of(run: Run, server: LocalServer, home: Path) -> None:
    config = home / "interlingua" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8") + "[providers.heer]\napi = 'chat'\n", encoding="utf-8")
    result = run("providers", "--json")

    assert result.stderr == "warning: the configuration has settings for 'heer', but no such provider is installed\n"
    assert json.loads(result.stdout)


def test_no_password_of_an_address_is_shown(run: Run, home: Path) -> None:
    (home / "interlingua").mkdir()
    (home / "interlingua" / "config.toml").write_text(
        '[presets.here]\nformat = "chat-completions"\nbase_url = "http://me:pass-word@here.test:99/v1"\n',
        encoding="utf-8",
    )
    Path("talk.jsonl").write_text(f"{dumps_message(user('hi'))}\n", encoding="utf-8")
    shown = [run("providers", "--json"), run("wire", "talk.jsonl", "--to", "here:any"),
             run("wire", "talk.jsonl", "--to", "here:any", "--json")]  # fmt: skip

    assert all("http://***@here.test:99/v1" in one.stdout for one in shown)
    assert not any("pass-word" in one.output for one in shown)


def test_an_address_that_is_none_does_not_end_the_listing(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://[::1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://[::1")
    monkeypatch.setenv("OLLAMA_HOST", "::::")
    result = run("providers", "--json")

    rows = {row["key"]: row for row in json.loads(result.stdout)}
    assert result.exit_code == 0
    assert rows["anthropic"]["base_url"] == "an invalid URL"
    assert "OLLAMA_HOST" in rows["ollama"]["broken"]


def test_check_without_recordings_says_so_and_groups_what_it_skipped(run: Run, server: LocalServer) -> None:
    result = run("check", "here", "--examples", "1", "--rule", "C41", "--rule", "C77", "--rule", "C01")

    assert result.exit_code == 0, result.output
    assert "C41, C77 skipped: no cassette holds a failure" in result.stdout
    assert "no folder cassettes/here" in result.stderr
    assert "no folder" not in run("check", "here", "--rule", "C41", "--cassettes", ".").stderr


def test_providers_calls_no_signer_and_asks_for_no_credentials(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
from interlingua.plugins import no_auth
from tests.support.fake_provider import Fake

def never(*_given):
    raise SystemExit("called")

class Keyed(Fake):
    def __init__(self, key, auth, **more):
        super().__init__(**more)
        self.key, self.auth = key, auth

    def connection(self, settings):
        import attrs
        return attrs.evolve(super().connection(settings), auth=self.auth, has_key=self.key)

    connection.interlingua_impl = Fake.connection.interlingua_impl

signed = Keyed(True, never, sign=never, credentials=never)
looked = Keyed(True, no_auth, sign=never, credentials=never)
bare = Keyed(False, never)
"""
    (tmp_path / "keyed.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    given = [word for key in ("signed", "looked", "bare") for word in ("--plugin", f"{key}=keyed:{key}")]
    result = run("providers", "--json", *given)

    rows = {row["key"]: row.get("key_state") for row in json.loads(result.stdout)}
    assert result.exit_code == 0
    assert (rows["signed"], rows["looked"], rows["bare"]) == ("found", "looked up", "missing")


def test_a_url_without_live_is_not_passed_over(run: Run, server: LocalServer) -> None:
    result = run("models", "here", "--url", server.url)

    assert result.exit_code == 2
    assert "--live" in result.stderr


def test_prices_of_units_are_beside_the_others_and_none_are_not_shown(run: Run, server: LocalServer) -> None:
    assert "units" not in run("price", "here:echo").stdout
    config = Path("home/interlingua/config.toml")
    config.write_text(
        config.read_text(encoding="utf-8").replace('output_per_mtok_usd = "10",', 'units = {search = "0.01"},'),
        encoding="utf-8",
    )
    assert "search  " in run("price", "here:echo").stdout
