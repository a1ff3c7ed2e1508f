"""Images that a conversation names by URL, fetched for services that take no URLs.

Users of an application, pages that a tool has read and models may all choose these addresses. By default only public
ones are fetched, so that no request reaches a service of this machine or its network.
"""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import attrs
import httpcore
import httpx

from interlingua._http import io
from interlingua._http.body import ACCEPTED, ReplyBody
from interlingua._http.joining import JoiningBackend, ReadLimit
from interlingua._http.state import FetchPolicy
from interlingua._http.transports import IO
from interlingua._request.media import SIZE_LIMIT, Fetched
from interlingua._response.finalize import FAILED
from interlingua.errors import CallerError
from interlingua.transport import HttpRequest, TimeLimits, Timeout, connection_failed
from interlingua.types.factories import media_type_of

_SECONDS = 30.0
_MOST_REDIRECTS = 5
_PUBLIC_V6, _NAT64 = ip_network("2000::/3"), ip_network("64:ff9b::/96")
# in addition to the registry: protocol assignments, old relays, and a cloud's address for its own machines
_SPECIAL_V4 = [ip_network(net) for net in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")]
_FAILURES = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol)


def is_public(address: str) -> bool:
    """Return True if an IP address belongs to the public internet; an embedded IPv4 address decides."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (IPv4Address(int(found) % 2**32) if found in _NAT64 else None)
        if inner is None:
            return found in _PUBLIC_V6 and found.is_global
        found = inner
    return found.is_global and not found.is_multicast and not any(found in net for net in _SPECIAL_V4)


class _PublicBackend(JoiningBackend):
    """A network backend that looks a host up once, and connects to that very address if it is public."""

    def connect_tcp(self, host: str, port: int, *arguments: Any, **named: Any) -> Any:
        """Connect to a host; raise a CallerError if one of its addresses is not public."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host}: {error}") from error
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        for address in addresses:
            if not is_public(address):
                text = f"the host {host} of an image URL has the address {address}, which is not public"
                raise CallerError(f"{text}: pass the image itself, or Client(fetch='any') if you trust its source")
        for address in addresses[:-1]:
            try:
                return super().connect_tcp(address, port, *arguments, **named)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue  # a host may have addresses that this machine cannot reach
        return super().connect_tcp(addresses[-1], port, *arguments, **named)


async def fetch_image(url: str, waits: IO, timeout: Timeout | None, max_bytes: int, policy: FetchPolicy) -> Fetched:
    """Return the bytes of an image, at most 32 MB, and the media type that its server claims.

    With the policy `any` the client's own transport fetches; with `public` it may take 30 seconds at most.

    Raises:
        CallerError: the policy forbids it, the server refuses it, or it is too large or no image.
        APIConnectionError: it cannot be reached.
    """
    most = min(max_bytes, SIZE_LIMIT)
    if policy == "none":
        raise CallerError(f"the image {url} is not fetched, because the client has fetch='none'")
    if policy == "public":
        return await waits.load(_fetch_public, url, timeout, most)
    limits = TimeLimits(timeout)
    request = HttpRequest("GET", url, {"accept-encoding": ACCEPTED}, b"", datetime.now(UTC))
    response = await ReplyBody(await waits.open(request, limits), limits, max_bytes).read()
    return _check(url, response.status, response.headers.get("content-type", ""), response.body, most)


def _fetch_public(url: str, timeout: Timeout | None, most: int) -> Fetched:
    """Fetch from public addresses; the proxies of the environment are not used, because they connect by themselves."""
    given = timeout or Timeout()
    limits = TimeLimits(attrs.evolve(given, total=min(given.total or _SECONDS, _SECONDS)))
    backend = _PublicBackend()
    with httpcore.ConnectionPool(ssl_context=httpx.create_ssl_context(), network_backend=backend) as pool:
        place = url
        for _ in range(_MOST_REDIRECTS + 1):
            if io.network_guard is not None:
                io.network_guard(backend, place)
            try:
                target = httpx.URL(place)
                if target.scheme not in ("http", "https") or not target.host:
                    raise CallerError(f"the image {place} is not fetched: only http and https are")
                fetched = _get(pool, target, limits, most)
            except httpx.InvalidURL as error:
                raise CallerError(f"the image {place} is not fetched: {error}") from None
            except _FAILURES as error:
                timed_out = isinstance(error, httpcore.TimeoutException)
                raise (limits.timed_out("first_byte") if timed_out else connection_failed(error, place)) from error
            if isinstance(fetched, Fetched):
                return fetched
            place = fetched
    raise CallerError(f"the image {url} is not fetched: more than {_MOST_REDIRECTS} redirects")


def _get(pool: httpcore.ConnectionPool, url: httpx.URL, limits: TimeLimits, most: int) -> Fetched | str:
    """Return what a URL holds, or the address that it redirects to."""
    wait = ReadLimit(lambda: limits.between_chunks or 0.0)
    timeouts = {"connect": limits.connect, "pool": limits.connect, "write": limits.first_byte, "read": wait}
    address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    headers = [("accept", "image/*"), ("accept-encoding", "identity")]
    with pool.stream("GET", address, headers=headers, extensions={"timeout": timeouts}) as reply:
        names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reply.headers}
        if 300 <= reply.status < 400 and "location" in names:
            return str(url.join(names["location"]))
        if names.get("content-encoding", "identity") != "identity":
            raise CallerError(f"the image {url} is compressed, which was not asked for")
        body = bytearray()
        for piece in reply.iter_stream():
            body += piece
            if reply.status >= FAILED or len(body) > most:
                break
        return _check(str(url), reply.status, names.get("content-type", ""), bytes(body), most)


def _check(url: str, status: int, content_type: str, body: bytes, most: int) -> Fetched:
    if status >= FAILED:
        raise CallerError(f"the image {url} cannot be fetched: HTTP {status}")
    if len(body) > most:
        raise CallerError(f"the image {url} is larger than {most} bytes")
    claimed = content_type.partition(";")[0].strip().lower()
    if not claimed.startswith("image/") and media_type_of(body, "image") is None:
        raise CallerError(f"the URL {url} holds no image, but {claimed or 'data of an unknown type'}")
    return Fetched(body, claimed)
