"""The standard streams: made fit for use, and what may be written to them."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from interlingua.json import replace_lone_surrogates

_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"}


def prepare_streams() -> None:
    """Make the streams fit for use: nothing can be read from a closed one, and poor encodings get escapes.

    Raises:
        SystemExit: standard output is closed, so that whatever was asked for could not be had.
    """
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
    """Return a model's or a file's words as they may go to this stream.

    On a terminal control characters are shown, not obeyed: they could move the cursor, or change what is on screen.
    """
    return replace_lone_surrogates(text).translate(_VISIBLE) if stream.isatty() else replace_lone_surrogates(text)
