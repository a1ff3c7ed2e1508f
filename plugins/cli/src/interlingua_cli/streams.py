"""The standard streams: repaired when the program starts, and text made safe to write to a terminal."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from interlingua._json import repair_surrogates

_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"}


def prepare_streams() -> None:
    """Replace closed streams, and let those that are not UTF-8 escape what they cannot write."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  open as long as the program
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit("error: standard output is closed; to throw the output away, send it to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not supports_unicode(stream):
            stream.reconfigure(errors="backslashreplace")


def supports_unicode(stream: TextIO) -> bool:
    """Tell whether this stream's encoding has every character."""
    return (stream.encoding or "").lower().replace("-", "").replace("_", "").startswith("utf")


def escape_controls(text: str, stream: TextIO) -> str:
    """Return text of a model or a file as it may be written to this stream.

    On a terminal control characters become escapes: they could move the cursor, or change what is on screen.
    """
    return repair_surrogates(text).translate(_VISIBLE) if stream.isatty() else repair_surrogates(text)
