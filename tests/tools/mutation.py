"""Measure what the contract notices with every provider, and write docs/reference/mutation.md: `make mutation`.

Each run of `interlingua check KEY --mutate --json` is kept as `KEY.SEED.json` in a folder. A run that is there is not
repeated, so a measurement that was interrupted continues.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from interlingua_contract.mutation import FREE
from interlingua_contract.mutation.operations import OF_USER_JSON, OPERATIONS
from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "mutation.md"

HEAD = """\
# What the contract notices

`interlingua check PROVIDER --mutate` measures the [rules](contract.md). It changes one place of what the plugin
returns, wherever that place occurs: a member of the request body, a field of a message, an event, an error. Then it
runs the rules that lead to that place. A change that no rule notices is a survivor, and is printed with its hook,
place, operation, value and the scene in which the place was met first. The score is the share of the changes that
some rule notices.

```sh
interlingua check acme --cassettes tests/cassettes --mutate --minutes 2
```

`--sample` tries some of the changes, chosen by `--seed`; `--json` prints the scores by hook, by kind of operation and
by part, and every survivor. On two cores, all 1,092 changes of the [example](../plugins/example/README.md) take two
minutes. `make mutation` measures every provider of this repository and writes this page.

A place is a pointer without indexes. `*[image]` is an element of the type `image`, `**` an object of the user, such
as the arguments of a call. A hook that no rule calls has no places: the report lists such hooks.

Approved results (rules C94 to C99) notice most of the changes, because they compare whole results of fixed scenes. A
change that survives is in a value that only conversations drawn by another rule have.
"""

_UNSEEN = "No fixed scene has this value; the rule that met it compares other parts."
REASONS: tuple[tuple[str, str], ...] = (
    (
        "stream_response /*[tool_use_end]",
        "The plugin ends a call itself only in a broken stream; core ends the others.",
    ),
    (
        "stream_response /*[tool_use_start]/id swap",
        "Core issued both ids: exchanged wherever they occur, they still tell the two calls apart.",
    ),
    (
        "to_wire /echo/body/model",
        "Only a request for a long answer has it; tests/plugins/google/test_interactions_cassettes.py continues one.",
    ),
    (
        "from_wire_response /error/message other-digits",
        "No cassette of this provider has an answer that is not JSON.",
    ),
    (
        "prompt_cache_breakpoint/ttl other-case",
        "One rule reaches the marker, and compares the lifetimes of two hints with each other.",
    ),
    (
        "capabilities /max_context_tokens drop",
        "Only recorded requests have a context window: tests/plugins/ollama/test_options.py shows it.",
    ),
    (
        "to_wire /echo/own_thinking",
        "Only a request with the caller's own `thinking` has it: tests/plugins/test_refused_thinking.py shows it.",
    ),
)
"""Part of a place, and why a change there was not noticed."""


def operations() -> str:
    """Return the operations, by kind."""
    kinds: dict[str, list[str]] = {}
    for operation in {**OPERATIONS, **OF_USER_JSON}.values():
        kinds.setdefault(operation.kind, []).append(f"`{operation.name}`")
    return "\n".join(f"- {kind}: {', '.join(names)}" for kind, names in kinds.items())


def free() -> str:
    """Return what is declared free, with the reasons."""
    rows = [
        f"| `{each.hook}` | `{each.place}` | {', '.join(each.operations) or 'all'} | {each.reason} |" for each in FREE
    ]
    return "\n".join(["| hook | place | operations | reason |", "|---|---|---|---|", *rows])


def table(reports: Sequence[Mapping[str, Any]], group: str) -> str:
    """Return a table with a row for each provider, a column for each name of a group, and the sums."""
    names = sorted({name for report in reports for name in report[group]})
    lines = [f"| | all | {' | '.join(f'`{name}`' for name in names)} |", f"|---|---|{'---|' * len(names)}"]
    sums: dict[str, Any] = {"provider": "**all**", group: {}}
    for report in reports:
        _add(sums, report)
        for name in report[group]:
            _add(sums[group].setdefault(name, {}), report[group][name])
    for report in [sums, *reports]:
        cells = [_cell(report), *(_cell(report[group].get(name)) for name in names)]
        lines.append(f"| {report['provider']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _change(each: Mapping[str, Any]) -> str:
    return f"{each['hook']} {each['place']} {each['operation']}"


def survivors(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of the survivors, each with the rule in which its place was met and why no rule noticed it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for report in reports:
        for each in report["survivors"]:
            why = next((reason for words, reason in REASONS if words in _change(each)), _UNSEEN)
            place = f"`{each['hook']} {each['place']}` {each['operation']}".replace("|", "\\|")
            found.setdefault((place, each["scene"].split()[0], why), []).append(report["provider"])
    lines = ["| change | met in | provider | reason |", "|---|---|---|---|"]
    for (place, scene, why), keys in sorted(found.items()):
        lines.append(f"| {place} | {scene} | {' '.join(dict.fromkeys(keys))} | {why} |")
    return "\n".join(lines)


def merged(reports: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one report for each provider: the sums of its runs."""
    found: dict[str, dict[str, Any]] = {}
    for report in reports:
        whole = found.setdefault(report["provider"], {"provider": report["provider"], "seeds": [], "survivors": []})
        whole["seeds"].append(report["seed"])
        whole["survivors"] += report["survivors"]
        whole |= {name: report[name] for name in ("planned", "unreached_hooks")}
        whole["tried"] = whole.get("tried", 0) + report["tried"]
        _add(whole, report)
        for group in ("by_hook", "by_kind"):
            for name, score in report[group].items():
                _add(whole.setdefault(group, {}).setdefault(name, {}), score)
    return list(found.values())


