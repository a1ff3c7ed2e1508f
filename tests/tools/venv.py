"""Make .venv from nothing: Python's own venv, uv by pip, the workspace editable at the pinned versions.

pip's settings are read and carried over to uv, which does not read them itself. The Makefile runs it:
`python3 tests/tools/venv.py demo|dev|docs|ray|constraints|hashes`.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
RAY = ROOT / ".venv-ray"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
CONSTRAINTS = ROOT / "constraints.txt"
HASHES = ROOT / "tests" / "tools" / "hashes.txt"
OLDEST = (3, 11)

# pip's setting -> (uv's variable, separator uv expects)
CARRIED = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "no-index": ("UV_NO_INDEX", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "cert": ("SSL_CERT_FILE", " "),
}

LOCAL = (
    "UV_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_BUILD_CONSTRAINT",
)  # hold some files of a version only

HEADER = """\
# The versions the demo, the tests and the tools run on: name==version only, never an address.
# Refresh with `make constraints`. The published packages ask only for the minimum versions of their pyproject.
"""


HASHES_HEADER = """\
# The SHA-256 of every file of the versions in constraints.txt, whichever index they are from: uv installs no other.
# `make constraints` writes it with the versions, `python3 tests/tools/venv.py hashes` alone.
"""


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command in the workspace root; on failure stop with its exit code."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=env, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def works(*command: str | Path) -> bool:
    """Tell whether a command exits 0; its output is not shown."""
    try:
        done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def pip_settings() -> dict[str, str]:
    """Return pip's settings by bare name; the environment goes before `install`, and that before `global`."""
    python = PYTHON if works(PYTHON, "-m", "pip", "--version") else sys.executable
    listing = subprocess.run(
        [str(python), "-m", "pip", "config", "list"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    rank = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in rank and rank[section] >= found.get(name, (0, ""))[0]:
            found[name] = (rank[section], str(ast.literal_eval(value)))
    return {name: value for name, (_, value) in found.items()}


def uv_environment() -> dict[str, str]:
    """Return the environment for uv: the caller's own, plus pip's settings where the caller set none for uv."""
    env = dict(os.environ)
    settings = pip_settings()
    for name, (variable, separator) in CARRIED.items():
        if name in settings:
            env.setdefault(variable, separator.join(settings[name].split()))
    if "extra-index-url" in settings:  # pip looks for the best version in all indexes; uv stops at the first
        env.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    env.setdefault("UV_BUILD_CONSTRAINT", str(HASHES))  # the build backend is pinned too
    env.setdefault("UV_LINK_MODE", "copy")  # a cache on another disk is no reason for a warning
    return env


def make_venv() -> None:
    """Create .venv when it is not there; without ensurepip (a minimal Debian) it is made without pip."""
    if PYTHON.exists():
        return
    print("creating .venv", flush=True)
    if not works(sys.executable, "-m", "venv", VENV):
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", VENV)


def pip_command() -> list[str | Path]:
    """Return a pip that installs into .venv: its own, or the caller's pointed at it."""
    if works(PYTHON, "-m", "pip", "--version") or works(PYTHON, "-m", "ensurepip"):
        return [PYTHON, "-m", "pip"]
    if works(sys.executable, "-m", "pip", "--version"):
        return [sys.executable, "-m", "pip", "--python", PYTHON]
    sys.exit(f"{sys.executable} has neither ensurepip nor pip: install its venv or pip package and run make again")


def installer() -> tuple[list[str | Path], dict[str, str]]:
    """Return the command that installs into .venv and its environment: uv, or pip where uv cannot be had."""
    if not UV.exists():
        pip = pip_command()
        print("installing uv", flush=True)
        if not works(*pip, "install", "--quiet", "-c", CONSTRAINTS, "uv") and not works(*pip, "install", "uv"):
            print("uv cannot be had here: falling back to pip, which is slower", flush=True)
            return [*pip, "install", "--quiet"], dict(os.environ)
    return [UV, "pip", "install", "--quiet", "--python", PYTHON, "-c", HASHES], uv_environment()


def requirements(group: str) -> list[str]:
    """Return the requirements of a dependency group (dev or docs) that are not distributions of this workspace."""
    import tomllib  # an older Python must reach the message at the end of this file

    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    return [requirement for requirement in groups[group] if not requirement.startswith("interlingua")]


def workspace(extras: str, *, of_demo: bool = False) -> list[str | Path]:
    """Return the arguments that install the workspace editable, core with these extras; contract is one of them.

    The demo needs the command line and the providers alone.
    """
    folders: list[str | Path] = [f"./core[{extras}]"]
    plugins = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
    if of_demo:
        groups = ('"interlingua.providers"', '"interlingua.presets"', '"interlingua.formats"')
        plugins = [
            path
            for path in plugins
            if path.name == "cli" or any(group in (path / "pyproject.toml").read_text() for group in groups)
        ]
    folders += [path for path in plugins if path.name != "contract" or "contract" in extras.split(",")]
    return [part for folder in folders for part in ("-e", folder)]


def install(kind: str) -> None:
    """Install what `kind` (demo, dev or docs) needs and write its stamp; the others hold all of demo."""
    make_venv()
    command, env = installer()
    everything = workspace("cli,contract,images")
    what = workspace("cli", of_demo=True) if kind == "demo" else [*everything, *requirements(kind)]
    print(f"installing the workspace ({kind})", flush=True)
    run(*command, "-c", CONSTRAINTS, *what, env=env)
    for stamp in {"demo", kind}:
        (VENV / f".{stamp}").touch()


def install_ray() -> None:
    """Make .venv-ray: what the tests of bulk on Ray need, beside .venv, for Ray is six times as large."""
    _, env = installer()
    python = RAY / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", "--without-pip", RAY)
    names = ("cli", "output", "serving", "contract", "chat-completions", "openai")
    folders = ["./core", *(f"./plugins/{name}" for name in names)]
    what = [part for folder in [*folders, "./plugins/bulk[ray,parquet]"] for part in ("-e", folder)]
    tests = ["pytest", "hypothesis", "pyyaml", "httpx"]
    run(UV, "pip", "install", "--quiet", "--python", python, "-c", HASHES, *what, *tests, env=env)


def write_constraints() -> None:
    """Resolve everything anew, for the oldest Python served, and write constraints.txt."""
    make_venv()
    installer()
    optional: list[str | Path] = ["-e", "./plugins/bulk[ray,parquet]"]  # not in .venv: `.ci/run` installs it beside
    groups = [*requirements("dev"), *requirements("docs"), *requirements("release")]
    asked = [*workspace("cli,contract,images"), *optional, *groups, "hatchling", "editables", "uv"]
    oldest = ".".join(map(str, OLDEST))
    done = subprocess.run(
        [UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-version", oldest, "-"],
        input="\n".join(map(str, asked)).replace("-e\n", "-e "),
        cwd=ROOT,
        env=uv_environment(),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    pins = [line.split(";")[0].strip() for line in done.stdout.splitlines() if "==" in line]
    CONSTRAINTS.write_text(HEADER + "\n".join(pins) + "\n")
    print(f"constraints.txt: {len(pins)} versions")
    write_hashes()


def write_hashes() -> None:
    """Ask the index for the digests of every pinned version, and write them."""
    make_venv()
    installer()
    pins = [line for line in CONSTRAINTS.read_text().splitlines() if "==" in line]
    env = {name: value for name, value in uv_environment().items() if name not in LOCAL}
    done = subprocess.run(
        [UV, "pip", "compile", "--quiet", "--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "-"],
        input="\n".join(pins),
        cwd=ROOT,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    HASHES.write_text(HASHES_HEADER + done.stdout)
    print(f"{HASHES.relative_to(ROOT)}: {done.stdout.count('--hash')} digests")


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(f"Python >= 3.11 is needed, this is {sys.version.split()[0]}: say make PYTHON=/path/to/python3.11")
    if sys.argv[1:] == ["constraints"]:
        write_constraints()
    elif sys.argv[1:] == ["hashes"]:
        write_hashes()
    elif sys.argv[1:] == ["ray"]:
        install_ray()
    else:
        install(sys.argv[1])
