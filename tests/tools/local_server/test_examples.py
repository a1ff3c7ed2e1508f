"""The programs of docs/examples against a real server: a model so small that nothing is said of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.test_examples import run_example

from . import files
from .server import MODEL, LocalServer

pytestmark = pytest.mark.skipif(files.missing() is not None, reason=files.missing() or "")
NAME = f"llamacpp:{MODEL}"
EXPECTED = {
    "chat": ">",
    "agent": " after ",
    "typed_output": "Moon(name=",
    "twenty_at_once": "the number 20, in one line. ->",
    "cancel": "cancelled: ",
    "swap": f"{NAME}: ",
    "resume": "3 messages are kept",
    "cost": "tokens in, ",
    "trace": f"chat {MODEL}",
}


@pytest.fixture(scope="module")
def environ() -> Iterator[dict[str, str]]:
    with LocalServer(context=4096) as server:
        yield {"LLAMACPP_BASE_URL": f"{server.url}/v1"}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_program_runs_live(name: str, environ: dict[str, str], tmp_path: Path) -> None:
    arguments = [NAME, NAME] if name == "swap" else [NAME]
    stdin = "Name a moon.\nAnother?\n\n" if name == "chat" else ""
    printed = run_example(name, *arguments, environ=environ, cwd=tmp_path, stdin=stdin)
    assert EXPECTED[name] in printed


def test_a_model_without_eyes_refuses_the_picture(environ: dict[str, str], tmp_path: Path) -> None:
    printed = run_example("image", NAME, environ=environ, cwd=tmp_path, status=1)
    assert "image input is not supported" in printed
