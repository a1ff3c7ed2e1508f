"""One configuration for every cassette, and a plain reader for the files: bodies stand in them parsed and readable.

Nothing is sent from here; recording happens only where a recorder says so. Tests that own a cassette and the recorder
come in.

`vcr_config()` goes to pytest-recording's fixture of that name. `register(vcr)` makes `serializer` known: a JSON body is
stored under `parsed_body` as YAML, an event stream under `lines`, everything else as vcr's own `string`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from tests.support.tree import ROOT

FOLDER = ROOT / "cassettes"
REQUEST_HEADERS = {"content-type", "accept", "anthropic-version", "anthropic-beta"}
RESPONSE_HEADERS = {"content-type", "retry-after", "retry-after-ms", "x-should-retry"}
NAME = "readable-yaml"
FORMS = ("parsed_body", "lines", "string")


@attrs.frozen(kw_only=True)
class Exchange:
    """One request and its answer as a cassette holds them; `request` is parsed JSON or None."""

    method: str
    uri: str
    request: Any
    request_headers: dict[str, str]
    status: int
    headers: dict[str, str]
    body: bytes


def vcr_config() -> dict[str, Any]:
    """Return vcr's options: nothing recorded, the body matched too, only the allowed headers kept."""
    return {
        "record_mode": "none",
        "match_on": ["method", "path", "body"],
        "serializer": NAME,
        "decode_compressed_response": True,
        "before_record_request": _allowed_request,
        "before_record_response": _allowed_response,
    }


def register(vcr: Any) -> None:
    """Make the serializer known to a VCR object (pytest-recording's `pytest_recording_configure` hook)."""
    vcr.register_serializer(NAME, Serializer)


class Serializer:
    """vcr's serializer interface: bodies go to the file parsed and come back as the bytes that were sent."""

    @staticmethod
    def serialize(cassette: dict[str, Any]) -> str:
        """Write a cassette."""
        for interaction in cassette["interactions"]:
            request, response = interaction["request"], interaction["response"]
            request.update(_readable(request.pop("body", None)))
            response["body"] = _readable(response["body"].get("string"))
        return yaml.safe_dump(cassette, sort_keys=False, allow_unicode=True, width=120)

    @staticmethod
    def deserialize(text: str) -> dict[str, Any]:
        """Read a cassette."""
        cassette: dict[str, Any] = yaml.safe_load(text)
        for interaction in cassette["interactions"]:
            request, response = interaction["request"], interaction["response"]
            request["body"] = _bytes(request)
            for form in FORMS:  # vcr makes its request of these fields and knows no others
                request.pop(form, None)
            response["body"] = {"string": _bytes(response["body"]) or b""}
        return cassette


def load_exchanges(path: str | Path) -> list[Exchange]:
    """Read a cassette's exchanges.

    Args:
        path: absolute, or relative to the cassettes folder.
    """
    cassette = Serializer.deserialize((FOLDER / path).read_text(encoding="utf-8"))
    return [_exchange(item["request"], item["response"]) for item in cassette["interactions"]]


def _exchange(request: Mapping[str, Any], response: Mapping[str, Any]) -> Exchange:
    body = request.get("body")
    return Exchange(
        method=request["method"],
        uri=request["uri"],
        request=json.loads(body) if body else None,
        request_headers=_single(request.get("headers")),
        status=response["status"]["code"],
        headers=_single(response.get("headers")),
        body=response["body"]["string"],
    )


def _single(headers: Mapping[str, Any] | None) -> dict[str, str]:
    return {
        name.lower(): value[0] if isinstance(value, list) else str(value) for name, value in (headers or {}).items()
    }


def _readable(body: Any) -> dict[str, Any]:
    """Choose the most readable form that gives the same bytes back."""
    if body in (None, b"", ""):
        return {}
    text = body.decode("utf-8") if isinstance(body, bytes) else str(body)
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if parsed is not None and _compact(parsed) == text:
        return {"parsed_body": parsed}
    if parsed is None and "\n\n" in text and "\r" not in text:
        return {"lines": text.split("\n")}
    return {"string": text}


def _bytes(holder: Mapping[str, Any]) -> bytes | None:
    if "parsed_body" in holder:
        return _compact(holder["parsed_body"]).encode()
    if "lines" in holder:
        return "\n".join(holder["lines"]).encode()
    text = holder.get("string", holder.get("body"))
    return text.encode() if isinstance(text, str) else text


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _allowed_request(request: Any) -> Any:
    request.headers = {name: value for name, value in request.headers.items() if name.lower() in REQUEST_HEADERS}
    return request


def _allowed_response(response: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in response["headers"].items() if name.lower() in RESPONSE_HEADERS}
    return {**response, "headers": kept}
