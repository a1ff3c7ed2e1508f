"""Write the directory of plugins and the pages made from it: `python -m tests.tools.directory`.

Our rows are read from their pyproject files; rows of others stay unchanged in
`interlingua_cli/directory.json`. `--check groq,openai` (or `all`) runs `interlingua check KEY` and keeps its counts;
`--add REPORT --summary … --url …` lists a plugin by others from its report.
The pages: docs/plugins/directory.md, docs/reference/support.md and docs/reference/which-provider.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from interlingua_cli.directory import ListedDistribution
from interlingua_contract.guard import no_network, silence_log
from interlingua_contract.rules.evidence import FLAGS, Support, support_table
from interlingua_contract.subject import Subject
from tests.support.tree import DISTRIBUTIONS, ROOT

JSON = ROOT / "plugins" / "cli" / "src" / "interlingua_cli" / "directory.json"
CASSETTES = ROOT / "cassettes"
PAGES = {
    "docs/plugins/directory.md": "directory_page",
    "docs/reference/support.md": "support_page",
    "docs/reference/which-provider.md": "choice_page",
}
TIERS = {
    "ours": "released together with interlingua, from this repository",
    "verified": "by others; this project ran the contract suite on the named version itself",
    "community": "by others; the report is the author's",
}
WORDS = {  # capability -> what a reader looks for
    "supports_system_prompt": "system prompt",
    "supports_system_messages_in_list": "later system messages",
    "supports_streaming": "streams",
    "supports_tools": "tools",
    "supports_parallel_tool_calls": "parallel calls",
    "supports_streaming_tool_calls": "streamed calls",
    "supports_tool_choice": "forced call",
    "supports_named_tool_choice": "forced tool by name",
    "supports_tool_result_images": "images in results",
    "supports_tool_result_documents": "documents in results",
    "supports_structured_output": "answers by schema",
    "structured_output_with_tools": "schema and tools",
    "structured_output_streams": "schema in streams",
    "supports_thinking": "thinking sent back",
    "supports_images": "images",
    "supports_image_urls": "image URLs",
    "supports_audio": "audio",
    "supports_video": "video",
    "supports_documents": "documents",
    "supports_citations": "citations sent back",
    "supports_prompt_caching": "prompt cache",
    "supports_tool_changes": "changes of tools",
    "supports_effort_changes": "changes of effort",
    "supports_format_changes": "changes of format",
    "supports_deferred_tools": "deferred tools",
}
MARKS = {
    "R": "recorded here from a running server that speaks the API (llama.cpp's)",
    "S": "written from the service's documentation, and read by the service's own SDK with the same result",
    "A": "written from the service's documentation; its SDK does not read it, or there is none",
    "?": "declared; nothing shows it, and the plugin's `quirks.toml` says why",
    "·": "not declared: such content is refused, or left out with a row of the ledger",
}


def own_rows() -> Iterator[ListedDistribution]:
    """Yield a row for each distribution of the workspace, from its pyproject file."""
    for folder in DISTRIBUTIONS:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        groups = project.get("entry-points", {})
        keys = [*groups.get("interlingua.providers", ()), *groups.get("interlingua.presets", ())]
        needed = [part for part in project["dependencies"] if part.startswith("interlingua")]
        name = project["name"]
        yield ListedDistribution(
            distribution=name,
            summary=project["description"],
            tier="ours",
            version=project["version"],
            contract_version=1 if keys else None,
            keys=keys,
            commands=sorted(groups.get("interlingua.commands", ())) if name != "interlingua-cli" else (),
            requires=[own for part in needed if (own := _name(part)) not in ("interlingua", name)],
            url=f"plugins/{folder.name}/README.md" if folder.name != "core" else "README.md",
        )


def _name(requirement: str) -> str:
    return requirement.partition(">")[0].partition("[")[0].strip()


def rows(stored: Iterable[ListedDistribution]) -> list[ListedDistribution]:
    """Return all rows, ours first: new ones from the tree with the stored reports, others as they are stored."""
    reports = {row.distribution: row.reports for row in stored}
    ours = [attrs.evolve(row, reports=reports.get(row.distribution, {})) for row in own_rows()]
    return [*ours, *(row for row in stored if row.tier != "ours")]


def stored_rows() -> list[ListedDistribution]:
    """Return the rows of directory.json."""
    if not JSON.exists():
        return []
    return [ListedDistribution(**row) for row in json.loads(JSON.read_text(encoding="utf-8"))]


def as_text(listed: Iterable[ListedDistribution]) -> str:
    """Return directory.json."""
    empty: tuple[Any, ...] = (None, (), {}, "")
    found = [{k: v for k, v in attrs.asdict(row).items() if v not in empty} for row in listed]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def is_checked(key: str) -> bool:
    """Tell whether a provider is a service; `compatible` is any server of the format, so nothing can be evidence."""
    return key != "compatible"


def run_check(key: str) -> dict[str, Any]:
    """Run the contract suite on one provider and return its counts."""
    command = [str(Path(sys.executable).with_name("interlingua")), "check", key, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"`interlingua check {key}` failed:\n{done.stderr}")
    return counts_of(json.loads(done.stdout))


def counts_of(report: dict[str, Any]) -> dict[str, Any]:
    """Return what a row holds of a report."""
    return {"passed": report["passed"], **report["counts"]}


def row_of(report: dict[str, Any], summary: str, url: str) -> ListedDistribution:
    """Return the row of a plugin by others, from the report that its author sent.

    Raises:
        ValueError: it differs from `report.schema.json`, the plugin was not installed, or a rule failed.
    """
    schema = json.loads(files("interlingua_contract").joinpath("report.schema.json").read_text(encoding="utf-8"))
    if error := best_match(Draft202012Validator(schema).iter_errors(report)):
        raise ValueError(f"{error.json_path}: {error.message}")
    if not report["distribution"] or not report["passed"]:
        raise ValueError("only an installed distribution that fails no rule is listed")
    return ListedDistribution(
        distribution=report["distribution"],
        summary=summary,
        tier="community",
        version=report["version"],
        contract_version=report["plugin_contract_version"],
        keys=(report["provider"],),
        url=url,
        reports={report["provider"]: counts_of(report)},
    )


@cache
def provenance() -> dict[str, str]:
    """Return the mark of each cassette, by `provider/name`."""
    table = tomllib.loads((CASSETTES / "PROVENANCE.toml").read_text(encoding="utf-8"))["cassette"]
    return {
        row["path"].removesuffix(".yaml"): "R"
        if row["provenance"] == "recorded"
        else "S"
        if "SDK" in row["source"]
        else "A"
        for row in table
    }


@cache
def support(key: str) -> tuple[Support, ...]:
    """Return what a provider's cassettes show."""
    with no_network(), silence_log():
        return tuple(support_table(Subject(key, CASSETTES / key)))


