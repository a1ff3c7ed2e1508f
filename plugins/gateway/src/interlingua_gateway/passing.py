"""Pass requests that are not conversations, such as embeddings and files, to the service of the caller's API.

Bodies are copied unchanged, both ways; only the key is replaced.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Coroutine, Mapping, MutableMapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from interlingua import cost_of
from interlingua.errors import CallerError, InterlinguaError, PermissionDeniedError, ServerError
from interlingua.plugins import ModelInfo, WireRequest, loads
from interlingua.types import Origin, Usage
from interlingua_gateway.access import Admission
from interlingua_gateway.body import FINISH, Receive, Scope, Send, read_body, wait_until_gone
from interlingua_gateway.config import GatewayConfig
from interlingua_gateway.errors import UpstreamKeyError, hide_addresses, write_error
from interlingua_gateway.models import choose_models
from interlingua_gateway.services import Services
from interlingua_gateway.store import Key, Use
from interlingua_serving import ServeContext, ServedApi, ServedRoute, ServingPlugin

_HOP = {
    "connection", "content-length", "host", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding",
    "upgrade", "accept-encoding", "set-cookie", "expect",
}  # fmt: skip
_READ = 4 << 20  # most bytes of an answer in which a usage is looked for
_VERSION = re.compile(r"v\d+((alpha|beta)\d*)?")
_OUTPUT = 4_096  # tokens that are reserved for an answer
_log = logging.getLogger("interlingua.gateway")


class PassedPath:
    """An ASGI application for a path whose requests are passed to the service of their API.

    Args:
        services: the services that all requests share.
        plugin: the serving plugin of the API.
        api: the API.
        route: the path.
    """

    def __init__(self, services: Services, plugin: ServingPlugin, api: ServedApi, route: ServedRoute) -> None:
        self._services, self.plugin, self.api, self.route = services, plugin, api, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; failures are written as this API's errors."""
        context = ServeContext(provider=self.plugin.key, api=self.api.name)
        begun = False

        async def note_start(event: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(event)

        try:
            await self._pass(scope, receive, note_start)
        except Exception as failure:
            error = failure
            if not isinstance(error, InterlinguaError):
                _log.exception("request %s failed", context.answer_id)
                error = ServerError(f"the gateway failed; its log has the details of request {context.answer_id}")
            self._services.access.count_refusal(self.plugin.key, error)
            if begun:  # the server closes the connection of an answer without an end
                _log.info("%s: the answer that was passed on broke off: %s", self.route.path, error)
                return
            place = self._services.connection(self.plugin.key).base_url
            written = write_error(self.plugin, hide_addresses(error, place), context, self.route)
            headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in written.headers.items()]
            await send({"type": "http.response.start", "status": written.status, "headers": headers})
            await send({"type": "http.response.body", "body": written.body, "more_body": False})

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        key = await services.access.authenticate(headers, dict(query))
        path = _checked_path(scope["path"])
        if key is None or not any(fnmatchcase(path, pattern) for pattern in key.passes):
            raise PermissionDeniedError(f"this key may not use {path}; its pass-through paths can allow it")
        body = await read_body(receive, headers, services.config.body_limit)
        named = scope.get("path_params", {}).get("model", "")
        model, info = await services.work(len(body), self._model, body, headers, key, named)
        admission = await services.access.admit(key, None, self.plugin.key)
        admission.target = f"{self.plugin.key}:{model or path}"
        outcome: BaseException | None = None
        use: Use | None = None
        try:
            most = _OUTPUT if model else 0
            given = len(body) if model else 0
            if not self.route.free:
                await services.access.reserve(admission, admission.target, info, given, most, most)
            plain = [(name, value) for name, value in query if name not in services.key_parameters]
            request = self._request(scope["method"], path, plain, headers, body)
            use = await self._send_while_heard(self._send(request, admission, info, send), receive, info)
        except BaseException as error:
            outcome = error
            raise
        finally:
            await services.access.settle(admission, None, outcome, unknown=use is None and info is not None, use=use)

    def _model(self, body: bytes, headers: Mapping[str, str], key: Key, name: str) -> tuple[str, ModelInfo | None]:
        """Return the model that the path or a JSON body names, and its entry in the catalogue.

        Raises:
            PermissionDeniedError: the key may use some models only, and the request does not name one of them.
        """
        if not name and headers.get("content-type", "").partition(";")[0].strip() == "application/json" and body:
            try:
                found = json.loads(body.decode(), object_pairs_hook=_members)
                if isinstance(found, dict):
                    _members([(name.casefold(), None) for name in found])  # services in Go ignore the case
            except (ValueError, RecursionError):
                raise CallerError("the body must be JSON, without repeated members") from None
            given = found.get("model") if isinstance(found, dict) else None
            name = given if isinstance(given, str) else ""
        if not name:
            if key.models:
                raise PermissionDeniedError("this key may use some models only, and the request names none in JSON")
            return "", None
        services = self._services
        asked, no_routes = f"{self.plugin.key}:{name}", GatewayConfig()
        choice = choose_models(no_routes, services.registry, asked, self.plugin.key)
        if not choice.is_allowed(key.models):
            raise PermissionDeniedError(f"this key may not use the model {name!r}")
        return name, services.model_info(Origin(self.plugin.key, self.api.name, name))

    def _request(
        self, method: str, path: str, query: Sequence[tuple[str, str]], headers: Mapping[str, str], body: bytes
    ) -> WireRequest:
        connection = self._services.connection(self.plugin.key)
        if not connection.has_key:
            raise UpstreamKeyError(f"the gateway has no key for {self.plugin.key}")
        secret = self._services.secret_headers
        kept = {name: value for name, value in headers.items() if name not in _HOP and name not in secret}
        place = _below(connection.base_url, path) + (f"?{urlencode(query)}" if query else "")
        given = {"accept-encoding": "identity", **kept}  # so that the usage can be read
        return WireRequest(method=method, path=place, headers=given, body=body, api=self.api.name)

    async def _send_while_heard(
        self, sending: Coroutine[Any, Any, Use | None], receive: Receive, info: ModelInfo | None
    ) -> Use | None:
        """Copy an answer; once the caller has left, only for its usage, and only if that has a price."""
        copy = asyncio.ensure_future(sending)
        gone = asyncio.ensure_future(wait_until_gone(receive))
        try:
            await asyncio.wait({copy, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not copy.done() and info is not None:
                await asyncio.wait({copy}, timeout=FINISH)
        finally:
            gone.cancel()
            if not copy.done():
                copy.cancel()
                with suppress(asyncio.CancelledError, InterlinguaError):
                    await copy
        return None if copy.cancelled() else copy.result()

    async def _send(self, request: WireRequest, admission: Admission, info: ModelInfo | None, send: Send) -> Use | None:
        """Send a request and copy its answer; return what it used, or None if the answer has no usage."""
        kept = bytearray()
        answer = await self._services.passing_client().open_request(self.plugin.key, request)
        try:
            facts = {name: value for name, value in answer.headers.items() if name not in _HOP}
            facts["x-interlingua-model"] = admission.target
            encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in facts.items()]
            await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
            async for piece in answer:
                if len(kept) <= _READ:
                    kept += piece
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            await answer.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if answer.status >= 400:
            return Use()
        return await self._services.work(len(kept), self._used, bytes(kept), info) if len(kept) <= _READ else None

    def _used(self, body: bytes, info: ModelInfo | None) -> Use | None:
        try:
            found = loads(body)
        except ValueError:
            return None
        counts = [_number_at(found, places) for places in (self.api.input_tokens, self.api.output_tokens)]
        if counts[0] is None and counts[1] is None:
            return None
        given, made = counts[0] or 0, counts[1] or 0
        cost = cost_of(Usage(input_tokens=given, output_tokens=made), info, datetime.now(UTC)).cost_usd
        return Use(input_tokens=given, output_tokens=made, cost_usd=cost or Decimal(0))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse one with a repeated member, of which a service may read another value than this does."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is repeated")
    return found


def _number_at(value: Any, places: Sequence[str]) -> int | None:
    """Return the first whole number at one of the places, such as `usage.prompt_tokens`."""
    for place in places:
        found = value
        for name in place.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
            return found
    return None


def _checked_path(path: str) -> str:
    segments = path.split("/")[1:]
    if {".", "..", ""}.intersection(segments) or not path.isascii() or not path.isprintable() or len(path) > 1_000:
        raise CallerError(f"not a path of this API: {path[:80]!a}")
    return "/" + "/".join(quote(segment, safe="-._~:@") for segment in segments)


def _below(base: str, path: str) -> str:
    """Return a path without the beginning that the service's address ends with, such as `/v1`."""
    known, segments = urlsplit(base.rstrip("/")).path.split("/")[1:], path.split("/")[1:]
    if known and _VERSION.fullmatch(known[-1]) and _VERSION.fullmatch(segments[0]):
        return "/" + "/".join(segments[1:])  # an SDK may name another version than the operator's address
    shared = next((n for n in range(min(len(known), len(segments)), 0, -1) if known[-n:] == segments[:n]), 0)
    return "/" + "/".join(segments[shared:])
