"""Seal the state of a model into fields that callers send back: encrypted and authenticated, for one tenant."""

from __future__ import annotations

import base64
import binascii
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from interlingua.errors import CallerError

_MARK = b"ils1"  # the first bytes of a seal
_NONCE = 12
_LARGEST = 8 << 20  # bytes of a state, unpacked
KEY_BYTES = 32


class Sealer:
    """Seals and opens states with AES-256-GCM.

    A seal is URL-safe base64 with padding, which SDKs send back unchanged. Only the tenant it was made for can open it.
    Its first bytes distinguish it from other strings, such as a service's own signature.

    Args:
        keys: keys of 32 bytes; the first one seals, all of them open, so that keys can be replaced.

    Raises:
        CallerError: a key has another length, or there is no key.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise CallerError(f"at least one seal key of {KEY_BYTES} bytes is required, and each must have that length")
        self._ciphers = [AESGCM(key) for key in keys]

    def seal(self, state: Mapping[str, Any], tenant: str) -> str:
        """Return the seal of a state for a tenant."""
        nonce = os.urandom(_NONCE)
        packed = zlib.compress(orjson.dumps(state), 1)
        return base64.urlsafe_b64encode(
            _MARK + nonce + self._ciphers[0].encrypt(nonce, packed, _MARK + tenant.encode())
        ).decode()

    def unseal(self, text: str, tenant: str) -> Mapping[str, Any] | None:
        """Return the state of a seal; {} if these keys and this tenant cannot open it; None if it is not a seal."""
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
    """Read seal keys from the value of an environment variable.

    Raises:
        CallerError: a key is not base64.
    """
    try:
        return [base64.b64decode(word, validate=True) for word in text.split()]
    except ValueError as error:
        raise CallerError("seal keys must be base64, separated by blanks") from error


def read_key_file(place: Path) -> bytes:
    """Read the seal key of a file, which only its owner can read; make it if there is no such file.

    Raises:
        CallerError: the file holds no key, or cannot be read or written.
    """
    try:
        if place.exists():
            raise FileExistsError
        place.parent.mkdir(parents=True, exist_ok=True)
        made = place.with_name(f"{place.name}.{os.getpid()}")
        made.touch(0o600)
        try:
            made.write_bytes(base64.b64encode(os.urandom(KEY_BYTES)) + b"\n")
            os.link(made, place)  # fails if another gateway has made it meanwhile
        finally:
            made.unlink()
    except FileExistsError:
        pass
    except OSError as error:
        raise CallerError(f"cannot write the seal key {place}: {error.strerror}; set seal_key_file") from error
    try:
        keys = read_keys(place.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"cannot read the seal key {place}: {error}") from error
    if len(keys) != 1 or len(keys[0]) != KEY_BYTES:
        raise CallerError(f"{place} must hold one key of {KEY_BYTES} bytes as base64")
    return keys[0]