def _add(whole: dict[str, Any], score: Mapping[str, Any]) -> None:
    for name in ("killed", "survived", "free"):
        whole[name] = whole.get(name, 0) + score[name]
    judged = whole["killed"] + whole["survived"]
    whole["score"] = whole["killed"] / judged if judged else 1.0


def _cell(score: Mapping[str, Any] | None) -> str:
    if score is None or not score["killed"] + score["survived"]:
        return ""
    part = "" if not score["survived"] else f", {score['score']:.1%}"
    return f"{score['killed']} of {score['killed'] + score['survived']}{part}"


def runs(reports: Iterable[Mapping[str, Any]]) -> str:
    """Return a line for each run: how much was tried, and the hooks that no rule calls."""
    lines = []
    for report in reports:
        unreached = ", ".join(f"`{name}`" for name in report["unreached_hooks"])
        seeds = ", ".join(map(str, report["seeds"]))
        tried = f"{report['tried']} of {report['planned']} changes, seeds {seeds}"
        lines.append(f"- {report['provider']}: {tried}" + (f"; no rule calls {unreached}" if unreached else ""))
    return "\n".join(lines)


def page(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return the whole page."""
    reports = merged(reports)
    sections = [
        HEAD,
        f"## Scores by hook\n\nChanges noticed, of those tried that are not free.\n\n{table(reports, 'by_hook')}\n",
        f"## Scores by kind of operation\n\n{table(reports, 'by_kind')}\n",
        f"## Survivors\n\n{survivors(reports)}\n",
        f"## Runs\n\n{runs(reports)}\n",
        f"## Operations\n\n{operations()}\n",
        f"## Free changes\n\nNo caller can tell these changes, so no rule needs to notice them.\n\n{free()}\n",
    ]
    return "\n".join(sections)


def measure(folder: Path, key: str, seed: int, sample: int | None) -> None:
    """Measure one provider with one seed, unless its report is in the folder."""
    path = folder / f"{key}.{seed}.json"
    if path.exists():
        return
    program = str(Path(sys.executable).with_name("interlingua"))
    command = [program, "check", key, "--mutate", "--seed", str(seed), "--json"]
    part = [] if sample is None else ["--sample", str(sample)]
    done = subprocess.run([*command, *part], cwd=tree.ROOT, stdout=subprocess.PIPE, text=True, check=False)
    report = json.loads(done.stdout)  # a run with survivors ends with 1
    path.write_text(done.stdout, encoding="utf-8")
    print(f"{key}, seed {seed}: {report['score']:.1%} of {report['tried']:,}, {report['seconds']:.0f} s", flush=True)


def main() -> None:
    """Measure the providers and write the page."""
    parser = argparse.ArgumentParser(prog="make mutation")
    parser.add_argument("keys", nargs="*", help="providers to measure; default: every one with approved results")
    parser.add_argument("--folder", type=Path, default=tree.ROOT / ".cache" / "mutation", help="where reports are kept")
    parser.add_argument("--sample", type=int, help="changes of each run; default: all of them, which takes hours")
    parser.add_argument("--seeds", type=int, default=3, help="runs for each provider; default: 3")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    every = sorted(path.parent.name for path in (tree.ROOT / "cassettes").glob("*/approved.jsonl"))
    for seed in range(asked.seeds):
        for key in asked.keys or every:
            measure(asked.folder, key, seed, asked.sample)
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(asked.folder.glob("*.json"))]
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
