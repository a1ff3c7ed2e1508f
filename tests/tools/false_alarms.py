"""Hold every unbroken provider against all rules, and print a table: no rule may fail.

`python -m tests.tools.false_alarms [--keys a,b] [--seeds 10] [--whole] [--examples 40]`. Each key is checked with every
seed, by itself and behind two wrappers that change nothing, and from four working directories; without `--whole` the
wrappers and the directories change from seed to seed: four seeds lead to every directory, twelve to every pair of both.
The example of docs/plugins is checked too. Rules that use no seed run with the first four. Exit code 1 on an alarm.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from interlingua.plugins import Registry
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject, find_cassettes
from tests.contract.broken.machine import Handed, real, real_serving
from tests.support import tree

WRAPPERS = ("none", "hooks", "object")
_MODULE = "contract_wrapper_of_nothing"
_EXAMPLE = "parrot"
_EXAMPLE_FOLDER = tree.ROOT / "docs" / "plugins" / "example"
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
    """Return the keys of all installed providers and presets, and that of the example."""
    groups = ("interlingua.providers", "interlingua.presets")
    return sorted({entry.name for group in groups for entry in entry_points(group=group)} | {_EXAMPLE})


def _plugin(key: str) -> Any:
    if key != _EXAMPLE:
        return real(key)
    sys.path.insert(0, str(_EXAMPLE_FOLDER / "src"))
    return importlib.import_module("interlingua_parrot.plugin").plugin


def _registry(key: str, wrapper: str, folder: Path) -> Registry:
    if wrapper == "object":
        return Registry(providers={key: Handed(_plugin(key), real_serving(key))})
    registry = Registry(providers={key: _plugin(key)} if key == _EXAMPLE else None)
    if wrapper == "hooks":
        (folder / f"{_MODULE}.py").write_text(_HOOKS, encoding="utf-8")
        sys.path.insert(0, str(folder))
        registry.load_plugin(_MODULE)
    return registry


class _Watched(Subject):
    """A subject that remembers whether its seed was used."""

    drew = False

    def __getattribute__(self, name: str) -> Any:
        """Remember a use of the seed."""
        if name == "seed":
            self.drew = True
        return super().__getattribute__(name)


_Pair = tuple[int, str, int]
"""Seed, wrapper and directory."""


def _run(work: tuple[str, list[_Pair], int]) -> list[tuple[str, _Pair, int, list[str], float]]:
    """Check one key with several seeds, wrappers and directories, one after another."""
    key, pairs, examples = work
    done, drawing = [], {rule.number for rule in ALL}
    for number, (seed, wrapper, place) in enumerate(pairs):
        started = time.monotonic()
        left_out = set(_PACKED) if wrapper == "object" or key == _EXAMPLE else set()
        rules = [rule for rule in ALL if rule.number not in left_out]
        if number >= _SEEDLESS:
            rules = [rule for rule in rules if rule.number in drawing]
        with _directory(place) as folder:
            registry = _registry(key, wrapper, folder)
            own = _EXAMPLE_FOLDER / "tests" / "cassettes"
            cassettes = own if key == _EXAMPLE else find_cassettes(Registry(), key)
            subject = _Watched(key, cassettes, registry=registry, examples=examples, seed=seed)
            failed = []
            for rule in rules:
                subject.drew = False
                result = check(subject, rule, 1)
                failed += [f"{rule.number} {found}" for found in result.findings if result.outcome == "fail"]
                if not subject.drew and rule.number not in left_out:
                    drawing.discard(rule.number)
        done.append((key, (seed, wrapper, place), len(rules), failed, time.monotonic() - started))
    return done


@contextmanager
def _directory(place: int) -> Iterator[Path]:
    """Work in one of four directories; yield a temporary one, from which modules can be imported."""
    with tempfile.TemporaryDirectory() as name:
        path = list(sys.path)
        os.chdir([tree.ROOT, name, tree.ROOT / "cassettes", Path.home()][place])
        try:
            yield Path(name)
        finally:
            os.chdir(tree.ROOT)
            sys.path[:] = path
            sys.modules.pop(_MODULE, None)


_PACKED = ("C48", "C49", "C50")
"""Rules on the installed distribution: an object made in code, and the example, have none."""

_SEEDLESS = 4
"""After so many runs of one key, with every directory and wrapper, the rules that use no seed are left out."""


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
        (
            key,
            [
                (seed, wrapper, place)
                for seed in seeds
                for number, (wrapper, place) in enumerate(itertools.product(WRAPPERS, range(4)))
                if asked.whole or number == (seed * 5 + at) % 12
            ],
            asked.examples,
        )
        for at, key in enumerate(keys)
    ]
    runs = alarms = 0
    print(f"{'key':<14} seed wrapper directory rules seconds alarms")
    with multiprocessing.Pool(asked.jobs, maxtasksperchild=1) as pool:
        for done in pool.imap(_run, work):
            for key, (seed, wrapper, place), rules, failed, seconds in done:
                runs, alarms = runs + 1, alarms + len(failed)
                said = "; ".join(failed)[:400] or "none"
                print(f"{key:<14} {seed:>4} {wrapper:<7} {place:>9} {rules:>5} {seconds:>7.1f} {said}", flush=True)
    print(f"{runs} runs over {len(keys)} keys, with {len(ALL)} rules: {alarms} alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
