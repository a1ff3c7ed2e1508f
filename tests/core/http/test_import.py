"""`import interlingua` loads nothing it was not asked for (issue 2, Show 5), and every name it promises is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import interlingua
import interlingua_output

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
    code = "import sys, interlingua; interlingua.Output; print([n for n in ('httpx', 'cattrs') if n in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize("name", interlingua.__all__)
def test_every_promised_name_is_there(name: str) -> None:
    assert getattr(interlingua, name) is not None
    assert name in dir(interlingua)


@pytest.mark.parametrize("name", ["Answer", "Output", "Partial"])
def test_a_typed_answers_names_are_those_of_its_distribution(name: str) -> None:
    assert getattr(interlingua, name) is getattr(interlingua_output, name)


def test_without_its_distribution_a_typed_answers_name_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['interlingua_output'] = None\n"
        "from interlingua import *\n"
        "try:\n    from interlingua import Output\nexcept ImportError as error:\n    print(Client.__name__, error)"
    )
    assert run(code) == "Client typed answers need interlingua-output: pip install interlingua[output]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Massage"):
        _ = interlingua.Massage
