"""How a service is reached: the settings, the connection that a plugin returns, the request to sign; batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

import attrs

from interlingua._plugins.wire import WireRequest, WireResponse
from interlingua.errors import ProviderError


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """Settings of the caller and the environment for reaching a provider; the input of the `connection` hook.

    Attributes:
        api_key: key passed by the caller; None lets the plugin read `environ`.
        base_url: replaces the default base URL of the plugin.
        environ: environment variables, passed in so that the hook stays pure.
        api: the requested API, for providers that have several.
        options: connection options of this provider (region, organisation, version, …).
    """

    api_key: str | None = None
    base_url: str | None = None
    environ: Mapping[str, str] = attrs.field(factory=dict)
    api: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)


class HttpRequest(NamedTuple):
    """One HTTP request, complete except for its signature. `headers` holds secrets, so `repr` omits it.

    Attributes:
        method: HTTP method.
        url: complete URL, encoded.
        headers: headers of connection, request and caller, merged; names in lower case.
        body: the exact bytes.
        time: time of this attempt, UTC.
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
    """Return no headers; for local servers that need no key."""
    return {}


def bearer_auth(key: str | None) -> Auth:
    """Return an `auth` function that sends the key as a bearer token, or `no_auth` if there is no key."""
    if not key:
        return no_auth
    headers = {"authorization": f"Bearer {key}"}
    return lambda _request: headers


@attrs.frozen(kw_only=True)
class KeyExchange:
    """The exchange of a key for a token. Core sends the request, keeps the token, and replaces it; both are pure.

    Attributes:
        request: returns the complete request, given the time, which a signature may need.
        read: returns the secret for `sign` from a good answer: any value but None, with the attribute `expires_at`
            (a datetime with time zone) if it expires.
    """

    request: Callable[[datetime], HttpRequest]
    read: Callable[[WireResponse], Any]


class Endpoint(NamedTuple):
    """The API and the model that the path of a request refers to, and whether the plugin reads that API.

    Attributes:
        api: name of the API.
        model: model name, or None if the path has none.
        read: False for an endpoint of the service that the plugin does not read.
    """

    api: str
    model: str | None
    read: bool = True


class BatchLimits(NamedTuple):
    """Limits of one batch, which holds requests of one model and one API.

    Attributes:
        requests: maximum number of requests.
        size: maximum number of bytes uploaded or sent.
    """

    requests: int
    size: int


@attrs.frozen(kw_only=True)
class Connection:
    """How to reach a service; the result of the `connection` hook.

    Attributes:
        base_url: scheme, host and path prefix, without a trailing slash.
        auth: returns the secret headers of a request, for services that use a fixed key; called for every attempt.
        credentials: returns the secret for `sign` (any value but None), or an awaitable of it. Called with None
            before the first attempt, and once more with the error of an attempt that failed with an
            AuthenticationError. Core keeps the secret until then, or until its attribute `expires_at` (a datetime
            with time zone, optional) is near. It may block: an asynchronous client calls it in a thread.
        key_exchange: how a service exchanges the key for the secret of `sign`, instead of `credentials`.
        sign: returns the secret headers of the finished request, given that request and the secret (None without
            `credentials` and `key_exchange`); called for every attempt, after `auth`; pure.
        url: returns the complete URL of a request if that is not `base_url` plus the path; pure.
        headers: public headers of every request.
        list_headers: lower-case names of list headers: the values of connection, request and caller are joined.
        request_id_headers: lower-case names of further response headers that hold the request id.
        framing: `sse`, `ndjson`, or a factory of an incremental framer.
        env_vars: names of the environment variables that the hook read, for error messages and listings.
        has_key: False if a key is required and was not found.
        hosts: host names of this service, to recognise recorded traffic; `*` matches any characters.
        endpoints: API -> path (regular expression, matched at the end of the path of a URL); a group `model` is the
            percent-encoded name of the model.
        unread_endpoints: the same for endpoints of the service that the plugin does not read.
        self_hosted: models (regular expression, matched whole) that run on the machines of the operator: their
            tokens have no price, so they cost 0; "" for no models.
        batch_limits: limits of a batch, or None if the service accepts no batches.
        upload_above: bytes of one medium above which it is uploaded once and referred to, if the client has `uploads`;
            None if the service keeps no files.
        options: values from the settings or the environment that `to_wire` needs, such as a project's id; they are
            added to `RequestOptions.connection`. Never a secret.
    """

    base_url: str
    auth: Auth = no_auth
    credentials: Credentials | None = None
    key_exchange: KeyExchange | None = None
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
    upload_above: int | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)

    def find_endpoint(self, path: str) -> Endpoint | None:
        """Return the endpoint that a URL's path ends with, or None."""
        for endpoints, read in ((self.endpoints, True), (self.unread_endpoints, False)):
            for api, pattern in endpoints.items():
                if found := re.search(f"(?:{pattern})$", path.rstrip("/")):
                    model = found.groupdict().get("model")
                    return Endpoint(api, model and unquote(model), read)
        return None


@attrs.frozen(kw_only=True)
class BatchStatus:
    """The progress of a batch.

    Attributes:
        id: id of the batch at the service.
        state: `ended` also if the batch failed, expired or was cancelled.
        raw_state: the state in the words of the service.
        name: label that the batch was created with, if the service keeps one.
        created_at: seconds since 1970, or None if unknown.
        total: number of requests, or None while unknown.
        succeeded: number of requests with an answer, or None while unknown.
        failed: number of requests without an answer, or None while unknown.
        results: arguments for `batch_results`, one request each; empty if no results are available.
        error: why the whole batch failed.
    """

    id: str
    state: Literal["running", "ended"]
    raw_state: str
    name: str | None = None
    created_at: float | None = None
    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    results: tuple[str, ...] = ()
    error: str | None = None


class BatchAnswer(NamedTuple):
    """The outcome of one request of a batch.

    Attributes:
        id: id of the request; "" if the service lost it.
        response: the answer, or the failure in the form of an answer to a single request; None if there is neither.
        reason: why there is no response, such as `expired`.
    """

    id: str
    response: WireResponse | None
    reason: str = ""
