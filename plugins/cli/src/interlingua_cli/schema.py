"""JSON Schemas for answers: written as JSON, as a file, as a stored id, or in a short form such as `name, age int`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.errors import CallerError
from interlingua_cli.completion import complete_files
from interlingua_cli.config import data_folder

if TYPE_CHECKING:
    from interlingua_output import Output

_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OF_TEMPLATE = "t:"  # prefix of a template's schema
OUTPUT_NAME = "answer"  # name of the schema, and of the tool that carries the answer if a service has no schemas
_ID = re.compile(r"[0-9a-f]{16}\Z")


def parse_short_form(text: str) -> dict[str, Any]:
    """Return the schema of a short form.

    Fields are separated by commas, or by line ends, which lets hints hold commas. Each is a name, then `str` (the
    default), `int`, `float` or `bool`, then a hint behind a colon: `name, age int, tags: words with commas between`.

    Raises:
        CallerError: a field has no name, or another type.
    """
    properties: dict[str, Any] = {}
    for part in text.split("\n" if "\n" in text.strip() else ","):
        field, _, hint = (piece.strip() for piece in part.partition(":"))
        if not field:
            continue
        name, _, kind = field.partition(" ")
        kind = kind.strip() or "str"
        if not _NAME.match(name) or kind not in _TYPES:
            raise CallerError(
                f"{part.strip()!r} is not a field: write NAME, then one of {', '.join(_TYPES)}, then : HINT"
            )
        properties[name] = {"type": _TYPES[kind], **({"description": hint} if hint else {})}
    if not properties:
        raise CallerError("the schema has no field: write it as name, age int, tags: a hint")
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def many(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object whose `items` are of this one."""
    items = {"type": "array", "items": dict(schema)}
    return {"type": "object", "properties": {"items": items}, "required": ["items"], "additionalProperties": False}


def read_schema(text: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of an argument: JSON, an existing file, a stored id, or the short form.

    Raises:
        CallerError: the argument has another form.
        OSError: the file cannot be read.
    """
    text = text.strip()
    if text.startswith("{"):
        return _parse(text, "the schema")
    if "\n" not in text and Path(text).is_file():
        return _parse(Path(text).read_text(encoding="utf-8"), text)
    if _ID.match(text):
        return stored_schema(text, environ)
    if text.endswith(".json"):
        raise CallerError(f"no such file: {text}")
    return parse_short_form(text)


def stored_schema(name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the stored schema of an id.

    Raises:
        CallerError: no schema with this id is stored.
    """
    stored = _folder(environ) / f"{name}.json"
    if not _ID.match(name) or not stored.is_file():
        raise CallerError(f"no schema {name!r} is stored: `interlingua schemas` lists the stored ones")
    return _parse(stored.read_text(encoding="utf-8"), str(stored))


def given_schema(environ: Mapping[str, str], schema: str | None, schema_multi: str | None) -> dict[str, Any] | None:
    """Return the schema of `--schema` or `--schema-multi`, which may be a template's; None if neither is set.

    Raises:
        click.UsageError: both are set.
        CallerError, OSError: as `read_schema` and `read_template`.
    """
    if schema is not None and schema_multi is not None:
        raise click.UsageError("--schema is for one object, --schema-multi for a list: pass only one of them")
    if schema is not None and schema.startswith(_OF_TEMPLATE):
        from interlingua_cli.template import read_template  # noqa: PLC0415  few schemas are a template's

        template = read_template(schema.removeprefix(_OF_TEMPLATE), environ)
        if isinstance(template.schema, Mapping):
            return dict(template.schema)
        return given_schema(environ, template.schema, template.schema_multi)
    if schema is not None:
        return read_schema(schema, environ)
    return None if schema_multi is None else many(read_schema(schema_multi, environ))


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise CallerError(f"{name} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise CallerError(f"{name} is not a JSON object")
    return schema


def schema_id(schema: Mapping[str, Any]) -> str:
    """Return the id of a schema; equal ones share it."""
    text = json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def store_schema(schema: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Keep a schema for later and return its id."""
    from interlingua_cli.input import write_file  # noqa: PLC0415  most runs have no schema

    name = schema_id(schema)
    path = _folder(environ) / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(schema, ensure_ascii=False, indent=2) + "\n")
    return name


def stored_schemas(environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the stored schemas by id, the newest first."""
    files = sorted(_folder(environ).glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return {path.stem: _parse(path.read_text(encoding="utf-8"), str(path)) for path in files}


def _folder(environ: Mapping[str, str]) -> Path:
    return data_folder(environ) / "schemas"


def describe_schema(schema: Mapping[str, Any]) -> str:
    """Return a schema in the short form as far as possible, without hints."""
    shape = schema.get("properties", {})
    inner = shape.get("items", {}).get("items") if list(shape) == ["items"] else None
    if isinstance(inner, Mapping):
        return f"items: [{describe_schema(inner)}]"
    short = {value: key for key, value in _TYPES.items()}
    kinds = ((name, short.get(str(field.get("type")), str(field.get("type", "any")))) for name, field in shape.items())
    return ", ".join(name if kind == "str" else f"{name} {kind}" for name, kind in kinds)


def schema_output(schema: Mapping[str, Any]) -> Output[Any]:
    """Return the output format that requests JSON of a schema."""
    from interlingua_output import Output  # noqa: PLC0415  slow to import; few questions have a schema

    return Output(schema, name=OUTPUT_NAME)


schema_option = click.option(
    "--schema", metavar="SCHEMA", shell_complete=complete_files,
    help="Answer with JSON of this schema: JSON, a file, a stored id, t:TEMPLATE, or `name, age int, tags: a hint`.",
)  # fmt: skip
schema_multi_option = click.option(
    "--schema-multi",
    metavar="SCHEMA",
    shell_complete=complete_files,
    help="As --schema, for a list of these objects under `items`.",
)
