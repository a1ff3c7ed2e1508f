"""The prompt-cache hint that blocks and tools may carry.

Never says how a wire marks it: one provider has markers, another a key, a third nothing (sheet MAPPING, cache marker).
Blocks, tools and every adapter may come in.
"""

from __future__ import annotations

from typing import Literal

import attrs


@attrs.frozen(kw_only=True)
class CacheHint:
    """Ask the provider to keep the prompt up to here (seed 002, `cache_control`).

    Attributes:
        type: the only kind the seeds know.
        ttl: how long to keep it; None means the provider's default (5 minutes where it is stated).
    """

    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None
