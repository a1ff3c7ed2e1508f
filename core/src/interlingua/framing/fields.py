"""One block of a server-sent event stream, read line by line: the general path for what the fast paths do not fit.

Chunk boundaries and line-end normalisation never live here: a block is complete and its lines end in LF.
Only the SSE framer and its fast paths may come in.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.framing.pending import make_chunk
from interlingua.wire import WireChunk

_BARE_JSON = (b"{", b"[{", b"error: {", b"error:{")
_BARE_JSON_GOES_ON = (b" ", b"\t", b'"', b"}", b"]")


def read_block(block: bytes) -> Iterator[WireChunk]:
    """Read the lines between two blank lines by the WHATWG rules, but keep bare JSON.

    The rules (HTML standard §9.2.6): the last `event` names the event, `data` lines are joined by LF, one space after
    the colon is dropped, comments, `id`, `retry` and unknown fields are ignored, and a block without data gives
    nothing. Three deviations. A line that starts a JSON object is no field but an error body that a gateway wrote into
    the stream: it ends the event before it, takes its pretty-printed further lines with it, and becomes a chunk without
    an event name. A field `error` that holds a JSON object is the event of that name (local servers of older versions
    write failures so, and the gateways built on them). `data` lines of one whole JSON object each are an event each,
    for joined they would be no JSON: a service left the blank lines out.

    Args:
        block: The block's bytes; blank lines around it do no harm.

    Yields:
        The block's event, and any bare JSON in its place.
    """
    name = of = b""  # `of`: the name so far when the last data line came
    data: list[bytes] = []
    bare: list[bytes] = []
    for line in block.split(b"\n"):
        if bare and line.startswith(_BARE_JSON_GOES_ON):
            bare.append(line)
            continue
        if bare:
            yield _outside(bare)
            bare = []
        if line.startswith(_BARE_JSON):
            if data:
                yield _event(name, data)
            name, data, bare = b"", [], [line]
            continue
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            if len(data) == 1 and _is_whole(data[0]) and (_is_whole(value) or value == b"[DONE]"):
                yield _event(of, data)
                data = []
            data.append(value)
            of = name
        elif field == b"event":
            name = value.removeprefix(b" ")
    if bare:
        yield _outside(bare)
    if data:
        yield _event(name, data)


def _is_whole(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")


def _outside(lines: list[bytes]) -> WireChunk:
    text = b"\n".join(lines)
    name = "error" if text.startswith(b"error:") else ""
    return make_chunk((name, text.removeprefix(b"error:").lstrip()))


def _event(name: bytes, data: list[bytes]) -> WireChunk:
    return make_chunk((name.decode("utf-8", "replace"), b"\n".join(data)))
