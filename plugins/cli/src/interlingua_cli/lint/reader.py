"""Read rule files, which plugins provide as TOML strings, and lint requests with a provider's rules.

A rule file describes the requests it covers, then lists its rules::

    title = "Acme chat"
    endpoint = '/v1/chat$'               end of the paths it covers
    model_in_path = '/models/([^/:]+)'   only if the body does not have the model

    [[rule]]
    id = "tool-name"
    says = "A tool's name is up to 64 letters and digits."
    citation = "WIRE.md, Tools"
    at = "tools[*].name"                 the checked part (`parse_path`), or a list; default: the whole body
    matches = '[A-Za-z0-9]{1,64}'        exactly one verb with its parameter (`checks.VERBS`)
    when = {model = 'acme-2.*'}          conditions: model, headers, has, lacks
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import Any

from interlingua.errors import DecodeError
from interlingua.plugins import Provider, WireRequest
from interlingua_cli.lint.checks import VERBS, read_pattern, read_texts
from interlingua_cli.lint.rules import LintCondition, LintFinding, LintRule, LintRules, Path, parse_path

_FILE_KEYS = frozenset(("title", "endpoint", "model_in_path", "rule"))
_RULE_TEXTS = ("id", "says", "citation")
_WHEN_KEYS = frozenset(("model", "headers", "has", "lacks"))
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def lint_request(provider: Provider, request: WireRequest) -> tuple[LintFinding, ...]:
    """Return the findings of a provider's rules in a request, without sending it.

    Raises:
        DecodeError: a rule file cannot be read.
        ValueError: the body is not JSON.
    """
    return tuple(found for rules in provider_rules(provider) if rules.covers(request) for found in rules.lint(request))


def covers_request(provider: Provider, request: WireRequest) -> bool:
    """Tell whether a rule file of the provider covers this request; if none does, `lint_request` finds nothing."""
    return any(rules.covers(request) for rules in provider_rules(provider))


def provider_rules(provider: Provider) -> tuple[LintRules, ...]:
    """Return the rules that a provider ships (hook `wire_rules`), one for each of its rule files."""
    return tuple(load_rules(text) for text in provider.wire_rules)


@lru_cache(maxsize=256)
def load_rules(text: str) -> LintRules:
    """Read a rule file.

    Args:
        text: the TOML described in this module.

    Raises:
        DecodeError: not TOML, or not a rule file; `path` is the JSON pointer of the fault.
    """
    try:
        file = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DecodeError(f"a rule file is not TOML: {error}") from error
    _refuse_unknown(file.keys() - _FILE_KEYS, "", "a rule file")
    rows = file.get("rule")
    if not isinstance(rows, list) or not rows:
        raise DecodeError("a rule file needs at least one [[rule]]", path="/rule")
    rules = tuple(_read_rule(row, f"/rule/{at}") for at, row in enumerate(rows))
    seen: set[str] = set()
    for at, rule in enumerate(rules):
        if rule.id in seen:
            raise DecodeError(f"two rules have the id {rule.id!r}", path=f"/rule/{at}/id")
        seen.add(rule.id)
    return LintRules(
        title=_read_text(file, "title", ""),
        endpoint=_read(read_pattern, file.get("endpoint"), "/endpoint"),
        model_in_path=_read_model_in_path(file),
        rules=rules,
    )


def _read_model_in_path(file: dict[str, Any]) -> re.Pattern[str] | None:
    if "model_in_path" not in file:
        return None
    pattern: re.Pattern[str] = _read(read_pattern, file["model_in_path"], "/model_in_path")
    if pattern.groups != 1:
        raise DecodeError("the expression needs exactly one group, which captures the model", path="/model_in_path")
    return pattern


def _read_rule(row: Any, path: str) -> LintRule:
    if not isinstance(row, dict):
        raise DecodeError("a rule must be a table", path=path)
    identity, says, citation = (_read_text(row, name, path) for name in _RULE_TEXTS)
    if not _ID.fullmatch(identity):
        raise DecodeError(f"an id must be lower-case words joined by hyphens, not {identity!r}", path=f"{path}/id")
    verbs = row.keys() & VERBS.keys()
    _refuse_unknown(row.keys() - VERBS.keys() - {*_RULE_TEXTS, "at", "when"}, path, "a rule")
    if len(verbs) != 1:
        named = " and ".join(sorted(verbs)) or "none"
        raise DecodeError(f"a rule needs exactly one verb; {identity!r} has {named}", path=path)
    verb = verbs.pop()
    return LintRule(
        id=identity,
        says=says,
        citation=citation,
        at=_read_paths(row, "at", path) or (parse_path(""),),
        when=_read_when(row.get("when", {}), f"{path}/when"),
        check=_read(VERBS[verb], row[verb], f"{path}/{verb}"),
    )


def _read_when(given: Any, path: str) -> LintCondition:
    if not isinstance(given, dict):
        raise DecodeError("conditions must be a table", path=path)
    _refuse_unknown(given.keys() - _WHEN_KEYS, path, "a condition")
    headers = given.get("headers", {})
    if not isinstance(headers, dict):
        raise DecodeError("headers must be a table of expressions", path=f"{path}/headers")
    return LintCondition(
        model=_read(read_pattern, given["model"], f"{path}/model") if "model" in given else None,
        headers={name.lower(): _read(read_pattern, value, f"{path}/headers/{name}") for name, value in headers.items()},
        has=_read_paths(given, "has", path),
        lacks=_read_paths(given, "lacks", path),
    )


def _read_paths(given: dict[str, Any], name: str, path: str) -> tuple[Path, ...]:
    if name not in given:
        return ()
    return tuple(_read(parse_path, text, f"{path}/{name}") for text in _read(read_texts, given[name], f"{path}/{name}"))


def _read(read: Any, given: Any, path: str) -> Any:
    try:
        return read(given)
    except ValueError as error:
        raise DecodeError(f"cannot read a rule file: {error}", path=path) from error


def _read_text(row: dict[str, Any], name: str, path: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DecodeError(f"{name} must be a string", path=f"{path}/{name}")
    return value


def _refuse_unknown(unknown: set[str], path: str, what: str) -> None:
    if unknown:
        name = sorted(unknown)[0]
        raise DecodeError(f"{what} has no setting {name!r}", path=f"{path}/{name}")
