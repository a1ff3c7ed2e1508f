"""Refreshes prices and context sizes of every catalogue file from the package genai-prices.

Run as `python -m tests.tools.refresh_models [--check] [name…]`; aliases, facts and capabilities are kept by hand and
never touched, and models with a separate `pricing_version` come from another source. A file without a
`source_provider` has no prices and is not changed.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

from tests.tools import price_source

ROOT = Path(__file__).parents[2]
PACKAGE = "genai-prices"
NOTICE = "models.LICENSE.txt"  # lies beside the data, so that it ships in the same wheel
NOTICE_HEAD = (
    f"Prices and context sizes in the JSON files beside this notice come from {PACKAGE}, under this license:\n\n"
)
HAND_KEPT = ("id", "aliases", "api")
HAND_KEPT_TOO = ("max_output_tokens", "capabilities", "facts")


def catalogues(names: list[str]) -> dict[str, Path]:
    """Return the catalogue files by name: the plugin's folder, or the preset where one plugin serves several."""
    single = {path.parents[2].name: path for path in ROOT.glob("plugins/*/src/*/models.json")}
    found = single | {path.stem: path for path in ROOT.glob("plugins/*/src/*/models/*.json")}
    found |= {f"{path.parents[2].name}-tuned": path for path in ROOT.glob("plugins/*/src/*/fine_tuned.json")}
    if unknown := set(names) - set(found):
        raise SystemExit(f"no catalogue named {', '.join(sorted(unknown))}; there are {', '.join(sorted(found))}")
    return {name: found[name] for name in sorted(names or found)}


def refreshed(file: dict[str, Any], today: str) -> tuple[dict[str, Any], list[str]]:
    """Return the file with current prices and sizes, and what changed, a line each."""
    if "source_provider" not in file:
        return file, []
    provider = price_source.provider(file["source_provider"])
    models, changes, listed, repriced = [], [], set(), False
    for old in file["models"]:
        new, known = _refreshed_model(old, provider, file.get("fine_tuned", False))
        listed |= {known}
        models.append(new)
        changed = [key for key in ("prices", "max_context_tokens") if new[key] != old.get(key)]
        changes += [f"{old['id']}: {key} {old.get(key)} -> {new[key]}" for key in changed]
        repriced |= "prices" in changed
    source = f"{PACKAGE} {version(PACKAGE)} (MIT)"
    changes += [f"source {file.get('source')} -> {source}"] if file.get("source") != source else []
    dated = today if repriced else file["pricing_version"].rpartition(" ")[2]
    new_file = {"pricing_version": f"{PACKAGE} {version(PACKAGE)}, {dated}", "source": source}
    rest = {key: value for key, value in file.items() if key not in {*new_file, "models"}}
    left = sorted({model.id for model in provider.models} - listed)
    print(f"  in {PACKAGE} but not in this file: {', '.join(left) or 'nothing'}")
    return {**new_file, **rest, "models": models}, changes


def _refreshed_model(old: dict[str, Any], provider: Any, fine_tuned: bool) -> tuple[dict[str, Any], str]:
    if "pricing_version" in old:  # from another source
        return old, ""
    known = price_source.find(provider, f"ft:{old['id']}" if fine_tuned else old["id"])
    context = (known.context_window if known else None) or old.get("max_context_tokens")
    new = {key: old[key] for key in HAND_KEPT if key in old}
    new |= {"max_context_tokens": context} | {key: old[key] for key in HAND_KEPT_TOO if key in old}
    return new | {"prices": price_source.rows(known, provider.id) if known else []}, known.id if known else ""


def written(file: dict[str, Any]) -> str:
    """Return the file's text: a line per key, a line per price, so that a changed price is a changed line."""
    head = [f"  {_json(key)}: {_json(value)}," for key, value in file.items() if key != "models"]
    models = ",\n".join(_written_model(model) for model in file["models"])
    return "\n".join(["{", *head, '  "models": [', models, "  ]", "}", ""])


def _written_model(model: dict[str, Any]) -> str:
    lines = [f"      {_json(key)}: {_json(value)}" for key, value in model.items() if key != "prices"]
    rows = ",\n".join(f"        {_json(row)}" for row in model["prices"])
    lines.append(f'      "prices": [\n{rows}\n      ]' if rows else '      "prices": []')
    return "    {\n" + ",\n".join(lines) + "\n    }"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def notice() -> str:
    """Return the notice of the price data, as the package carries it."""
    files = distribution(PACKAGE).files or []
    license_file = next(file for file in files if file.name == "LICENSE")
    return NOTICE_HEAD + license_file.read_text()


def main(arguments: list[str]) -> int:
    """Refresh, or with --check only say what is stale; returns 1 when something is."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.refresh_models", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file is stale")
    parser.add_argument("names", nargs="*", help="catalogues to refresh, all by default")
    options = parser.parse_args(arguments)
    stale = 0
    for name, path in catalogues(options.names).items():
        print(name)
        old = path.read_text()
        file, changes = refreshed(json.loads(old), datetime.now(UTC).date().isoformat())
        new, beside = written(file), path.with_name(NOTICE)
        changes += ["rewritten in the stable order"] if new != old and not changes else []
        changes += [f"{NOTICE} written"] if not beside.exists() or beside.read_text() != notice() else []
        print("".join(f"  {line}\n" for line in changes) or "  up to date\n", end="")
        stale += bool(changes)
        if changes and not options.check:
            path.write_text(new)
            beside.write_text(notice())
    return int(stale > 0 and options.check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
