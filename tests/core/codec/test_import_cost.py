"""The codec costs nothing before it is used: cattrs loads with the first value that is read or written."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import interlingua, interlingua.codec, sys
message = interlingua.user("x")
watched = set("cattrs httpx jsonschema ulid pluggy filetype hashlib logging pathlib urllib.parse".split())
print(sorted(watched & (set(sys.modules) - before)))
interlingua.loads_message(interlingua.dumps_message(message))
print(sorted({"cattrs", "httpx", "pluggy", "hashlib", "logging"} & (set(sys.modules) - before)))
"""


def test_cattrs_loads_with_the_first_value() -> None:
    code = f"import sys, attrs, orjson; before = set(sys.modules){LOADED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["[]", "['cattrs']"]
