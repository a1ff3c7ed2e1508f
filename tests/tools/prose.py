"""Check the prose of the repository against the house's rules: docstrings, comments, messages and Markdown pages.

Each rule is a regular expression with the plain word beside it. `tests/repo/allow/prose.toml` holds how many hits a
folder may have; a limit may only fall. `make lint` runs the check.

    python -m tests.tools.prose                  fail where a folder has more hits than its limit
    python -m tests.tools.prose core docs        print each hit of these paths: file, line, rule, the plain word
    python -m tests.tools.prose --count          print the counts by folder and by rule
    python -m tests.tools.prose --write-limits   lower the limits to today's counts
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALLOW = Path("tests", "repo", "allow", "prose.toml")

# -- the rules -------------------------------------------------------------------------------------------------------
# In a pattern a blank stands for any white space, line ends included, and <start> for that of a sentence.
RULES = [  # name, pattern, the plain word
    ("be-had", r"\b(?:is|are|was|were|could|can|may|to|not) (?:not )?(?:to )?be had\b|\bhad from\b", "available"),
    ("who-relative", r"(?:<start>|, |; |: |\bfor |\bby |\bof |\bto )[Ww]ho (?!are you)(?![^.?!]*\?)", "callers that …"),
    ("whoever", r"\b[Ww]ho(?:m|se)?ever\b", "any caller that …"),
    ("nobody", r"\b(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body\b", "no caller, a caller: name the part"),
    (
        "none-of",
        r"\b[Nn]one of\b|\b(?:is|are|was|were) none\b(?! ?`)|\b[Nn]one (?:is|are|was|were|has|have)\b",
        "no X, not one of",
    ),
    (
        "a-text",
        r"\ba text(?! (?:block|delta|part|file|answer|message|content|editor|reply|turn|of \d))\b|(?<!\bfix.)\btexts\b",
        "a string, strings",
    ),
    (
        "named-by",
        r"\b(?:is|are) named (?!after|for)(?=by|in|with|as|on|to)|\bnames (?:it|the|them|its|their|one|what)\b",
        "is called, is set with, requires",
    ),
    ("is-to-be", r"\b(?:is|are|was|were) (?:still |not )?to be\b", "must, should, will"),
    ("stands", r"(?<!-)\b[Ss]tands?\b(?!-| for\b| alone\b)", "is, appears, remains"),
    ("what-is", r"<start>What (?!if\b|about\b|happens\b)(?![^.?!]*\?)", "begin with the noun or the verb"),
    (
        "comes",
        (
            r"\b(?:comes|came|come) (?:of|as|with|free|late|to be)\b|\bcom(?:es?|ing) in\b|\bwhat came\b"
            r"|\bas (?:they|it) comes?\b"
        ),
        "arrives, results from, is included",
    ),
    ("such", r"\b[Ss]uch an? (?!as\b|way\b|case\b)|\bof such\b", "this kind of; repeat the noun"),
    ("of-its-own", r"\bof (?:its|their|our|his|your|my) own\b|\bof ours\b", "its own X"),
    ("those-of", r"\b(?:is|are) (?:that|those) of\b", "the same as, X's"),
    ("likewise", r"\b[Ll]ikewise\b", "also, in the same way"),
    ("besides", r"\b[Bb]esides\b", "in addition to, also"),
    (
        "in-place",
        r"\b[Ii]n (?:its|their|the) place\b|\b[Ii]n (?:the )?place of\b|\b(?:takes?|took|taking) the place of\b",
        "instead of, replaces",
    ),
    (
        "as-it-is",
        r"\bas (?:it|they) (?:is|are|was|were)(?=[.,;:)]|$| (?:and|or|in|by|on|to|but)\b)",
        "unchanged",
    ),
    ("gives", r"\bgives?\b(?! up\b| way\b)|\bgiven by hand\b", "returns, passes"),
    (
        "where-if",
        (
            r"\b[Ww]here (?:it|there|they|that|one|nothing|some|no) (?:is|are|was|has|have|does|can|wants)\b"
            r"(?! (?:defined|used|found|stored|kept|written|declared|created|raised|read|shown))"
        ),
        "if, when",
    ),
    (
        "for-because",
        (
            r", for (?:it|they|we|he|she|there|that|this|then|only|nothing)\b"
            r"(?! (?:one|reason|purpose|call|provider|request|model)\b)"
            r"|, for (?:an?|the|its|their|some|most|many|no|each|every) (?:[\w`'-]+ ){1,3}"
            r"(?:is|are|was|were|has|have|had|does|do|can|could|may|must|would|will|cannot|holds?|needs?)\b"
        ),
        "because",
    ),
    ("puts", r"\bputs? (?:around|behind|before|beside)\b", "wraps, appends, prepends, adds"),
    ("look-at", r"\b[Ll]ook(?:s|ed|ing)? at\b", "read, check, see"),
    ("goes", r"\bgo(?:es)? on\b|\bwent on\b|\bgo(?:es)? by\b|\bgo(?:es)? out(?! of)\b", "continues, uses, is sent"),
    ("is-said", r"\bis said\b|\bsa(?:ys?|id) so\b|\bwhat was said\b|\b[Ii]t says\b", "reports, states"),
    ("one-that", r"\bone that (?:is|was|has|does)\b|\bthe one (?:before|that)\b", "repeat the noun"),
    ("worked-out", r"\bwork(?:s|ed|ing)? out\b", "computes, computed"),
    ("begun", r"\bhas yet to be\b|\bbegun\b", "not yet, started"),
]
START = r"(?:\A\s*|(?<=[.;:!?])\s+|\n[ \t]*\n\s*(?:[-*]\s+)?)"


COMPILED = [
    (name, re.compile(pattern.replace(" ", r"\s+").replace("<start>", START)), instead)
    for name, pattern, instead in RULES
]


# -- the prose -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Text:
    """A piece of prose: its first line's number, its kind, and its text."""

    line: int
    kind: str  # "docstring", "comment", "error" (passed to an exception), "string" or "page"
    text: str


