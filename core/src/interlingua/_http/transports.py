"""Which transport a client uses: an object, one by name, httpx with the caller's client, or httpx."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

from interlingua._http.io import IO, BlockingIO
from interlingua.errors import CallerError

GROUP = "interlingua.transports"


def blocking_io(http_client: Any, transport: Any) -> IO:
    """Return what a blocking client waits by.

    Raises:
        CallerError: an argument is no transport or HTTP client, or no transport can be created.
    """
    given = _given(http_client, transport, blocking=True)
    return BlockingIO(new_transport(transport, blocking=True) if given is None else given, owned=given is None)


def async_io(http_client: Any, transport: Any) -> IO:
    """Return what an asynchronous client waits by; raises the errors of `blocking_io`."""
    from interlingua._http.anyio_io import AnyIO  # noqa: PLC0415  a blocking client needs no event loop

    return AnyIO(_given(http_client, transport, blocking=False), lambda: new_transport(transport, blocking=False))


def has_own_timeouts(http_client: Any) -> bool:
    """Return True if the caller's HTTP client was created with timeouts."""
    if http_client is None:
        return False
    from interlingua._http import httpx_transport  # noqa: PLC0415  as below

    return httpx_transport.has_own_timeouts(http_client)


def _given(http_client: Any, transport: Any, *, blocking: bool) -> Any:
    """Return the transport that the caller passed, None for one by name or the default."""
    if http_client is not None and transport is not None:
        raise CallerError("pass either transport= or http_client=, not both")
    if http_client is not None:
        from interlingua._http import httpx_transport as own  # noqa: PLC0415  loads httpx

        own.check_client(http_client, blocking=blocking)
        return (own.HttpxTransport if blocking else own.AsyncHttpxTransport)(http_client)
    if transport is None or isinstance(transport, str):
        return None
    send = getattr(transport, "open", None)
    if not callable(send) or not hasattr(transport, "close" if blocking else "aclose"):
        kind = "Transport" if blocking else "AsyncTransport"
        raise CallerError(f"transport= must be the name of a transport, such as 'httpx', or a {kind}")
    if blocking and iscoroutinefunction(send):
        raise CallerError("Client takes a blocking Transport; AsyncClient takes this one")
    return transport


def new_transport(name: str | None, *, blocking: bool) -> Any:
    """Create the transport of this name; the default is httpx.

    Raises:
        CallerError: no installed distribution has it, or it cannot be created in this environment.
    """
    try:
        if name in (None, "httpx"):
            from interlingua._http import httpx_transport  # noqa: PLC0415  `import interlingua` stays cheap

            return httpx_transport.new_transport(blocking=blocking)
        return _find(name)(blocking=blocking)
    except CallerError:
        raise
    except Exception as error:
        raise _cannot_create(error) from None


def _find(name: str | None) -> Any:
    from importlib.metadata import entry_points  # noqa: PLC0415  httpx needs none

    found = entry_points(group=GROUP)
    if name not in found.names:
        names = ", ".join(sorted({"httpx", *found.names}))
        raise CallerError(f"no transport {name!r} (installed: {names}): pip install interlingua-{name}")
    return found[name].load()


def _cannot_create(error: Exception) -> CallerError:
    """Return the error for a transport that cannot be created: it reads proxies and certificates by itself."""
    what = f": {error}" if isinstance(error, (ImportError, OSError)) else ""  # others may repeat a proxy's password
    return CallerError(
        f"cannot create an HTTP client ({type(error).__name__}{what}): check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY,"
        " SSL_CERT_FILE and SSL_CERT_DIR, or pass http_client="
    )
