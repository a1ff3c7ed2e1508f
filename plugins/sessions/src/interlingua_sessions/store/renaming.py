"""The ids of an imported session: each as it was, or another where the store has it already.

Never gives two calls one id, even where the file does: a result belongs to the call that stands before it. Importing
comes in.
"""

from __future__ import annotations

import attrs

from interlingua.types import ContentBlock, Message, ToolResultBlock, ToolUseBlock, new_tool_use_id
from interlingua_sessions.store.database import Database
from interlingua_sessions.store.lines import column_text


class Renaming:
    """What the ids of one file became, as far as it was read."""

    def __init__(self, database: Database, session_id: str) -> None:
        self._db = database
        self._session_id = session_id
        self._messages: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._given: set[str] = set()

    def message(self, old: str, stored: str) -> None:
        """Note under which id a message was stored."""
        self._messages[old] = stored

    def stored(self, old: str) -> str:
        """Return the id a message was stored under.

        Raises:
            ValueError: the file has not named it yet.
        """
        if old not in self._messages:
            raise ValueError(f"no message {old!r} stands before this line")
        return self._messages[old]

    def call(self, old: str) -> str:
        """Return the id of the last call that the file names so."""
        return self._calls.get(old, old)

    def renamed(self, message: Message) -> Message:
        """Return the message as one of the new session."""
        content = tuple(map(self._block, message.content))
        metadata, parent = message.metadata, message.metadata.parent_tool_use_id
        if parent is not None and self.call(parent) != parent:
            metadata = attrs.evolve(metadata, parent_tool_use_id=self.call(parent))
        return attrs.evolve(message, session_id=self._session_id, content=content, metadata=metadata)

    def _block(self, block: ContentBlock) -> ContentBlock:
        if type(block) is ToolUseBlock:
            self._calls[block.id] = self._free(block.id)
            return attrs.evolve(block, id=self._calls[block.id])
        if type(block) is ToolResultBlock:
            return attrs.evolve(block, tool_use_id=self.call(block.tool_use_id))
        return block

    def _free(self, call: str) -> str:
        taken = call in self._given or self._db.rows("SELECT 1 FROM tool_calls WHERE id = ?", (column_text(call),))
        free = new_tool_use_id() if taken else call
        self._given.add(free)
        return free
