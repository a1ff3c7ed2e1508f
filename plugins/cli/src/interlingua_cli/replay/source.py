"""Files of recorded exchanges, read line by line: plain, gzipped, or standard input.

Never holds more than one line, and never reads what a line says.
The command line comes in.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import attrs

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
        """Bytes of the file that were read, compressed where it is."""
        return self.raw.tell() if self.size is not None else 0

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield each line that is not blank, with a name for it, such as `day.jsonl:3`.

        Raises:
            DecodeError: it cannot be read further, such as a gzip file that was cut short; `path` names the line.
        """
        number = 0
        try:
            for number, line in enumerate(self.text, 1):
                if line.strip():
                    yield f"{self.name}:{number}", line
        except (EOFError, OSError, zlib.error) as error:
            raise DecodeError(f"cannot be read further: {error}", path=f"{self.name}:{number + 1}") from error


@contextmanager
def open_recording(path: str) -> Iterator[Recording]:
    """Open a file, or standard input for `-`; gzip is known by its first bytes, not by a name.

    Raises:
        OSError: it cannot be read.
    """
    if path == "-":
        raw = sys.stdin.buffer
        yield Recording(name="stdin", size=None, raw=raw, text=_plain(raw))
        return
    file = Path(path)
    with file.open("rb") as raw:
        yield Recording(name=file.name, size=file.stat().st_size, raw=raw, text=_plain(raw))


def _plain(raw: Any) -> Any:
    source = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    return io.BufferedReader(gzip.GzipFile(fileobj=source)) if source.peek(2)[:2] == _GZIP else source
