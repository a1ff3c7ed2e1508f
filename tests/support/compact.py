"""JSON written as every wire here is written: no spaces, no escapes beyond what JSON needs.

Never the library's own writer: that is what is tested against this.
"""

from __future__ import annotations

import json
from typing import Any


def compact(value: Any) -> bytes:
    """Return a value as JSON in the fewest bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
