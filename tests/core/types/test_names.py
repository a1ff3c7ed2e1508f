"""The names of `interlingua.types`, and what importing its tools costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from interlingua import types


def test_every_exported_name_is_there() -> None:
    assert sorted(set(types.__all__)) == types.__all__
    assert all(getattr(types, name) for name in types.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = types.nothing


def test_importing_tools_does_not_import_the_validator() -> None:
    costly = ("jsonschema", "httpx", "cattrs", "interlingua_agents.schemas")
    code = f"import sys, interlingua.types.tools; print([m for m in {costly} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
