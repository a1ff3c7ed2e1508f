"""Recorded exchanges of several requests: what a plugin asks for after each answer, found as core finds it.

A `Subject`, the first argument of these functions, reads its exchanges with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.errors import CallerError, InterlinguaError
from interlingua.plugins import ConnectionSettings, FollowUp, RequestContext, WireResponse
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from interlingua_contract.json_paths import texts

SHORTEST_ID = 4
"""Characters of a string that may be the id of work."""


@attrs.frozen(kw_only=True)
class Step:
    """One answer of a chain, and what the plugin asks for after it.

    Attributes:
        answer: the first request of the chain with the answer that it and those after it make so far.
        sent: the recorded exchange whose answer was read last.
        context: the hook's context.
        found: the follow-up, or None.
        after: the recorded exchange at the address of `found.request`, or None.
        following: the exchange that is recorded next in the cassette, or None.
    """

    answer: RecordedExchange
    sent: RecordedExchange
    context: RequestContext
    found: FollowUp | None
    after: RecordedExchange | None
    following: RecordedExchange | None


def split_chains(subject: Any, recorded: Sequence[RecordedExchange]) -> Iterator[list[Step]]:
    """Yield the chains of one cassette: the steps of each request that begins one."""
    rest = list(recorded)
    while rest:
        joined = sent = rest.pop(0)
        context, steps = subject.context(joined), list[Step]()
        while True:
            found = find_follow_up(subject, joined, context)
            wanted = None if found is None else found.request
            after = None
            if wanted is not None:
                path = urlsplit(wanted.path).path
                after = next((one for one in rest if one.method == wanted.method and is_at(one, path)), None)
            following = rest[0] if rest else None
            steps.append(Step(answer=joined, sent=sent, context=context, found=found, after=after, following=following))
            if wanted is None or after is None:
                break
            rest.remove(after)
            sent = after
            context = attrs.evolve(context, request=wanted, echo={**context.echo, **wanted.echo})
            goes_on = joined.streamed and after.streamed
            joined = attrs.evolve(
                joined,
                status=after.status,
                headers=after.headers,
                body=joined.body + after.body if goes_on else after.body,
                streamed=after.streamed,
                echo=joined.echo if goes_on else context.echo,
                continued=subject.api_of(after) is not None,
            )
        yield steps


def read_chains(subject: Any) -> Iterator[list[Step]]:
    """Yield the chains of every cassette that begin with a conversation, and have or need more than one request."""
    for path in sorted(subject.folder.rglob("*.yaml")) if subject.folder is not None else ():
        with suppress(CallerError):  # C46 reports it, once
            for steps in split_chains(subject, read_cassette(path)):
                first = steps[0]
                if first.sent.method != "POST" or subject.api_of(first.sent) is None:
                    continue
                if first.found is not None or (first.following and names_next(subject, first.sent, first.following)):
                    yield steps


def read_exchanges(subject: Any) -> Iterator[RecordedExchange]:
    """Yield every recorded exchange of every cassette, also those that are not conversations."""
    for path in sorted(subject.folder.rglob("*.yaml")) if subject.folder is not None else ():
        with suppress(CallerError):
            yield from read_cassette(path)


def find_follow_up(
    subject: Any, exchange: RecordedExchange, context: RequestContext, body: bytes | None = None
) -> FollowUp | None:
    """Return what has to follow an answer, whole or streamed, or None; also if the answer cannot be read."""
    if not (subject.provider.answers_later and exchange.status < 300 and subject.api_of(exchange)):
        return None
    found: FollowUp | None = None
    body = exchange.body if body is None else body
    with suppress(InterlinguaError):  # another rule reports it
        if exchange.streamed:
            framing = subject.provider.connection(ConnectionSettings(api=context.origin.api)).framing
            decoder = StreamDecoder(subject.provider, framer(framing), context)
            decoder.feed(body)
            found = decoder.take_follow_up()
            if decoder.complete or decoder.failed:
                found = None
            decoder.close()
        else:
            response = WireResponse(status=exchange.status, headers=exchange.headers, body=body)
            found = subject.provider.follow_up(response, context)
    return found


def names_next(subject: Any, answered: RecordedExchange, following: RecordedExchange) -> bool:
    """Return True if an exchange is about what an answer names, such as a job, and is not a conversation."""
    path = urlsplit(following.uri).path
    if subject.api_of(following) is not None:
        return False
    return any(len(text) >= SHORTEST_ID and text in path for text in texts_of(answered.body))


def texts_of(body: bytes) -> list[str]:
    """Return the strings of a JSON body."""
    try:
        return texts(json.loads(body))
    except ValueError:
        return []


def is_at(exchange: RecordedExchange, path: str) -> bool:
    """Return True for the path of a request, which may begin behind that of the service's address."""
    return urlsplit(exchange.uri).path.endswith(path)
