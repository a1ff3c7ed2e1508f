"""One recorded exchange as a value: the request's address, the answer's status, headers and exact bytes.

Never decodes a body; what is missing in a recording is told from what is there.
The other modules of this room come in, and tests that read recordings.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.errors import DecodeError
from interlingua.json import line_fault, loads_fast

_STREAM_STARTS = ("data:", "event:", "id:", "retry:", ":")


_TEXT_KINDS = (None, "", "json", "sse", "ndjson")


_NDJSON_TYPES = ("ndjson", "jsonl", "stream+json")


@attrs.frozen(kw_only=True)
class Entry:
    """One exchange (format: the corpus's README, one JSON object a line).

    Attributes:
        id: the recording's own name, `<api>/<digest>`.
        url: where the request went.
        status: HTTP status of the answer.
        headers: of the answer, names in lower case.
        body: of the answer, as on the wire.
        kind: json, sse, ndjson, or another framing's name; told from the body where the recorder did not say.
        model: the model asked for, else the one that answered.
        provider: the recorder's word for the service; a hint.
        endpoint: the recorder's word for the endpoint; a hint.
    """

    id: str
    url: str
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes
    kind: str
    model: str
    provider: str = ""
    endpoint: str = ""

    @property
    def group(self) -> str:
        """The API the entry is counted under: the prefix of its id, else its endpoint."""
        prefix, slash, _ = self.id.partition("/")
        return prefix if slash else self.endpoint or "unnamed"

    @property
    def streamed(self) -> bool:
        """True when the body is framed events, whatever was asked for and whatever the content type says."""
        return self.kind != "json"


def read_entry(line: bytes, name: str) -> Entry:
    """Read one line of a recording.

    Args:
        line: JSON text.
        name: what to call an entry that has no id.

    Raises:
        DecodeError: the line is no JSON object, or its fields are not what they should be.
    """
    try:
        data = loads_fast(line)
    except ValueError as error:
        raise DecodeError(f"not JSON: {line_fault(error)}", path=name) from error
    if not isinstance(data, dict):
        raise DecodeError("a recorded exchange is a JSON object", path=name)
    text = data.get("response_text") or ""
    try:
        body = base64.b64decode(data["response_b64"]) if data.get("response_b64") else _bytes(text)
        headers = {str(key).lower(): str(value) for key, value in (data.get("response_headers") or {}).items()}
        status = int(data.get("status") or 200)
    except (AttributeError, TypeError, ValueError) as error:
        raise DecodeError(f"not a recorded exchange: {error}", path=name) from error
    return Entry(
        id=str(data.get("id") or name),
        url=str(data.get("url") or ""),
        status=status,
        headers=headers,
        body=body,
        kind=_kind(data.get("kind"), headers.get("content-type", ""), text[:200].lstrip("\ufeff \t\r\n")),
        model=_model(data),
        provider=str(data.get("provider") or ""),
        endpoint=str(data.get("endpoint") or ""),
    )


def _bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError("response_text is not a string")
    return text.encode("utf-8", "surrogatepass")


def _kind(said: Any, content_type: str, start: str) -> str:
    """Trust the body before the recorder's word, and that before the content type: all three occur wrong."""
    if said not in _TEXT_KINDS:
        return str(said)
    if start.startswith(_STREAM_STARTS):
        return "sse"
    if said == "ndjson" or (not said and any(name in content_type for name in _NDJSON_TYPES)):
        return "ndjson"
    return "json" if start.startswith(("{", "[")) else str(said or "json")


def _model(data: Mapping[str, Any]) -> str:
    request = data.get("request")
    asked = request.get("model") if isinstance(request, dict) else None
    return str(asked or data.get("model") or "unknown")
