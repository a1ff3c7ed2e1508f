"""How a service is reached: settings in, a connection out; signing is a function of the finished request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import unquote

import attrs

from interlingua._plugins.wire import WireRequest
from interlingua.errors import ProviderError


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


class HttpRequest(NamedTuple):
    """One HTTP request as it is sent, but for its signature. `headers` hold secrets: the representation omits them.

    Attributes:
        method: HTTP method.
        url: the whole address, encoded.
        headers: names in lower case; the connection's, the request's and the caller's, merged.
        body: the exact bytes.
        time: of this attempt, UTC.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    time: datetime

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.url}, {len(self.body)} bytes>"


Auth = Callable[[WireRequest], Mapping[str, str]]
Credentials = Callable[[ProviderError | None], Any]
Sign = Callable[[HttpRequest, Any], Mapping[str, str]]


def no_auth(_request: WireRequest) -> Mapping[str, str]:
    """Add nothing: a local server needs no key."""
    return {}


def bearer_auth(key: str | None) -> Auth:
    """Return a signer that sends the key as a bearer token, as most services want it; without a key `no_auth`."""
    if not key:
        return no_auth
    headers = {"authorization": f"Bearer {key}"}
    return lambda _request: headers


class Endpoint(NamedTuple):
    """What a request's path says: the API, the model where the path names it, and whether this adapter reads it.

    Attributes:
        api: name of the API.
        model: the model, or None.
        read: False for an endpoint of the service that this adapter knows and does not read.
    """

    api: str
    model: str | None
    read: bool = True


class BatchLimits(NamedTuple):
    """What one batch may hold: requests of one model and one wire format.

    Attributes:
        requests: most requests.
        size: most bytes of what is uploaded or sent.
    """

    requests: int
    size: int


@attrs.frozen(kw_only=True)
class Connection:
    """How to reach a provider (the answer of the `connection` hook).

    Attributes:
        base_url: scheme, host and path prefix, without a trailing slash.
        auth: secret headers of a request, where a fixed key is all it takes; called for every attempt.
        credentials: gives the secret that `sign` takes (any value but None), or an awaitable of it. Called before the
            first attempt, with None, and once more with the error of an attempt that failed with an
            AuthenticationError; in between the secret is kept, until its attribute `expires_at` (a datetime with
            time zone) is near, where it has one. It may block: an asynchronous client calls it in a thread.
        sign: secret headers of the finished request, from it and the secret (None without `credentials`); called for
            every attempt, after `auth`; pure.
        url: the whole address of a request, where that is not `base_url` and the request's path; pure.
        headers: public headers for every request.
        list_headers: lower-case names of list headers: the values of connection, request and caller are joined.
        request_id_headers: lower-case names of further response headers that hold the request id.
        framing: `sse`, `ndjson`, or a factory of an incremental framer.
        env_vars: names of the environment variables that were looked at, for error messages and `providers`.
        has_key: False when a key is needed and none was found.
        hosts: host names this service answers on, for recognising recorded traffic; `*` stands for any letters.
        endpoints: api name -> path (regular expression, matched at the end of a URL's path); a group `model` is the
            model's name, percent-encoded.
        unread_endpoints: the same for endpoints of the service that this adapter does not read.
        self_hosted: models (regular expression, matched whole) that run on machines of whoever runs the server: their
            tokens have no price, so they cost 0; empty for none.
        batch_limits: what a batch may hold, as `BatchLimits`; None where the service takes no batches.
    """

    base_url: str
    auth: Auth = no_auth
    credentials: Credentials | None = None
    sign: Sign | None = None
    url: Callable[[WireRequest], str] | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    list_headers: tuple[str, ...] = ()
    request_id_headers: tuple[str, ...] = ()
    framing: str | Callable[[], Any] = "sse"
    env_vars: tuple[str, ...] = ()
    has_key: bool = True
    hosts: tuple[str, ...] = ()
    endpoints: Mapping[str, str] = attrs.field(factory=dict)
    unread_endpoints: Mapping[str, str] = attrs.field(factory=dict)
    self_hosted: str = ""
    batch_limits: BatchLimits | None = None

    def find_endpoint(self, path: str) -> Endpoint | None:
        """Return the endpoint that a URL's path ends with, or None."""
        for endpoints, read in ((self.endpoints, True), (self.unread_endpoints, False)):
            for api, pattern in endpoints.items():
                if found := re.search(f"(?:{pattern})$", path.rstrip("/")):
                    model = found.groupdict().get("model")
                    return Endpoint(api, model and unquote(model), read)
        return None

    def claims_host(self, host: str) -> int:
        """Return how exactly this service claims a host: the length of the name that matches, 0 for not at all.

        A host may end with the name, after a dot or (as with regions) a hyphen.
        """
        patterns = ((name, re.escape(name).replace(r"\*", ".*")) for name in self.hosts)
        return max((len(name) for name, pattern in patterns if re.fullmatch(f"(.*[.-])?{pattern}", host)), default=0)
