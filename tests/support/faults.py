"""Faults of a service and of the network, and what a client makes of each; the wire is Chat Completions.

It is as OpenAI documents it (https://platform.openai.com/docs/api-reference/chat).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import attrs

import interlingua as il
from interlingua.errors import (
    APIConnectionError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from tests.support.fault_server import RESET, Script, Step, head

LIMIT = 8 * 1024 * 1024
PAGE = b"<html><head><title>Welcome</title></head></html>"


def event(text: str | None = None, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def whole(text: str = "hello") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(body).encode()


TEXTS = event("hel") + event("lo")
GOOD = TEXTS + event(finish="stop") + b"data: [DONE]\n\n"
CUT = b'data: {"id":"c","choices":[{"index":0,"delta":{"cont'


def answer(body: bytes, *headers: str, kind: str = "text/event-stream") -> list[Step]:
    return [head(*headers, kind=kind), body]


FAILED_BODY = b'{"error":{"message":"later","type":"server_error"}}'


def failing(status: str, *headers: str) -> list[Step]:
    body = FAILED_BODY
    return [head(f"content-length: {len(body)}", *headers, status=status, kind="application/json"), body]


def bomb() -> list[Step]:
    """1.5 MB that hold 1.5 GB: after a full flush, each megabyte of zeros is written like the last."""
    made = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    zeros = b"a" * (1024 * 1024)
    start, again = (made.compress(zeros) + made.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return [head("content-encoding: gzip"), start + again * 1500]


def one_line(megabytes: int | None) -> Iterator[Step]:
    yield head()
    yield b"data: "
    yield from repeat(b"a" * (1024 * 1024)) if megabytes is None else repeat(b"a" * (1024 * 1024), megabytes)


def trickle(piece: bytes) -> Iterator[Step]:
    yield head()
    while True:
        yield piece
        yield 0.02


@attrs.frozen(kw_only=True)
class Fault:
    """A fault, and the expected outcome.

    Attributes:
        scripts: what the server does with each attempt, streamed.
        whole: the same for a whole answer; None uses `scripts`.
        error: class that a stream raises; None where the answer is good.
        whole_error: class that a whole answer raises.
        again: the error may be tried again.
        kept: text that was received.
        attempts: how often the service is asked.
        said: a word of the message.
        settings: of the client.
        in_http: the fault is in the bytes of HTTP, which a transport in memory does not read.
    """

    scripts: tuple[Script, ...]
    whole: tuple[Script, ...] | None = None
    error: type[il.InterlinguaError] | None = None
    whole_error: type[il.InterlinguaError] | None = None
    again: tuple[bool, bool] = (True, True)
    kept: str = ""
    attempts: tuple[int, int] = (1, 1)
    said: str = ""
    settings: dict[str, Any] = attrs.field(factory=dict)
    in_http: bool = False


def gzip_cut(data: bytes) -> bytes:
    """Return compressed bytes of which the last are missing."""
    return gzip.compress(data)[:-20]


def chunked(*pieces: bytes, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """Return a chunked body."""
    made = [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces]
    return b"".join([*made, b"0\r\n", trailer, b"\r\n"])


def slowly(data: bytes, seconds: float = 0.05) -> Iterator[Step]:
    """Yield bytes one by one, each after a while."""
    for at in range(len(data)):
        yield seconds
        yield data[at : at + 1]


def processing() -> Iterator[Step]:
    """Yield interim answers without end."""
    while True:
        yield b"HTTP/1.1 102 Processing\r\n\r\n"
        yield 0.05


def good(*headers: str, stream: bytes | None = None, body: bytes | None = None, **more: Any) -> Fault:
    """Return an answer that is unusual and yet whole."""
    scripts = ([head(*headers), GOOD if stream is None else stream],)
    return Fault(
        scripts=scripts, whole=([head(*headers, kind=JSON), whole() if body is None else body],),
        **{"kept": "hello", **more},
    )  # fmt: skip


def not_json(value: bytes, said: str) -> Fault:
    """Return answers with a value that cannot be read as JSON."""
    stream, body = (data.replace(b'"created": 1', b'"created": ' + value) for data in (GOOD, whole()))
    return Fault(
        scripts=(answer(stream),), whole=(answer(body, kind=JSON),), error=MalformedResponseError,
        whole_error=MalformedResponseError, again=(False, False), said=said,
    )  # fmt: skip


JSON = "application/json"
CHUNKED = "transfer-encoding: chunked"
LONG, SHORT = f"content-length: {len(GOOD) + 50}", f"content-length: {len(TEXTS + CUT)}"
QUICK = {"retry": il.Retry(initial_delay=0.001)}
LARGE = "max_response_bytes=8388608 bytes"
FAULTS = {
    "the server is killed": Fault(
        scripts=([head(LONG), TEXTS],),
        whole=([head(LONG, kind=JSON), whole()[:20]],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello", said="connection broke",
    ),
    "a reset": Fault(
        scripts=([head(), TEXTS, 0.05, RESET],), whole=([head(LONG, kind=JSON), whole()[:20], 0.05, RESET],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello",
    ),
    "a reset within an event": Fault(
        scripts=([head(), TEXTS, CUT, 0.05, RESET],), whole=([head(LONG, kind=JSON), 0.05, RESET],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello",
    ),
    "a close within an event": Fault(
        scripts=([head(), TEXTS + CUT],), whole=([head(kind=JSON), whole()[:-9]],),
        error=StreamInterruptedError, whole_error=MalformedResponseError, kept="hello", attempts=(1, 3), settings=QUICK,
    ),
    "a stall": Fault(
        scripts=([head(), TEXTS, 5.0],), whole=([head(kind=JSON), whole()[:20], 5.0],),
        error=APITimeoutError, whole_error=APITimeoutError, kept="hello", said="between_chunks=0.2",
        settings={"timeout": il.Timeout(between_chunks=0.2)},
    ),
    "no answer": Fault(
        scripts=([5.0],), error=APITimeoutError, whole_error=APITimeoutError, said="first_byte=0.2",
        settings={"timeout": il.Timeout(first_byte=0.2)},
    ),
    "an answer without end": Fault(
        scripts=(lambda: trickle(event("a")),), whole=(lambda: trickle(b" "),),
        error=APITimeoutError, whole_error=APITimeoutError, again=(False, False), kept="a", said="total=0.3",
        settings={"timeout": 0.3},
    ),
    "a length that is too long": Fault(
        scripts=([head(LONG), GOOD],), whole=([head(LONG, kind=JSON), whole()],),
        whole_error=APIConnectionError, kept="hello",
    ),
    "a length that is too short": Fault(
        scripts=([head(SHORT), TEXTS + CUT + GOOD],), whole=([head("content-length: 20", kind=JSON), whole()],),
        error=StreamInterruptedError, whole_error=MalformedResponseError, kept="hello",
    ),
    "bytes that are not UTF-8": Fault(
        scripts=(answer(GOOD.replace(b"lo", b"l\xff")),),
        whole=(answer(whole().replace(b"llo", b"ll\xff"), kind=JSON),),
        kept="hell\N{REPLACEMENT CHARACTER}",
    ),
    "a body that is not gzip": Fault(
        scripts=(answer(b"not gzip", "content-encoding: gzip"),),
        error=StreamInterruptedError, whole_error=APIConnectionError, said="cannot be decompressed",
    ),
    "a gzip bomb": Fault(
        scripts=(bomb(),), error=MalformedResponseError, whole_error=MalformedResponseError, again=(False, False),
        said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "100 MB in one line": Fault(
        scripts=(lambda: one_line(100),), error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "a line without end": Fault(
        scripts=(lambda: one_line(None),), error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT, "timeout": 5.0},
    ),
    "an object without end": Fault(
        scripts=(lambda: (b for b in (head(), b"{", *repeat(b" " * 1024 * 1024, 100))),),
        error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "blanks without end": Fault(
        scripts=(lambda: (b for b in (head(), *repeat(b" " * 1024 * 1024, 100))),),
        error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "a page with 200": Fault(
        scripts=(answer(PAGE, kind="text/html"),), error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="an HTML page (Welcome)", settings=QUICK,
    ),
    "a page with 404": Fault(
        scripts=([head(status="404 Not Found", kind="text/html"), PAGE],),
        error=ModelNotFoundError, whole_error=ModelNotFoundError, again=(False, False), said="an HTML page (Welcome)",
    ),
    "an empty 200": Fault(
        scripts=(answer(b""),), error=StreamInterruptedError, whole_error=MalformedResponseError, attempts=(3, 3),
        settings=QUICK,
    ),
    "429, soon": Fault(
        scripts=(failing("429 Too Many Requests", "retry-after: 0.01"), answer(GOOD)),
        whole=(failing("429 Too Many Requests", "retry-after: 0.01"), answer(whole(), kind=JSON)),
        kept="hello", attempts=(2, 2), settings={"retry": 2},
    ),
    "429, much later": Fault(
        scripts=(failing("429 Too Many Requests", "retry-after: 400"),),
        error=RateLimitError, whole_error=RateLimitError, said="retry after 400 s", settings={"retry": 2},
    ),
    "503 twice": Fault(
        scripts=(failing("503 Down"), failing("503 Down"), answer(GOOD)),
        whole=(failing("503 Down"), failing("503 Down"), answer(whole(), kind=JSON)),
        kept="hello", attempts=(3, 3), settings=QUICK,
    ),
    "503 always": Fault(
        scripts=(failing("503 Down"),), error=OverloadedError, whole_error=OverloadedError, attempts=(3, 3),
        settings=QUICK,
    ),
    "a close before the answer": Fault(
        scripts=([],), error=APIConnectionError, whole_error=APIConnectionError, attempts=(3, 3), settings=QUICK
    ),
    "no HTTP": Fault(scripts=([b"220 mail.test ESMTP\r\n"],), error=APIConnectionError, whole_error=APIConnectionError),
    "headers without end": Fault(
        scripts=(lambda: (b for b in (head()[:-2], *repeat(b"x-more: " + b"a" * 65536 + b"\r\n", 99))),),
        error=APIConnectionError, whole_error=APIConnectionError,
    ),
    "a head of a byte each 0.05 s": Fault(
        scripts=(lambda: slowly(head()),), error=APITimeoutError, whole_error=APITimeoutError, said="first_byte=0.3",
        settings={"timeout": il.Timeout(first_byte=0.3)}, in_http=True,
    ),
    "a head of a byte each 0.05 s, and a total": Fault(
        scripts=(lambda: slowly(head()),), error=APITimeoutError, whole_error=APITimeoutError, again=(False, False),
        said="total=0.3", settings={"timeout": 0.3}, in_http=True,
    ),
    "interim answers without end": Fault(
        scripts=(processing,), error=APITimeoutError, whole_error=APITimeoutError, said="first_byte=0.3",
        settings={"timeout": il.Timeout(first_byte=0.3)}, in_http=True,
    ),
    "interim answers without end, and a total": Fault(
        scripts=(processing,), error=APITimeoutError, whole_error=APITimeoutError, again=(False, False),
        said="total=0.3", settings={"timeout": 0.3}, in_http=True,
    ),
    "a stall at the end of the total": Fault(
        scripts=(lambda: iter([head(), TEXTS, 0.2, b": ping\n\n", 5.0]),),
        whole=([head(kind=JSON), b" ", 0.2, b" ", 5.0],), error=APITimeoutError, whole_error=APITimeoutError,
        again=(False, False), kept="hello", said="total=0.3", settings={"timeout": 0.3},
    ),
    "pings without end": Fault(
        scripts=(lambda: trickle(b": ping\n\n"),), whole=(lambda: trickle(b"\n"),), error=APITimeoutError,
        whole_error=APITimeoutError, again=(False, False), said="total=0.3", settings={"timeout": 0.3},
    ),
    "interim answers before the answer": Fault(
        scripts=([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n", head(), GOOD],),
        whole=([b"HTTP/1.1 102 Processing\r\n\r\n", head(kind=JSON), whole()],), kept="hello", in_http=True,
    ),
    "a trailer behind the chunks": good(
        CHUNKED, "trailer: x-sum", stream=chunked(GOOD, trailer=b"x-sum: 1\r\n"),
        body=chunked(whole(), trailer=b"x-sum: 1\r\nx-more: 2\r\n"), in_http=True,
    ),
    "extensions of chunks": good(
        CHUNKED, stream=chunked(TEXTS, GOOD[len(TEXTS) :], extension=b";a=b"),
        body=chunked(whole()[:20], whole()[20:], extension=b';a="b"'), in_http=True,
    ),
    "a chunk for each byte": good(
        CHUNKED, stream=chunked(*(GOOD[at : at + 1] for at in range(len(GOOD)))),
        body=chunked(*(whole()[at : at + 1] for at in range(len(whole())))), in_http=True,
    ),
    "a chunk whose size is no number": Fault(
        scripts=([head(CHUNKED), chunked(TEXTS)[:-5], 0.05, b"zz\r\nabc\r\n"],),
        whole=([head(CHUNKED, kind=JSON), chunked(whole()[:20])[:-5], 0.05, b"zz\r\nabc\r\n"],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello", in_http=True,
    ),
    "chunks without their end": Fault(
        scripts=([head(CHUNKED), chunked(TEXTS)[:-5]],),
        whole=([head(CHUNKED, kind=JSON), chunked(whole()[:20])[:-5]],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello", in_http=True,
    ),
    "HTTP/1.0": Fault(
        scripts=([b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", GOOD],),
        whole=([b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n", whole()],), kept="hello",
    ),
    "1,000 header lines": good(*(f"x-{at}: a" for at in range(1000))),
    "a status that is no number": Fault(
        scripts=([b"HTTP/1.1 abc Odd\r\n\r\n", GOOD],), error=APIConnectionError, whole_error=APIConnectionError,
        in_http=True,
    ),
    "no content type": Fault(
        scripts=([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", GOOD],),
        whole=([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", whole()],), kept="hello",
    ),
    "another content type": Fault(
        scripts=(answer(GOOD, kind="text/plain"),), whole=(answer(whole(), kind="text/html"),), kept="hello",
    ),
    "a byte order mark and CR LF": good(
        stream=b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n"), body=b"\r\n" + whole() + b"\r\n",
    ),
    "CR alone": good(stream=GOOD.replace(b"\n", b"\r"), body=b"\r" + whole()),
    "comments, ids and unknown fields": good(
        stream=b": hi\n\nid: 1\nretry: 5\nfoo: bar\n" + TEXTS.replace(b"data:", b"id: 1\nevent: message\ndata:")
        + GOOD[len(TEXTS) :],
    ),
    "no end after the finish": good(stream=TEXTS + event(finish="stop")),
    "no blank line at the end": good(stream=GOOD.rstrip()),
    "events after the end": good(stream=GOOD + event("more")),
    "a whole answer to a stream": good(stream=whole()),
    "a stream for a whole answer": Fault(
        scripts=(answer(GOOD),), whole_error=MalformedResponseError, again=(True, False), kept="hello",
    ),
    "gzip": good(
        "content-encoding: gzip", stream=gzip.compress(GOOD), body=gzip.compress(whole()),
    ),
    "gzip that is cut off": Fault(
        scripts=(answer(gzip_cut(GOOD), "content-encoding: gzip"),),
        whole=(answer(gzip_cut(whole()), "content-encoding: gzip", kind=JSON),),
        error=StreamInterruptedError, whole_error=MalformedResponseError, kept="hello", attempts=(1, 3), settings=QUICK,
    ),
    "an encoding that was not asked for": Fault(
        scripts=(answer(b"\x0b\x02", "content-encoding: br"),), error=MalformedResponseError,
        whole_error=MalformedResponseError, again=(False, False), said="'br'",
    ),
    "an event of 1 MB": good(
        stream=event("h" * 1024 * 1024) + GOOD, body=whole("h" * 1024 * 1024 + "hello"),
        kept="h" * 1024 * 1024 + "hello",
    ),
    "JSON of great depth": Fault(
        scripts=(answer(b"data: " + b"[" * 100_000 + b"]" * 100_000 + b"\n\n" + GOOD),),
        whole=(answer(b"[" * 100_000 + b"]" * 100_000, kind=JSON),),
        error=MalformedResponseError, whole_error=MalformedResponseError, again=(False, False),
    ),
    "an integer of 6,000 digits": not_json(b"9" * 6000, "a number of more than 4,300 digits"),
    "NaN": not_json(b"NaN", "NaN is not JSON"),
    "a count below zero": good(
        stream=GOOD.replace(b'"model": "m"', b'"model": "m", "usage": {"prompt_tokens": -1, "completion_tokens": 2}'),
        body=whole().replace(b'"model": "m"', b'"model": "m", "usage": {"prompt_tokens": -1, "completion_tokens": 2}'),
    ),
    "an object of another kind": Fault(
        scripts=(answer(b'data: {"a": 1}\n\n'),), whole=(answer(b'{"a": 1}', kind=JSON),),
        error=StreamInterruptedError, whole_error=MalformedResponseError, again=(True, False),
    ),
    "choices without content": Fault(
        scripts=(answer(b'data: {"choices": []}\n\ndata: {"choices": null}\n\ndata: [DONE]\n\n'),),
        whole=(answer(b'{"choices": []}', kind=JSON),), error=StreamInterruptedError,
        whole_error=MalformedResponseError, again=(True, False),
    ),
    "an error in a 200": Fault(
        scripts=(answer(b"data: " + FAILED_BODY + b"\n\n"),), whole=(answer(FAILED_BODY, kind=JSON),),
        error=ServerError, whole_error=ServerError, attempts=(3, 3), said="later", settings=QUICK,
    ),
    "an error within the stream": Fault(
        scripts=(answer(TEXTS + b"data: " + FAILED_BODY + b"\n\n"),), whole=(answer(FAILED_BODY, kind=JSON),),
        error=ServerError, whole_error=ServerError, kept="hello", said="later",
    ),
    "a page with 502": Fault(
        scripts=([head(status="502 Bad Gateway", kind="text/html"), PAGE],), error=ServerError, whole_error=ServerError,
        attempts=(3, 3), said="an HTML page (Welcome)", settings=QUICK,
    ),
    "no body with 204": Fault(
        scripts=([b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"],), error=StreamInterruptedError,
        whole_error=MalformedResponseError, attempts=(3, 3), settings=QUICK,
    ),
    "a redirect to itself": Fault(
        scripts=([head("location: /v1/chat/completions", "content-length: 0", status="307 Moved")],),
        error=BadRequestError, whole_error=BadRequestError, again=(False, False), said="redirects",
    ),
    "401": Fault(
        scripts=(failing("401 Unauthorized"),), error=AuthenticationError, whole_error=AuthenticationError,
        again=(False, False), settings=QUICK,
    ),
    **{
        f"retry-after: {value}": Fault(
            scripts=(failing("503 Down", f"retry-after: {value}"),), error=OverloadedError, whole_error=OverloadedError,
            attempts=(3, 3), settings=QUICK,
        )
        for value in ("nan", "inf", "1e400", "-1", "soon")
    },
}  # fmt: skip
