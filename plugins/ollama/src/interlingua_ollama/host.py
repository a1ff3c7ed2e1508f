"""`OLLAMA_HOST` and what people write into it -> a base URL, as the official clients read it (sheet ollama §1).

Never asks the environment (the connection hook gets it passed in) and never resolves a name.
`service` comes in.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from interlingua.errors import CallerError

PORT = 11434
_USUAL_PORTS = {"http": 80, "https": 443}
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  a server listens there; a client cannot call it


def base_url_of(host: str) -> str:
    """Return scheme, host, port and path of `host`, `host:port`, `:port`, `host/path` or a whole URL.

    A URL without a port gets its scheme's; anything else gets this service's own port.

    Raises:
        CallerError: it is no address.
    """
    scheme, marker, rest = host.strip().partition("://")
    if not marker:
        scheme, rest = "http", host.strip()
    try:
        split = urlsplit(f"{scheme}://{rest}")
        name = split.hostname or "127.0.0.1"
        given = split.port
    except ValueError as error:
        raise CallerError(
            f"{host!r} is no address: write host, host:port or a URL (OLLAMA_HOST, or base_url)"
        ) from error
    name = _ANY.get(name, name)
    usual = _USUAL_PORTS.get(scheme)
    port = given or (usual if marker else PORT)
    shown = f"[{name}]" if ":" in name else name
    place = shown if port in (None, usual) else f"{shown}:{port}"
    return f"{scheme}://{place}{split.path.rstrip('/')}"
