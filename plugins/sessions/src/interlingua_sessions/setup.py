"""What a session is opened with besides its store: system prompt, routing, options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from interlingua.plugins import Registry
from interlingua.types import Message, system
from interlingua_sessions.routing.router import PatternStore
from interlingua_sessions.store import SessionEntry

ContextBuilder: TypeAlias = Callable[[Sequence[Message], Sequence[SessionEntry]], Sequence[Message]]
"""From the stored history and the session-only entries to what a model is sent; deterministic.

Returning the same Message objects for an unchanged prefix keeps a turn cheap and its request a byte prefix of the next.
"""


@attrs.frozen(kw_only=True)
class SystemPrompt:
    """What a system prompt is made of: base instructions, and sections such as memory, skills, the workspace.

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

    def message(self, session_id: str) -> Message | None:
        """Return it as a message; None where it is empty."""
        whole = self.text()
        return system(whole, session_id=session_id) if whole else None


@attrs.frozen(kw_only=True)
class SessionSetup:
    """What a session is opened with, besides its store and its id.

    Attributes:
        registry: the providers it may use.
        last_resort: the model used when its policy names none.
        prompt: put in front of a conversation that has no system message.
        patterns: recommends models.
        user_id: stable pseudonymous id written onto every message; it is not sent to a provider.
        team_id: likewise.
        context: from history and entries to what a model is sent; None: `SessionContext`.
        options: request options of every turn.
    """

    registry: Registry
    last_resort: str | None = None
    prompt: SystemPrompt | None = None
    patterns: PatternStore | None = None
    user_id: str | None = None
    team_id: str | None = None
    context: ContextBuilder | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
