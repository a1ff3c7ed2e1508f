"""One recorded exchange decoded by the right road: a message, or the typed error it should be.

Never lets an adapter's mistake end a run: whatever it raises becomes this entry's failure.
The command line comes in, and tests that compare the roads.
"""

from __future__ import annotations

import attrs

from interlingua.errors import InterlinguaError, InvalidConversationError, ProviderError
from interlingua.plugins.provider import Provider
from interlingua.plugins.wire import Connection, RequestContext, WireResponse
from interlingua.request.validate import check_message
from interlingua.response.decode import StreamDecoder
from interlingua.response.framing import framer
from interlingua.types.blocks import OpaqueBlock
from interlingua.types.messages import Message, MessageStatus, Origin, RoutingDecisionRecord, RoutingMode
from interlingua_cli.replay.entry import Entry
from interlingua_cli.replay.identity import message_id, time_of, tool_use_ids
from interlingua_cli.replay.match import Match, Matcher

SESSION = "replay"


_MODELS_OWN = 7  # a model may call a tool by any name: it is kept, and told to observers


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of one entry.

    Attributes:
        id: the entry's id.
        group: the API it is counted under.
        message: the answer, when there was one.
        error: the failure, when there was one; of the service, or of us.
        decoded: True for a valid message, and for an error that the service reported and that has its type.
    """

    id: str
    group: str
    message: Message | None = None
    error: BaseException | None = None
    decoded: bool

    @property
    def opaque(self) -> bool:
        """True when the message holds blocks that only its origin understands."""
        return self.message is not None and any(type(block) is OpaqueBlock for block in self.message.content)


def replay(entry: Entry, matcher: Matcher, *, chunk: int | None = None) -> Outcome:
    """Decode one entry; never raises.

    Args:
        entry: the exchange.
        matcher: finds its provider.
        chunk: cut a stream into pieces of so many bytes; None feeds it whole.
    """
    try:
        message = decode(entry, matcher.match(entry), chunk=chunk)
        violations = [found for found in check_message(message) if found.number != _MODELS_OWN]
        if violations:
            raise InvalidConversationError(violations)
    except Exception as error:
        return Outcome(id=entry.id, group=entry.group, error=error, decoded=isinstance(error, ProviderError))
    return Outcome(id=entry.id, group=entry.group, message=message, decoded=True)


def decode(entry: Entry, match: Match, *, chunk: int | None = None) -> Message:
    """Read an entry's answer by the road its body asks for.

    Raises:
        InterlinguaError: what the service reported, or why its answer cannot be read.
    """
    return answer_of(entry, match.provider, match.connection, context_of(entry, match), chunk=chunk)


def answer_of(
    entry: Entry, provider: Provider, connection: Connection, context: RequestContext, *, chunk: int | None = None
) -> Message:
    """Read an entry's answer in a context of the caller's.

    Raises:
        InterlinguaError: what the service reported, or why its answer cannot be read.
    """
    if entry.status >= 400:
        raise provider.from_wire_error(_response(entry), context)
    if not entry.streamed:
        return provider.from_wire_response(_response(entry), context)
    framing = entry.kind if entry.kind in ("sse", "ndjson") else connection.framing
    decoder = StreamDecoder(provider, framer(framing), context)
    size = chunk or len(entry.body) or 1
    for start in range(0, len(entry.body), size):
        decoder.feed(entry.body[start : start + size])
    decoder.end()
    return decoder.message()


def context_of(entry: Entry, match: Match) -> RequestContext:
    """Return the context of an entry, all of it derived from the entry."""
    model = f"{match.provider.key}:{entry.model}"
    date = time_of(entry.headers)
    return RequestContext(
        origin=Origin(match.provider.key, match.api, entry.model),
        message_id=message_id(entry.id),
        session_id=SESSION,
        mint_tool_use_id=tool_use_ids(entry.id),
        clock=lambda: date,
        routing=RoutingDecisionRecord(mode=RoutingMode.MANUAL, chosen_model=model, reason="recorded"),
    )


def partial_of(error: BaseException | None) -> Message | None:
    """Return what was received before an error, if that was anything."""
    partial = error.partial if isinstance(error, InterlinguaError) else None
    if isinstance(partial, Message) and partial.metadata.status is not MessageStatus.COMPLETE and partial.content:
        return partial
    return None


def _response(entry: Entry) -> WireResponse:
    return WireResponse(status=entry.status, headers=entry.headers, body=entry.body)