@dataclass(frozen=True)
class Hit:
    """A phrase that breaks a rule."""

    path: Path
    line: int
    kind: str
    rule: str
    instead: str
    phrase: str


def texts_of_python(source: str) -> Iterator[Text]:
    """Yield the prose of a Python file: docstrings, comments, and strings of more than two words."""
    docstrings, errors, ranges, strings = set(), set(), [], []
    inner: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):  # breadth first: what holds a string is met before it
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstrings |= set(_docstrings(node.body))
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _makes_error(node.func)):
            errors |= set(ast.walk(node))
        elif isinstance(node, ast.JoinedStr):
            inner |= {part for part in node.values if isinstance(part, ast.Constant)}
            strings.append((node, "".join(_text(part) for part in node.values)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append((node, node.value))
    for node, text in strings:
        if node.end_lineno and node.end_lineno > node.lineno:
            ranges.append((node.lineno, node.end_lineno))
        kind = "docstring" if node in docstrings else "error" if node in errors else "string"
        if kind == "docstring" or (node not in inner and text.count(" ") > 1):
            yield Text(node.lineno, kind, text)
    yield from _comments(source, ranges)


def texts_of_test(source: str) -> Iterator[Text]:
    """Yield the docstrings and comments of a test file, read without parsing it: its other strings are data."""
    ranges = []
    for match in _TRIPLE.finditer(source):
        first = source.count("\n", 0, match.start("quotes")) + 1
        ranges.append((first, first + match["text"].count("\n")))
        if not match["code"].strip():
            yield Text(first, "docstring", match["text"])
    yield from _comments(source, ranges)


_TRIPLE = re.compile(r'^(?P<code>[^#\n"]*?)(?P<quotes>"""|\'\'\')(?P<text>.*?)(?P=quotes)', re.MULTILINE | re.DOTALL)


def _docstrings(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the strings that are statements: docstrings, also those below an attribute."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _makes_error(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name[:1].isupper() and name.endswith(("Error", "Exception", "BadParameter"))


def _text(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def _comments(source: str, strings: Iterable[tuple[int, int]]) -> Iterator[Text]:
    """Yield comments; consecutive comment lines are one piece."""
    within = {line for first, last in strings for line in range(first + 1, last + 1)}
    block: list[str] = []
    for number, line in enumerate([*source.splitlines(), ""], 1):
        if line.lstrip().startswith("#") and number not in within:
            block.append(line.lstrip().lstrip("#:! "))
            continue
        if block:
            yield Text(number - len(block), "comment", "\n".join(block))
            block = []
        code, mark, comment = line.rpartition("  # ")
        if mark and number not in within and not code.count('"') % 2:
            yield Text(number, "comment", comment)


def texts_of_page(source: str) -> Iterator[Text]:
    """Yield a Markdown page as one text; blocks of code are blank lines in it."""
    lines, fence = [], ""
    for line in source.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
            lines.append("")
        else:
            lines.append("" if fence or line.startswith("    ") else line)
    yield Text(1, "page", "\n".join(lines))


_CODE = re.compile(r"``[^`]+``|`[^`]+`|\]\([^)]*\)|https?://\S+|<!--.*?-->", re.DOTALL)


def _without_code(text: str) -> str:
    """Blank code and addresses out; lines keep their numbers."""
    return _CODE.sub(lambda match: "`…`" + "\n" * match[0].count("\n"), text)


def hits_of(path: Path, texts: Iterable[Text]) -> Iterator[Hit]:
    """Yield the phrases that break a rule."""
    for one in texts:
        text = _without_code(one.text)
        starts = [match.end() for match in re.finditer("\n", text)]
        for name, pattern, instead in COMPILED:
            for match in pattern.finditer(text):
                first = match.start() + len(match[0]) - len(match[0].lstrip())
                around = " ".join(text[max(first - 30, 0) : match.end() + 50].split())
                yield Hit(path, one.line + bisect_right(starts, first), one.kind, name, instead, around)


# -- the tree --------------------------------------------------------------------------------------------------------
GENERATED = {
    "docs/reference/swap-matrix.md",
    "docs/reference/served-apis.md",
}  # written by `make matrix`


def files(root: Path) -> list[Path]:
    """Return the Python files and Markdown pages that git tracks or would track, relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    listing = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    found = [Path(name) for name in sorted(set(listing.split("\0"))) if name]
    return [
        path
        for path in found
        if path.as_posix() not in GENERATED and (root / path).is_file() and "decisions" not in path.parts
    ]


def folder_of(path: Path) -> str:
    """Return the folder whose limit counts a file: a distribution, a part of docs/, tests, or the file's own name."""
    first, *rest = path.parts
    if first == "docs" and rest[0] == "plugins" and rest[-1].startswith("tutorial"):
        return "docs/tutorial"
    deep = first in {"plugins", "docs"} and len(rest) > 1
    return f"{first}/{rest[0]}" if deep else first


def hits(root: Path, paths: Iterable[Path] | None = None) -> list[Hit]:
    """Return the phrases that break a rule in these files, by default in the whole tree."""
    found: list[Hit] = []
    for path in files(root) if paths is None else paths:
        source = (root / path).read_text(encoding="utf-8")
        if path.suffix == ".md":
            found += hits_of(path, texts_of_page(source))
        else:
            found += hits_of(path, (texts_of_test if path.parts[0] == "tests" else texts_of_python)(source))
    return found


@dataclass(frozen=True)
class Limit:
    """The hits a folder had when the limits were made, and the most it may have now."""

    before: int
    most: int


def counts(found: Iterable[Hit]) -> dict[str, Counter[str]]:
    """Return the hits by folder, and those of error messages apart, by distribution."""
    tables: dict[str, Counter[str]] = {"prose": Counter(), "errors": Counter()}
    for hit in found:
        folder = folder_of(hit.path)
        tables["prose"][folder] += 1
        if hit.kind == "error" and folder != "tests":
            tables["errors"][folder] += 1
    return tables


def limits(root: Path = ROOT) -> dict[str, dict[str, Limit]]:
    """Read the limits, by table and folder."""
    tables = tomllib.loads((root / ALLOW).read_text(encoding="utf-8"))
    return {table: {folder: Limit(**row) for folder, row in rows.items()} for table, rows in tables.items()}


def over(found: dict[str, Counter[str]], allowed: dict[str, dict[str, Limit]]) -> list[str]:
    """Return each folder that has more hits than its limit; a folder without one may have none."""
    return [
        f"{folder}: {count} hits in {table}, allowed {most}"
        for table, counted in found.items()
        for folder, count in sorted(counted.items())
        if count > (most := allowed[table][folder].most if folder in allowed[table] else 0)
    ]


HEAD = """\
# The limits of tests/tools/prose.py: how many phrases that break a rule of prose a folder had `before`, on 23 November
# 2026, and the `most` it may have. `errors` counts those in error messages again, for each distribution. A folder that
# is not listed may have none. `most` may only fall: `python -m tests.tools.prose --write-limits` lowers it.
"""


def write_limits(root: Path, found: dict[str, Counter[str]], before: dict[str, Counter[str]] | None) -> None:
    """Lower each limit to today's count; `before` makes the file anew."""
    old = limits(root) if (root / ALLOW).is_file() and before is None else {"prose": {}, "errors": {}}
    text = HEAD
    for table, counted in found.items():
        first = before[table] if before is not None else Counter({one: row.before for one, row in old[table].items()})
        text += f"\n[{table}]\n"
        for folder in sorted({*first, *counted} if before is not None else old[table]):
            most = counted[folder] if before is not None else min(counted[folder], old[table][folder].most)
            key = f'"{folder}"'
            text += f"{key:28} = {{ before = {first[folder]}, most = {most} }}\n"
    (root / ALLOW).write_text(text, encoding="utf-8")


# -- the command -----------------------------------------------------------------------------------------------------
def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Check the prose of docstrings, comments, messages and pages.")
    parser.add_argument("paths", nargs="*", type=Path, help="print each hit below these paths")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--rule", help="this rule alone")
    parser.add_argument("--errors", action="store_true", help="error messages alone")
    parser.add_argument("--count", action="store_true", help="print counts by folder and rule")
    parser.add_argument("--write-limits", action="store_true", help="lower the limits to today's counts")
    parser.add_argument(
        "--before", type=Path, help="with --write-limits: make the limits anew; this checkout is `before`"
    )
    given = parser.parse_args()
    root = given.root.resolve()
    chosen = [path.resolve().relative_to(root) for path in given.paths]
    paths = [path for path in files(root) if not chosen or any(path.is_relative_to(one) for one in chosen)]
    found = [
        hit for hit in hits(root, paths) if given.rule in {None, hit.rule} and (hit.kind == "error" or not given.errors)
    ]
    if given.write_limits:
        write_limits(root, counts(found), counts(hits(given.before.resolve())) if given.before else None)
        return 0
    if given.count:
        return _print_counts(found)
    too_many = [] if chosen or given.rule or given.errors else over(counts(found), limits(root))
    if chosen or given.rule or given.errors:
        for hit in found:
            print(f"{hit.path}:{hit.line}: [{hit.rule}: {hit.instead}] {hit.phrase}")
    for line in too_many:
        print(f"{line}; `python -m tests.tools.prose {line.partition(':')[0]}` prints them")
    return bool(too_many)


def _print_counts(found: list[Hit]) -> int:
    tables = counts(found)
    for folder, count in sorted(tables["prose"].items()):
        print(f"{folder:28} {count:5} {tables['errors'][folder] or '':>5}")
    print(f"{'all; in error messages':28} {len(found):5} {tables['errors'].total():5}")
    print(", ".join(f"{rule} {count}" for rule, count in Counter(hit.rule for hit in found).most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
