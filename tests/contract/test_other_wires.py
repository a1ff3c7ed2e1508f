"""The suite is right about wires unlike those of the shipped providers: what is not broken passes."""

from __future__ import annotations

import hashlib
import hmac
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua.errors import AuthenticationError
from interlingua.plugins import ConnectionSettings, HttpRequest, no_auth
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from interlingua_contract.json_paths import leaves
from interlingua_contract.recorder import Serializer
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.rules.evidence import _shapes_of
from interlingua_contract.subject import Subject
from tests.contract.broken.binary import (
    SIGNED,
    binary,
    equal_calls,
    framed,
    no_schema_with_tools,
    streamed_too,
    with_exchanges,
    with_failing_stream,
)
from tests.contract.broken.machine import Handed, Mutant, real
from tests.support import tree
from tests.support.binary_framing import FrameReader

RULES = {rule.number: rule for rule in ALL}
OF_STREAMS = [f"C{number}" for number in (21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 32, 33, 34, 36, 38, 39, 46)]


@pytest.mark.parametrize("number", OF_STREAMS)
def test_binary_frames_pass_every_rule_on_streams(number: str) -> None:
    subject = with_exchanges("anthropic", Handed(real("anthropic"), **binary()), framed)
    result = check(subject, RULES[number], 3)

    assert (result.outcome, result.reason) == ("pass", ""), result.findings
    assert sum(each.streamed for each in subject.exchanges) > 5


@pytest.mark.parametrize("number", ["C22", "C26", "C34"])
def test_a_framing_without_write_says_so(number: str) -> None:
    class ReadOnly:
        def __init__(self) -> None:
            self._inner = FrameReader()
            self.feed, self.close = self._inner.feed, self._inner.close

    broken = {"connection": lambda inner, **_: attrs.evolve(inner(), framing=ReadOnly)}
    result = check(with_exchanges("anthropic", Handed(real("anthropic"), **broken), framed), RULES[number], 3)

    assert result.outcome == "skip"
    assert "`write`" in result.reason


@pytest.mark.parametrize(
    ("number", "change"), [("C21", with_failing_stream), ("C28", with_failing_stream), ("C28", equal_calls)]
)
def test_odd_cassettes_raise_no_false_alarm(number: str, change: Any) -> None:
    result = check(with_exchanges("anthropic", real("anthropic"), change), RULES[number], 3)

    assert result.outcome == "pass", result.findings


def test_whole_and_streamed_pair_by_the_model_in_the_path() -> None:
    result = check(with_exchanges("google", real("google"), streamed_too), RULES["C21"], 3)

    assert result.outcome == "pass", result.findings


def _one_text(exchange: RecordedExchange) -> list[RecordedExchange]:
    body = exchange.body
    for tight in (b'{\\"path\\":', b'{\\"city\\":'):
        body = body.replace(tight, tight[:-1] + b" :  ")
    return [attrs.evolve(exchange, body=body)]


def test_arguments_as_one_text_written_in_its_own_way_are_not_lost() -> None:
    result = check(with_exchanges("openai", real("openai"), _one_text), RULES["C28"], 3)

    assert result.outcome == "pass", result.findings


def test_a_signature_that_shows_no_key_passes() -> None:
    assert check(Mutant("", "C43", SIGNED).subject(), RULES["C43"]).outcome == "pass"


def _pair(inner: Callable[..., Any], settings: ConnectionSettings, **_: Any) -> Any:
    """Sign with a key of two variables, as AWS's; one alone is no key."""
    made = inner()
    given = [settings.environ.get(name) for name in PAIR]

    def credentials(_error: object) -> Any:
        if settings.api_key is None and None in given:
            raise AuthenticationError("half a key")
        return settings.api_key or "".join(map(str, given))

    def sign(outgoing: HttpRequest, secret: str) -> dict[str, str]:
        return {"authorization": hmac.new(secret.encode(), outgoing.body, hashlib.sha256).hexdigest()}

    return attrs.evolve(made, auth=no_auth, credentials=credentials, sign=sign, env_vars=PAIR)


PAIR = ("ACME_ACCESS_KEY_ID", "ACME_SECRET_ACCESS_KEY")


def test_a_key_of_two_variables_passes() -> None:
    assert check(Mutant("", "C43", {"connection": _pair}).subject(), RULES["C43"]).outcome == "pass"


def test_a_service_that_takes_no_schema_with_tools_can_show_its_schema() -> None:
    result = check(Mutant("", "C51", {"to_wire": no_schema_with_tools}).subject(), RULES["C51"])

    assert result.outcome == "pass", result.findings


def test_an_empty_object_is_a_shape() -> None:
    plain, forced = {"tools": [1]}, {"tools": [1], "toolChoice": {"any": {}}}

    assert _shapes_of(forced) - _shapes_of(plain) == {("toolChoice", "any")}
    assert list(leaves({"any": {}})) == []


def test_one_unreadable_cassette_is_one_failure(tmp_path: Path) -> None:
    shutil.copytree(tree.ROOT / "cassettes" / "zai", tmp_path / "zai")
    (tmp_path / "zai" / "odd.yaml").write_text("interactions:\n- request: {}\n", encoding="utf-8")
    subject = Subject("zai", tmp_path / "zai", examples=3)
    failed = {rule.number: check(subject, rule) for rule in ALL if rule.number != "C49"}
    findings = {number: [str(one) for one in result.findings] for number, result in failed.items() if result.findings}

    assert list(findings) == ["C46"]
    assert len(findings["C46"]) == 1
    assert "odd.yaml" in findings["C46"][0]


def test_the_recorder_keeps_binary_bodies(tmp_path: Path) -> None:
    body = b"\x00\x00\x00\x7b\xff\xfe binary"
    request = {"method": "POST", "uri": "https://a.test/x", "headers": {}, "body": b'{"a":1}'}
    response = {"status": {"code": 200}, "headers": {}, "body": {"string": body}}
    text = Serializer.serialize({"version": 1, "interactions": [{"request": request, "response": response}]})
    path = tmp_path / "one.yaml"
    path.write_text(text, encoding="utf-8")

    assert "base64:" in text
    assert read_cassette(path)[0].body == body
    assert Serializer.deserialize(text)["interactions"][0]["response"]["body"]["string"] == body


@pytest.mark.parametrize(
    ("mutant", "words"),
    [
        (Mutant("", "C42", {"estimate_input_tokens": lambda inner, **_: inner() * 9}), "estimate_input_tokens"),
        (Mutant("", "C04", {"to_wire": lambda inner, messages, **_: attrs.evolve(
            made := inner(), body=made.body[:-1] + b',"count":%d}' % len(messages))}), "count changed"),
    ],
)  # fmt: skip
def test_findings_name_what_to_do(mutant: Mutant, words: str) -> None:
    result = check(mutant.subject(), RULES[mutant.rule], 8)

    assert any(words in str(finding) for finding in result.findings), result.findings
