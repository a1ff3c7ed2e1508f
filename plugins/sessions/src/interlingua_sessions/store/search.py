"""Full-text search over the messages of a store, and questions with their answers, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import attrs
import orjson

from interlingua import CallerError
from interlingua.types import Message, MessageStatus, Role
from interlingua_sessions.store.schema import Row, StoreError
from interlingua_sessions.store.statements import PAGE, Statements, read_message, read_pages, stamp_of
from interlingua_sessions.store.text_index import (
    Passage,
    Phrase,
    Revision,
    TextIndex,
    line_around,
    passages_of,
    phrases_of,
    searchable_text,
    words_of,
)

_NEXT = "SELECT min(id) FROM messages WHERE session_id = ? AND role = 'user' AND id > ?"
_QUESTION = "SELECT max(a.id) FROM messages a WHERE a.session_id = d.key AND a.role = 'user' AND a.id <= p.message_id"
_CALLED = " AND session_id IN (SELECT session_id FROM tool_calls WHERE name = ?)"
_TOGETHER = 200  # sessions whose messages are read and indexed together
_READ = 2_000  # messages that are read and indexed in one transaction
_COMMON = 10_000  # passages with a word: more, and the newest turns are found sooner by reading turns

_STALE = """
    SELECT s.id, s.updated_at FROM sessions s LEFT JOIN search_documents d ON d.key = s.id
    WHERE d.stamp IS NULL OR d.stamp <> s.updated_at ORDER BY s.updated_at, s.id"""
_CHANGED = """
    SELECT id, updated_at FROM sessions
    WHERE id IN (SELECT session_id FROM messages WHERE {order} > ?
        UNION ALL SELECT session_id FROM messages WHERE id IN ({marks}))
    ORDER BY updated_at, id"""
_REACHED = ""  # key, which no session has, of the document that keeps what was indexed
_NOTES = 10_000  # notes in `search_unread` that are read together

# PostgreSQL has no order of commits: a trigger notes each stored message in the transaction that stores it. Its
# function runs as its owner: users who may write messages need no right to this table, which may also be removed.
_NOTING = (
    "SET LOCAL lock_timeout = '200ms'",  # while the trigger waits for a long transaction, all other writers wait too
    "DROP TABLE IF EXISTS search_unread",
    """CREATE TABLE search_unread (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session_id TEXT COLLATE "C" NOT NULL)""",
    """CREATE OR REPLACE FUNCTION search_unread() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    BEGIN
        IF to_regclass('search_unread') IS NOT NULL THEN
            INSERT INTO search_unread (session_id) VALUES (NEW.session_id);
        END IF;
        RETURN NULL;
    END $$""",
    """CREATE OR REPLACE TRIGGER search_unread AFTER INSERT OR UPDATE OF content_json ON messages
    FOR EACH ROW EXECUTE FUNCTION search_unread()""",
)
_SCHEMA = """
    SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'messages' AND pg_table_is_visible(oid)"""
_NOTED = """
    SELECT u.oid::bigint FROM pg_class u JOIN pg_class m ON m.relnamespace = u.relnamespace
        JOIN pg_trigger t ON t.tgrelid = m.oid JOIN pg_proc f ON f.oid = t.tgfoid
    WHERE u.relname = 'search_unread' AND m.relname = 'messages' AND pg_table_is_visible(m.oid)
        AND t.tgname = 'search_unread' AND t.tgenabled IN ('O', 'A')
        AND f.proconfig = ARRAY['search_path=' || m.relnamespace::regnamespace::text || ', pg_temp']
        AND has_table_privilege(u.oid, 'SELECT') AND has_table_privilege(u.oid, 'DELETE')"""
Progress = Callable[[int, int], None]
"""Called while an index is made, with how many sessions or files are indexed, of how many."""

_UNREAD = """
    SELECT {columns} FROM messages m
    WHERE m.session_id IN ({marks}) AND (m.session_id, m.id) > (?, ?)
        AND NOT EXISTS (SELECT 1 FROM search_passages p JOIN search_documents d ON d.id = p.document
            WHERE d.key = m.session_id AND p.message_id = m.id)
    ORDER BY m.session_id, m.id LIMIT ?"""
_SPOKEN = " AND p.role IN ('user', 'assistant')"
_STORED = " AND EXISTS (SELECT 1 FROM messages WHERE id = p.message_id)"  # SQL of others may have removed it


@attrs.frozen(kw_only=True)
class FoundMessage:
    """One message that holds the searched words.

    Attributes:
        session_id: id of its session.
        message_id: id of the message.
        role: role of the message.
        model: canonical model id of an answer, or None.
        created_at: UTC.
        line: the line that holds the words, cut to 160 letters.
    """

    session_id: str
    message_id: str
    role: Role
    model: str | None
    created_at: datetime
    line: str


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


# The index


class _Stale(NamedTuple):
    """Sessions to index, with their last use; the revisions to store and notes to remove once they are indexed."""

    sessions: list[Row]
    reached: list[Revision]
    notes: list[int]


def index_messages(sql: Statements, progress: Progress | None = None) -> None:
    """Index the messages that were stored since the last time, some hundreds in each transaction."""
    index = TextIndex(sql.database)
    index.create()
    while True:
        stale = _stale_sessions(sql)
        if not any(stale):
            return
        if not _index_stale(sql, index, stale, progress):
            continue  # another process indexes: look again at what is left
        if stale.notes:
            sql.database.run("DELETE FROM search_unread WHERE id = ANY(?)", (stale.notes,))
        if len(stale.notes) < _NOTES:
            return


def _index_stale(sql: Statements, index: TextIndex, stale: _Stale, progress: Progress | None) -> bool:
    """Index sessions group by group; False if another process changed the index meanwhile."""
    for at in range(0, max(len(stale.sessions), 1), _TOGETHER):
        if progress is not None and stale.sessions:
            progress(at, len(stale.sessions))
        is_end = at + _TOGETHER >= len(stale.sessions)
        together: dict[str, int] = dict(stale.sessions[at : at + _TOGETHER])
        if not _index_sessions(sql, index, together, stale.reached if is_end else []):
            return False
    return True


def _stale_sessions(sql: Statements) -> _Stale:
    """Return the sessions to index: those of messages stored since the last time, if that is known."""
    return (
        _noted_sessions(sql) if sql.database.commit_order is None else _sessions_behind(sql, sql.database.commit_order)
    )


def _sessions_behind(sql: Statements, order: str) -> _Stale:
    """Read the messages behind the last indexed one, and those that were being streamed then.

    If that message has moved or is gone, all sessions are compared with the index.
    """
    last = sql.one(f"SELECT {order}, id FROM messages ORDER BY {order} DESC LIMIT 1")
    if last is None:
        return _Stale(sql.database.rows(_STALE), [], [])
    partial = [row[0] for row in sql.database.rows("SELECT message_id FROM partial_messages")]
    reached = Revision(_REACHED, last[0], {"id": last[1], "partial": partial}, ())
    before = sql.one("SELECT stamp, about FROM search_documents WHERE key = ?", (_REACHED,))
    if before is not None:
        about = orjson.loads(before[1])
        if sql.one(f"SELECT 1 FROM messages WHERE {order} = ? AND id = ?", (before[0], about["id"])):
            finished = [one for one in about["partial"] if one not in partial]
            changed = _CHANGED.format(order=order, marks=", ".join("?" * len(finished)))
            stale = sql.database.rows(changed, [before[0], *finished])
            return _Stale(stale, [reached] if stale else [], [])
    return _Stale(sql.database.rows(_STALE), [reached], [])


def _noted_sessions(sql: Statements) -> _Stale:
    """Read which sessions have notes. Notes of transactions that are not committed yet are read by a later search.

    All sessions are compared with the index once after the trigger is made, and each time if it cannot be.
    """
    table = _noting_table(sql)
    if table is None:
        return _Stale(sql.database.rows(_STALE), [], [])
    notes = sql.database.rows("SELECT id, session_id FROM search_unread ORDER BY id LIMIT ?", (_NOTES,))
    numbers, named = [row[0] for row in notes], list({row[1] for row in notes})
    if not sql.one("SELECT 1 FROM search_documents WHERE key = ? AND stamp = ?", (_REACHED, table)):
        return _Stale(sql.database.rows(_STALE), [Revision(_REACHED, table, {}, ())], numbers)
    found = "SELECT id, updated_at FROM sessions WHERE id = ANY(?) ORDER BY updated_at, id"
    return _Stale(sql.database.rows(found, (named,)) if named else [], [], numbers)


def _noting_table(sql: Statements) -> int | None:
    """Return the number of the table of notes, which is made if needed; None if this user may not make it."""
    found = sql.one(_NOTED)
    if found is None:
        try:
            with sql.database.migrating():
                found = sql.one(_NOTED)
                if found is None:
                    (schema,) = sql.database.rows(_SCHEMA)[0]
                    for statement in _NOTING:
                        sql.database.run(statement.format(schema=schema))
                    found = sql.one(_NOTED)
        except StoreError:
            return None
    return None if found is None else int(found[0])


def _index_sessions(sql: Statements, index: TextIndex, sessions: dict[str, int], also: Sequence[Revision]) -> bool:
    """Index the unindexed messages of some sessions; False if another process changed the index meanwhile."""
    marks = ", ".join("?" * len(sessions))
    query = _UNREAD.format(columns=sql.joined_columns, marks=marks)
    place = ("", "")
    while True:
        seen = index.changes()
        rows = sql.database.rows(query, [*sessions, *place, _READ]) if sessions else []
        is_last = len(rows) < _READ
        read: dict[str, list[Passage]] = {}
        for row in rows:
            read.setdefault(row[1], []).extend(_row_passages(row))
        done = dict.fromkeys(sessions) if is_last else read
        revisions = [
            Revision(session, sessions[session] if is_last else -1, {}, read.get(session, ())) for session in done
        ]
        if not index.revise([*revisions, *also] if is_last else revisions, seen):
            return False
        if is_last:
            return True
        place = (rows[-1][1], rows[-1][0])


def _row_passages(row: Row) -> list[Passage]:
    """Return the passages of a message's row; nothing if the message is being streamed or cannot be read."""
    try:
        message = read_message(row)
    except StoreError:
        return []
    if message.metadata.status is MessageStatus.PARTIAL:
        return []
    return passages_of(message, 0, stamp_of(message.created_at))


