"""A plugin as contract 1 had it before answers that come later: kept here unchanged, and it still keeps the contract.

A new hook, or a field with a default, must not change anything for it (docs/reference/versions.md). The wheel beside it
was built from the tree of 3eef00c7, the last one before the hook `follow_up`; `make wheels` installs and checks it.
"""

from __future__ import annotations

import importlib
import sys
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path

import interlingua as il
from interlingua._plugins.registry import Registry
from interlingua_contract.report import run
from interlingua_contract.subject import Subject

FOLDER = Path(__file__).with_name("parrot_1")
WHEEL = FOLDER.with_name("interlingua_parrot-0.1.0-py3-none-any.whl")
BUILT = "199392fdb3a33f884eb0020c2502cf17b0e1ea5ff0d7f4324dc346a33a3a19f2"


def old_plugin() -> object:
    sys.path.insert(0, str(FOLDER / "src"))
    try:
        return importlib.import_module("interlingua_parrot_1.plugin").plugin
    finally:
        sys.path.remove(str(FOLDER / "src"))


def test_an_older_plugin_is_loaded_without_a_warning_and_keeps_the_contract() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        registry = Registry(providers={"parrot": old_plugin()}, entry_points=[])
        assert not registry.provider("parrot").answers_later
    report = run(Subject("parrot", FOLDER / "cassettes", registry=registry, examples=2))

    assert not [str(finding) for result in report.results if result.outcome != "pass" for finding in result.findings]
    assert sum(result.outcome == "pass" for result in report.results) > 60


def test_an_older_plugin_writes_the_bytes_that_it_wrote() -> None:
    registry = Registry(providers={"parrot": old_plugin()}, entry_points=[])
    with il.Client("parrot:grey-1", api_key="-", registry=registry, environ={}) as client:
        request = client.build_request([il.system("Be brief."), il.user("Hello.")], max_tokens=7)

    assert request.body == (
        b'{"model":"grey-1","stream":false,"perch":"Be brief.",'
        b'"heard":[{"from":"keeper","says":[{"type":"words","words":"Hello."}]}],"most":7}'
    )


def test_the_wheel_is_the_one_that_was_built_then_and_has_the_same_code() -> None:
    assert sha256(WHEEL.read_bytes()).hexdigest() == BUILT
    with zipfile.ZipFile(WHEEL) as wheel:
        built = {
            name.removeprefix("interlingua_parrot/"): wheel.read(name).decode()
            for name in wheel.namelist()
            if name.endswith(".py")
        }
    kept = {
        path.name: path.read_text(encoding="utf-8").replace("interlingua_parrot_1", "interlingua_parrot")
        for path in (FOLDER / "src" / "interlingua_parrot_1").glob("*.py")
    }

    assert kept == built
