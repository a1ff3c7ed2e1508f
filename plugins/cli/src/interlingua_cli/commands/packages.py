"""`install` and `uninstall`: put distributions beside the program, by the tool that installed the program."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from interlingua.errors import CallerError
from interlingua_cli.context import plugin_option
from interlingua_cli.directory import ListedDistribution, find_listed, is_installed, read_directory, with_requirements

_MAIN = "interlingua"


@click.command("install")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--dry-run", is_flag=True, help="Print the command instead of running it.")
@plugin_option
def install(names: tuple[str, ...], dry_run: bool) -> None:
    """Install distributions beside this program.

    NAME is a distribution (interlingua-gateway), its short name (gateway) or a provider (groq); `interlingua providers
    --directory` lists them. Any other name is passed to the installer unchanged. The installer is pip, pipx or uv,
    whichever installed this program.
    """
    sources = [source for name in names for source in find_sources(name)]
    run_installer(install_command(list(dict.fromkeys(sources))), dry_run=dry_run)


@click.command("uninstall")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--dry-run", is_flag=True, help="Print the command instead of running it.")
@plugin_option
def uninstall(names: tuple[str, ...], dry_run: bool) -> None:
    """Remove distributions that are installed beside this program.

    NAME as in `interlingua install`. Stored conversations and settings stay.
    """
    found = [listed.distribution if (listed := find_listed(name)) else name for name in names]
    if _MAIN in found or "interlingua-cli" in found:
        raise click.UsageError("this would remove the program itself; use the tool that installed it")
    missing = [name for name in found if not is_installed(name)]
    if missing:
        raise click.ClickException(f"not installed: {', '.join(missing)}")
    run_installer(uninstall_command(found), dry_run=dry_run)


def find_sources(name: str) -> list[str]:
    """Return what to hand to the installer for a name: folders of a checkout, wheel files, or names on an index.

    Only this function decides where our distributions are installed from: the same place as `interlingua`.

    Raises:
        CallerError: the name is nearly a listed one, or the checkout or folder of wheels lacks the distribution.
    """
    row = find_listed(name)
    if row is None:
        return [_unlisted(name)]
    needed = [one for one in with_requirements(row) if one is row or not is_installed(one.distribution)]
    if row.tier != "ours":
        return [row.distribution]
    origin = _origin()
    if origin is None:
        return [row.distribution]
    return [part for one in needed for part in _local_source(one, origin)]


def _unlisted(name: str) -> str:
    short = [key for row in read_directory() for key in (*row.keys, row.distribution.removeprefix("interlingua-"))]
    near = get_close_matches(name.removeprefix("interlingua-"), short, n=1, cutoff=0.8)
    if near:
        raise CallerError(f"no distribution or provider {name!r} is listed; did you mean {near[0]!r}?")
    return name


def _origin() -> Path | None:
    """Return the folder (of a checkout) or the wheel file that `interlingua` was installed from; None for an index."""
    address = urlsplit(_direct_url().get("url", ""))
    return Path(unquote(address.path)) if address.scheme == "file" else None


def _direct_url() -> dict[str, Any]:
    """Return where `interlingua` was installed from, as installers write it; empty for an index."""
    text = importlib.metadata.distribution(_MAIN).read_text("direct_url.json")
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def _local_source(row: ListedDistribution, origin: Path) -> list[str]:
    if origin.is_dir():
        folder = origin.parent / "plugins" / row.distribution.removeprefix("interlingua-")
        if not folder.is_dir():
            raise CallerError(f"interlingua is installed from {origin}, and {folder} does not exist")
        return [str(folder)]
    wheels = sorted(origin.parent.glob(f"{row.distribution.replace('-', '_')}-*.whl"))
    if not wheels:
        raise CallerError(
            f"interlingua is installed from {origin}, and there is no wheel of {row.distribution} beside it"
        )
    return [str(wheels[-1])]


def _is_editable() -> bool:
    return bool(_direct_url().get("dir_info", {}).get("editable"))


def install_command(sources: list[str]) -> list[str]:
    """Return the command that installs into this program's environment.

    Raises:
        CallerError: neither pip nor uv can install there.
    """
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return ["pipx", "inject", prefix.name, *sources]
    if (prefix / "uv-receipt.toml").is_file():
        return _uv_tool(prefix, [*_receipt(prefix)[1:], *map(_as_requirement, sources)])
    editable = ("-e",) if _is_editable() else ()
    return [*_pip("install"), *(part for one in sources for part in (*(editable if Path(one).is_dir() else ()), one))]


def uninstall_command(names: list[str]) -> list[str]:
    """Return the command that removes distributions from this program's environment; errors as `install_command`."""
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return ["pipx", "uninject", prefix.name, *names]
    if (prefix / "uv-receipt.toml").is_file():
        return _uv_tool(prefix, [row for row in _receipt(prefix)[1:] if row["name"] not in names])
    answered = ["--yes"] if importlib.util.find_spec("pip") else []
    return [*_pip("uninstall"), *answered, *names]


def _pip(verb: str) -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", verb]
    if found := shutil.which("uv"):
        return [found, "pip", verb, "--python", sys.executable]
    raise CallerError(f"there is no pip in {sys.prefix} and no uv on the path: install one of them")


def _receipt(prefix: Path) -> list[dict[str, Any]]:
    """Return what `uv tool` installed, the program first."""
    receipt = tomllib.loads((prefix / "uv-receipt.toml").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = receipt["tool"]["requirements"]
    return rows


def _as_requirement(source: str) -> dict[str, Any]:
    path = Path(source)
    return {"name": source, "directory" if path.is_dir() else "path": source} if path.exists() else {"name": source}


def _uv_tool(prefix: Path, beside: list[dict[str, Any]]) -> list[str]:
    """Return the command that makes a tool's environment again with these distributions beside it.

    `uv tool` keeps what it was told, and nothing that was put there otherwise, when it upgrades.
    """
    command = ["uv", "tool", "install", _written(_receipt(prefix)[0]), "--force"]
    for row in beside:
        command += ["--with-editable" if row.get("editable") else "--with", _written(row)]
    return command


def _written(row: dict[str, Any]) -> str:
    place = row.get("editable") or row.get("directory") or row.get("path")
    extras = f"[{','.join(row['extras'])}]" if row.get("extras") else ""
    return f"{place}{extras}" if place else f"{row['name']}{extras}{row.get('specifier', '')}"


def run_installer(command: list[str], *, dry_run: bool) -> None:
    """Print an installer's command and run it; its exit code, if it is not 0, becomes ours.

    Raises:
        CallerError: the installer is not on the path.
    """
    click.echo(shlex.join(command), err=not dry_run)
    if dry_run:
        return
    try:
        done = subprocess.run(command, check=False)  # noqa: S603  the command is built here, from names
    except FileNotFoundError:
        raise CallerError(f"{command[0]} installed this program and is not on the path") from None
    if done.returncode:
        sys.exit(done.returncode)
