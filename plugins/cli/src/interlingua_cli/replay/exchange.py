"""Decode recorded exchanges with the installed provider each belongs to, and count the outcomes per API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua._ids import TOOL_PREFIX
from interlingua._plugins.connection import Endpoint
from interlingua._request.rules import check_message
from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.codec import encode_message
from interlingua.errors import InterlinguaError, InvalidConversationError, ProviderError, UnknownProviderError
from interlingua.plugins import Connection, ConnectionSettings, Provider, Registry, RequestContext, WireResponse
from interlingua.types import Message, MessageStatus, OpaqueBlock, Origin, RoutingDecision, RoutingMode
from interlingua_cli.replay.source import Entry

COMPATIBLE = "compatible"


def match_host(names: Sequence[str], host: str) -> int:
    """Return how exactly a service claims a host: the length of the name that matches, 0 for not at all.

    A host may end with the name, after a dot or (as with regions) a hyphen. `names` are `Connection.hosts`.
    """
    patterns = ((name, re.escape(name).replace(r"\*", ".*")) for name in names)
    return max((len(name) for name, pattern in patterns if re.fullmatch(f"(.*[.-])?{pattern}", host)), default=0)


@attrs.frozen(kw_only=True)
class Match:
    """The provider that reads an entry, and which of its APIs.

    Attributes:
        provider: the provider.
        api: name of the API.
        connection: connection of the provider, without key and environment.
        model: the model that the entry's address names, or None.
        read: False if the provider knows the endpoint and does not read it.
    """

    provider: Provider
    api: str
    connection: Connection
    model: str | None = None
    read: bool = True


@attrs.frozen
class _Service:
    provider: Provider
    connection: Connection


def _split_hosts(netloc: str) -> tuple[str, ...]:
    """Return the host without and with its port: local servers differ by port only."""
    both = netloc.rpartition("@")[2].lower()
    host, colon, port = both.rpartition(":")
    return (host, both) if colon and port.isdigit() else (both,)


class Matcher:
    """Finds the provider of each entry, by the hosts and endpoints that providers' connections declare.

    A host that no provider declares is read by a provider of the endpoint's format, the row `compatible` first.
    Every installed provider is loaded once; a broken one is left out with a warning.
    """

    def __init__(self, registry: Registry) -> None:
        self._services = []
        for provider in registry.providers():
            self._services.append(_Service(provider, provider.connection(ConnectionSettings())))
        self._matches: dict[tuple[str, str, str, str], Match | None] = {}

    def match(self, entry: Entry) -> Match:
        """Return who reads this entry."""
        url = urlsplit(entry.url)
        key = (url.netloc, url.path, entry.provider, entry.endpoint)
        if key not in self._matches:
            self._matches[key] = self._find(_split_hosts(url.netloc), url.path, entry)
        found = self._matches[key]
        if found is None:
            place = f"{url.netloc}{url.path}" or "an entry without a URL"
            raise UnknownProviderError(f"no installed adapter reads {place}")
        return found

    def _find(self, hosts: tuple[str, ...], path: str, entry: Entry) -> Match | None:
        candidates = self._by_path(path) or self._by_path(f"/{entry.endpoint.strip('/')}")
        if not candidates:
            return None

        def rank(candidate: tuple[_Service, Endpoint]) -> tuple[int, bool, bool, bool]:
            service, endpoint = candidate
            key, near = service.provider.key, max([match_host(service.connection.hosts, host) for host in hosts])
            return near, endpoint.read, key == entry.provider, key == COMPATIBLE

        service, (api, model, read) = max(candidates, key=rank)  # among equals the first by key
        return Match(provider=service.provider, api=api, connection=service.connection, model=model, read=read)

    def _by_path(self, path: str) -> list[tuple[_Service, Endpoint]]:
        found = [(service, service.connection.find_endpoint(path)) for service in self._services]
        return [(service, endpoint) for service, endpoint in found if endpoint is not None]


_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)


def derive_message_id(name: str) -> str:
    """Return a ULID derived from an entry's id: two replays produce the same bytes."""
    value = int.from_bytes(sha256(name.encode("utf-8", "replace")).digest()[:16], "big")
    return "".join([_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5)])


def read_date(headers: Mapping[str, str]) -> datetime:
    """Return when the answer was given, by its `date` header, else a fixed day."""
    try:
        date = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return _UNDATED
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)


SESSION_ID = "replay"
_TOOL_NAME_RULE = 7  # the model's doing, not the adapter's: it may call a tool by any name


@attrs.frozen(kw_only=True)
class Outcome:
    """The result of one entry."""

    id: str
    group: str  # the API it is counted under
    message: Message | None = None  # the answer, when there was one
    error: BaseException | None = None  # the failure, when there was one; of the service, or of us
    decoded: bool  # True for a valid message, and for an error that the service reported and that has its type
    read: bool = True  # False for an endpoint that its provider knows and does not read

    @property
    def opaque(self) -> bool:
        """True when the message holds blocks that only its origin understands."""
        return self.message is not None and any(type(block) is OpaqueBlock for block in self.message.content)


