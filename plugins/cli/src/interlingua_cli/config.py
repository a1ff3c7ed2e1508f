"""The user's configuration file: presets, aliases, settings, the default model; names of key variables, never keys."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from interlingua.errors import CallerError, DecodeError

VARIABLE = "INTERLINGUA_CONFIG"
PRICES = "INTERLINGUA_PRICES"
_VALUES: dict[str, type] = {"default_model": str, "log": bool}
_SETTINGS: dict[str, type] = {"api_key_env": str, "base_url": str, "api": str, "options": dict}


@attrs.frozen(kw_only=True)
class Config:
    """The file's content, checked."""

    # provider key -> preset, for the format that reads it
    presets: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    aliases: Mapping[str, str] = attrs.field(factory=dict)  # short name -> `<provider>:<model>`
    # provider key -> `api_key_env`, `base_url`, `api`, `options`
    providers: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    default_model: str | None = None  # used if no model is passed
    log: bool = True  # keep prompts and answers in the store

    def settings(self, environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Return the client's `settings`, each key read from its environment variable."""
        found = {}
        for key, table in self.providers.items():
            settings = {name: value for name, value in table.items() if name != "api_key_env"}
            if secret := environ.get(table.get("api_key_env", "")):
                settings["api_key"] = secret
            found[key] = settings
        return found


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the file's path: the variable's value, else `interlingua/config.toml` in the user's config folder."""
    if named := environ.get(VARIABLE):
        return Path(named).expanduser()
    folder = environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path("~/.config").expanduser()) / "interlingua" / "config.toml"


def prices_path(environ: Mapping[str, str]) -> Path:
    """Return the file of the user's prices: the variable's value, else `prices.json` beside the configuration."""
    named = environ.get(PRICES)
    return Path(named).expanduser() if named else config_path(environ).with_name("prices.json")


def read_config(environ: Mapping[str, str]) -> Config:
    """Read the file; a missing file is an empty configuration, unless the variable is set."""
    path = config_path(environ)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if environ.get(VARIABLE):
            raise DecodeError(f"{VARIABLE} is {path}, but there is no such file") from error
        return Config()
    except (OSError, ValueError) as error:
        raise DecodeError(f"cannot read {path}: {error}") from error
    return _check(data, path)


def write_value(environ: Mapping[str, str], name: str, *, value: str | bool) -> Path:
    """Set one value above the tables of the configuration file, keep the rest, and return the file's path.

    Raises:
        CallerError: the path in the variable is not a file, such as /dev/null.
        DecodeError: the file cannot be read.
    """
    from interlingua_cli.input import write_file  # noqa: PLC0415  most runs write nothing

    path = config_path(environ)
    if path.exists() and not path.is_file():
        raise CallerError(f"{path} is not a file: set {VARIABLE} to another path, or unset it")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    first_table = re.search(r"^\s*\[", text, re.MULTILINE)
    at = first_table.start() if first_table else len(text)
    head = re.sub(rf"^{name}[ \t]*=.*\n?", "", text[:at], flags=re.MULTILINE)
    changed = f"{name} = {json.dumps(value, ensure_ascii=False)}\n{head}{text[at:]}"
    try:
        _check(tomllib.loads(changed), path)
    except ValueError as error:
        raise DecodeError(f"cannot change {path}: {error}") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path.resolve(), changed, private=True)  # keep a symbolic link to the file
    return path


def data_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the command line's data: `interlingua` in the user's data folder."""
    folder = environ.get("XDG_DATA_HOME")
    return (Path(folder) if folder else Path("~/.local/share").expanduser()) / "interlingua"


def _check(data: dict[str, Any], file: Path) -> Config:
    known = attrs.fields_dict(Config)
    for name, table in data.items():
        if name not in known:
            raise DecodeError(f"{file}: unknown setting; known are {', '.join(known)}", path=name)
        _check_type(file, name, table, _VALUES.get(name, dict))
        if name in _VALUES:
            continue
        for key, value in table.items():
            _check_type(file, f"{name}.{key}", value, str if name == "aliases" else dict)
    for key, table in data.get("providers", {}).items():
        for name, value in table.items():
            if name not in _SETTINGS:
                text = f"{file}: unknown setting; known are {', '.join(_SETTINGS)}"
                hint = (
                    "; keep the key in the environment and set api_key_env to its variable" if name == "api_key" else ""
                )
                raise DecodeError(text + hint, path=f"providers.{key}.{name}")
            _check_type(file, f"providers.{key}.{name}", value, _SETTINGS[name])
    return Config(**data)


def _check_type(file: Path, path: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        wanted = {dict: "a table", str: "a string", bool: "true or false"}[kind]
        raise DecodeError(f"{file}: expected {wanted}, got {type(value).__name__}", path=path)
