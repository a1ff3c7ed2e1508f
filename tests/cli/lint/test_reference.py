"""docs/reference/lint.md says what the verbs, the rule files and the last measurement say.

Nothing of the page is written by hand: `python -m tests.cli.lint.test_reference` writes it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from interlingua.plugins import Registry
from interlingua_cli.lint import provider_rules
from interlingua_cli.lint.checks import VERBS
from interlingua_cli.lint.rules import LintRules
from tests.cli.lint import recall
from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "lint.md"
OURS = {f"interlingua-{folder.name}" for folder in (tree.ROOT / "plugins").iterdir()}
HEAD = """\
# Wire linters

What each service is known to refuse, as data: rule files that the plugins ship and a small engine in the
command line's distribution (`interlingua_cli.lint`) reads. A linter reads a written request and sends nothing:

```python
from interlingua.plugins import Registry, WireRequest, build_request
from interlingua.types import RequestOptions, user
from interlingua_cli.lint import covers_request, lint_request

provider = Registry().provider("anthropic")
request = build_request(provider, [user("Hello")], [], RequestOptions(model="claude-sonnet-4-5"))
assert covers_request(provider, request) and lint_request(provider, request) == ()

broken = WireRequest(path="/v1/messages", api="messages", body=b'{"model": "m", "max_tokens": 9, "messages": []}')
[finding] = lint_request(provider, broken)
assert (finding.rule, finding.path) == ("messages-count", "messages")
```

A finding has the rule's id, the place in the body, the fault, and the source of the rule. `covers_request`
tells whether any rule file covers a request; if none does, `lint_request` finds nothing. Rule C52 of
[the contract](contract.md) holds every plugin's requests against its own rules.

`python -m tests.cli.lint.test_reference` writes this page from the verbs, the rule files and the last measurement.

## Writing a rule file

A rule file is TOML. It describes the requests it covers, then lists its rules. A plugin returns the contents of its
files in the hook [`wire_rules`](hooks.md).

```toml
title = "Acme chat"
endpoint = '/v1/chat$'               # end of the paths it covers
model_in_path = '/models/([^/:]+)'   # only if the body does not have the model

[[rule]]
id = "tool-name"
says = "A tool's name is up to 64 letters and digits."
citation = "WIRE.md, Tools"
at = "tools[*].name"                 # the checked part, or a list; default: the whole body
matches = '[A-Za-z0-9]{1,64}'        # exactly one verb, with its parameter
when = {model = 'acme-2.*'}          # conditions: model, headers, has, lacks
```

The conditions: `model` is an expression for the whole name; `headers` a table of expressions for whole values, a
missing header counts as an empty string; `has` and `lacks` are paths that must, or must not, exist.

A path is steps joined by dots: `messages[role=assistant].content[type=tool_use].id`.

| step | leads to |
|---|---|
| `name`, `*` | that field of an object, every field |
| `[*]`, `[0]`, `[-1]` | every element of a list, the first, the last |
| `[key]`, `[!key]` | what has the field, what has it not (null is absence) |
| `[key=a\\|b]`, `[key!=a]` | what has one of these words there, what has not |
| `[key=]` | what has an empty text, list or object there |
| `**` | every object below, itself included |

A filter keeps elements of a list, or the object itself.

## Verbs
"""


def page() -> str:
    return "\n".join([HEAD, *_verbs(), "", *_measured(), "", *_rules()]).rstrip() + "\n"


def _verbs() -> Iterator[str]:
    yield "| verb | holds when |"
    yield "|---|---|"
    for name, make in VERBS.items():
        yield f"| `{name}` | {' '.join(str(make.__doc__).split())} |"


def _measured() -> Iterator[str]:
    yield "## How well they tell requests apart"
    yield ""
    yield from textwrap.wrap(
        "Over the recorded traffic of the development corpus. Accepted requests must pass, but for those listed with "
        "their reasons in `tests/cli/lint/exceptions.toml`; where a recorder wrote over an id, its form is not judged. "
        "Every recorded 400 was labelled by hand before a rule was written (`tests/cli/lint/labels/`); a label is "
        "structural when the fault can be seen in the body. The recorded 400s are few, and several rules come "
        "from them (their citation states it): recall here shows that nothing known is missed, not what share of the "
        "unknown would be found. `python -m tests.cli.lint.recall` measures again.",
        118,
    )
    yield ""
    yield "| API | accepted | pass | structural 400s | found | by label |"
    yield "|---|--:|--:|--:|--:|---|"
    for api, row in recall.stored().items():
        cells = row.get("recall", {})
        found, of = sum(cell[0] for cell in cells.values()), sum(cell[1] for cell in cells.values())
        by_label = ", ".join(f"{word} {cell[0]}/{cell[1]}" for word, cell in cells.items()) or "none recorded"
        share = f"{row['accepted'] / row['requests']:.2%}"
        yield f"| {api} | {row['requests']} | {share} | {of} | {found} | {by_label} |"
    yield ""
    yield "Other 400s of the corpus are not structural:"
    yield ""
    for api in recall.PROVIDERS:
        for label in recall.labels(api):
            if not label.structural:
                yield f"- {api}, {label.word} ({len(label.entries)}): {label.how}."


def _rules() -> Iterator[str]:
    for keys, rules in _files():
        yield f"## Rules: {rules.title}"
        yield ""
        yield f"Covers `{rules.endpoint.pattern}`. Used by {', '.join(f'`{key}`' for key in keys)}."
        yield ""
        yield "| rule | statement | from |"
        yield "|---|---|---|"
        for rule in rules.rules:
            only = f" Models: `{rule.when.model.pattern}`.".replace("|", "\\|") if rule.when.model else ""
            yield f"| `{rule.id}` | {rule.says}{only} | {rule.citation} |"
        yield ""


def _files() -> list[tuple[list[str], LintRules]]:
    """Return the shipped rule files, each once, with the keys of the providers that use it."""
    found: dict[str, tuple[list[str], LintRules]] = {}
    for provider in Registry().providers():
        if provider.distribution.name in OURS:
            for rules in provider_rules(provider):
                found.setdefault(rules.title, ([], rules))[0].append(provider.key)
    return list(found.values())


def test_the_page_is_what_the_rules_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.cli.lint.test_reference"


# mistral-common is public code of a service's own validator, a guide is a page of a service's own documentation
_SOURCES = ("WIRE.md,", "chat-completions/WIRE.md,", "recorded", "reported", "mistral-common", "guide")


def test_every_rule_says_something_in_a_sentence_and_cites_its_source() -> None:
    odd = [
        (rules.title, rule.id)
        for _, rules in _files()
        for rule in rules.rules
        if rule.says[-1] not in ".)" or rule.citation.split()[0] not in _SOURCES
    ]

    assert not odd


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
