"""Reading rule files: what is well formed holds as it says, and a fault is named with its place.

Expected places are JSON pointers written by hand.
"""

from __future__ import annotations

import pytest

from interlingua.errors import DecodeError
from interlingua.plugins import WireRequest
from interlingua_cli.lint import load_rules

HEAD = "title = 'Acme'\nendpoint = '/v1/chat$'\n"
RULE = "[[rule]]\nid = 'a-rule'\nsays = 'It is so.'\ncitation = 'WIRE.md, Tools'\n"


def _request(body: bytes = b'{"model": "m"}', path: str = "/v1/chat", **headers: str) -> WireRequest:
    return WireRequest(path=path, body=body, api="chat", headers=headers)


def test_a_finding_names_rule_place_and_source() -> None:
    rules = load_rules(HEAD + RULE + "requires = 'messages'\n")

    [finding] = rules.lint(_request())

    assert str(finding) == "a-rule: messages: It is so. Here messages is missing. [WIRE.md, Tools]"


def test_a_file_covers_its_endpoint_whatever_the_query() -> None:
    rules = load_rules(HEAD + RULE + "requires = 'messages'\n")

    assert rules.covers(_request(path="/base/v1/chat?beta=true"))
    assert not rules.covers(_request(path="/v1/chat/count"))
    assert not rules.covers(WireRequest(method="GET", path="/v1/chat", body=b"", api="chat"))


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("model = 'm'", True),
        ("model = 'm-2'", False),
        ("headers = {X-Version = '2'}", True),
        ("headers = {x-version = '1'}", False),
        ("headers = {x-other = ''}", True),
        ("has = 'model'", True),
        ("has = ['model', 'tools']", False),
        ("lacks = 'tools'", True),
        ("lacks = 'model'", False),
        ("model = 'm', lacks = ['tools'], has = 'model'", True),
    ],
)
def test_conditions_decide_whether_a_rule_holds(when: str, holds: bool) -> None:
    rules = load_rules(HEAD + RULE + f"requires = 'messages'\nwhen = {{{when}}}\n")

    assert bool(rules.lint(_request(b'{"model": "m"}', "/v1/chat", **{"x-version": "2"}))) is holds


def test_the_model_may_stand_in_the_path() -> None:
    rules = load_rules(
        "title = 'Acme'\nendpoint = ':go$'\nmodel_in_path = '/models/([^/:]+):'\n"
        + RULE
        + "requires = 'messages'\nwhen = {model = 'big'}\n"
    )

    assert rules.lint(_request(path="/models/big:go"))
    assert not rules.lint(_request(path="/models/small:go"))


def test_a_body_that_is_no_json_cannot_be_linted() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        load_rules(HEAD + RULE + "requires = 'messages'\n").lint(_request(b"{"))


def test_a_body_that_is_no_object_is_read_all_the_same() -> None:
    rules = load_rules(HEAD + RULE + "is = 'object'\n")

    assert [finding.path for finding in rules.lint(_request(b"[]"))] == [""]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("title = ", ""),
        (HEAD, "/rule"),
        ("title = 'x'\n" + RULE + "is = 'object'\n", "/endpoint"),
        ("endpoint = 'x'\n" + RULE + "is = 'object'\n", "/title"),
        ("titel = 'x'\n" + HEAD + RULE + "is = 'object'\n", "/titel"),
        ("title = 'x'\nendpoint = '('\n" + RULE + "is = 'object'\n", "/endpoint"),
        (HEAD + "model_in_path = 'x'\n" + RULE + "is = 'object'\n", "/model_in_path"),
        (HEAD + "rule = [1]\n", "/rule/0"),
        (HEAD + RULE, "/rule/0"),
        (HEAD + RULE + "is = 'object'\nlength = [1, 2]\n", "/rule/0"),
        (HEAD + RULE + "iss = 'object'\n", "/rule/0/iss"),
        (HEAD + RULE.replace("a-rule", "A rule") + "is = 'object'\n", "/rule/0/id"),
        (HEAD + RULE.replace("It is so.", " ") + "is = 'object'\n", "/rule/0/says"),
        (HEAD + RULE.replace("citation", "source") + "is = 'object'\n", "/rule/0/citation"),
        (HEAD + (RULE + "is = 'object'\n") * 2, "/rule/1/id"),
        (HEAD + RULE + "at = 'messages['\nis = 'object'\n", "/rule/0/at"),
        (HEAD + RULE + "at = []\nis = 'object'\n", "/rule/0/at"),
        (HEAD + RULE + "is = 'thing'\n", "/rule/0/is"),
        (HEAD + RULE + "is = 'object'\nwhen = 'always'\n", "/rule/0/when"),
        (HEAD + RULE + "is = 'object'\nwhen = {modell = 'x'}\n", "/rule/0/when/modell"),
        (HEAD + RULE + "is = 'object'\nwhen = {model = '['}\n", "/rule/0/when/model"),
        (HEAD + RULE + "is = 'object'\nwhen = {headers = 'x'}\n", "/rule/0/when/headers"),
        (HEAD + RULE + "is = 'object'\nwhen = {headers = {a = 1}}\n", "/rule/0/when/headers/a"),
        (HEAD + RULE + "is = 'object'\nwhen = {has = ['[']}\n", "/rule/0/when/has"),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, place: str) -> None:
    with pytest.raises(DecodeError) as caught:
        load_rules(text)

    assert caught.value.path == place
