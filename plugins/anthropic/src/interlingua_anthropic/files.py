"""Files that are uploaded once: pictures and documents (WIRE.md, Files)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from interlingua.plugins import WireRequest, WireResponse, form_body, loads
from interlingua_anthropic.models import API

_PATH = "/v1/files"


def file_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for `upload` or `delete_file`; None for media that a request cannot refer to."""
    if kind == "delete_file":
        return WireRequest(method="DELETE", path=f"{_PATH}/{quote(arguments['file'], safe='')}", body=b"", api=API)
    block = arguments["block"]
    if block.type not in ("image", "document"):
        return None
    content_type, body = form_body({}, arguments["name"], block.media_type, arguments["data"])
    return WireRequest(path=_PATH, headers={"content-type": content_type}, body=body, api=API)


def read_file(kind: str, response: WireResponse) -> Any:
    """Return the id of an uploaded file and when it expires; None for a deletion."""
    if kind == "delete_file":
        return None
    body = loads(response.body)
    expires = body.get("expires_at")
    return {"id": body["id"], "expires_at": None if expires is None else datetime.fromisoformat(expires)}
