"""The hooks of a serving plugin: when each is called, and what it takes, returns and raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from interlingua.errors import InterlinguaError
    from interlingua.plugins import WireRequest, WireResponse
    from interlingua.types import Message
    from interlingua_serving.values import InboundRequest, ServeContext, ServedApi, StreamWriter

PROJECT = "interlingua.serving"
"""The project name of the hooks, and the entry point group of serving plugins: provider key -> plugin."""
SERVING_VERSION = 1
OLDEST_SERVING = 1
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class ServingHooks:
    """Hooks that one serving plugin for each provider implements; other plugins may only wrap them.

    All are pure: a plugin takes ids, the time and seals from the context.
    """

    @hookspec(firstresult=True)
    def served_apis(self) -> Sequence[ServedApi] | None:
        """Called once, when a host looks for APIs to serve: return them, with their paths."""

    @hookspec(firstresult=True)
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest | None:
        """Called when a caller made a request in this provider's API: read it.

        Whatever `options` cannot express goes to `extra` unchanged, so that `to_wire` of the same API writes an equal
        request.

        Args:
            request: API, path with query, headers with lower-case names and without secrets, body.
            context: `unseal` opens the state that a writer sealed into an earlier answer (`restore_answer`).

        Raises:
            CallerError: the request is not valid in this API; the caller reads the message.
        """

    @hookspec(firstresult=True)
    def continue_request(
        self, request: WireRequest, earlier: bytes, answer: bytes, context: ServeContext
    ) -> WireRequest | None:
        """Called with a request that continues an answer which the host has kept (`InboundRequest.continues`).

        Args:
            request: the request.
            earlier: the body of the answer's request, with the whole conversation before it.
            answer: the body of the answer.
            context: as for `from_wire_request`.

        Returns:
            the request with the whole conversation in it, and without the answer's id.
        """

    @hookspec(firstresult=True)
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse | None:
        """Called with a complete answer from any provider: write it as this API's response.

        The response has the requested model, a new id, and the usage. State of another origin is sealed into fields
        that callers send back (`AnswerState`), or dropped; it is never written as text.
        """

    @hookspec(firstresult=True)
    def stream_to_wire(self, context: ServeContext) -> StreamWriter | None:
        """Called before an answer is streamed: return an object that writes its events in this API's framing.

        An object and not a generator: the events of one upstream read are sent in one write.
        """

    @hookspec(firstresult=True)
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse | None:
        """Called when a request failed before its answer began: return this API's error response with its status."""

    @hookspec(firstresult=True)
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        """Called with the answer to a request that is not a conversation: write it, or return None if the API has none.

        Args:
            kind: the kind of the route: `models`, `model`, `count_tokens`, `version` or `delete`.
            value: a list of names, a `ServedModel`, an int, None, or the id of a deleted answer.
            context: as for `to_wire_response`.
        """


SERVING_HOOKS = frozenset(name for name in vars(ServingHooks) if not name.startswith("_"))
