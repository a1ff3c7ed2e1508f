"""A routing policy as JSON: what is written, read, refused and kept."""

from __future__ import annotations

import json

import pytest

from interlingua.errors import DecodeError
from interlingua.types.messages import RoutingMode
from interlingua_sessions.routing.policy import (
    ChainPolicy,
    RouteCondition,
    RoutingPolicy,
    RoutingRule,
    decode_policy,
    encode_policy,
)


def test_the_mode_mapping_is_the_seeds() -> None:
    """Each link of the chain has its mode on the record."""
    assert {policy.name: policy.mode for policy in ChainPolicy} == {
        "PER_MESSAGE_OVERRIDE": RoutingMode.OVERRIDE,
        "MANUAL_STICKY": RoutingMode.MANUAL,
        "RULE": RoutingMode.RULE,
        "PATTERN": RoutingMode.PATTERN,
        "DELEGATE_REQUEST": RoutingMode.DELEGATE,
        "WORKSPACE_DEFAULT": RoutingMode.DEFAULT,
        "GLOBAL_DEFAULT": RoutingMode.DEFAULT,
    }


def test_a_policy_comes_back_as_it_was() -> None:
    policy = RoutingPolicy(
        rules=[
            RoutingRule(name="code", model="a:b", when=RouteCondition(text=r"\bbug\b", images=False, min_tokens=10)),
            RoutingRule(name="shell", model="g:h", when=RouteCondition(side_effects=["execute", "network"])),
        ],
        tool_models={"execute": ["a:b", "g:*"]},
        min_confidence=0.9,
        workspace_default="c:d",
        fallbacks=["e:f"],
        manual_reason="because",
    )

    assert decode_policy(json.loads(json.dumps(encode_policy(policy)))) == policy
    assert encode_policy(RoutingPolicy()) == {}
    assert decode_policy(None) == RoutingPolicy()


def test_fields_of_a_newer_version_are_kept() -> None:
    data = {"workspace_default": "a:b", "weather": ["sunny"]}

    assert encode_policy(decode_policy(data)) == data


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"rules": [{"name": "x"}]}, "rules[0]"),
        (
            {"rules": [{"name": "x", "model": "a:b"}, {"name": "y", "model": "a:b", "when": {"moon": 1}}]},
            "rules[1].when",
        ),
        ({"rules": [{"name": "x", "model": "a:b", "when": {"text": "("}}]}, "when.text"),
        ({"rules": 7}, ""),
        ({"tool_models": {"harmless": ["a:b"]}}, "side_effects"),
        ({"rules": [{"name": "x", "model": "a:b", "when": {"side_effects": ["harmless"]}}]}, "side_effects"),
    ],
)
def test_what_cannot_be_read_says_where(data: dict[str, object], path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_policy(data)

    assert caught.value.path == path
