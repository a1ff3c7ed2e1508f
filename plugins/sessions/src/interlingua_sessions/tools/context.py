"""What a running tool may know and say.

Never tells a tool anything of the session or the model. The batch makes one for each call; tools take it.
It is the one value here that changes, and it may be used from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from interlingua.types.blocks import ToolUseBlock


class ToolContext:
    """What a running tool may know and say, given to a parameter annotated with this class.

    Attributes:
        call: the call that is being answered.
    """

    def __init__(self, call: ToolUseBlock, update: Callable[[Any], None]) -> None:
        self.call = call
        self._update = update
        self._stopped = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the result any more: return soon."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep in a blocking tool, but not past a cancellation; return True when cancelled."""
        return self._stopped.wait(seconds)

    def update(self, partial: Any) -> None:
        """Show listeners what there is so far; may be called from the tool's thread."""
        if not self.cancelled:
            self._update(partial)

    def stop(self) -> None:
        """Tell the tool that nobody waits."""
        self._stopped.set()
