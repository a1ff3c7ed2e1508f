"""Rules on the installed distribution: entry point, metadata, types, and an import that costs and does nothing.

Never looks at providers given by hand, which no distribution ships.
The rules room comes in.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import types
from collections.abc import Iterator
from importlib.resources import files

from interlingua.plugins.hookspecs import CONTRACT_VERSION, PROJECT
from interlingua.plugins.registry import PROVIDERS, ROWS
from interlingua_contract.rule import Finding, NotApplicable, rule
from interlingua_contract.subject import Subject

_FORBIDDEN = ("httpx", "requests", "aiohttp", "sqlite3", "pytest", "interlingua.http.client", "interlingua.http.transport")


_PROBE = """
import json, socket, sys, time
def refuse(*_, **__):
    print(json.dumps({"network": True})); sys.exit()
socket.socket.connect = socket.getaddrinfo = refuse
import interlingua.plugins.hookspecs, interlingua.plugins.registry, importlib.resources
before, started = set(sys.modules), time.process_time()
import importlib
module, _, name = sys.argv[1].partition(":")
sys.path += json.loads(sys.argv[2])
plugin = importlib.import_module(module)
for part in name.split("."):
    plugin = getattr(plugin, part)
spent = (time.process_time() - started) * 1000
print(json.dumps({"modules": sorted(set(sys.modules) - before), "ms": spent}))
"""


def entry_point(subject: Subject) -> importlib.metadata.EntryPoint:
    """Return the entry point the provider came from.

    Raises:
        NotApplicable: it was given by hand or configured.
    """
    found = subject.registry.found().get(subject.key)  # not loaded: what cannot be is one of the findings
    for group in (PROVIDERS, ROWS):
        for entry in subject.entries(group):
            if found is not None and entry.dist is not None and entry.dist.name == found.distribution.name:
                return entry
    raise NotApplicable("no installed distribution ships this provider; it was given by hand or configured")


@rule(
    "C48",
    "The entry point names an object with hooks, under the provider's key, for this contract version.",
    source="DESIGN 1, 4",
    fix="""In pyproject: `[project.entry-points."interlingua.providers"]`, `acme = "interlingua_acme.plugin:plugin"`,
    the value an object, not a module. `contract_version`, if it is there, is the version of hookspecs.""",
)
def entry_point_is_an_object(subject: Subject) -> Iterator[Finding]:
    """Load it as the registry does."""
    entry = entry_point(subject)
    plugin = entry.load()
    if isinstance(plugin, (types.ModuleType, type)):
        yield Finding(why=f"{entry.value} is a {type(plugin).__name__}; name an object in it", where=entry.name)
    elif not any(hasattr(getattr(plugin, name, None), f"{PROJECT}_impl") for name in dir(plugin)):
        yield Finding(why=f"{entry.value} offers no hook; mark its methods with @hookimpl", where=entry.name)
    wanted = getattr(plugin, "contract_version", CONTRACT_VERSION)
    if wanted != CONTRACT_VERSION:
        yield Finding(why=f"written for contract version {wanted}, this is {CONTRACT_VERSION}", where=entry.name)


@rule(
    "C49",
    "The distribution says its version, its licence, its Python, what it is, depends on interlingua, and ships types.",
    source="DESIGN 1, 10",
    fix="""Fill `version`, `description`, `requires-python` and `license` in pyproject's [project], depend on
    `interlingua`, and put an empty `py.typed` beside `__init__.py`.""",
)
def metadata_is_complete(subject: Subject) -> Iterator[Finding]:
    """The installed metadata and the package folder."""
    entry = entry_point(subject)
    assert entry.dist is not None  # noqa: S101  entry_point() looked
    metadata = dict(entry.dist.metadata.items())  # type: ignore[attr-defined]
    fields = ("Version", "Summary", "Requires-Python")
    missing = [field for field in fields if not metadata.get(field)]
    if not (metadata.get("License-Expression") or metadata.get("License")):
        missing.append("License")
    if missing:
        yield Finding(why=f"the metadata lacks {', '.join(missing)}", where=entry.dist.name)
    needs = [need.partition(";")[0] for need in entry.dist.requires or ()]
    if not any(need.replace("_", "-").lower().startswith("interlingua") for need in needs):
        yield Finding(why="it does not depend on interlingua", where=entry.dist.name)
    package = entry.module.partition(".")[0]
    if not files(package).joinpath("py.typed").is_file():
        yield Finding(why=f"{package} has no py.typed", where=entry.dist.name)


@rule(
    "C50",
    "Importing the plugin is cheap, reaches no network, and loads no HTTP library, no database and no client.",
    source="DESIGN 2, 10",
    fix="""Import only the rooms you need (`interlingua.types.blocks`, `.messages`, `.events`, …) and read `models.json`
    when it is first asked for. A plugin is a translator: core does the I/O.""",
)
def import_is_cheap(subject: Subject) -> Iterator[Finding]:
    """In an interpreter of its own, where core is loaded already."""
    entry = entry_point(subject)
    best = float("inf")
    found: dict[str, object] = {}
    for _ in range(3):  # processor time of a busy machine varies; the least is the cost
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _PROBE, entry.value, json.dumps(sys.path)],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if done.returncode or not done.stdout.strip():
            yield Finding(why=f"it cannot be imported: {done.stderr.strip()[-300:]}", where=entry.value)
            return
        found = json.loads(done.stdout)
        if "network" in found:
            yield Finding(why="it reaches for the network while it is imported", where=entry.value)
            return
        best = min(best, float(str(found["ms"])))
        if best <= subject.quirks.import_ms:
            break
    loaded = [name for name in _FORBIDDEN if name in list(found["modules"])]  # type: ignore[call-overload]
    if loaded:
        yield Finding(why=f"it loads {', '.join(loaded)}", where=entry.value)
    if best > subject.quirks.import_ms:
        yield Finding(why=f"it takes {best:.0f} ms, {subject.quirks.import_ms} are allowed", where=entry.value)
