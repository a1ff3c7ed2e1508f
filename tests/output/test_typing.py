"""Typed answers in a program that is checked strictly: what is inferred of their values."""

from __future__ import annotations

from pathlib import Path

from mypy import api

from tests.support.tree import ROOT


def test_a_users_program_is_inferred_without_help() -> None:
    program = Path(__file__).with_name("typed_use.py")
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    found, failed, status = api.run(["--strict", "--follow-imports=silent", "--config-file=", cache, str(program)])
    assert (found, failed, status) == ("Success: no issues found in 1 source file\n", "", 0)
