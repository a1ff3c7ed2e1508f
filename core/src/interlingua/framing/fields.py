"""One block of a server-sent event stream, read line by line: the exact road for what the quick roads do not fit.

Chunk boundaries and line-end normalisation never live here: a block is complete and its lines end in LF.
Only the SSE framer and its quick roads may come in.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.framing.pending import make_chunk
from interlingua.wire import WireChunk

_BARE_JSON = (b"{", b"[{")
_BARE_JSON_GOES_ON = (b" ", b"\t", b'"', b"}", b"]")


def read_block(block: bytes) -> Iterator[WireChunk]:
    """Read the lines between two blank lines by the WHATWG rules, but keep bare JSON.

    The rules (HTML standard §9.2.6): the last `event` names the event, `data` lines are joined by LF, one space after
    the colon is dropped, comments, `id`, `retry` and unknown fields are ignored, and a block without data gives
    nothing. Deviation: a line that starts a JSON object is no field but an error body that a gateway wrote into the
    stream. It ends the event before it, takes its pretty-printed further lines with it, and becomes a chunk without
    an event name.

    Args:
        block: The block's bytes; blank lines around it do no harm.

    Yields:
        The block's event, and any bare JSON in its place.
    """
    name = b""
    data: list[bytes] = []
    bare: list[bytes] = []
    for line in block.split(b"\n"):
        if bare and line.startswith(_BARE_JSON_GOES_ON):
            bare.append(line)
            continue
        if bare:
            yield make_chunk(("", b"\n".join(bare)))
            bare = []
        if line.startswith(_BARE_JSON):
            if data:
                yield _event(name, data)
            name, data, bare = b"", [], [line]
            continue
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    if bare:
        yield make_chunk(("", b"\n".join(bare)))
    if data:
        yield _event(name, data)


def _event(name: bytes, data: list[bytes]) -> WireChunk:
    return make_chunk((name.decode("utf-8", "replace"), b"\n".join(data)))
