"""Questions and their answers over all sessions, the newest first, and those that hold given words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from interlingua.types import Message, Role
from interlingua_sessions.store.statements import PAGE, Statements, read_pages

_PLAIN_WORD = re.compile(r"[a-z0-9]+\Z")  # written in JSON without escapes
_NEXT = "SELECT min(id) FROM messages WHERE session_id = ? AND role = 'user' AND id > ?"
_HOLDS = """ AND session_id IN (
    SELECT session_id FROM messages WHERE role IN ('user', 'assistant') AND lower(content_json) LIKE ?)"""

_CALLED = " AND session_id IN (SELECT session_id FROM tool_calls WHERE name = ?)"


@attrs.frozen(kw_only=True)
class LoggedTurn:
    """One question and what followed it, up to the next.

    Attributes:
        question: the user's message.
        messages: answers and tool results, in order.
        matches: number of occurrences of the searched words in question and answers.
    """

    question: Message
    messages: tuple[Message, ...]
    matches: int = 0

    @property
    def answers(self) -> tuple[Message, ...]:
        """The model's messages; the last one is the answer."""
        return tuple(message for message in self.messages if message.role is Role.ASSISTANT)


def newest_turns(
    sql: Statements, session_id: str | None, words: Sequence[str], tools: Iterable[str]
) -> Iterator[LoggedTurn]:
    """Yield turns, the newest first, read page by page; with words, only turns that contain them all.

    Args:
        sql: of the store.
        session_id: only of this session.
        words: searched in questions and answers, ignoring case.
        tools: names of tools that were called in the session.
    """
    called = list(tools)
    wanted = [word.casefold() for word in words]
    plain = [word for word in wanted if _PLAIN_WORD.match(word)]
    where = (" AND session_id = ?" if session_id is not None else "") + _HOLDS * len(plain)
    where += _CALLED * len(called)
    given = [*([session_id] if session_id is not None else []), *(f"%{word}%" for word in plain), *called]
    bound: list[object] = []
    while True:
        older = " AND (created_at, id) < (?, ?)" if bound else ""
        rows = sql.database.rows(
            f"SELECT created_at, id, session_id FROM messages WHERE role = 'user'{where}{older}"
            " ORDER BY created_at DESC, id DESC LIMIT ?",
            [*given, *bound, PAGE],
        )
        for _, message_id, session in rows:
            turn = _read_turn(sql, session, message_id, wanted)
            if turn.matches or not wanted:
                yield turn
        if len(rows) < PAGE:
            return
        bound = [rows[-1][0], rows[-1][1]]


def _read_turn(sql: Statements, session_id: str, message_id: str, words: Sequence[str]) -> LoggedTurn:
    row = sql.one(_NEXT, (session_id, message_id))
    question = sql.message(message_id)
    following = read_pages(sql.pages(session_id, after=message_id, before=row[0] if row else None))
    turn = LoggedTurn(question=question, messages=tuple(following))
    if not words:
        return turn
    text = "\n".join(message.text for message in (question, *turn.answers)).casefold()
    counts = [text.count(word) for word in words]
    return attrs.evolve(turn, matches=sum(counts) if all(counts) else 0)