# Searching


def search_messages(
    sql: Statements, query: str, session_id: str | None, limit: int, progress: Progress | None
) -> list[FoundMessage]:
    """See `Store.search`."""
    phrases = phrases_of(query)
    if not phrases:
        raise CallerError(f"there is no word to search for in {query!r}")
    if sql.database.read_only:
        return list(islice(_scanned(sql, phrases, query, session_id), limit))
    index_messages(sql, progress)
    index = TextIndex(sql.database)
    where, values = (_STORED, []) if session_id is None else (f"{_STORED} AND d.key = ?", [session_id])
    found: dict[str, FoundMessage] = {}
    for passage in index.search(phrases, limit=limit, where=where, values=values):
        if passage.message_id not in found:
            found[passage.message_id] = _found(sql.message(passage.message_id), query)
    return list(found.values())


def _found(message: Message, query: str) -> FoundMessage:
    return FoundMessage(
        session_id=message.session_id, message_id=message.id, role=message.role, model=message.metadata.model,
        created_at=message.created_at, line=line_around(searchable_text(message), query),
    )  # fmt: skip


def _scanned(sql: Statements, phrases: Sequence[Phrase], query: str, session_id: str | None) -> Iterator[FoundMessage]:
    """Search without an index, which a store that is only read does not get."""
    for session in [session_id] if session_id is not None else [one.id for one in sql.sessions(None, None)]:
        for message in read_pages(sql.pages(session, newest_first=True)):
            text = f" {' '.join(words_of(searchable_text(message)))} "
            if all(f" {' '.join(words)}{'' if is_prefix else ' '}" in text for words, is_prefix in phrases):
                yield _found(message, query)


