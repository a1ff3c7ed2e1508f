"""Who answers in a history: one model of one side.

Never writes anything. The histories come in, the crossings, and the recorded answers.
What a speaker can do is what its side declares for the model.
"""

from __future__ import annotations

import attrs

from interlingua_contract.matrix.side import Side


@attrs.frozen(kw_only=True)
class Speaker:
    """Who answers: a side and the model chosen on it."""

    side: Side
    model: str

    @property
    def signs(self) -> bool:
        """True when this model's thinking can be sent back to it."""
        can = self.side.capabilities(self.model)
        return can.supports_thinking and can.thinking_scope != "never"

    @property
    def calls(self) -> bool:
        """True when this model can call tools."""
        return self.side.capabilities(self.model).supports_tools
