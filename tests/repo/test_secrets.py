"""Nothing tracked holds a key, a path of somebody's machine, a package index's host or a lock file with addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support import tree

# [x] stands for x where this file would otherwise match itself.
KEYS = re.compile(
    r"""
    \bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{24,}
    | \bAIza[0-9A-Za-z_-]{30,}
    | \b(?:gsk|xai|ghp|gho|hf|r8|pplx|csk|fw)[_-][0-9A-Za-z]{24,}
    | \bgithub_pat_[0-9A-Za-z_]{24,}
    | \bAKIA[0-9A-Z]{16}\b
    | \b(?:org|proj)[-_][A-Za-z0-9]{20,}\b
    | \beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.
    | -----BEGIN\ [A-Z ]*[P]RIVATE\ KEY-----
    | (?i:\b(?:authorization|(?:x-|x-goog-)?api[-_]?key)\b["']?\s*:\s*["'\[\s-]*(?:bearer\s+)?[A-Za-z0-9_-]{24,})
    """,
    re.VERBOSE,
)
MACHINE = re.compile(r"(?<![\w.-])/(?:[w]ork|[r]oot|[f]arm|[h]ome/[a-z]\w*|[U]sers/\w+|[t]mp)/\w")
HOSTS = re.compile(r"[p]ypi\.org|[p]ythonhosted\.org|[r]egistry\.npmjs|[d]eb\.debian\.org", re.IGNORECASE)
LOCKS = {"uv.lock", "poetry.lock", "package-lock.json", "Pipfile.lock"}


def _hits(pattern: re.Pattern[str]) -> Iterator[str]:
    for path in tree.tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path.relative_to(tree.ROOT)}:{line}: {match[0][:12]}…"


def test_no_keys() -> None:
    assert not (hits := list(_hits(KEYS))), "looks like a key:\n" + "\n".join(hits)


def test_no_machine_paths() -> None:
    assert not (hits := list(_hits(MACHINE))), "a path of one machine (tests have tmp_path):\n" + "\n".join(hits)


def test_no_package_index_is_named() -> None:
    assert not (hits := list(_hits(HOSTS))), "packages come from where pip is set to look:\n" + "\n".join(hits)


def test_no_lock_file_with_addresses() -> None:
    locks = [path.name for path in tree.tracked() if path.name in LOCKS]

    assert not locks, f"constraints.txt pins by name==version; a lock file records addresses: {locks}"


def test_the_patterns_see_what_they_should() -> None:
    made_up = "0123456789abcdefABCDEF0123456789"

    assert KEYS.search("sk-ant-" + made_up)
    assert KEYS.search("authorization: Bearer " + made_up)
    assert KEYS.search('"x-api-key": "' + made_up + '"')
    assert KEYS.search('"api_key": "' + made_up + '"')
    assert KEYS.search("apiKey: " + made_up)
    assert not KEYS.search("authorization: [REDACTED]")
    assert MACHINE.search("open('" + str(Path("/", "home", "ada", "notes")) + "')")
    assert not MACHINE.search("docs/" + "work/flow and ~/" + "work")
    assert HOSTS.search("https://" + "py" + "pi" + ".org/simple")
