"""An unbroken plugin raises no alarm, and an excuse for one finding excuses no other."""

from __future__ import annotations

import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import ConnectionSettings, WireRequest, no_auth
from interlingua.types import Message, TextBlock, user
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.scenes import LawBroken, _shrink
from interlingua_contract.subject import UNKNOWN_OF_VENDOR, Aim, Quirks, Subject, find_cassettes
from tests.contract.broken.machine import Mutant, real, subject_of
from tests.support import tree

RULES = {rule.number: rule for rule in ALL}

WRAPPER = """
import os
import attrs
from interlingua.plugins import hookimpl

HOME = os.environ.get("HOME", "")

@hookimpl(wrapper=True)
def to_wire(messages, tools, options):
    request = yield
    return CHANGED
"""


def _wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, changed: str) -> Subject:
    (tmp_path / f"{name}.py").write_text(WRAPPER.replace("CHANGED", changed), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry()
    registry.load_plugin(name)
    return Subject("llamacpp", registry=registry)


def test_other_processes_load_the_plugins_that_were_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = "attrs.evolve(request, body=request.body[:-1] + b',\"x\":1}')"
    subject = _wrapped(tmp_path, monkeypatch, "contract_wrapper", marked)

    assert check(subject, RULES["C58"]).outcome == "pass"
    assert check(subject, RULES["C68"]).outcome == "pass"


def test_a_passed_plugin_that_is_broken_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = "attrs.evolve(request, headers={**request.headers, 'x': HOME})"
    broken = _wrapped(tmp_path, monkeypatch, "contract_wrapper_of_home", changed)

    assert check(broken, RULES["C58"]).outcome == "pass"
    assert check(broken, RULES["C68"]).outcome == "fail"


@pytest.mark.parametrize("key", ["cohere", "ollama", "google"])
def test_the_verdict_is_the_same_in_every_folder(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert find_cassettes(Registry(), key) == tree.ROOT / "cassettes" / key
    for number in ("C04", "C05", "C51", "C64"):
        assert check(Subject(key, examples=3), RULES[number]).outcome in ("pass", "skip")


def test_shrinking_keeps_the_cause() -> None:
    aim = Aim(api="a", model="m", capabilities=Subject("llamacpp").aims[0].capabilities)

    def law(_aim: Aim, history: list[Message]) -> None:
        if len(history) < 2:
            raise LawBroken("it answers no open call")
        raise LawBroken(f"the picture {len(history)} is refused")

    history = [user([TextBlock(text=f"{at}")]) for at in range(4)]
    value, error = _shrink(law, aim, history, LawBroken("the picture 4 is refused"), 5)

    assert (len(value), str(error)) == (2, "the picture 2 is refused")


def _exchanged(leak: str = "") -> dict[str, Any]:
    """Exchange the key for a token, which asks a server."""

    def connection(inner: Any, settings: ConnectionSettings, **_: Any) -> Any:
        def credentials(_error: object) -> Any:
            return urllib.request.urlopen("http://192.0.2.1/token").read()

        made = attrs.evolve(inner(), auth=no_auth, credentials=credentials, sign=lambda *_: {"authorization": "x"})
        return attrs.evolve(made, headers={"x-key": settings.api_key or ""}) if leak else made

    return {"connection": connection}


def test_a_plugin_may_exchange_its_key_at_the_service() -> None:
    assert check(Mutant("", "C43", _exchanged()).subject(), RULES["C43"]).outcome == "pass"
    assert check(Mutant("", "C43", _exchanged("header")).subject(), RULES["C43"]).outcome == "fail"


def test_connection_options_are_no_part_of_a_request() -> None:
    def to_wire(inner: Any, options: Any, **_: Any) -> WireRequest:
        made: WireRequest = inner()
        return attrs.evolve(made, body=json.dumps(json.loads(made.body) | options.connection).encode())

    assert check(Mutant("", "C43", {"to_wire": to_wire}).subject(), RULES["C43"]).outcome == "fail"


def test_options_that_every_request_needs_are_given() -> None:
    def to_wire(inner: Any, options: Any, **_: Any) -> WireRequest:
        assert options.connection["project"] == "p"
        return inner()  # type: ignore[no-any-return]

    subject = Mutant("", "C52", {"to_wire": to_wire}).subject()
    subject.quirks = Quirks(connection={"project": "p"})

    assert check(subject, RULES["C44"]).outcome == "pass"


def test_an_unknown_model_is_named_as_the_known_ones_are() -> None:
    def models(inner: Any) -> Any:
        return [attrs.evolve(model, id=f"acme/{model.id}", aliases=()) for model in inner()]

    def connection(inner: Any, **_: Any) -> Any:
        return attrs.evolve(inner(), endpoints={"messages": "/models/(?P<model>[^/]+/[^/]+)/messages$"})

    def to_wire(inner: Any, options: Any, **_: Any) -> WireRequest:
        return attrs.evolve(inner(), path=f"/models/{options.model}/messages")  # type: ignore[no-any-return]

    hooks: dict[str, Any] = {"models": models, "connection": connection, "to_wire": to_wire}
    subject = Mutant("", "C44", hooks).subject()
    subject.quirks = Quirks()

    assert subject.unknown_model == UNKNOWN_OF_VENDOR
    assert check(subject, RULES["C44"]).outcome == "pass"


def test_the_name_of_the_last_event_may_be_the_stop_reason() -> None:
    def from_name(inner: Any, **_: Any) -> Any:
        async def named() -> Any:
            async for event in inner():
                yield attrs.evolve(event, stop_reason_raw="message_stop") if event.type == "message_complete" else event

        return named()

    broken = Mutant("", "C36", {"stream_response": from_name}).subject()
    vars(broken)["exchanges"] = tuple(each for each in broken.exchanges if each.streamed and each.good)

    assert check(broken, RULES["C36"]).outcome == "pass"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("    request-id: [req_1]\n", "pass"),
        ("    x-request-id: [req_1]\n", "fail"),
        ("    string: grant_type=x&apikey=abcdefghijklmnopqrstuvwxyz0123\n", "fail"),
        ('    string: \'{"access_token": "abcdefghijklmnopqrstuvwxyz0123"}\'\n', "fail"),
    ],
)
def test_cassettes_may_hold_request_ids_and_no_exchanged_key(tmp_path: Path, text: str, outcome: str) -> None:
    shutil.copytree(tree.ROOT / "cassettes" / "anthropic", tmp_path / "c")
    named: dict[str, Any] = {"connection": lambda inner, **_: attrs.evolve(inner(), request_id_headers=("request-id",))}
    subject = subject_of("anthropic", Mutant("", "C47", named).subject().registry._given["anthropic"])
    subject.folder = tmp_path / "c"
    answered = "  response:\n    status: {code: 200, message: OK}\n    body: {}\n    headers:\n      "
    request = "    method: POST\n    uri: https://api.anthropic.com/v1/messages\n"
    if "request-id" in text:
        text = request + answered + text.strip() + "\n"
    (tmp_path / "c" / "token.yaml").write_text(f"interactions:\n- request:\n{text}", encoding="utf-8")

    assert check(subject, RULES["C47"]).outcome == outcome


def test_the_shipped_object_is_not_broken_by_being_wrapped() -> None:
    assert check(subject_of("mistral", real("mistral"), examples=3), RULES["C44"]).outcome == "pass"
