"""A wire may have its own word for `role`: the rules on roles compare what surrounds a message's text.

The wire is the Parrot's of docs/plugins/example, with its system prompt in the list of messages, and two plugins that
get roles wrong.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import attrs
import pytest

from interlingua._plugins.hookspecs import hookimpl
from interlingua._plugins.registry import Registry
from interlingua.plugins import WireRequest
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject
from tests.support import tree

SOURCE = str(tree.ROOT / "docs" / "plugins" / "example" / "src")


@pytest.fixture(scope="module")
def parrot() -> Iterator[ModuleType]:
    sys.path.insert(0, SOURCE)
    try:
        yield importlib.import_module("interlingua_parrot.plugin")
    finally:
        sys.path.remove(SOURCE)


def with_perch_in_list(body: dict[str, Any], speaker: str) -> None:
    if "perch" in body:
        body["heard"].insert(0, {"from": speaker, "says": [{"type": "words", "words": body.pop("perch")}]})


def everybody_is_a_keeper(body: dict[str, Any]) -> None:
    for element in body["heard"]:
        element["from"] = "keeper"


def outcome(parrot: ModuleType, change: Callable[[dict[str, Any]], None], number: str) -> str:
    class Changed(parrot._Parrot):  # type: ignore[misc, name-defined]
        @hookimpl
        def to_wire(self, messages: Any, tools: Any, options: Any) -> WireRequest:
            request = super().to_wire(messages, tools, options)
            body = json.loads(request.body)
            change(body)
            return attrs.evolve(request, body=json.dumps(body).encode())

    subject = Subject("parrot", registry=Registry(providers={"parrot": Changed()}))
    return check(subject, next(rule for rule in ALL if rule.number == number)).outcome


def test_a_system_prompt_in_the_list_is_told_from_a_user(parrot: ModuleType) -> None:
    assert outcome(parrot, lambda body: with_perch_in_list(body, "rules"), "C10") == "pass"
    assert outcome(parrot, lambda body: with_perch_in_list(body, "keeper"), "C10") == "fail"


def test_an_answer_is_told_from_a_question(parrot: ModuleType) -> None:
    assert outcome(parrot, lambda _: None, "C53") == "pass"
    assert outcome(parrot, everybody_is_a_keeper, "C53") == "fail"
