"""State of the model that answered, sealed into what callers send back: authenticated, and opened by nobody else."""

from __future__ import annotations

import base64
import binascii
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from interlingua.errors import CallerError

_MARK = b"ils1"  # what the bytes of a seal begin with
_NONCE = 12
_LARGEST = 8 << 20  # bytes of a state, unpacked
KEY_BYTES = 32


class Sealer:
    """Seals and opens states with AES-256-GCM.

    A seal is URL-safe base64 with padding: what SDKs send back unchanged. It belongs to one tenant: for another it does
    not open. Text that is no seal of anybody's, such as a service's own signature, is told apart by its first bytes.

    Args:
        keys: of 32 bytes; the first seals, all open, so that keys can be changed.

    Raises:
        CallerError: a key is of another length, or there is none.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise CallerError(f"keys of seals have {KEY_BYTES} bytes each, and there is at least one")
        self._ciphers = [AESGCM(key) for key in keys]

    def seal(self, state: Mapping[str, Any], tenant: str) -> str:
        """Return the seal of a state for a tenant."""
        nonce = os.urandom(_NONCE)
        packed = zlib.compress(orjson.dumps(state), 1)
        return base64.urlsafe_b64encode(
            _MARK + nonce + self._ciphers[0].encrypt(nonce, packed, _MARK + tenant.encode())
        ).decode()

    def unseal(self, text: str, tenant: str) -> Mapping[str, Any] | None:
        """Return the state of a seal; {} for one that this tenant and these keys cannot open; None for no seal."""
        try:
            data = base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_"))
        except (ValueError, binascii.Error):
            return None
        if not data.startswith(_MARK):
            return None
        nonce, sealed = data[len(_MARK) : len(_MARK) + _NONCE], data[len(_MARK) + _NONCE :]
        for cipher in self._ciphers:
            try:
                return _unpack(cipher.decrypt(nonce, sealed, _MARK + tenant.encode()))
            except (InvalidTag, ValueError):
                continue
        return {}


def _unpack(packed: bytes) -> Mapping[str, Any]:
    reader = zlib.decompressobj()
    data = reader.decompress(packed, _LARGEST)
    if reader.unconsumed_tail:
        raise ValueError("the state is too large")
    state: Mapping[str, Any] = orjson.loads(data)
    return state


def read_keys(text: str) -> list[bytes]:
    """Read keys from the text of an environment variable.

    Raises:
        CallerError: one is not base64.
    """
    try:
        return [base64.b64decode(word, validate=True) for word in text.split()]
    except ValueError as error:
        raise CallerError("keys of seals are written in base64, separated by blanks") from error
