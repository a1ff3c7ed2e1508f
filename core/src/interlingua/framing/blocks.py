"""Many blocks of a server-sent event stream at once: the usual shapes are read in bulk, the rest line by line.

Chunk boundaries, line-end normalisation and size limits never live here.
Only the SSE framer may come in.
"""

from __future__ import annotations

from itertools import repeat

from interlingua.framing.fields import read_block
from interlingua.framing.pending import make_chunk
from interlingua.wire import WireChunk


class _Names(dict[bytes, str]):
    """Decoded event names; bounded, because the server chooses them."""

    def __missing__(self, name: bytes) -> str:
        text = name.decode("utf-8", "replace")
        if len(self) < 256 and len(name) < 256:
            self[name] = text
        return text


names = _Names()


def read_blocks(body: bytes) -> list[WireChunk]:
    """Read whole blocks; a fast path is taken only when the count of LF proves that every block has its shape.

    Args:
        body: Blocks with a blank line between each two, without the last blank line; lines end in LF.

    Returns:
        What `read_block` gives for each block, in order.
    """
    feeds = body.count(b"\n")
    if body.startswith(b"data: "):
        payloads = body[6:].split(b"\n\ndata: ")
        if feeds == 2 * len(payloads) - 2:
            return list(map(make_chunk, zip(repeat(""), payloads, strict=False)))
    elif body.startswith(b"event: "):
        pairs = [block.partition(b"\ndata: ") for block in body[7:].split(b"\n\nevent: ")]
        if feeds == 3 * len(pairs) - 2 and all(pair[1] for pair in pairs):
            return [make_chunk((names[name], payload)) for name, _, payload in pairs]
    return _mixed(body)


def _mixed(body: bytes) -> list[WireChunk]:
    chunks: list[WireChunk] = []
    for block in body.split(b"\n\n"):
        if block.startswith(b"data:") and b"\n" not in block:
            chunks.append(make_chunk(("", block[5:].removeprefix(b" "))))
        else:
            chunks += read_block(block)
    return chunks
