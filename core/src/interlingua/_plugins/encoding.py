"""Helpers for `to_wire`: encode each message once while its conversation lives, and join encoded JSON."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from operator import is_
from typing import Any, TypeVar

from interlingua._json import dumps
from interlingua.types.messages import ANSWER_WAS_DROPPED, Message, Role

T = TypeVar("T")
Json = bytes | Sequence[bytes | memoryview]
"""An encoded JSON value, whole or in pieces: a history is joined once, together with the request."""

_KEYS = 4  # number of keys to keep results for, such as a profile of a model with thinking and without


class ProjectedConversation(list[Message]):
    """Messages as one target can carry them; `written` holds what a plugin encoded of each, by key."""

    __slots__ = ("written",)

    def __init__(
        self, messages: Iterable[Message] = (), written: dict[Hashable, tuple[list[Message], list[Any]]] | None = None
    ):
        super().__init__(messages)
        self.written = {} if written is None else written


def encode_each(messages: Sequence[Message], key: Hashable, encode: Callable[[Message], T]) -> list[T]:
    """Return `encode(message)`, a pure function, for every message that `to_wire` gets.

    A message is encoded once per key while its conversation lives; the key identifies the plugin and all that
    the result depends on, except the message. Of a plain list, every message is encoded.
    """
    store = getattr(messages, "written", None)
    if store is None:
        return [encode(message) for message in messages]
    seen: list[Message]
    made: list[T]
    seen, made = store.setdefault(key, ([], []))
    if len(store) > _KEYS:
        del store[next(iter(store))]
    earlier: dict[int, T] = {}
    if len(seen) > len(messages) or not all(map(is_, seen, messages)):
        pairs = enumerate(zip(seen, messages, strict=False))
        same = next((at for at, (before, now) in pairs if before is not now), min(len(seen), len(messages)))
        old = seen[same:]  # held while their ids are looked up
        earlier = dict(zip(map(id, old), made[same:], strict=True))
        del seen[same:], made[same:]
    new = messages[len(seen) :]
    made += [earlier.get(id(message)) or encode(message) for message in new] if earlier else [*map(encode, new)]
    seen += new
    return made[:]


def model_saw(messages: Sequence[Message], at: int) -> bool:
    """Return True if a model has seen message `at`: the next message is an answer, is missing, or was dropped.

    For APIs that write the last message differently: a message that was sent last once must be encoded the same way
    again, or the prompt cache of the service is lost.
    """
    if at + 1 == len(messages) or messages[at + 1].role is Role.ASSISTANT:
        return True
    return ANSWER_WAS_DROPPED in messages[at].metadata.extra


def json_object(fields: Mapping[str, Json] | Iterable[tuple[str, Json]]) -> bytes:
    """Join encoded JSON values into an object, in this order."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    pieces: list[bytes | memoryview] = []
    for name, value in pairs:
        pieces += (b"," if pieces else b"{", _member_name(name))
        if isinstance(value, bytes):
            pieces.append(value)
        else:
            pieces += value
    pieces.append(b"}" if pieces else b"{}")
    return b"".join(pieces)


def json_array(values: Iterable[bytes]) -> bytes:
    """Join encoded JSON values into an array."""
    return b"".join((b"[", b",".join(values), b"]"))


def json_array_concat(array: bytes, more: bytes) -> bytes:
    """Join two encoded JSON arrays."""
    if array == b"[]" or more == b"[]":
        return more if array == b"[]" else array
    return array[:-1] + b"," + more[1:]


def json_object_with(element: bytes, name: str, value: bytes) -> bytes:
    """Append a member to an encoded JSON object, for markers that must not be part of the remembered encoding."""
    if element == b"{}":
        return json_object({name: value})
    return element[:-1] + b"," + dumps(name) + b":" + value + b"}"


@lru_cache(maxsize=256)
def _member_name(name: str) -> bytes:
    return dumps(name) + b":"


def multipart_body(parts: Sequence[tuple[Mapping[str, str], bytes]], kind: str = "form-data") -> tuple[str, bytes]:
    """Return the content type and the bytes of a multipart body; equal parts result in equal bytes.

    Parts are headers and content; the boundary is a digest of the last content. Line ends within a header are
    percent-encoded, as browsers do. `kind` is a subtype of `multipart`, such as `related`.
    """
    boundary, out = sha256(parts[-1][1]).hexdigest(), list[bytes]()
    for headers, content in parts:
        lines = [f"{name}: {value}".replace("\r", "%0D").replace("\n", "%0A") for name, value in headers.items()]
        out += [f"--{boundary}\r\n".encode(), "\r\n".join([*lines, "\r\n"]).encode(), content, b"\r\n"]
    return f"multipart/{kind}; boundary={boundary}", b"".join([*out, f"--{boundary}--\r\n".encode()])


def form_body(fields: Mapping[str, str], name: str, media_type: str, data: bytes) -> tuple[str, bytes]:
    """Return the content type and the bytes of a form with string fields and `data` as its field `file`."""
    file = 'form-data; name="file"; filename="{}"'.format(name.replace('"', "%22"))
    texts = [({"content-disposition": f'form-data; name="{key}"'}, value.encode()) for key, value in fields.items()]
    return multipart_body([*texts, ({"content-disposition": file, "content-type": media_type}, data)])
