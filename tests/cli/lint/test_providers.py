"""`lint_request` with a third party's rules, with none and with broken ones; rows that name rule files."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from interlingua.errors import DecodeError, PluginError
from interlingua.plugins import Provider, Registry, WireRequest, build_request, hookimpl
from interlingua.types import RequestOptions, user
from interlingua_cli.lint import covers_request, lint_request, provider_rules
from tests.support.fake_provider import Fake, registry

SHOUTS = """
title = "Fake"
endpoint = '/say$'
[[rule]]
id = "no-shouting"
says = "The fake takes no capitals."
citation = "the fake's own words"
at = "say"
lacks_match = '[A-Z]'
"""


class Ruled(Fake):
    """A fake whose service is known to refuse capitals."""

    rules: Sequence[str] = (SHOUTS, SHOUTS.replace("no-shouting", "no-shouting-at-all"))

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return self.rules


def _fake(rules: Sequence[str]) -> Provider:
    made = Ruled()
    made.rules = rules
    return registry(made).provider("fake")


def test_every_file_that_covers_the_request_is_held_against_it() -> None:
    provider = _fake([SHOUTS, SHOUTS.replace("no-shouting", "not-at-all"), SHOUTS.replace("/say", "/other")])
    request = WireRequest(path="/say", body=b'{"say": "hi THERE"}', api="say")

    assert covers_request(provider, request)
    assert [(found.rule, found.path) for found in lint_request(provider, request)] == [
        ("no-shouting", "say"),
        ("not-at-all", "say"),
    ]


def test_a_request_that_no_file_covers_is_known_to_be_one() -> None:
    provider = _fake([SHOUTS])
    request = WireRequest(path="/count", body=b'{"say": "HI"}', api="say")

    assert (covers_request(provider, request), lint_request(provider, request)) == (False, ())


def test_a_plugin_without_rules_is_not_linted() -> None:
    provider = registry().provider("fake")
    request = WireRequest(path="/say", body=b"{}", api="say")

    assert provider.wire_rules == ()
    assert (covers_request(provider, request), lint_request(provider, request)) == (False, ())


def test_a_broken_rule_file_is_refused_when_it_is_asked_for() -> None:
    provider = _fake([SHOUTS.replace("lacks_match", "lacks_mash")])

    with pytest.raises(DecodeError, match="lacks_mash") as caught:
        lint_request(provider, WireRequest(path="/say", body=b"{}", api="say"))

    assert caught.value.path == "/rule/0/lacks_mash"


def test_every_shipped_provider_lints_what_it_writes_itself() -> None:
    for provider in Registry().providers():
        if not provider.distribution.name.startswith("interlingua-"):
            continue
        request = build_request(provider, [user("Hello")], [], RequestOptions(model="m"))

        assert covers_request(provider, request), provider.key
        assert lint_request(provider, request) == (), provider.key


def _row(**fields: object) -> Provider:
    from interlingua_chat_completions.presets import provider_from_preset

    made = provider_from_preset("acme", {"base_url": "http://127.0.0.1:9", **fields})
    return Registry(providers={"acme": made}).provider("acme")


def test_a_users_row_has_the_formats_rules_and_may_name_others() -> None:
    titles = [rules.title for rules in provider_rules(_row())]
    assert titles == ["Chat Completions", "Chat Completions, calls and results"]
    named = _row(rules=["format", "deepseek"])
    assert [rules.title for rules in provider_rules(named)] == ["Chat Completions", "DeepSeek"]


def test_a_row_that_names_no_rule_file_is_refused_by_its_field() -> None:
    with pytest.raises(PluginError, match=r"'acme': rules .*'acme-rules'"):
        _row(rules=["acme-rules"])
