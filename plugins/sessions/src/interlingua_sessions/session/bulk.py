"""Reading much at once without Python's cycle collector walking over it again and again.

Never for what may take long or wait on anything: while it rests, no thread's cycles are freed. The session core comes
in. Every few hundred new objects start the collector, and each time it walks over what was just read, all of which
stays; a whole history read with the collector at rest costs it one walk afterwards (docs/explanation/performance.md).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Let the collector rest; it goes on afterwards, unless it was off before.

    Of two threads that do this at once, the first to finish ends the rest for both: that costs time and nothing else.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
