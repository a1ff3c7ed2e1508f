"""A routing policy as the JSON that is stored with its session.

Never decides. The session comes in, and applications that keep policies in files.
What has its default is left out, and fields written by a newer version are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.errors import DecodeError
from interlingua_sessions.routing.policy import RoutingPolicy, Rule, When


def encode_policy(policy: RoutingPolicy) -> dict[str, Any]:
    """Return a policy as JSON; what has its default is left out."""
    written = {**policy.extra, **_differing(policy)}
    written.pop("extra", None)
    if policy.rules:
        written["rules"] = [{**_differing(rule), "when": _differing(rule.when)} for rule in policy.rules]
    if policy.fallbacks:
        written["fallbacks"] = list(policy.fallbacks)
    return written


def decode_policy(data: Mapping[str, Any] | None) -> RoutingPolicy:
    """Read a policy; None is the empty one.

    Raises:
        DecodeError: a rule or a field is not what it should be; `path` names it.
    """
    given = dict(data or {})
    known = {name: given.pop(name) for name in attrs.fields_dict(RoutingPolicy) if name in given}
    known.pop("extra", None)
    try:
        rules = [_rule(rule, f"rules[{number}]") for number, rule in enumerate(known.pop("rules", ()))]
        return RoutingPolicy(rules=rules, extra=given, **known)
    except TypeError as error:
        raise DecodeError(f"a routing policy cannot be read: {error}") from error


def _rule(data: Any, path: str) -> Rule:
    if not isinstance(data, Mapping) or not {"name", "model"} <= data.keys():
        raise DecodeError("a rule is an object with name and model", path=path)
    try:
        return Rule(name=data["name"], model=data["model"], when=When(**data.get("when", {})))
    except TypeError as error:
        raise DecodeError(f"a rule's conditions cannot be read: {error}", path=f"{path}.when") from error


def _differing(value: Any) -> dict[str, Any]:
    fields = attrs.fields(type(value))
    return {field.name: getattr(value, field.name) for field in fields if getattr(value, field.name) != field.default}
