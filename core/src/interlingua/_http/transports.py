"""Which transport a client uses, and how it waits for it."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias

from interlingua._http.io import BlockingIO
from interlingua.errors import CallerError

if TYPE_CHECKING:
    from interlingua._http.anyio_io import AnyIO

IO: TypeAlias = "BlockingIO | AnyIO"


def new_io(http_client: Any, transport: Any, *, blocking: bool) -> IO:
    """Return what a client waits by, over the transport or HTTP client that the caller passed, or a new transport."""
    given: Any = None
    if http_client is not None:
        if transport is not None:
            raise CallerError("pass either transport= or http_client=, not both")
        from interlingua._http import httpx_transport  # noqa: PLC0415  loads httpx

        given = httpx_transport.new_transport(blocking=blocking, client=http_client)
    elif transport is not None and not isinstance(transport, str):
        given = _check_transport(transport, blocking=blocking)
    if blocking:
        return BlockingIO(new_transport(transport, blocking=True) if given is None else given, owned=given is None)
    from interlingua._http.anyio_io import AnyIO  # noqa: PLC0415  a blocking client needs no event loop

    return AnyIO(given, lambda: new_transport(transport, blocking=False))


def has_own_timeouts(http_client: Any) -> bool:
    """Return True if the caller's httpx client was created with timeouts: some are not httpx's default of 5 seconds.

    The default would cut most answers off, so a client that has it gets the limits of `Timeout`.
    """
    timeout: Any = getattr(http_client, "timeout", None)
    return hasattr(timeout, "as_dict") and set(timeout.as_dict().values()) != {5.0}


def _check_transport(transport: Any, *, blocking: bool) -> Any:
    send = getattr(transport, "open", None)
    if not callable(send) or not hasattr(transport, "close" if blocking else "aclose"):
        kind = "Transport" if blocking else "AsyncTransport"
        raise CallerError(f"transport= must be the name of a transport, such as 'httpx', or a {kind}")
    if blocking and iscoroutinefunction(send):
        raise CallerError("Client takes a blocking Transport; AsyncClient takes this one")
    return transport


def new_transport(name: str | None, *, blocking: bool) -> Any:
    """Create the transport of this name, or raise a CallerError; the default is httpx."""
    try:
        if name in (None, "httpx"):
            from interlingua._http import httpx_transport  # noqa: PLC0415  `import interlingua` stays cheap

            return httpx_transport.new_transport(blocking=blocking)
        from importlib.metadata import entry_points  # noqa: PLC0415  httpx needs none

        found = entry_points(group="interlingua.transports")
        if name not in found.names:
            names = ", ".join(sorted({"httpx", *found.names}))
            raise CallerError(f"no transport {name!r} (installed: {names}): pip install interlingua-{name}")
        return found[name].load()(blocking=blocking)
    except CallerError:
        raise
    except Exception as error:  # a transport reads proxies and certificates by itself
        what = f": {error}" if isinstance(error, (ImportError, OSError)) else ""  # others may repeat a proxy's password
        raise CallerError(
            f"cannot create an HTTP client ({type(error).__name__}{what}): check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY,"
            " SSL_CERT_FILE and SSL_CERT_DIR, or pass http_client="
        ) from None
