"""The standard streams as a run finds them: closed, in a poor encoding, holding bytes that are no text.

Never prints an answer, and never lets what cannot be read or written go by in silence.
The entry point comes in, and whoever reads a person's words or shows a model's.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import click

from interlingua.json import replace_lone_surrogates

_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"}


def prepare() -> None:
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
        if isinstance(stream, TextIOWrapper) and not writes_all(stream):
            stream.reconfigure(errors="backslashreplace")


def writes_all(stream: TextIO) -> bool:
    """Tell whether this stream's encoding has every character."""
    return (stream.encoding or "").lower().replace("-", "").replace("_", "").startswith("utf")


def piped_text() -> str:
    """Return what is piped in, without white space around it.

    Raises:
        click.UsageError: it is not UTF-8.
    """
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 text (byte {error.start}); --file attaches images, audio and documents"
        ) from error


def shown(text: str, stream: TextIO) -> str:
    """Return a model's or a file's words as they may go to this stream.

    On a terminal control characters are shown, not obeyed: they could move the cursor, or change what is on screen.
    """
    return replace_lone_surrogates(text).translate(_VISIBLE) if stream.isatty() else replace_lone_surrogates(text)


def words(text: str) -> str:
    """Return an argument that a model reads; the type of such arguments.

    Raises:
        click.BadParameter: it holds bytes of another encoding, which would reach the model as U+FFFD.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise click.BadParameter("it holds bytes that are no text in this terminal's encoding") from error
    return text