def replay(entry: Entry, matcher: Matcher, *, chunk: int | None = None) -> Outcome:
    """Decode one entry; whatever is raised becomes the outcome's error."""
    try:
        match = matcher.match(entry)
        if not match.read:
            return Outcome(id=entry.id, group=entry.group, decoded=False, read=False)
        message = decode_entry(entry, match, chunk=chunk)
        violations = [found for found in check_message(message) if found.number != _TOOL_NAME_RULE]
        if violations:
            raise InvalidConversationError(violations)
    except Exception as error:
        return Outcome(id=entry.id, group=entry.group, error=error, decoded=isinstance(error, ProviderError))
    return Outcome(id=entry.id, group=entry.group, message=message, decoded=True)


def decode_entry(entry: Entry, match: Match, *, chunk: int | None = None) -> Message:
    """Read an entry's answer; ids and times are derived from the entry."""
    return decode_answer(entry, match.provider, match.connection, make_context(entry, match), chunk=chunk)


def decode_answer(
    entry: Entry, provider: Provider, connection: Connection, context: RequestContext, *, chunk: int | None = None
) -> Message:
    """Read an entry's answer, an error, a whole answer or a stream, in the given context."""
    response = WireResponse(status=entry.status, headers=entry.headers, body=entry.body)
    if entry.status >= 400:
        raise provider.from_wire_error(response, context)
    if not entry.streamed:
        return provider.from_wire_response(response, context)
    framing = entry.kind if entry.kind in ("sse", "ndjson") else connection.framing
    decoder = StreamDecoder(provider, framer(framing), context)
    size = chunk or len(entry.body) or 1
    for start in range(0, len(entry.body), size):
        decoder.feed(entry.body[start : start + size])
    decoder.end()
    return decoder.message()


def make_context(entry: Entry, match: Match) -> RequestContext:
    """Return the context of an entry; ids and times are derived from the entry."""
    name = match.model or entry.model
    date = read_date(entry.headers)
    numbers = count()
    return RequestContext(
        origin=Origin(match.provider.key, match.api, name),
        message_id=derive_message_id(entry.id),
        session_id=SESSION_ID,
        mint_tool_use_id=lambda: TOOL_PREFIX + derive_message_id(f"{entry.id}#{next(numbers)}"),
        clock=lambda: date,
        routing=RoutingDecision(
            mode=RoutingMode.MANUAL, chosen_model=f"{match.provider.key}:{name}", reason="recorded"
        ),
        response_headers=entry.headers,
    )


@attrs.define(kw_only=True)
class _Tally:
    entries: int = 0
    decoded: int = 0
    failed: int = 0
    opaque: int = 0
    excluded: int = 0
    not_read: int = 0
    errors: Counter[str] = attrs.field(factory=Counter)
    failures: list[dict[str, str]] = attrs.field(factory=list)

    def as_json(self) -> dict[str, Any]:
        return attrs.asdict(self, recurse=False) | {"errors": dict(sorted(self.errors.items()))}


class ReplayReport:
    """Counts outcomes per API; `errors` counts the service's errors, which were decoded."""

    def __init__(self) -> None:
        self._groups: dict[str, _Tally] = {}

    def add(self, outcome: Outcome) -> None:
        """Count one entry."""
        tally = self._groups.setdefault(outcome.group, _Tally())
        tally.entries += 1
        tally.opaque += outcome.opaque
        if not outcome.read:
            tally.not_read += 1
            return
        if not outcome.decoded:
            tally.failed += 1
            tally.failures.append({"id": outcome.id, "error": f"{type(outcome.error).__name__}: {outcome.error}"})
            return
        tally.decoded += 1
        if outcome.error is not None:
            tally.errors[type(outcome.error).__name__] += 1

    def exclude(self, group: str) -> None:
        """Count an excluded entry: neither decoded nor failed."""
        tally = self._groups.setdefault(group, _Tally())
        tally.entries += 1
        tally.excluded += 1

    @property
    def failed(self) -> int:
        """How many entries failed, over all APIs."""
        return sum(tally.failed for tally in self._groups.values())

    def as_json(self) -> dict[str, Any]:
        """Return the report per API, in the order of first appearance."""
        return {group: tally.as_json() for group, tally in self._groups.items()}


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Return an entry's line: its canonical message, or its error with the part of the answer before it."""
    if not outcome.read:
        return {"id": outcome.id, "not_read": True}
    if outcome.message is not None:
        return {"id": outcome.id, "message": encode_message(outcome.message)}
    error, partial = outcome.error, None
    facts: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, InterlinguaError):
        partial = error.partial
        facts |= {
            "message": error.message,
            "status": error.status,
            "retryable": error.retryable,
            "retry_after": error.retry_after,
        }
    line: dict[str, Any] = {"id": outcome.id, "error": facts}
    if isinstance(partial, Message) and partial.metadata.status is not MessageStatus.COMPLETE and partial.content:
        line["partial"] = encode_message(partial)
    return line
