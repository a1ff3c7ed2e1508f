"""The next id of a session: max(now, last) + 1, minted inside the transaction (DESIGN 6).

Never changes what core's minter gives to others: one session whose clock was ahead must not push every other. The
store's parts that write come in.
"""

from __future__ import annotations

import re

from interlingua.types import new_ulid

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32, the ULID specification
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def id_behind(last: str, own: str | None = None) -> str:
    """Return `own` where it stands behind `last` and leaves room for what is to come, else a new id that does.

    An id that is no ULID is kept only when every ULID minted from now on stands behind it.
    """
    if own is not None and own > last and _ULID.fullmatch(own):
        return own
    minted = new_ulid()
    if own is not None and last < own < minted and own.isascii() and own.isprintable():
        return own
    return minted if minted > last else _successor(last)


def _successor(ulid: str) -> str:
    kept = ulid.rstrip("Z")
    return kept[:-1] + _DIGITS[_DIGITS.index(kept[-1]) + 1] + "0" * (len(ulid) - len(kept))