def mark(key: str, row: Support) -> str:
    """Return the best evidence of a capability; see `MARKS`."""
    if not row.declared:
        return "·"
    found = {provenance().get(f"{key}/{name}", "A") for name in row.evidence}
    return next((one for one in "RSA" if one in found), "?")


def sides(listed: Iterable[ListedDistribution]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield provider key, API and the marks of its capabilities."""
    for row in listed:
        for key in row.keys if row.tier == "ours" else ():
            for api in dict.fromkeys(one.api for one in support(key)):
                yield key, api, {one.capability: mark(key, one) for one in support(key) if one.api == api}


def support_page(listed: list[ListedDistribution]) -> str:
    """Return docs/reference/support.md."""
    lines = [
        "# What each provider supports, and what shows it",
        "",
        "Made from the plugins' declarations, the committed cassettes and `cassettes/PROVENANCE.toml` by",
        "`python -m tests.tools.directory`. A capability is declared if one model of the provider has it; for a single",
        "model ask `interlingua explain` or `client.build_request`. A declared capability without evidence breaks rule",
        "C51 of the [contract](contract.md).",
        "",
        "| mark | evidence |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in MARKS.items()),
        "",
        "[Wire linters](lint.md) list what each service is known to refuse.",
    ]
    groups = [FLAGS[start : start + 7] for start in range(0, len(FLAGS), 7)]
    found = list(sides(listed))
    for group in groups:
        lines += ["", f"## {WORDS[group[0]].capitalize()} to {WORDS[group[-1]]}", ""]
        lines += [f"| provider | API | {' | '.join(WORDS[flag] for flag in group)} |", "|---" * (len(group) + 2) + "|"]
        lines += [f"| `{key}` | {api} | {' | '.join(marks[flag] for flag in group)} |" for key, api, marks in found]
    return "\n".join(lines) + "\n"


LISTING = """\
Publish your plugin ([how](how-to/publish.md)), run `interlingua check KEY --json` on the published version, and open an
issue with the form *List a plugin* and that report. `python -m tests.tools.directory --add REPORT` adds the row. The
tier is `community` until this project has run the suite on that version itself. A row is removed if the distribution is
withdrawn, or if it fails the suite for a contract version that it states and eight weeks pass.

`interlingua check KEY --badge badge.svg` writes a badge for your README from the same run."""

CHOICES = (  # what a reader needs -> the capabilities that it takes
    ("tools, in parallel, forced where you like", ("supports_parallel_tool_calls", "supports_tool_choice")),
    ("typed answers beside tools", ("supports_structured_output", "structured_output_with_tools")),
    ("thinking that goes back to the model", ("supports_thinking",)),
    ("PDFs and other documents", ("supports_documents",)),
    ("sound", ("supports_audio",)),
    ("video", ("supports_video",)),
    ("tools that return images", ("supports_tool_result_images",)),
    ("citations that survive the next turn", ("supports_citations",)),
    ("a prompt cache that you mark or that is reported", ("supports_prompt_caching",)),
    ("instructions in the middle of a conversation", ("supports_system_messages_in_list",)),
)


def choice_page(listed: list[ListedDistribution]) -> str:
    """Return docs/reference/which-provider.md."""
    found = list(sides(listed))
    lines = [
        "# Which provider for what",
        "",
        "Made from the [support table](support.md): providers (and the API, where there are several) that declare what",
        "you need and have evidence for it. Not every model of a provider has it all: the plugin's README says more.",
        "",
        "| you need | providers |",
        "|---|---|",
    ]
    apis = Counter(key for key, _, _ in found)
    for words, flags in CHOICES:
        names = [
            f"`{key}`" + (f" ({api})" if apis[key] > 1 else "")
            for key, api, marks in found
            if all(marks[flag] in "RSA" for flag in flags)
        ]
        lines.append(f"| {words} | {', '.join(names) or 'none yet'} |")
    return "\n".join(lines) + "\n"


def directory_page(listed: list[ListedDistribution]) -> str:
    """Return docs/plugins/directory.md."""
    lines = [
        "# Directory of plugins",
        "",
        "Made from `plugins/cli/src/interlingua_cli/directory.json` by `python -m tests.tools.directory`. On a shell:",
        "",
        "```sh",
        "interlingua providers --directory   # this list",
        "interlingua install groq            # put a plugin beside the program",
        "```",
        "",
        "| tier | means |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in TIERS.items()),
    ]
    for tier in TIERS:
        mine = [row for row in listed if row.tier == tier]
        if not mine:
            continue
        lines += ["", f"## {tier.capitalize()}", "", "| distribution | providers | version | contract | rules passed |"]
        lines += ["|---|---|---|---|---|"]
        for row in mine:
            place = row.url if "://" in row.url else f"../../{row.url}"
            passed = ", ".join(sorted({_shown(report) for report in row.reports.values()}))
            keys = " ".join(f"`{key}`" for key in row.keys) or row.summary.rstrip(".")
            lines.append(
                f"| [{row.distribution}]({place}) | {keys} | {row.version} | {row.contract_version or ''} | {passed} |"
            )
    lines += [
        "",
        "## How to be listed",
        "",
        LISTING,
    ]
    return "\n".join(lines) + "\n"


def _shown(report: Any) -> str:
    total = report["pass"] + report["fail"] + report["deviates"]
    return f"{report['pass']} of {total}" + (
        f", {report['deviates']} declared deviations" if report["deviates"] else ""
    )


def written(listed: list[ListedDistribution]) -> dict[str, str]:
    """Return the text of every page, by path."""
    return {path: globals()[name](listed) for path, name in PAGES.items()}


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", default="", metavar="KEYS", help="provider keys with commas between, or all")
    parser.add_argument("--add", type=Path, metavar="REPORT", help="a report of `interlingua check KEY --json`")
    parser.add_argument("--summary", default="", help="of the distribution that --add lists")
    parser.add_argument("--url", default="", help="of the distribution that --add lists")
    given = parser.parse_args()
    wanted = given.check
    listed = rows(stored_rows())
    if given.add:
        new = row_of(json.loads(given.add.read_text(encoding="utf-8")), given.summary, given.url)
        listed = [*(row for row in listed if row.distribution != new.distribution), new]
    for place, row in enumerate(listed):
        ours = [key for key in row.keys if row.tier == "ours" and is_checked(key)]
        again = [key for key in ours if wanted == "all" or key in wanted.split(",")]
        reports = {key: report for key, report in row.reports.items() if key in ours or row.tier != "ours"}
        for key in again:
            reports[key] = run_check(key)
            print(key, reports[key], flush=True)
        listed[place] = attrs.evolve(row, reports=reports)
    JSON.write_text(as_text(listed), encoding="utf-8")
    for path, text in written(listed).items():
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
