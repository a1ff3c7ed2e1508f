"""What crosses the seam on the wire side: requests, framed chunks, whole answers, connections, and the loss ledger.

Never holds a secret in a WireRequest (the transport adds auth) and never does I/O.
Adapters, projection, transport, framing and the client may come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import attrs

from interlingua.values import quick

Verdict = Literal["rewritten", "dropped", "blocked"]


@attrs.frozen(kw_only=True)
class Loss:
    """One line of the loss ledger (DESIGN 7): what a target did not get as it was.

    Attributes:
        path: place in the conversation, `messages[3].content[1]` or `tools[0].input_schema…`.
        block_type: the block's `type`, or `tool`, `message`, `option`.
        verdict: rewritten (carried in another form), dropped, or blocked (the request failed for it).
        reason: one sentence for a person.
        message_id: id of the message, where it has one.
    """

    path: str
    block_type: str
    verdict: Verdict
    reason: str
    message_id: str | None = None


class BlockLoss(NamedTuple):
    """A loss of one block, before its message's place in the conversation is known: so it can be remembered with it."""

    block: int
    block_type: str
    verdict: Verdict
    reason: str

    def at(self, index: int, message_id: str) -> Loss:
        """Return the ledger line, given where the message stands and its id."""
        path = f"messages[{index}].content[{self.block}]"
        return Loss(
            path=path, block_type=self.block_type, verdict=self.verdict, reason=self.reason, message_id=message_id
        )


def option_loss(name: str, verdict: Verdict, reason: str) -> Loss:
    """Return the ledger line of an option by its name in `AdapterOptions`."""
    return Loss(path=f"options.{name}", block_type="option", verdict=verdict, reason=reason)


def message_loss(index: int, reason: str, message_id: str | None = None) -> Loss:
    """Return the ledger line of a message that goes in another form, or with something put before or behind it."""
    return Loss(
        path=f"messages[{index}]", block_type="message", verdict="rewritten", reason=reason, message_id=message_id
    )


class WireChunk(NamedTuple):
    """One framed event of a stream: its name ("" when the framing gives none) and its payload bytes."""

    event: str
    data: bytes


@quick
@attrs.frozen(kw_only=True)
class WireRequest:
    """One request as bytes, without auth (DESIGN 5).

    Attributes:
        method: HTTP method.
        path: path below the connection's base URL, starting with a slash; may carry a query.
        headers: what the wire itself demands; never a secret.
        body: the exact bytes to send.
        losses: the ledger of this projection, in conversation order.
        api: which of the provider's wire formats this is (part of the origin of the answer).
        stream: True when the answer will be framed events.
        tool_names: wire name -> canonical name, where names had to change; filled by core.
        echo: facts about this request that the adapter wants to see again with the answer (`RequestContext.echo`).
    """

    method: str = "POST"
    path: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes
    losses: tuple[Loss, ...] = ()
    api: str
    stream: bool = False
    tool_names: Mapping[str, str] = attrs.field(factory=dict)
    echo: Mapping[str, Any] = attrs.field(factory=dict)


@quick
@attrs.frozen(kw_only=True)
class WireResponse:
    """A complete answer: status, headers (names in lower case) and the whole body."""

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """What a user or the environment says about reaching a provider; the input of the `connection` hook.

    Attributes:
        api_key: given by the caller; None lets the adapter look into `environ`.
        base_url: overrides the adapter's own.
        environ: the environment, passed in so that the hook stays pure.
        api: the wire format wanted, where the provider has several.
        options: the provider's own connection options (region, organisation, version, …).
    """

    api_key: str | None = None
    base_url: str | None = None
    environ: Mapping[str, str] = attrs.field(factory=dict)
    api: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)


Auth = Callable[[WireRequest], Mapping[str, str]]


def no_auth(_request: WireRequest) -> Mapping[str, str]:
    """Add nothing: a local server needs no key."""
    return {}


def bearer_auth(key: str | None) -> Auth:
    """Return a signer that sends the key as a bearer token, as most services want it; without a key `no_auth`."""
    if not key:
        return no_auth
    headers = {"authorization": f"Bearer {key}"}
    return lambda _request: headers


@attrs.frozen(kw_only=True)
class Connection:
    """How to reach a provider (the answer of the `connection` hook).

    Attributes:
        base_url: scheme, host and path prefix, without a trailing slash.
        auth: a signer: WireRequest -> secret headers, called by the transport just before sending.
        headers: public headers for every request.
        joined: names in lower case of headers that are lists: what connection, request and caller say adds up.
        framing: `sse`, `ndjson`, or a factory of an incremental framer (DESIGN 5).
        env: names of the environment variables that were looked at, for error messages and `providers`.
        has_key: False when a key is needed and none was found.
        hosts: host names this service answers on, for recognising recorded traffic.
        endpoints: api name -> path (regular expression, matched at the end of a URL's path).
    """

    base_url: str
    auth: Auth = no_auth
    headers: Mapping[str, str] = attrs.field(factory=dict)
    joined: tuple[str, ...] = ()
    framing: str | Callable[[], Any] = "sse"
    env: tuple[str, ...] = ()
    has_key: bool = True
    hosts: tuple[str, ...] = ()
    endpoints: Mapping[str, str] = attrs.field(factory=dict)
