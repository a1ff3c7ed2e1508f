"""Wheels of every distribution, and virtual environments that know nothing of the checkout.

pip's settings are carried over to uv, as for `.venv`. Our own names never go to a package index: each is constrained to
the wheel that was built.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import attrs

from tests.support import tree
from tests.tools.venv import CONSTRAINTS, UV, uv_environment

EXAMPLE = tree.ROOT / "docs" / "plugins" / "example"


def project(folder: Path) -> dict[str, Any]:
    """Return the [project] table of a distribution."""
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


@functools.cache
def _environment() -> dict[str, str]:
    """Ask pip for its settings once; a dozen environments link their files, and uv copies where it cannot."""
    return uv_environment() | {"UV_LINK_MODE": "hardlink"}


def uv(*command: str | Path) -> None:
    """Run uv in the workspace root; what it said is in the failure."""
    done = subprocess.run(
        [str(part) for part in (UV, *command)],
        cwd=tree.ROOT, env=_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"uv {' '.join(map(str, command))}\n{done.stderr}"


def build_wheels(into: Path) -> dict[str, Path]:
    """Build the workspace and the example, each in an environment of its own; return name -> wheel."""
    uv("build", "--quiet", "--wheel", "--all-packages", "--out-dir", into)
    uv("build", "--quiet", "--wheel", "--out-dir", into, EXAMPLE)
    return {path.name.partition("-")[0].replace("_", "-"): path for path in into.glob("*.whl")}


@attrs.frozen
class Clean:
    """One environment, and an empty folder to run in."""

    folder: Path
    wheels: dict[str, Path]

    @classmethod
    def make(cls, folder: Path, wheels: dict[str, Path]) -> Clean:
        """Create it, empty, on the interpreter of this run."""
        uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
        own = [f"{name} @ {path.as_uri()}" for name, path in wheels.items()]
        (folder / "wheels.txt").write_text("\n".join(own) + "\n", encoding="utf-8")
        return cls(folder, wheels)

    def program(self, name: str) -> Path:
        """Return a program of the environment."""
        return self.folder / "venv" / "bin" / name

    def install(self, *requirements: str | Path) -> None:
        """Install requirements: a name of ours, extras allowed, is the wheel of that name; others are constrained."""
        asked = [self._asked(each) if isinstance(each, str) else each for each in requirements]
        constraints = ("-c", CONSTRAINTS, "-c", self.folder / "wheels.txt")
        uv("pip", "install", "--quiet", "--python", self.program("python"), *constraints, *asked)

    def _asked(self, requirement: str) -> str:
        wheel = self.wheels.get(requirement.partition("[")[0])
        return f"{requirement} @ {wheel.as_uri()}" if wheel else requirement

    def run(self, program: str, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment away from the checkout, without what this run's environment knows of it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "INTERLINGUA_"))}
        return subprocess.run(
            [str(self.program(program)), *map(str, arguments)],
            cwd=cwd or self.folder, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def asked(self, script: str) -> Any:
        """Run a script that prints JSON, and return that."""
        done = self.run("python", "-I", "-c", script)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
