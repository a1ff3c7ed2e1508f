"""Import every shipped module in one new process, warnings as errors, in an order drawn from a seed.

A module that works only after another one was imported is in a circle, which `test_house.py` forbids, or uses a
submodule that it does not import, which mypy refuses; so one process for all is enough.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence

from tests.support import tree

IMPORT_ALL = """
import importlib, json, sys, traceback

for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except BaseException:
        print(json.dumps([name, traceback.format_exc(limit=-3)]), flush=True)
"""


def failures(modules: Sequence[tree.Module], seed: int = 0) -> dict[str, str]:
    """Return the traceback of each module that cannot be imported."""
    names = sorted(module.name for module in modules)
    random.Random(seed).shuffle(names)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_ALL],
        input=json.dumps(names),
        cwd=tree.ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())
