"""How large media are, without decoding them: an image's sides, a PDF's pages.

Never needs an imaging or PDF library: headers tell, and where they do not, nothing is claimed.
The client's limits come in, and only for conversations with media.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from functools import lru_cache

import imagesize  # type: ignore[import-untyped]

from interlingua.blocks import DocumentBlock, ImageBlock

_HEAD = 256 * 1024  # base64 characters; a JPEG may carry long metadata before its size
_PAGES = re.compile(rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d+)|/Count\s+(\d+)[^>]*?/Type\s*/Pages\b")


def longest_side_of(image: ImageBlock) -> int:
    """Return the longer side of an embedded image in pixels; 0 where its header does not tell."""
    data = image.source.data
    return _longest(data[:_HEAD])


@lru_cache(maxsize=256)
def _longest(head: str) -> int:
    width, height = imagesize.get(io.BytesIO(_decoded(head)))
    return max(0, int(width), int(height))


def pages_of(document: DocumentBlock) -> int:
    """Return the pages of an embedded PDF by its page tree; 0 for a reference and for one that hides its tree."""
    if document.media_type != "application/pdf" or document.source.kind != "base64":
        return 0
    return _pages(document.source.data)


@lru_cache(maxsize=64)
def _pages(data: str) -> int:
    counts = [int(left or right) for left, right in _PAGES.findall(_decoded(data))]
    return max(counts, default=0)  # the root of the tree counts all


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""
