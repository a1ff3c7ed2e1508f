"""The quick pass: a conversation in which no rule has anything to say, continued from where it was last checked.

Never reports: a False only means that the rules must be asked. The check module comes in.
What was passed is remembered on the newest message and refers to older ones only, so it dies with the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import attrs

from interlingua.invariants.order import Learnt
from interlingua.messages import Message, Role
from interlingua.tools import ToolDefinition

_KEY = "interlingua.invariants.quiet"
_REACH = 64  # how many new messages a check may find before it starts over


@attrs.define
class Quiet:
    """What the rules across messages need to know of all that was passed."""

    tools: tuple[ToolDefinition, ...]
    seen: list[Message] = attrs.field(factory=list)
    ids: set[str] = attrs.field(factory=set)
    last_ulid: str = ""
    calls: set[str] = attrs.field(factory=set)
    waiting: set[str] = attrs.field(factory=set)

    def takes(self, message: Message, learnt: Learnt) -> bool:
        """Pass one more message; False when a rule may have something to say."""
        complete, ulid, asked, answered, violations = learnt
        seen, role = self.seen, message.role
        if violations or message.id in self.ids or (seen and message.session_id != seen[0].session_id):
            return False
        if self.waiting and (role is Role.USER or role is Role.ASSISTANT):
            return False
        if ulid:
            if ulid < self.last_ulid:
                return False
            self.last_ulid = ulid
        for _, call in answered:
            if call not in self.waiting:
                return False
            self.waiting.remove(call)
        for _, call in asked:
            if call in self.calls or not complete:
                return False
            self.calls.add(call)
            self.waiting.add(call)
        self.ids.add(message.id)
        seen.append(message)
        return True

    def remember(self) -> None:
        """Leave this with the newest message, for `resumed`."""
        if self.seen:
            newest = self.seen.pop()
            newest.memo[_KEY] = self


def resumed(messages: Sequence[Message], tools: tuple[ToolDefinition, ...]) -> Quiet | None:
    """Take up what was remembered of these very messages and tools, or return None.

    Whoever takes it has it alone: two threads, or two branches of one conversation, never share one.
    """
    for index in range(len(messages) - 1, max(len(messages) - 1 - _REACH, -1), -1):
        quiet: Quiet | None = messages[index].memo.pop(_KEY, None)
        if quiet is not None:
            if len(quiet.seen) != index or quiet.tools != tools or not all(map(is_, quiet.seen, messages)):
                return None
            quiet.seen.append(messages[index])
            return quiet
    return None
