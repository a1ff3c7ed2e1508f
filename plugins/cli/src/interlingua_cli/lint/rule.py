"""What a linter is: findings, rules with their conditions, and the file that holds them.

Never reads a file (the reader does) and never knows what a verb means.
The reader makes rules; the façade and whoever has a request in hand comes in to lint it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from interlingua import json as jsontext
from interlingua.plugins.wire import WireRequest
from interlingua_cli.lint.paths import Hit, Path


class Fault(NamedTuple):
    """What a verb found: where, and what is wrong there, as the end of a sentence."""

    path: str
    found: str


@attrs.frozen(kw_only=True)
class Seen:
    """What rules look at of one request.

    Attributes:
        body: the parsed body.
        size: of the body, in bytes.
        model: name of the model, from the body or the path.
        headers: names in lower case.
    """

    body: Any
    size: int
    model: str
    headers: Mapping[str, str]


Check = Callable[[Sequence[Hit], Seen], Iterator[Fault]]


@attrs.frozen(kw_only=True)
class LintFinding:
    """One thing in a request that the service is known to refuse.

    Attributes:
        rule: id of the rule.
        path: place in the body, `messages[3].content[1].id`; empty for the body itself.
        message: the rule's statement and what was found instead.
        citation: where the rule is from.
    """

    rule: str
    path: str
    message: str
    citation: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.path or 'body'}: {self.message} [{self.citation}]"


@attrs.frozen(kw_only=True)
class When:
    """On which requests a rule holds; without conditions on all.

    Attributes:
        model: expression for the whole model name.
        headers: expression for the whole value of each header; a missing header is the empty text.
        has: paths that must all lead somewhere.
        lacks: paths none of which may.
    """

    model: re.Pattern[str] | None = None
    headers: Mapping[str, re.Pattern[str]] = attrs.field(factory=dict)
    has: tuple[Path, ...] = ()
    lacks: tuple[Path, ...] = ()

    def holds(self, seen: Seen) -> bool:
        """Tell whether the rule is about this request."""
        return (
            (self.model is None or self.model.fullmatch(seen.model) is not None)
            and all(pattern.fullmatch(seen.headers.get(name, "")) for name, pattern in self.headers.items())
            and all(path.found(seen.body) for path in self.has)
            and not any(path.found(seen.body) for path in self.lacks)
        )


@attrs.frozen(kw_only=True)
class LintRule:
    """One rule of a file.

    Attributes:
        id: in words joined by hyphens, unique in its file.
        says: one sentence for a person.
        citation: section of the fact sheet or the document it is from.
        at: what of the body it looks at; several paths one after the other.
        when: on which requests.
        verb: name of the check.
        check: the check with its parameter.
    """

    id: str
    says: str
    citation: str
    at: tuple[Path, ...]
    when: When
    verb: str
    check: Check = attrs.field(repr=False, eq=False)

    def findings(self, seen: Seen) -> Iterator[LintFinding]:
        """Yield what in this request breaks the rule."""
        if self.when.holds(seen):
            hits = [hit for path in self.at for hit in path.select(seen.body)]
            for fault in self.check(hits, seen):
                yield LintFinding(
                    rule=self.id, path=fault.path, message=f"{self.says} Here {fault.found}.", citation=self.citation
                )


@attrs.frozen(kw_only=True)
class LintRules:
    """The rules of one rule file.

    Attributes:
        title: which service and API it is about.
        endpoint: expression for the end of the paths whose requests it covers.
        model_in_path: expression whose group finds the model in the path, where the body does not name it.
        rules: in the file's order.
    """

    title: str
    endpoint: re.Pattern[str]
    model_in_path: re.Pattern[str] | None = None
    rules: tuple[LintRule, ...]

    def covers(self, request: WireRequest) -> bool:
        """Tell whether the file is about requests like this one."""
        return request.method == "POST" and self.endpoint.search(_bare(request.path)) is not None

    def lint(self, request: WireRequest) -> tuple[LintFinding, ...]:
        """Hold every rule against a request, whose path the file should cover.

        Raises:
            ValueError: the body is not JSON.
        """
        seen = self._seen(request)
        return tuple(finding for rule in self.rules for finding in rule.findings(seen))

    def _seen(self, request: WireRequest) -> Seen:
        body = jsontext.loads(request.body)
        in_path = self.model_in_path and self.model_in_path.search(_bare(request.path))
        named = in_path[1] if in_path else body.get("model") if isinstance(body, dict) else None
        headers = {name.lower(): value for name, value in request.headers.items()}
        return Seen(body=body, size=len(request.body), model=str(named or ""), headers=headers)


def _bare(path: str) -> str:
    return path.partition("?")[0].rstrip("/")