# Turns


def newest_turns(
    sql: Statements, session_id: str | None, words: Sequence[str], tools: Sequence[str]
) -> Iterator[LoggedTurn]:
    """Yield turns, the newest first, read page by page; with words, only turns that contain them all.

    Args:
        sql: statements of the store.
        session_id: only of this session.
        words: searched in questions and answers, ignoring case; letters and digits match only at the start of a word.
        tools: names of tools that were called in the session.
    """
    wanted = [word.casefold() for word in words]
    where = (" AND session_id = ?" if session_id is not None else "") + "".join(_CALLED for _ in tools)
    given = [*([session_id] if session_id is not None else []), *tools]
    holding = _turns_holding(sql, session_id, wanted)
    if holding is not None:
        where, given = f"{where} AND id IN ({holding[0]})", [*given, *holding[1]]
    for session, message_id in _questions(sql, where, given):
        turn = _read_turn(sql, session, message_id, wanted)
        if turn.matches or not wanted:
            yield turn


def _turns_holding(sql: Statements, session_id: str | None, words: Sequence[str]) -> tuple[str, list[Any]] | None:
    """Return a query, and its values, for ids of questions whose turns contain the rarest of the words.

    None if the index does not help: no word is in it, or each is so common that newest turns soon hold it.
    """
    usable = [phrases for phrases in map(phrases_of, words) if phrases and all(map(_is_usable, phrases))]
    if not usable or sql.database.read_only:
        return None
    index_messages(sql)
    index = TextIndex(sql.database)
    where, values = (_SPOKEN, []) if session_id is None else (f"{_SPOKEN} AND d.key = ?", [session_id])
    counts = [index.count(phrases, _COMMON + 1, where, values) for phrases in usable]
    rarest = min(range(len(usable)), key=counts.__getitem__)
    if counts[rarest] > _COMMON:
        return None
    return index.select(f"({_QUESTION})", usable[rarest], where, values)


def _is_usable(phrase: Phrase) -> bool:
    """Tell whether the index finds all places of a phrase: a short word could be the beginning of a longer one."""
    return phrase.is_prefix or len(phrase.words) > 1


def _questions(sql: Statements, where: str, given: Sequence[Any]) -> Iterator[tuple[str, str]]:
    bound: list[object] = []
    while True:
        older = " AND (created_at, id) < (?, ?)" if bound else ""
        rows = sql.database.rows(
            f"SELECT created_at, id, session_id FROM messages WHERE role = 'user'{where}{older}"
            " ORDER BY created_at DESC, id DESC LIMIT ?",
            [*given, *bound, PAGE],
        )
        for _, message_id, session in rows:
            yield session, message_id
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
