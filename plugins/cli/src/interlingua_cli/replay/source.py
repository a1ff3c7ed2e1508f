"""Files of recorded exchanges, read line by line, and the exclusions that name some of them."""

from __future__ import annotations

import base64
import gzip
import io
import sys
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import attrs

from interlingua._json import describe_json_error, loads_lossy
from interlingua.errors import DecodeError

_GZIP = b"\x1f\x8b"


@attrs.frozen(kw_only=True)
class Recording:
    """An open recording: iterate over `lines`, ask `position` how much of `size` was read."""

    name: str
    size: int | None
    raw: IO[bytes]
    text: IO[bytes]

    @property
    def position(self) -> int:
        """Bytes of the file that were read, compressed or not."""
        return self.raw.tell() if self.size is not None else 0

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield each line that is not blank, with a name for it, such as `day.jsonl:3`."""
        number = 0
        try:
            for number, line in enumerate(self.text, 1):
                if line.strip():
                    yield f"{self.name}:{number}", line
        except (EOFError, OSError, zlib.error) as error:
            raise DecodeError(f"cannot be read further: {error}", path=f"{self.name}:{number + 1}") from error


@contextmanager
def open_recording(path: str) -> Iterator[Recording]:
    """Open a file, or standard input for `-`; gzip is recognised by its first bytes."""
    if path == "-":
        raw = sys.stdin.buffer
        yield Recording(name="stdin", size=None, raw=raw, text=_decompress(raw))
        return
    file = Path(path)
    with file.open("rb") as raw:
        yield Recording(name=file.name, size=file.stat().st_size, raw=raw, text=_decompress(raw))


def _decompress(raw: Any) -> Any:
    source = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    return io.BufferedReader(gzip.GzipFile(fileobj=source)) if source.peek(2)[:2] == _GZIP else source


_STREAM_STARTS = ("data:", "event:", "id:", "retry:", ":")
_TEXT_KINDS = (None, "", "json", "sse", "ndjson")
_NDJSON_TYPES = ("ndjson", "jsonl", "stream+json")


@attrs.frozen(kw_only=True)
class Entry:
    """One recorded exchange: a JSON object on its own line."""

    id: str  # the recording's own name, `<api>/<digest>`
    url: str  # where the request went
    status: int = 200  # HTTP status of the answer
    headers: Mapping[str, str] = attrs.field(factory=dict)  # of the answer, names in lower case
    body: bytes  # of the answer, as on the wire
    kind: str  # json, sse, ndjson, or another framing's name; read from the body if the recording has none
    model: str  # the model asked for, else the model that answered
    provider: str = ""  # the recorder's word for the service; a hint
    endpoint: str = ""  # the recorder's word for the endpoint; a hint

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
    """Read one line of a recording."""
    try:
        data = loads_lossy(line)
    except ValueError as error:
        raise DecodeError(f"not JSON: {describe_json_error(error)}", path=name) from error
    if not isinstance(data, dict):
        raise DecodeError("a recorded exchange is a JSON object", path=name)
    text = data.get("response_text") or ""
    try:
        body = base64.b64decode(data["response_b64"]) if data.get("response_b64") else _to_bytes(text)
        headers = {str(key).lower(): str(value) for key, value in (data.get("response_headers") or {}).items()}
        status = int(data.get("status") or 200)
    except (AttributeError, TypeError, ValueError) as error:
        raise DecodeError(f"not a recorded exchange: {error}", path=name) from error
    request = data.get("request")
    requested = request.get("model") if isinstance(request, dict) else None
    return Entry(
        id=str(data.get("id") or name),
        url=str(data.get("url") or ""),
        status=status,
        headers=headers,
        body=body,
        kind=_guess_kind(data.get("kind"), headers.get("content-type", ""), text[:200].lstrip("\ufeff \t\r\n")),
        model=str(requested or data.get("model") or "unknown"),
        provider=str(data.get("provider") or ""),
        endpoint=str(data.get("endpoint") or ""),
    )


def _to_bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError("response_text is not a string")
    return text.encode("utf-8", "surrogatepass")


def _guess_kind(recorded: Any, content_type: str, start: str) -> str:
    """Trust the body before the recorded kind, and that before the content type: all three are wrong at times."""
    if recorded not in _TEXT_KINDS:
        return str(recorded)
    if start.startswith(_STREAM_STARTS):
        return "sse"
    if recorded == "ndjson" or (not recorded and any(name in content_type for name in _NDJSON_TYPES)):
        return "ndjson"
    return "json" if start.startswith(("{", "[")) else str(recorded or "json")


def read_exclusions(path: str) -> dict[str, str]:
    """Read the entries to skip, id -> reason: `[[exclude]]` tables with `id` and `reason`."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise DecodeError(f"{path} is not TOML: {error}") from error
    rows = data.get("exclude", [])
    if not isinstance(rows, list):
        raise DecodeError(f"{path}: exclude is a list of tables, [[exclude]]", path="exclude")
    found = {}
    for number, row in enumerate(rows):
        for name in ("id", "reason"):
            if not (isinstance(row, dict) and isinstance(row.get(name), str) and row[name].strip()):
                raise DecodeError(f"{path}: an exclusion needs its {name}", path=f"exclude[{number}].{name}")
        found[row["id"]] = row["reason"]
    return found
