"""Blocks that core carries without understanding them.

Never looks inside: an OpaqueBlock is replayed to its origin only, an UnknownBlock is written back as it was read.
Messages and every room above may come in, through `interlingua.blocks`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs

from interlingua.jsontext import FrozenDict, freeze


@attrs.frozen(kw_only=True)
class OpaqueBlock:
    """Content only one provider has: server tools and their results, wire blocks not known yet (DESIGN 3).

    Attributes:
        provider: provider key of the only target it may be sent to.
        kind: the wire's own name for it.
        data: the wire object, exact.
    """

    type: ClassVar[Literal["opaque"]] = "opaque"
    provider: str
    kind: str
    data: Any = attrs.field(converter=freeze)


@attrs.frozen(kw_only=True)
class UnknownBlock:
    """A canonical block type written by a newer version: kept and written back verbatim.

    Attributes:
        raw: the whole stored object, its `type` included.
    """

    type: ClassVar[Literal["unknown"]] = "unknown"
    raw: FrozenDict = attrs.field(converter=freeze)
