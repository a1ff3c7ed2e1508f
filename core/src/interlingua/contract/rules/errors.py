"""Rules on errors: each failure is a typed error by status and body, with what a caller needs to decide.

Never knows a provider's words.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from interlingua.contract.rule import Finding, NotApplicable, rule
from interlingua.contract.subject import Subject
from interlingua.errors import ProviderError, RateLimited
from interlingua.status import class_of_status
from interlingua.trees import leaves
from interlingua.wire import WireResponse

_BODIES = (b"", b"{}", b"null", b"[]", b"<html>502 Bad Gateway</html>", b'{"error": null}', b"\xff\xfe", b'"no"')
_STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529)


@rule(
    "C40",
    "A failure without a readable body has the class its status says, and says whether to try again.",
    source="DESIGN 9; hook from_wire_error",
    fix="""Start from `interlingua.status.class_of_status(response.status)` and let the body only make it more exact.
    A gateway's HTML page or an empty body must not raise.""",
)
def status_alone_decides_without_a_body(subject: Subject) -> Iterator[Finding]:
    """Sixteen statuses, eight bodies."""
    for api in subject.apis:
        for status in _STATUSES:
            for body in _BODIES:
                context = subject.context_for(api, "m")
                expected = class_of_status(status)
                try:
                    error = subject.provider.from_wire_error(WireResponse(status=status, body=body), context)
                except Exception as escaped:
                    yield Finding(why=f"{type(escaped).__name__}: {escaped}", where=f"{api} {status} {body!r}")
                    continue
                if error.retryable is not expected.default_retryable or error.status != status:
                    got = f"{type(error).__name__} retryable={error.retryable} status={error.status}"
                    yield Finding(why=f"{got}, expected as {expected.__name__}", where=f"{api} {status} {body!r}")


@rule(
    "C41",
    "A recorded failure keeps its status, its body and the provider's words, and retry_after where it is told.",
    source="DESIGN 9",
    fix="""Take the message from the body's own text, `code` and `request_id` from where the wire has them, and the
    delay by `interlingua.status.retry_after(response.headers)`.""",
)
def recorded_failures_keep_their_words(subject: Subject) -> Iterator[Finding]:
    """Each cassette with a status of 400 or more; the delay also on a made-up answer."""
    failed = [exchange for exchange in subject.exchanges if not exchange.good]
    for api in subject.apis:
        answer = WireResponse(status=429, headers={"retry-after": "7"}, body=b"{}")
        error = subject.provider.from_wire_error(answer, subject.context_for(api, "m"))
        if not isinstance(error, RateLimited) or error.retry_after != 7 or not error.retryable:
            why = f"429 with retry-after: 7 gives {type(error).__name__}, retry_after={error.retry_after}"
            yield Finding(why=why, where=api)
    if not failed:
        raise NotApplicable("no cassette holds a failure; record one, or write one from the documentation")
    for exchange in failed:
        response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
        error = subject.provider.from_wire_error(response, subject.context(exchange))
        if not isinstance(error, ProviderError) or type(error) is ProviderError:
            yield Finding(why=f"{type(error).__name__} is no class of its own", where=exchange.cassette)
        if (error.status, error.body) != (exchange.status, exchange.body):
            yield Finding(why="status or body is not kept", where=exchange.cassette)
        words = [leaf for leaf in _prose(exchange.body) if leaf]
        if words and not any(word in str(error) for word in words):
            yield Finding(why=f"the provider's words {words[0][:60]!r} are not in the error", where=exchange.cassette)


def _prose(body: bytes) -> list[str]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return []
    return [leaf for _, leaf in leaves(parsed) if isinstance(leaf, str) and " " in leaf]
