"""JSON of session files, read and written so that nothing in it changes: long integers, halves of surrogate pairs."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from typing import Any

import orjson

# orjson reads an integer beyond 64 bits as a float; a document without a run of so many digits holds none
_LONG = b"0" * 19
_DIGITS = bytes(ord("0") if code in b"0123456789" else 0 for code in range(256))
_SURROGATES = re.compile(rb"\\u[dD](?:[89abAB]..\\u[dD][c-fC-F]..|(...))", re.DOTALL)  # a pair, or what may be a half
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)  # a pair, a half, another escape


def load_entry(text: bytes) -> Any:
    """Return an entry's JSON value; None if it is not JSON.

    A byte-order mark is skipped. Half of a surrogate pair, which JavaScript leaves of a cut emoji, becomes U+FFFD.
    """
    return load_flagged(text)[0]


def load_flagged(text: bytes) -> tuple[Any, bool]:
    """Return what `load_entry` does, and whether nothing in it was repaired or skipped."""
    try:
        return orjson.loads(text), True
    except ValueError:
        pass
    try:
        return _load_repaired(_without_marks(text))[0], False
    except ValueError:
        return None, False


def load_exactly(text: bytes) -> Any:
    """Return an entry's JSON value with its integers exact, of any length; None if it is not JSON."""
    value = load_entry(text)
    return value if value is None else _with_integers(_without_marks(text), value)


def load_unchanged(text: bytes) -> Any:
    """Return a JSON value with its integers exact and halves of surrogate pairs kept.

    Raises:
        ValueError: it is not JSON.
    """
    return load_document(text)[2]


def load_document(text: bytes, value: Any = None) -> tuple[Any, Any, Any]:
    """Return a JSON value as `load_entry`, `load_exactly` and `load_unchanged` read it; the same object if they agree.

    Args:
        text: the document.
        value: its value, if `load_entry` read it before and repaired nothing.

    Raises:
        ValueError: it is not JSON.
    """
    text = _without_marks(text)
    read, unchanged = (value, True) if value is not None else _load_repaired(text)
    exact = _with_integers(text, read)
    return read, exact, exact if unchanged else _load_slowly(text)


def dump_document(value: Any) -> bytes:
    """Return the indented JSON text of a value of `load_unchanged`."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:  # an integer beyond 64 bits, or half of a surrogate pair
        text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=2).encode()


def dump_escaped(value: Any) -> bytes:
    """Return the JSON text of a value of `load_unchanged`, in ASCII."""
    return json.dumps(value, separators=(",", ":")).encode()


def _load_repaired(text: bytes) -> tuple[Any, bool]:
    """Return a JSON value, and whether nothing was repaired."""
    try:
        return orjson.loads(text), True
    except ValueError:
        repaired = _repaired(text)
        if repaired == text:
            raise
        return orjson.loads(repaired), False


def _may_have_half(text: bytes) -> bool:
    """Tell whether JSON text has an escape of half of a surrogate pair, or a backslash in front of one's letters."""
    there = b"\\ud" in text or b"\\uD" in text  # most documents have none, and this is faster
    return there and any(match[1] for match in _SURROGATES.finditer(text))


def _repaired(text: bytes) -> bytes:
    """Return JSON text with U+FFFD for each half of a surrogate pair."""
    if not _may_have_half(text):
        return text
    return _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], text)


def _with_integers(text: bytes, value: Any) -> Any:
    """Return a JSON value with integers of any length exact; `value` is it as orjson read it."""
    return _load_slowly(_repaired(text)) if _LONG in text.translate(_DIGITS) else value


def _load_slowly(text: bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _without_marks(text: bytes) -> bytes:
    while text.startswith(BOM_UTF8):  # each program it went through may have added one
        text = text.removeprefix(BOM_UTF8)
    return text
