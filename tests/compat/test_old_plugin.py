"""A plugin as contract 1 had it before answers that come later: kept here unchanged, and it still keeps the contract.

A new hook, or a field with a default, must not change anything for it (docs/reference/versions.md).
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

import interlingua as il
from interlingua._plugins.registry import Registry
from interlingua_contract.report import run
from interlingua_contract.subject import Subject

FOLDER = Path(__file__).with_name("parrot_1")


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
