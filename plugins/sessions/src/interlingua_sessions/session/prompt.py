"""The system prompt of a session: composed of its parts, under the agent's display name (seed 004, special features).

Never sends and never stores. The session comes in; it puts the prompt in front of a conversation that has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from interlingua.types.factories import system
from interlingua.types.messages import Message


@attrs.frozen(kw_only=True)
class SystemPrompt:
    """What a system prompt is made of (seed 003 §3.3: base instructions, memory, skills, workspace information).

    Attributes:
        base: the instructions.
        sections: title -> text, in order; an empty text is left out.
        agent: the agent's name as `base` and the sections write it.
        display_name: what stands in its place, everywhere; None leaves it.
    """

    base: str
    sections: Mapping[str, str] = attrs.field(factory=dict)
    agent: str = ""
    display_name: str | None = None

    def text(self) -> str:
        """Return the whole prompt."""
        titled = (f"# {title}\n\n{text.strip()}" for title, text in self.sections.items() if text.strip())
        whole = "\n\n".join(part for part in (self.base.strip(), *titled) if part)
        if not (self.agent and self.display_name):
            return whole
        name = self.display_name
        return re.sub(rf"(?<!\w){re.escape(self.agent)}(?!\w)", lambda _: name, whole)

    @classmethod
    def of(cls, given: str | SystemPrompt | None) -> SystemPrompt | None:
        """Read what a caller may give."""
        return cls(base=given) if isinstance(given, str) else given

    def message(self, session_id: str) -> Message | None:
        """Return it as a message; None where nothing is said."""
        whole = self.text()
        return system(whole, session_id=session_id) if whole else None
