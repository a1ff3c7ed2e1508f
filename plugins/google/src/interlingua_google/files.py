"""Files that are uploaded once and kept for 48 hours (WIRE.md, Files)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from interlingua.errors import MalformedResponseError
from interlingua.plugins import WireRequest, WireResponse, dumps, loads, multipart_body
from interlingua_google.models import API

_UPLOAD = "/upload/v1beta/files"


def file_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for `upload`, `file_status` or `delete_file`; None for media within a function's response."""
    if kind != "upload":
        name = quote(urlsplit(arguments["file"]).path.rpartition("/")[2], safe="")
        method = "DELETE" if kind == "delete_file" else "GET"
        return WireRequest(method=method, path=f"/files/{name}", body=b"", api=API)
    if arguments["in_result"]:
        return None
    return upload_request(arguments["data"], arguments["block"].media_type, arguments["name"])


def upload_request(data: bytes, media_type: str, name: str) -> WireRequest:
    """Return the request that uploads a file."""
    about = dumps({"file": {"displayName": name, "mimeType": media_type}})
    parts = [({"content-type": "application/json; charset=utf-8"}, about), ({"content-type": media_type}, data)]
    content_type, body = multipart_body(parts, "related")
    headers = {"content-type": content_type, "x-goog-upload-protocol": "multipart"}
    return WireRequest(path=_UPLOAD, headers=headers, body=body, api=API)


def read_file(kind: str, response: WireResponse) -> Any:
    """Return the address of a file, when it expires, and whether it can be referred to; None for a deletion.

    Raises:
        MalformedResponseError: the service could not read the file.
    """
    if kind == "delete_file":
        return None
    body = loads(response.body)
    file = body["file"] if kind == "upload" else body
    if file.get("state") == "FAILED":
        why = (file.get("error") or {}).get("message") or "no reason"
        raise MalformedResponseError(f"the service could not read the file: {why}")
    expires = file.get("expirationTime")
    return {
        "id": file["uri"],
        "expires_at": None if expires is None else datetime.fromisoformat(expires),
        "ready": file.get("state") != "PROCESSING",
    }
