"""The SDKs whose types are read: installed by pip in `.cache`, without their dependencies.

The versions of the table are in `.cache/sdks`; the newest ones, whose words the table may lack, beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from tests.support import tree

FOLDER = tree.ROOT / ".cache" / "sdks"
NEWEST = tree.ROOT / ".cache" / "sdks-newest"
NAMES = (
    *("anthropic", "openai", "google-genai", "mistralai", "cohere", "botocore", "ollama", "groq", "together"),
    *("openrouter", "zai-sdk"),
)
_IMPORTED_BY_THEM = ("detect-agent",)  # what the tests' environment lacks


def install(folder: Path, versions: dict[str, str]) -> None:
    """Install the SDKs, at these versions; the newest if `versions` lacks one.

    Raises:
        CalledProcessError: pip failed.
    """
    wanted = [f"{name}=={versions[name]}" if name in versions else name for name in NAMES]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
    subprocess.run([*pip, *wanted, *_IMPORTED_BY_THEM], check=True)


def missing(folder: Path, versions: dict[str, str]) -> list[str]:
    """Return which of these versions are not in the folder."""
    found = {one.metadata["Name"].lower(): one.version for one in distributions(path=[str(folder)])}
    return [f"{name} {version}" for name, version in versions.items() if found.get(name) != version]


def table(folder: Path) -> dict[str, Any]:
    """Return the table of the SDKs in a folder, made by a Python that sees these before all others.

    Raises:
        CalledProcessError: a type cannot be read; its traceback is on standard error.
    """
    command = [sys.executable, "-m", "tests.tools.coverage.table"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "INTERLINGUA_LOG": ""}
    done = subprocess.run(command, cwd=tree.ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    made: dict[str, Any] = json.loads(done.stdout)
    return made
