"""Signature Version 4 of a finished request (WIRE.md, Signature)."""

from __future__ import annotations

import hashlib
import hmac
import posixpath
import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, urlsplit

import attrs

from interlingua.plugins import HttpRequest

SERVICE = "bedrock"
ALGORITHM = "AWS4-HMAC-SHA256"
# what programs between here and there change, or what the signature itself brings
_UNSIGNED = frozenset(
    ("authorization", "connection", "date", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id")
)
_PORTS = {"https": 443, "http": 80}
_REGION_IN_HOST = re.compile(r"(?:^|\.)bedrock(?:-runtime)?(?:-fips)?\.([a-z0-9-]+)\.").search


@attrs.frozen(kw_only=True)
class AwsKey:
    """The key that signs requests.

    Attributes:
        access_key_id: public name of the key.
        secret_access_key: the secret.
        session_token: session token of a temporary key.
        expires_at: expiry of a temporary key, with time zone.
    """

    access_key_id: str
    secret_access_key: str = attrs.field(repr=False)
    session_token: str | None = attrs.field(default=None, repr=False)
    expires_at: datetime | None = None


def sign(outgoing: HttpRequest, key: AwsKey, region: str) -> dict[str, str]:
    """Return the headers that sign a request: `authorization`, `x-amz-date` and, for temporary keys, the token."""
    date = outgoing.time.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{date[:8]}/{region}/{SERVICE}/aws4_request"
    made = {"x-amz-date": date}
    if key.session_token:
        made["x-amz-security-token"] = key.session_token
    headers = _signed_headers(outgoing, made)
    text = "\n".join([ALGORITHM, date, scope, _sha256(canonical_request(outgoing, headers).encode())])
    secret = f"AWS4{key.secret_access_key}".encode()
    for part in (*scope.split("/"), text):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    names = ";".join(headers)
    credential = f"Credential={key.access_key_id}/{scope}"
    made["authorization"] = f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={secret.hex()}"
    return made


def canonical_request(outgoing: HttpRequest, headers: Mapping[str, str]) -> str:
    """Return the canonical form of a request, which is signed.

    Args:
        outgoing: the request.
        headers: the signed headers, in order.
    """
    parts = urlsplit(outgoing.url)
    lines = [f"{name}:{value}" for name, value in headers.items()]
    digest = headers.get("x-amz-content-sha256") or _sha256(outgoing.body)
    path, query = _canonical_path(parts.path), _canonical_query(parts.query)
    return "\n".join([outgoing.method.upper(), path, query, *lines, "", ";".join(headers), digest])


def region_of(url: str, default: str) -> str:
    """Return the region in a host name of the service, or the default for other hosts."""
    found = _REGION_IN_HOST(urlsplit(url).hostname or "")
    return found[1] if found else default


def _signed_headers(outgoing: HttpRequest, made: Mapping[str, str]) -> dict[str, str]:
    parts = urlsplit(outgoing.url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    if parts.port is not None and parts.port != _PORTS.get(parts.scheme):
        host = f"{host}:{parts.port}"
    given = {name.lower(): value for name, value in outgoing.headers.items()}
    every = {"host": host} | given | dict(made)
    return {name: " ".join(every[name].split()) for name in sorted(every) if name not in _UNSIGNED}


def _canonical_path(path: str) -> str:
    """Return the path without dot segments, encoded once more in addition to the URL's encoding."""
    if not path:
        return "/"
    clean = re.sub("/+", "/", posixpath.normpath(path))
    ends = path.endswith(("/", "/.", "/..")) and clean != "/"
    return quote(clean + "/" if ends else clean, safe="/~")


def _canonical_query(query: str) -> str:
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else []
    return "&".join(f"{name}={value}" for name, value in pairs)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
