"""What pytest-recording needs to know of our cassettes: their readable form, and which headers may stand in them.

Never records by itself: `pytest --record-mode=once` does, and without it nothing is sent. The suite comes in, and
whoever records otherwise.

`vcr_config()` goes to pytest-recording's fixture of that name; `register(vcr)` makes the form known: a JSON body is
stored under `parsed_body` as YAML, an event stream under `lines`, everything else as vcr's own `string`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

import yaml

from interlingua_cli.cassettes import read_body

NAME = "readable-yaml"


REQUEST_HEADERS = frozenset({"content-type", "accept"})


ANSWER_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry"})


_FORMS = ("parsed_body", "lines", "string")


_KEYS = ("key", "api_key", "api-key", "access_token", "token")


def vcr_config(headers: Collection[str] = ()) -> dict[str, Any]:
    """Return vcr's options: nothing recorded unless asked for, the body matched too, only allowed headers kept.

    Args:
        headers: lower-case names of request headers that the wire demands and that are no secret.
    """
    return {
        "record_mode": "none",
        "match_on": ["method", "path", "body"],
        "serializer": NAME,
        "path_transformer": _named,
        "decode_compressed_response": True,
        "filter_query_parameters": list(_KEYS),
        "before_record_request": _asking(REQUEST_HEADERS | {name.lower() for name in headers}),
        "before_record_response": _answering,
    }


def register(vcr: Any) -> None:
    """Make the form known to a VCR object (pytest-recording's `pytest_recording_configure` hook)."""
    vcr.register_serializer(NAME, Serializer)


def pytest_recording_configure(config: Any, vcr: Any) -> None:
    """pytest-recording's hook; `ProviderContract` makes this module one of pytest's plugins when a test needs it."""
    register(vcr)


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
            request["body"] = read_body(request) or None
            for form in _FORMS:  # vcr makes its request of these fields and knows no others
                request.pop(form, None)
            response["body"] = {"string": read_body(response["body"])}
        return cassette


def _readable(body: Any) -> dict[str, Any]:
    """Choose the most readable form that gives the same bytes back."""
    if body in (None, b"", ""):
        return {}
    text = body.decode("utf-8") if isinstance(body, bytes) else str(body)
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if parsed is not None and json.dumps(parsed, ensure_ascii=False, separators=(",", ":")) == text:
        return {"parsed_body": parsed}
    if parsed is None and "\n\n" in text and "\r" not in text:
        return {"lines": text.split("\n")}
    return {"string": text}


def _named(path: str) -> str:
    return path if path.endswith(".yaml") else f"{path}.yaml"


def _asking(allowed: Collection[str]) -> Callable[[Any], Any]:
    def keep(request: Any) -> Any:
        request.headers = {name: value for name, value in request.headers.items() if name.lower() in allowed}
        return request

    return keep


def _answering(response: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in response["headers"].items() if name.lower() in ANSWER_HEADERS}
    return {**response, "headers": kept}
