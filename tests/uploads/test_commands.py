"""The commands `interlingua uploads list` and `uploads delete`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlingua_cli.root import cli
from interlingua_uploads import Uploads
from tests.uploads.file_service import KEY, Service
from tests.uploads.test_uploads import PDF, SERVICES, blocking, question, service

_ = service  # the fixture


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "uploads.jsonl"


def run(service: Service, monkeypatch: pytest.MonkeyPatch, *words: object, key: str = KEY) -> Result:
    name = {"google": "GEMINI"}.get(service.kind, service.kind.upper())
    monkeypatch.setenv(f"{name}_API_KEY", key)
    base = {"google": "GOOGLE_GEMINI_BASE_URL"}.get(service.kind, f"{name}_BASE_URL")
    monkeypatch.setenv(base, service.base_url)
    return CliRunner().invoke(cli, ["uploads", *map(str, words)])


@SERVICES
def test_files_are_listed_and_deleted(
    kind: str, service: Service, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocking(kind, service, Uploads(memory, above=1000), [question()], [question(PDF + b"x")])
    first, second = service.name_of("file-1abc"), service.name_of("file-2abc")

    listed = run(service, monkeypatch, "list", memory)
    assert listed.exit_code == 0
    assert all(part in listed.output for part in ("file-1abc", "file-2abc", service.kind, "application/pdf", "2,209"))
    rows = json.loads(run(service, monkeypatch, "list", memory, "--json").output)
    assert [(row["id"], row["size"], row["provider"]) for row in rows] == [
        (first, 2209, service.kind),
        (second, 2210, service.kind),
    ]
    assert rows[0]["uploaded_at"].endswith("+00:00")
    assert service.deleted == [], "a list asks no service"

    deleted = run(service, monkeypatch, "delete", memory, second)
    assert (deleted.exit_code, service.deleted) == (0, ["file-2abc"])
    assert f"deleted {second}" in deleted.output
    deleted = run(service, monkeypatch, "delete", memory, "--all", "--json")
    assert [row["id"] for row in json.loads(deleted.output)] == [first]
    assert service.files == {}
    assert "knows no uploaded file" in run(service, monkeypatch, "list", memory).output


def test_what_cannot_be_deleted_is_kept(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Service("anthropic") as service:
        blocking("anthropic", service, Uploads(memory, above=1000), [question()])
        for words, error in (
            ((), "name the IDs of files, or --all"),
            (("file-1abc", "--all"), "name the IDs of files, or --all"),
            (("file-9",), "knows no file file-9"),
        ):
            refused = run(service, monkeypatch, "delete", memory, *words)
            assert (refused.exit_code, error in refused.output) == (2, True), refused.output
        other = run(service, monkeypatch, "delete", memory, "file-1abc", key="another-key-0123")
        assert (other.exit_code, "another account" in other.output) == (1, True)
        kept = run(service, monkeypatch, "delete", memory, "--all", key="another-key-0123")
        assert (kept.exit_code, "1 files of other accounts are kept" in kept.output) == (0, True)
        monkeypatch.setattr("tests.uploads.file_service.KEY", "revoked")
        refused = run(service, monkeypatch, "delete", memory, "file-1abc")
        assert (refused.exit_code, "Traceback" in refused.output) == (1, False)
        assert [file.id for file in Uploads(memory).files] == ["file-1abc"]
        assert service.deleted == []

    missing = CliRunner().invoke(cli, ["uploads", "list", str(memory.with_name("none"))])
    assert (missing.exit_code, "does not exist" in missing.output) == (2, True)
    memory.write_text("{}\n")
    broken = CliRunner().invoke(cli, ["uploads", "list", str(memory)])
    assert (broken.exit_code, "line 1: not an uploaded file" in broken.output) == (1, True)
