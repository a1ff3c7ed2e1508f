"""Hold every unbroken provider against all rules, and print a table: no rule may fail.

`python -m tests.tools.false_alarms [--keys a,b] [--seeds 10] [--whole] [--examples 40]`. Each key is checked with every
seed, by itself and behind two wrappers that change nothing, and from four working directories; without `--whole` the
wrappers and the directories change from seed to seed. Exit code 1 if a rule failed.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path

from interlingua.plugins import Registry
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject, find_cassettes
from tests.contract.broken.machine import Handed, real, real_serving
from tests.support import tree

WRAPPERS = ("none", "hooks", "object")
_HOOKS = """
from interlingua.plugins import hookimpl

@hookimpl(wrapper=True)
def to_wire(messages, tools, options):
    request = yield
    return request

@hookimpl(wrapper=True)
def from_wire_response(response, context):
    message = yield
    return message

@hookimpl(wrapper=True)
def connection(settings):
    made = yield
    return made
"""


def _keys() -> list[str]:
    """Return the keys of all installed providers and presets."""
    groups = ("interlingua.providers", "interlingua.presets")
    return sorted({entry.name for group in groups for entry in entry_points(group=group)})


def _registry(key: str, wrapper: str, folder: Path) -> Registry:
    if wrapper == "object":
        return Registry(providers={key: Handed(real(key), real_serving(key))})
    registry = Registry()
    if wrapper == "hooks":
        (folder / "contract_wrapper_of_nothing.py").write_text(_HOOKS, encoding="utf-8")
        sys.path.insert(0, str(folder))
        registry.load_plugin("contract_wrapper_of_nothing")
    return registry


def _run(work: tuple[str, int, str, int, int]) -> tuple[str, int, str, int, list[str], float]:
    key, seed, wrapper, place, examples = work
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir([tree.ROOT, folder, tree.ROOT / "cassettes", Path.home()][place])
        try:
            registry = _registry(key, wrapper, folder)
            cassettes = find_cassettes(Registry(), key)
            subject = Subject(key, cassettes, registry=registry, examples=examples, seed=seed)
            results = [check(subject, rule, 1) for rule in ALL if wrapper != "object" or rule.number not in _PACKED]
            failed = [f"{each.rule.number} {each.findings[0]}" for each in results if each.outcome == "fail"]
        finally:
            os.chdir(tree.ROOT)
            if sys.path[0] == str(folder):
                sys.path.pop(0)
    return key, seed, wrapper, place, failed, time.monotonic() - started


_PACKED = ("C48", "C49", "C50")
"""Rules on the installed distribution, which an object made in code has not."""


def main() -> int:
    """Run the table."""
    parser = argparse.ArgumentParser(description="Look for false alarms.")
    parser.add_argument("--keys", default="", help="keys of providers, separated by commas; by default all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--examples", type=int, default=40)
    parser.add_argument("--whole", action="store_true", help="each seed with each wrapper from each directory")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    asked = parser.parse_args()
    keys = [key for key in asked.keys.split(",") if key] or _keys()
    seeds = range(asked.first, asked.first + asked.seeds)
    work = [
        (key, seed, wrapper, place, asked.examples)
        for seed in seeds
        for at, key in enumerate(keys)
        for number, (wrapper, place) in enumerate(itertools.product(WRAPPERS, range(4)))
        if asked.whole or number == (seed * 5 + at) % 12
    ]
    alarms = 0
    print(f"{'key':<14} seed wrapper directory seconds alarms")
    with multiprocessing.Pool(asked.jobs, maxtasksperchild=1) as pool:
        for key, seed, wrapper, place, failed, seconds in pool.imap(_run, work):
            alarms += len(failed)
            said = "; ".join(failed)[:400] or "none"
            print(f"{key:<14} {seed:>4} {wrapper:<7} {place:>9} {seconds:>7.1f} {said}", flush=True)
    print(f"{len(work)} runs of {len(ALL)} rules over {len(keys)} keys: {alarms} alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
