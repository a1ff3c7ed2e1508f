"""`python -m tests.tools.compare_secret_forms gitleaks.toml`: rules of gitleaks that find what `--redact` does not.

gitleaks (https://github.com/gitleaks/gitleaks, MIT) keeps a list of rules in `config/gitleaks.toml`; name a copy.
Strings are made up that each rule matches, and searched for in a session file.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tomllib
from pathlib import Path

from interlingua_transcripts.secrets import SecretSearch
from tests.tools.regex_samples import sample_of

_TIMES = 20
# the signs between a name and its value, as gitleaks writes them into each such rule
_BETWEEN = re.compile(r"\(\?:\[ \\t\\w\.-\]\{0,20\}\).{0,60}?\{0,5\}(?=\()")
_END = re.compile(r"\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)$")


def in_python(pattern: str) -> str:
    """Return a Go pattern of one secret as Python reads it: flags inside, classes and ends are Go's."""
    pattern = _END.sub("", pattern).replace("(?i)", "").replace("[[:alnum:]]", "[a-zA-Z0-9]").replace(r"\z", r"\Z")
    pattern = re.sub(r"\(\?(?:-i|i|s):", "(?:", pattern)
    named = _BETWEEN.search(pattern)
    if named:  # a service's name, signs, and the value
        pattern = (
            pattern[: named.start()].removeprefix(r"[\w.-]{0,50}?") + '_api_key = "' + pattern[named.end() :] + '"'
        )
    return pattern.replace(r"[\w.-]{0,50}?", "")


def missed(rules: Path) -> tuple[dict[str, float], int]:
    """Return the rules whose strings are not all found, with the share that is, and how many rules were tried."""
    chance = random.Random(26)
    found: dict[str, float] = {}
    tried = 0
    for rule in tomllib.loads(rules.read_text(encoding="utf-8"))["rules"]:
        try:
            made = [sample_of(in_python(rule["regex"]), chance) for _ in range(_TIMES)]
        except (KeyError, ValueError, re.error) as error:
            print(f"{rule['id']}: not tried: {error}", file=sys.stderr)
            continue
        tried += 1
        seen = 0
        for text in made:
            search = SecretSearch()
            list(search.through([json.dumps({"text": f"$ cat it\n{text}\n$"}).encode()]))
            seen += bool(search.found)
        if seen < _TIMES:
            found[rule["id"]] = seen / _TIMES
    return found, tried


def main(rules: str) -> int:
    """Print the rules whose strings are missed."""
    found, tried = missed(Path(rules))
    for name, share in sorted(found.items(), key=lambda one: one[1]):
        print(f"{share:4.0%} {name}")
    print(f"{tried - len(found)} of {tried} rules find nothing that is missed here")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
