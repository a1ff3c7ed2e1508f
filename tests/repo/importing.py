"""Import every shipped module by itself, in children of one process rather than with an interpreter for each.

A module is imported on top of another, in a child forked from that one's child, so that it meets nothing but what it
would have loaded by itself: on top of its package, when that imports it (Python imports the package first in any case),
and otherwise of the largest among the modules it reaches that do not reach it. What stands in a circle without a way in
starts from nothing.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from tests.support import tree

IMPORT_EACH_ALONE = """
import importlib, json, os, sys, traceback

def visit(name, below):
    child = os.fork()
    if child:
        return os.waitpid(child, 0)
    failure = ""
    try:
        if name in sys.modules and name.rpartition(".")[0] != below:
            failure = f"{below} imports it, against what its source says"
        importlib.import_module(name)
    except BaseException:
        failure = traceback.format_exc(limit=-3)
    print(json.dumps([name, failure]), flush=True)
    for above in on_top.get(name, ()):
        visit(above, name)
    os._exit(0)

on_top = json.load(sys.stdin)
for name in on_top[""]:
    visit(name, "")
"""


def _imports(module: tree.Module, shipped: Mapping[str, object]) -> Iterator[str]:
    if (package := module.name.rpartition(".")[0]) in shipped:
        yield package
    for node in module.tree.body:  # what stands deeper may never run: TYPE_CHECKING, functions
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in shipped)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module in shipped:
            yield node.module
            yield from (name for alias in node.names if (name := f"{node.module}.{alias.name}") in shipped)


def _reach(name: str, imports: Mapping[str, set[str]]) -> set[str]:
    reached, todo = {name}, [name]
    while todo:
        new = imports[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


def _below(name: str, reach: Mapping[str, set[str]]) -> str:
    package = name.rpartition(".")[0]
    if name in reach.get(package, ()):
        return package
    outside = [one for one in reach[name] if name not in reach[one]]
    return max(outside, key=lambda one: (len(reach[one]), one), default="")


def failures(modules: Sequence[tree.Module]) -> dict[str, str]:
    """Import each module alone with warnings as errors; return the traceback of each that cannot be."""
    known = {module.name: module for module in modules}
    imports = {name: set(_imports(module, known)) for name, module in known.items()}
    reach = {name: _reach(name, imports) for name in known}
    on_top: dict[str, list[str]] = {"": []}
    for name in known:
        on_top.setdefault(_below(name, reach), []).append(name)

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EACH_ALONE],
        input=json.dumps(on_top),
        cwd=tree.ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = dict.fromkeys(known, "it was not tried: its imports go in a circle")
    found |= dict(json.loads(line) for line in done.stdout.splitlines())
    return {name: failure for name, failure in found.items() if failure}
