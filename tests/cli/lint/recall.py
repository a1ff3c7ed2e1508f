"""How well the wire linters tell recorded requests apart: what was accepted passes, what was refused is found.

Nothing of the corpus is kept but counts; entries are named by their ids.
`python -m tests.cli.lint.recall` measures, prints the table and writes `recall.toml`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua import _json as jsontext
from interlingua.plugins import ConnectionSettings, Registry, WireRequest
from interlingua_cli.lint import covers_request, lint_request
from interlingua_cli.lint.rules import LintFinding
from tests.support import corpus as corpus_files
from tests.support.corpus import Corpus

HERE = Path(__file__).parent
STORED = HERE / "recall.toml"

# The provider whose rules hold for a host that no provider names: a server of the same format.
PROVIDERS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "compatible",
    "openai-responses": "openai",
    "google-generate": "google",
    "mistral-chat": "mistral",
    "ollama-chat": "ollama",
    "cohere-chat": "cohere",
    "bedrock-converse": "bedrock",
    "openrouter-chat": "openrouter",
    "zai-chat": "zai",
    "groq-chat": "groq",
    "deepseek-chat": "deepseek",
    "xai-chat": "xai",
}
_HIDDEN = "_REDACTED_"  # what a recorder wrote over an id: its form says nothing of the one that was sent
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


@attrs.frozen(kw_only=True)
class Label:
    """One reason for 400s of an API, as labelled by hand."""

    word: str
    structural: bool
    how: str
    entries: frozenset[str]


@attrs.define(kw_only=True)
class Result:
    """What was measured of one API.

    Attributes:
        requests: recorded 2xx that the rules cover.
        accepted: those in which nothing is found.
        hidden: those in which something is found only where the recorder wrote over an id; counted as accepted.
        refused: entry -> findings, of the others.
        found: label -> entries in which anything is found.
        rules: ids of the rules that found something in an entry of each label.
    """

    requests: int = 0
    accepted: int = 0
    hidden: int = 0
    refused: dict[str, list[LintFinding]] = attrs.field(factory=dict)
    found: Counter[str] = attrs.field(factory=Counter)
    rules: dict[str, set[str]] = attrs.field(factory=dict)


def labels(api: str) -> tuple[Label, ...]:
    """Return the labels of an API."""
    table = tomllib.loads((HERE / "labels" / f"{api}.toml").read_text("utf-8")).get("label", {})
    return tuple(
        Label(word=word, structural=row["structural"], how=row["how"], entries=frozenset(row["entries"]))
        for word, row in table.items()
    )


def exceptions(api: str) -> Mapping[str, str]:
    """Return the accepted requests of an API that the linter refuses, with reasons."""
    found: Mapping[str, str] = tomllib.loads((HERE / "exceptions.toml").read_text("utf-8")).get(api, {})
    return found


def measure(corpus: Corpus, api: str) -> Result:
    """Lint every recorded request of an API."""
    result = Result()
    words = {entry: label.word for label in labels(api) for entry in label.entries}
    for entry in corpus.entries(api):
        findings = _linted(api, entry)
        if findings is None:
            continue
        number = entry["id"].partition("/")[2]
        if 200 <= entry["status"] < 300:
            _accepted(result, number, entry["request"], findings)
        elif findings and number in words:
            result.found[words[number]] += 1
            result.rules.setdefault(words[number], set()).update(finding.rule for finding in findings)
    return result


def _accepted(result: Result, number: str, body: Any, findings: list[LintFinding]) -> None:
    result.requests += 1
    if not findings:
        result.accepted += 1
    elif all(_HIDDEN in str(_at(body, finding.path)) for finding in findings):
        result.hidden += 1
    else:
        result.refused[number] = findings


def _linted(api: str, entry: Mapping[str, Any]) -> list[LintFinding] | None:
    """Return what is found in a recorded request; None where there is no request, or no rules for it."""
    if not isinstance(entry["request"], dict):
        return None
    url = urlsplit(entry["url"])
    request = WireRequest(
        method=entry["method"],
        path=url.path,
        headers=entry["request_headers"] or {},
        body=jsontext.dumps(entry["request"]),
        api=api,
    )
    for key in (_by_host().get(url.netloc), PROVIDERS[api]):
        provider = _registry().provider(key) if key else None
        if provider is not None and covers_request(provider, request):
            return list(lint_request(provider, request))
    return None


@cache
def _registry() -> Registry:
    return Registry()


@cache
def _by_host() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for provider in _registry().providers():
        for host in provider.connection(ConnectionSettings()).hosts:
            found.setdefault(host, provider.key)
    return found


def _at(body: Any, path: str) -> Any:
    for name, number in _STEP.findall(path):
        body = body[int(number)] if number else body.get(name)
        if body is None:
            return None
    return body


def rows(corpus: Corpus) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure every API and yield what `recall.toml` holds of it."""
    for api in PROVIDERS:
        result = measure(corpus, api)
        recall = {
            label.word: [result.found[label.word], len(label.entries), sorted(result.rules.get(label.word, ()))]
            for label in labels(api)
            if label.structural
        }
        yield (
            api,
            {
                "requests": result.requests,
                "accepted": result.accepted + result.hidden,
                "hidden": result.hidden,
                "refused": sorted(result.refused),
                "recall": recall,
            },
        )


def as_toml(table: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the measured table; TOML's values here are JSON's."""
    lines = [
        (
            "# Measured over the development corpus by `python -m tests.cli.lint.recall`; "
            "a test with the corpus holds it so."
        ),
        "# recall: label -> [found, labelled, the rules that found them]",
    ]
    for api, row in table.items():
        lines += ["", f"[{api}]"]
        lines += [f"{name} = {jsontext.dumps(value).decode()}" for name, value in row.items() if name != "recall"]
        if row["recall"]:
            lines.append(f"[{api}.recall]")
            lines += [f"{word} = {jsontext.dumps(cell).decode()}" for word, cell in row["recall"].items()]
    return "\n".join(lines) + "\n"


def stored() -> dict[str, dict[str, Any]]:
    """Return the table as it was last measured."""
    return tomllib.loads(STORED.read_text("utf-8"))


def printed(table: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table for a person."""
    for api, row in table.items():
        share = row["accepted"] / row["requests"]
        yield f"{api}: {row['accepted']} of {row['requests']} accepted requests pass ({share:.2%})"
        for word, (found, of, rules) in row.get("recall", {}).items():
            yield f"    {word}: {found} of {of} found by {', '.join(rules) or 'nothing'}"


if __name__ == "__main__":
    here = corpus_files.find()
    if here is None:
        sys.exit(corpus_files.SKIP_REASON)
    measured = dict(rows(here))
    STORED.write_text(as_toml(measured), encoding="utf-8")
    print("\n".join(printed(measured)))
