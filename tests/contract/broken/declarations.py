"""Adapters that declare what is not so, and distributions that are packaged wrongly."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, PathDistribution
from pathlib import Path
from typing import Any

import attrs

from interlingua._catalogue import Price, PriceTier
from interlingua._plugins.registry import PROVIDERS, Registry
from interlingua_contract.subject import Subject
from tests.contract.broken.machine import Mutant, in_capabilities


def _fresh(inner: Callable[..., Any], **_: Any) -> Any:
    found = inner()
    return attrs.evolve(found, max_output_tokens=found.max_output_tokens)


def _connection(change: Callable[[Any, Any], Any]) -> dict[str, Callable[..., Any]]:
    return {"connection": lambda inner, settings: change(inner(), settings)}


def _two_names(inner: Callable[..., Any]) -> Any:
    models = list(inner())
    return [*models[:-1], attrs.evolve(models[-1], aliases=(models[0].id,))]


def _unpriced(inner: Callable[..., Any]) -> Any:
    return [attrs.evolve(model, pricing_version=None) for model in inner()]


def _falling(inner: Callable[..., Any]) -> Any:
    falling = Price(tiers=(PriceTier(above_input_tokens=2), PriceTier(above_input_tokens=1)))
    return [attrs.evolve(model, prices=(falling,)) for model in inner()]


DECLARATIONS = (
    Mutant("audio declared, which the wire has not", "C11", in_capabilities(
        supports_audio=True, accepted_audio_media_types=("audio/wav",))),
    Mutant("video declared without a cassette", "C51", in_capabilities(supports_video=True)),
    Mutant("schemas undeclared, and sent all the same", "C19", in_capabilities(supports_structured_output=False)),
    Mutant("a new declaration for every question", "C45", {"capabilities": _fresh}),
    Mutant("an unknown model taken for known", "C45", in_capabilities(assumed=False)),
    Mutant("one name for two models", "C45", {"models": _two_names}),
    Mutant("a model listed twice", "C45", {"models": lambda inner: [*inner(), next(iter(inner()))]}),
    Mutant("prices without a version", "C45", {"models": _unpriced}),
    Mutant("tiers of prices that fall", "C45", {"models": _falling}),
    Mutant("the key in the base URL", "C43", _connection(
        lambda made, settings: attrs.evolve(made, base_url=f"{made.base_url}?key={settings.api_key}"))),
    Mutant("the key in the public headers", "C43", _connection(
        lambda made, settings: attrs.evolve(made, headers={**made.headers, "x-key": settings.api_key or ""}))),
    Mutant("plain http", "C44", _connection(
        lambda made, _: attrs.evolve(made, base_url="http://api.example.com"))),
    Mutant("another base URL ignored", "C44", _connection(
        lambda made, _: attrs.evolve(made, base_url="https://api.example.com"))),
    Mutant("no endpoints", "C44", _connection(lambda made, _: attrs.evolve(made, endpoints={}))),
)  # fmt: skip

KEY = "anthropic"
PLUGIN = "from interlingua_anthropic.plugin import plugin\n"

METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: 1.0
Summary: A provider for the shelf.
Requires-Python: >=3.11
License-Expression: Apache-2.0
Requires-Dist: interlingua
"""


@cache
def _folder() -> Path:
    """Return the folder that holds the packages; it is importable from now on and goes with the process."""
    folder = tempfile.TemporaryDirectory(prefix="interlingua-shelf-")
    _KEPT.append(folder)
    sys.path.append(folder.name)
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


class InstalledAlone(Subject):
    """A subject for which one distribution is all that is installed."""

    entry: EntryPoint

    def entries(self, group: str) -> list[EntryPoint]:
        """Return that distribution's entry point."""
        return [self.entry] if self.entry.group == group else []


@attrs.frozen
class BrokenDistribution:
    """One defect of packing.

    Attributes:
        name: the defect in a few words.
        rule: number of the rule that must catch it.
        code: what the plugin's module says.
        names: what the entry point names in it; empty for the module itself.
        without: the lines of the metadata that are missing, by their first words.
        typed: whether `py.typed` is there.
        alone: only its own rule can look at it.
    """

    name: str
    rule: str
    code: str = PLUGIN
    names: str = "plugin"
    without: tuple[str, ...] = ()
    typed: bool = True
    alone: bool = attrs.field(default=True, init=False)

    def subject(self, seed: int = 0, examples: int = 40) -> Subject:
        """Return the distribution under test."""
        package = "shelf_" + "".join(one if one.isalnum() else "_" for one in self.name)
        home, info = _folder() / package, _folder() / "metadata" / f"{package}-1.0.dist-info"
        for made in (home, info):
            made.mkdir(parents=True, exist_ok=True)
        (home / "__init__.py").write_text("", encoding="utf-8")
        (home / "plugin.py").write_text(self.code, encoding="utf-8")
        if self.typed:
            (home / "py.typed").write_text("", encoding="utf-8")
        lines = METADATA.format(name=package).splitlines(keepends=True)
        kept = "".join(line for line in lines if not line.startswith(self.without)) if self.without else "".join(lines)
        (info / "METADATA").write_text(kept, encoding="utf-8")
        value = f"{package}.plugin:{self.names}" if self.names else f"{package}.plugin"
        (info / "entry_points.txt").write_text(f"[{PROVIDERS}]\n{KEY} = {value}\n", encoding="utf-8")
        (entry,) = PathDistribution(info).entry_points
        made_subject = InstalledAlone(
            KEY, None, registry=Registry(entry_points=[entry]), seed=seed, examples=examples, shrink_s=0
        )
        made_subject.entry = entry
        return made_subject


WELL_PACKED = BrokenDistribution("nothing", "C48")

DISTRIBUTIONS = (
    BrokenDistribution("the entry point names a module", "C48", names=""),
    BrokenDistribution("the entry point names a class", "C48", PLUGIN + "plugin = type(plugin)\n"),
    BrokenDistribution("the entry point names an object without hooks", "C48", "plugin = object()\n"),
    BrokenDistribution("written for a later contract", "C48", PLUGIN + (
        "class Later(type(plugin)):\n    contract_version = 99\nplugin = Later()\n")),
    BrokenDistribution("no licence is named", "C49", without=("License",)),
    BrokenDistribution("no word on what it is", "C49", without=("Summary",)),
    BrokenDistribution("it does not depend on core", "C49", without=("Requires-Dist",)),
    BrokenDistribution("its types are not shipped", "C49", typed=False),
    BrokenDistribution("an HTTP library comes along", "C50", "import httpx\n" + PLUGIN),
    BrokenDistribution("a database comes along", "C50", "import sqlite3\n" + PLUGIN),
    BrokenDistribution("the model list is asked for while importing", "C50", (
        "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=1)\n" + PLUGIN)),
    BrokenDistribution("a table is computed while importing", "C50", (
        "import time\nend = time.process_time() + 1\nwhile time.process_time() < end:\n    pass\n" + PLUGIN)),
)  # fmt: skip
