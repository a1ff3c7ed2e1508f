"""Reading a rule file: TOML in, rules out.

Never goes to the disk: the plugin hands over the text of its own file.
The façade comes in, and plugins' own tests.

A rule file says which requests it covers, then one rule after the other::

    title = "Acme chat"
    endpoint = '/v1/chat$'               end of the paths it covers
    model_in_path = '/models/([^/:]+)'   only where the body does not name the model

    [[rule]]
    id = "tool-name"
    says = "A tool's name is up to 64 letters and digits."
    citation = "sheet acme §3"
    at = "tools[*].name"                 what it looks at (`paths`), or a list of it; left out, the whole body
    matches = '[A-Za-z0-9]{1,64}'        exactly one verb, with its parameter (`verbs`)
    when = {model = 'acme-2.*'}          only there: model, headers, has, lacks
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import Any

from interlingua.errors import DecodeError
from interlingua.plugins.provider import Provider
from interlingua.plugins.wire import WireRequest
from interlingua_cli.lint.paths import Path, parse_path
from interlingua_cli.lint.rule import LintFinding, LintRule, LintRules, When
from interlingua_cli.lint.verbs.table import VERBS, expression, texts

_HEAD = frozenset(("title", "endpoint", "model_in_path", "rule"))


_TEXTS = ("id", "says", "citation")


_WHEN = frozenset(("model", "headers", "has", "lacks"))


_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def lint_request(provider: Provider, request: WireRequest) -> tuple[LintFinding, ...]:
    """Return what a provider's service is known to refuse in a request, without sending it.

    Raises:
        DecodeError: a rule file cannot be read.
        ValueError: the body is not JSON.
    """
    return tuple(found for rules in provider_rules(provider) if rules.covers(request) for found in rules.lint(request))


def covers_request(provider: Provider, request: WireRequest) -> bool:
    """Tell whether a rule file of the provider covers this request; where none does, `lint_request` finds nothing.

    Raises:
        DecodeError: a rule file cannot be read.
    """
    return any(rules.covers(request) for rules in provider_rules(provider))


def provider_rules(provider: Provider) -> tuple[LintRules, ...]:
    """Return the rules that a provider ships (hook `wire_rules`), one for each of its rule files.

    Raises:
        DecodeError: a rule file cannot be read.
    """
    return tuple(_load_once(text) for text in provider.wire_rules)


@lru_cache(maxsize=256)
def _load_once(text: str) -> LintRules:
    return load_rules(text)


def load_rules(text: str) -> LintRules:
    """Read a rule file.

    Args:
        text: the TOML described in this module.

    Raises:
        DecodeError: not TOML, or not of this shape; `path` is the JSON pointer of the fault.
    """
    try:
        file = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DecodeError(f"a rule file is not TOML: {error}") from error
    _refuse(file.keys() - _HEAD, "", "a rule file")
    rows = file.get("rule")
    if not isinstance(rows, list) or not rows:
        raise DecodeError("a rule file has rules, each a [[rule]]", path="/rule")
    rules = tuple(_rule(row, f"/rule/{at}") for at, row in enumerate(rows))
    seen: set[str] = set()
    for at, rule in enumerate(rules):
        if rule.id in seen:
            raise DecodeError(f"two rules are named {rule.id!r}", path=f"/rule/{at}/id")
        seen.add(rule.id)
    return LintRules(
        title=_text(file, "title", ""),
        endpoint=_read(expression, file.get("endpoint"), "/endpoint"),
        model_in_path=_model_in_path(file),
        rules=rules,
    )


def _model_in_path(file: dict[str, Any]) -> re.Pattern[str] | None:
    if "model_in_path" not in file:
        return None
    pattern: re.Pattern[str] = _read(expression, file["model_in_path"], "/model_in_path")
    if pattern.groups != 1:
        raise DecodeError("the expression needs one group, which is the model", path="/model_in_path")
    return pattern


def _rule(row: Any, path: str) -> LintRule:
    if not isinstance(row, dict):
        raise DecodeError("a rule is a table", path=path)
    identity, says, citation = (_text(row, name, path) for name in _TEXTS)
    if not _ID.fullmatch(identity):
        raise DecodeError(f"an id is small words joined by hyphens, not {identity!r}", path=f"{path}/id")
    verbs = row.keys() & VERBS.keys()
    _refuse(row.keys() - VERBS.keys() - {*_TEXTS, "at", "when"}, path, "a rule")
    if len(verbs) != 1:
        named = " and ".join(sorted(verbs)) or "none"
        raise DecodeError(f"a rule has exactly one verb; {identity!r} has {named}", path=path)
    verb = verbs.pop()
    return LintRule(
        id=identity,
        says=says,
        citation=citation,
        at=_paths(row, "at", path) or (parse_path(""),),
        when=_when(row.get("when", {}), f"{path}/when"),
        verb=verb,
        check=_read(VERBS[verb], row[verb], f"{path}/{verb}"),
    )


def _when(given: Any, path: str) -> When:
    if not isinstance(given, dict):
        raise DecodeError("conditions are a table", path=path)
    _refuse(given.keys() - _WHEN, path, "a condition")
    headers = given.get("headers", {})
    if not isinstance(headers, dict):
        raise DecodeError("headers are a table of expressions", path=f"{path}/headers")
    return When(
        model=_read(expression, given["model"], f"{path}/model") if "model" in given else None,
        headers={name.lower(): _read(expression, value, f"{path}/headers/{name}") for name, value in headers.items()},
        has=_paths(given, "has", path),
        lacks=_paths(given, "lacks", path),
    )


def _paths(given: dict[str, Any], name: str, path: str) -> tuple[Path, ...]:
    if name not in given:
        return ()
    return tuple(_read(parse_path, text, f"{path}/{name}") for text in _read(texts, given[name], f"{path}/{name}"))


def _read(read: Any, given: Any, path: str) -> Any:
    try:
        return read(given)
    except ValueError as error:
        raise DecodeError(f"a rule file cannot be read: {error}", path=path) from error


def _text(row: dict[str, Any], name: str, path: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DecodeError(f"{name} is a text", path=f"{path}/{name}")
    return value


def _refuse(unknown: set[str], path: str, what: str) -> None:
    if unknown:
        name = sorted(unknown)[0]
        raise DecodeError(f"{what} has no {name!r}", path=f"{path}/{name}")
