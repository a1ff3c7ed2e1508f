"""`import interlingua` loads nothing it was not asked for (issue 2, Show 5), and every name it promises is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import interlingua

HEAVY = ("attrs", "attr", "httpx", "cattrs", "jsonschema", "orjson", "pluggy", "asyncio", "interlingua.types.blocks")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_bare_import_loads_nothing() -> None:
    assert run(f"import interlingua, sys; print([name for name in {HEAVY!r} if name in sys.modules])") == "[]"


def test_values_load_no_client_and_a_client_no_codec_or_validator() -> None:
    code = "import sys, interlingua; interlingua.Message; print([n for n in ('httpx', 'cattrs') if n in sys.modules])"
    assert run(code) == "[]"
    code = (
        "import sys, interlingua; from tests.support.fake_provider import registry;"
        "interlingua.Client('fake:known', registry=registry(), environ={});"
        "print([n for n in ('cattrs', 'jsonschema') if n in sys.modules])"
    )
    assert run(code) == "[]"


def test_a_blocking_client_loads_no_asyncio() -> None:
    assert run("import sys, interlingua; interlingua.Client(); print('asyncio' in sys.modules)") == "False"


def test_a_typed_answers_type_loads_no_client() -> None:
    code = "import sys, interlingua_output; print([n for n in ('httpx', 'cattrs') if n in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize("name", interlingua.__all__)
def test_every_promised_name_is_there(name: str) -> None:
    assert getattr(interlingua, name) is not None
    assert name in dir(interlingua)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Massage"):
        _ = interlingua.Massage
