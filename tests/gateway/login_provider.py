"""A scripted OpenID Connect provider on loopback; its tokens are signed by another library than the gateway's."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.support.loopback import loopback, send_bytes

CLIENT, SECRET = "gateway-client", "s3cret of the client"


class SigningKey:
    """An RSA or EC key with its public half as JSON."""

    def __init__(self, name: str, algorithm: str = "RS256") -> None:
        self.name, self.algorithm = name, algorithm
        self.private: Any
        if algorithm == "RS256":
            self.private = rsa.generate_private_key(65537, 2048)
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key()))
        else:
            self.private = ec.generate_private_key(ec.SECP256R1())
            public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.private.public_key()))
        self.public = {**public, "kid": name, "use": "sig", "alg": algorithm}


class Provider:
    """The provider: sends browsers back with a code at once, and returns a token for it.

    Attributes:
        keys: the keys that it publishes; the first one signs.
        claims: change the claims of tokens.
        sign: makes the ID token, by default with the first key.
        requests: the paths of requests to it.
        asked: the parameters of the last authorization request.
    """

    def __init__(self) -> None:
        self.url = ""
        self.keys = [SigningKey("one")]
        self.claims: dict[str, Any] = {"email": "olga@example.org", "email_verified": True}
        self.metadata: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any]], str | None] = self.sign_with_first
        self.requests: list[str] = []
        self.asked: dict[str, str] = {}
        self._codes: dict[str, dict[str, str]] = {}

    def sign_with_first(self, claims: dict[str, Any]) -> str:
        key = self.keys[0]
        return jwt.encode(claims, key.private, algorithm=key.algorithm, headers={"kid": key.name})

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        place = urlsplit(handler.path)
        self.requests.append(place.path)
        if place.path == "/.well-known/openid-configuration":
            found = {
                "issuer": self.url, "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token", "jwks_uri": f"{self.url}/keys",
                "id_token_signing_alg_values_supported": ["none", "HS256", "RS256", "ES256"], **self.metadata,
            }  # fmt: skip
            _send(handler, 200, found)
        elif place.path == "/keys":
            _send(handler, 200, {"keys": [key.public for key in self.keys]})
        elif place.path == "/authorize":
            self.asked = {name: values[0] for name, values in parse_qs(place.query).items()}
            code = secrets.token_urlsafe(8)
            self._codes[code] = self.asked
            back = urlencode({"code": code, "state": self.asked["state"]})
            send_bytes(handler, 302, "text/plain", b"", location=f"{self.asked['redirect_uri']}?{back}")
        else:
            self._give_token(handler, {name: values[0] for name, values in parse_qs(body.decode()).items()})

    def _give_token(self, handler: BaseHTTPRequestHandler, given: dict[str, str]) -> None:
        asked = self._codes.pop(given["code"], None)
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if handler.headers.get("authorization") != f"Basic {basic}":
            _send(handler, 401, {"error": "invalid_client"})
            return
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")  # RFC 7636, section 4.2
        if asked is None or asked["code_challenge"] != proof or asked["redirect_uri"] != given["redirect_uri"]:
            _send(handler, 400, {"error": "invalid_grant"})
            return
        now = int(time.time())
        claims = {
            "iss": self.url, "sub": "subject-1", "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"],
            **self.claims,
        }  # fmt: skip
        token = {"access_token": "a", "token_type": "Bearer", "expires_in": 300}
        signed = self.sign({name: value for name, value in claims.items() if value is not None})
        _send(handler, 200, token if signed is None else {**token, "id_token": signed})


def _send(handler: BaseHTTPRequestHandler, status: int, value: Any) -> None:
    send_bytes(handler, status, "application/json", json.dumps(value).encode())


@contextmanager
def login_provider() -> Iterator[Provider]:
    """Run a provider."""
    made = Provider()
    with loopback(made.answer) as made.url:
        yield made
