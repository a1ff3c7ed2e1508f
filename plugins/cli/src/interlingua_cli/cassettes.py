"""Read cassettes: vcr's YAML files of recorded exchanges.

In addition to vcr's `string`, a JSON body may be under `parsed_body` as YAML, an event stream under `lines`, and
other bytes under `base64`.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from interlingua.errors import CallerError


@attrs.frozen(kw_only=True)
class RecordedExchange:
    """One request and its answer."""

    cassette: str  # file name without its ending
    method: str
    uri: str  # the whole URL
    request: Any  # the request's body if it is JSON, parsed; else None
    request_body: bytes  # the request's body as bytes
    request_headers: Mapping[str, str]  # names in lower case
    status: int
    headers: Mapping[str, str]  # response headers, names in lower case
    body: bytes  # response body
    streamed: bool  # its content type is an event stream's; `Subject` also checks the framing
    echo: Mapping[str, Any] = attrs.field(factory=dict)  # of the follow-ups that led to the answer
    continued: bool = False  # several requests were billed for the answer, so their counts add up

    @property
    def good(self) -> bool:
        """True if the status is below 400."""
        return self.status < 400


def read_cassette(path: Path) -> list[RecordedExchange]:
    """Read one file.

    Raises:
        CallerError: the file is not a cassette.
    """
    import yaml  # noqa: PLC0415  slow to import; only cassettes need it

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        content = yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506  safe, and ten times as fast in C
        return [_read_exchange(path.stem, item) for item in content["interactions"]]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise CallerError(f"{path.name} is not a cassette: {type(error).__name__}: {error}") from error


def read_cassettes(folder: Path) -> list[RecordedExchange]:
    """Read every cassette of a folder and of those below it, in order of their paths."""
    return [exchange for path in sorted(folder.rglob("*.yaml")) for exchange in read_cassette(path)]


def read_body(holder: Mapping[str, Any]) -> bytes:
    """Return the bytes of a body in any form that a cassette may have."""
    if "parsed_body" in holder:
        return json.dumps(holder["parsed_body"], ensure_ascii=False, separators=(",", ":")).encode()
    if "lines" in holder:
        return "\n".join(holder["lines"]).encode()
    if "base64" in holder:
        return b64decode(holder["base64"])
    value = holder.get("string", holder.get("body"))
    if isinstance(value, Mapping):
        return read_body(value)
    if isinstance(value, str):
        return value.encode()
    return value or b""


def _read_exchange(name: str, item: Mapping[str, Any]) -> RecordedExchange:
    request, response = item["request"], item["response"]
    body = read_body(request)
    headers = _first_values(response.get("headers"))
    return RecordedExchange(
        cassette=name,
        method=request["method"],
        uri=request["uri"],
        request=_parse_json(body),
        request_body=body,
        request_headers=_first_values(request.get("headers")),
        status=response["status"]["code"],
        headers=headers,
        body=read_body(response["body"]),
        streamed=any(word in headers.get("content-type", "") for word in ("event-stream", "ndjson", "jsonl")),
    )


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _first_values(headers: Mapping[str, Any] | None) -> dict[str, str]:
    return {
        name.lower(): str(value[0] if isinstance(value, list) else value) for name, value in (headers or {}).items()
    }
