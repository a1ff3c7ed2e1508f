"""A full-text index of messages in a database: FTS5 tables in SQLite, a GIN index in PostgreSQL.

A *document* is a session or a file, with a stamp that changes with it; a *passage* is a message of it, or a part of a
long one. All tables can be made again from the documents: an index of another version is dropped.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple
from unicodedata import combining, normalize

import attrs
import orjson

from interlingua.types import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua_sessions.store.schema import Database, Row, StoreError

VERSION = 1
LONGEST = 200_000  # letters of a passage: PostgreSQL holds no more than 1 MB of words in a value
_LONGEST_WORD = 64
_PREFIX = 3  # letters of a word that is also found as the beginning of longer words
_WIDTH = 160  # letters of the line that is shown
_NEWEST = 20_000  # passages that PostgreSQL tests one by one before it collects all that hold the words

# Scripts without spaces between words: each letter is a word, and a word that is searched is a phrase.
_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_WORD = re.compile(rf"[{_WIDE}]|(?:(?![{_WIDE}])[^\W_])+")
_CHUNK = re.compile(r'"([^"]*)"|(\S+)')

_COMMON = (
    "CREATE TABLE search_state (version INTEGER NOT NULL, changes BIGINT NOT NULL)",
    """CREATE TABLE search_documents (
        id {id} PRIMARY KEY, key {text} NOT NULL, stamp BIGINT NOT NULL, about TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX idx_search_documents_key ON search_documents(key)",
    """CREATE TABLE search_passages (
        id {id} PRIMARY KEY, document BIGINT NOT NULL, message_id {text} NOT NULL, part INTEGER NOT NULL,
        position INTEGER NOT NULL, role TEXT NOT NULL, model TEXT, created_at BIGINT NOT NULL,
        check_sum BIGINT NOT NULL, body {bytes}{words})""",
    "CREATE UNIQUE INDEX idx_search_passages_message ON search_passages(document, message_id, part)",
)
_OWN = {
    "sqlite": (
        "CREATE VIRTUAL TABLE search_words USING fts5(words, content='', tokenize='ascii')",
        "INSERT INTO search_words (search_words, rank) VALUES ('hashsize', 16777216)",  # fewer segments to merge
    ),
    "postgresql": ("CREATE INDEX idx_search_passages_words ON search_passages USING gin (words)",),
}
_TYPES = {
    "sqlite": {"id": "INTEGER", "text": "TEXT", "bytes": "BLOB", "words": ""},
    "postgresql": {"id": "BIGINT", "text": 'TEXT COLLATE "C"', "bytes": "BYTEA", "words": ", words tsvector NOT NULL"},
}
_TABLES = {
    "sqlite": ("search_state", "search_documents", "search_passages", "search_words"),
    "postgresql": ("search_state", "search_documents", "search_passages"),
}

_PASSAGE = "id, document, message_id, part, position, role, model, created_at, check_sum, body"
_INSERT = {
    "sqlite": f"INSERT INTO search_passages ({_PASSAGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "postgresql": f"""INSERT INTO search_passages ({_PASSAGE}, words)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, to_tsvector('simple', ?))""",
}
_DOCUMENT = """
    INSERT INTO search_documents (id, key, stamp, about) VALUES (?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET stamp = excluded.stamp, about = excluded.about"""
_SEARCH = {
    "sqlite": """
        FROM search_words w JOIN search_passages p ON p.id = w.rowid JOIN search_documents d ON d.id = p.document
        WHERE w.search_words MATCH ?""",
    "postgresql": """
        FROM search_passages p JOIN search_documents d ON d.id = p.document
        WHERE p.words @@ to_tsquery('simple', ?)""",
}


class Phrase(NamedTuple):
    """Words that follow each other; `is_prefix` lets the last be the beginning of a longer word."""

    words: tuple[str, ...]
    is_prefix: bool


class Passage(NamedTuple):
    """A message, or a part of a long one, before it is indexed."""

    message_id: str
    part: int
    position: int
    role: str
    model: str | None
    created_at: int
    text: str


class Revision(NamedTuple):
    """New passages of a document.

    Attributes:
        key: a session's id, or a file's path.
        stamp: the document's, when the passages were read.
        about: facts to return with what is found.
        passages: the passages to add.
        removed: ids of passages that are out of date.
    """

    key: str
    stamp: int
    about: Mapping[str, Any]
    passages: Sequence[Passage]
    removed: Sequence[int] = ()


@attrs.frozen(kw_only=True)
class FoundPassage:
    """A passage that holds the searched words.

    Attributes:
        key: the session's id, or the file's path.
        about: facts about the document.
        message_id: id of the message.
        position: number of the message in its document, from 0.
        role: role of the message.
        model: canonical model id, or None.
        created_at: microseconds since 1970, UTC.
        text: text of the passage; None if the index does not keep it.
    """

    key: str
    about: Mapping[str, Any]
    message_id: str
    position: int
    role: str
    model: str | None
    created_at: int
    text: str | None


def words_of(text: str) -> list[str]:
    """Return the words of a string as they are indexed: small letters and digits without accents."""
    text = text.casefold()
    if text.isascii():
        words = _ASCII_WORD.findall(text)
    else:
        decomposed = normalize("NFKD", text)
        words = _WORD.findall(decomposed if decomposed.isascii() else _without_marks(decomposed))
    return [word[:_LONGEST_WORD] for word in words]


def _without_marks(text: str) -> str:
    return "".join([letter for letter in text if letter < "\u0300" or not combining(letter)])


def phrases_of(query: str) -> list[Phrase]:
    """Return what a query asks for: all its words, and `"words in quotes"` one after the other."""
    phrases = []
    for match in _CHUNK.finditer(query):
        words = tuple(words_of(match[1] if match[1] is not None else match[2]))
        if words:
            phrases.append(Phrase(words, match[1] is None and len(words[-1]) >= _PREFIX))
    return phrases


def searchable_text(message: Message) -> str:
    """Return what is searched of a message: its text and thinking, names and inputs of calls, text of results."""
    return "\n".join(chain.from_iterable(map(_block_text, message.content)))


def _block_text(block: Any) -> Iterator[str]:
    kind = type(block)
    if kind is TextBlock or kind is ThinkingBlock:
        yield block.text
    elif kind is ToolUseBlock:
        yield block.name
        yield from _strings(block.input)
    elif kind is ToolResultBlock:
        for part in block.content:
            yield from _block_text(part)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def passages_of(message: Message, position: int, created_at: int) -> list[Passage]:
    """Return a message's passages; nothing if it has no text."""
    text = searchable_text(message)
    if not text:
        return []
    facts = (position, message.role.value, message.metadata.model, created_at)
    parts = [text[at : at + LONGEST] for at in range(0, len(text), LONGEST)]
    return [Passage(message.id, number, *facts, part) for number, part in enumerate(parts)]


def line_around(text: str, query: str) -> str:
    """Return the line that contains the first of the searched words, cut to a width for people."""
    place = (0, 0)
    for phrase in phrases_of(query):
        found = re.search(r"[\W_]*".join(map(re.escape, phrase.words)), text, re.IGNORECASE)
        if found is not None:
            place = found.span()
            break
    start = text.rfind("\n", 0, place[0]) + 1
    end = text.find("\n", place[0])
    line = text[start : len(text) if end < 0 else end]
    at = max(0, place[0] - start - _WIDTH // 2) if len(line) > _WIDTH else 0
    cut = line[at : at + _WIDTH]
    return f"{'…' if at else ''}{' '.join(cut.split())}{'…' if at + _WIDTH < len(line) else ''}"


class TextIndex:
    """The index in one database.

    Args:
        database: database that holds its tables.
        keep_text: store the text of passages, compressed, for documents that are slow to read again.
    """

    def __init__(self, database: Database, *, keep_text: bool = False) -> None:
        self.database = database
        self._keep_text = keep_text
        self._kind = database.kind

    def exists(self) -> bool:
        """Tell whether all tables of this version are there."""
        if not all(map(self.database.has_table, _TABLES[self._kind])):
            return False
        return bool(self.database.rows("SELECT 1 FROM search_state WHERE version = ?", (VERSION,)))

    def create(self) -> None:
        """Create the tables; drop those of another version.

        Raises:
            StoreError: this SQLite has no FTS5.
        """
        if self.exists():
            return
        with self.database.migrating():
            if self.exists():
                return
            self._drop()
            try:
                for statement in (*_COMMON, *_OWN[self._kind]):
                    self.database.run(statement.format(**_TYPES[self._kind]))
            except StoreError as error:
                if "fts5" not in str(error):
                    raise
                raise StoreError("this Python's SQLite has no FTS5, which full-text search needs") from error
            self.database.run("INSERT INTO search_state (version, changes) VALUES (?, 0)", (VERSION,))

    def _drop(self) -> None:
        for name in _TABLES[self._kind]:
            self.database.run(f"DROP TABLE IF EXISTS {name}")

    def changes(self) -> int:
        """Return a number that every change of the index increases."""
        return int(self.database.rows("SELECT changes FROM search_state")[0][0])

    def stamps(self) -> dict[str, int]:
        """Return the stamp of each document."""
        return dict(self.database.rows("SELECT key, stamp FROM search_documents"))

    def sums(self, key: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the id and the check sum of each passage of a document, by message and part."""
        sql = """SELECT message_id, part, p.id, check_sum FROM search_passages p
            JOIN search_documents d ON d.id = p.document WHERE d.key = ?"""
        return {(message, part): (number, total) for message, part, number, total in self.database.rows(sql, (key,))}

    def revise(self, revisions: Sequence[Revision], seen: int) -> bool:
        """Store new passages in one transaction.

        Args:
            revisions: revision of each document.
            seen: `changes` before the documents were read; False, and no change, if the index changed since.
        """
        ready = [(one, [(passage, *_prepared(passage)) for passage in one.passages]) for one in revisions]
        with self.database.transaction():
            changed = "UPDATE search_state SET changes = changes + 1 WHERE changes = ?"
            if not self.database.run(changed, (seen,)):
                return False
            self._remove([number for one in revisions for number in one.removed])
            documents = self._save_documents(revisions)
            (number,) = self.database.rows("SELECT coalesce(max(id), 0) FROM search_passages")[0]
            rows: list[list[Any]] = []
            words: list[tuple[int, str]] = []
            for one, passages in ready:
                for passage, text, total in passages:
                    number += 1
                    body = zlib.compress(_encoded(passage.text), 1) if self._keep_text else None
                    rows.append([number, documents[one.key], *passage[:6], total, body])
                    words.append((number, text))
            if self._kind == "postgresql":
                rows = [[*row, text] for row, (_, text) in zip(rows, words, strict=True)]
            if rows:
                self.database.run_many(_INSERT[self._kind], rows)
                if self._kind == "sqlite":
                    self.database.run_many("INSERT INTO search_words (rowid, words) VALUES (?, ?)", words)
        return True

    def _save_documents(self, revisions: Sequence[Revision]) -> dict[str, int]:
        (number,) = self.database.rows("SELECT coalesce(max(id), 0) FROM search_documents")[0]
        rows = [
            (number + at, one.key, one.stamp, orjson.dumps(one.about).decode()) for at, one in enumerate(revisions, 1)
        ]
        self.database.run_many(_DOCUMENT, rows)
        found: dict[str, int] = {}
        for at in range(0, len(rows), 500):
            keys = [row[1] for row in rows[at : at + 500]]
            marks = ", ".join("?" * len(keys))
            found.update(self.database.rows(f"SELECT key, id FROM search_documents WHERE key IN ({marks})", keys))
        return found

    def _remove(self, numbers: Sequence[int]) -> None:
        if self._kind == "sqlite":  # a table of words alone is told which words it loses
            for number in numbers:
                row = self.database.rows("SELECT body FROM search_passages WHERE id = ?", (number,))
                if row:
                    words = " ".join(words_of(_decoded(row[0][0])))
                    self.database.run(
                        "INSERT INTO search_words (search_words, rowid, words) VALUES ('delete', ?, ?)", (number, words)
                    )
        if numbers:
            self.database.run_many("DELETE FROM search_passages WHERE id = ?", [(number,) for number in numbers])

    def forget(self, keys: Iterable[str], seen: int) -> bool:
        """Remove documents; `seen` and what is returned as for `revise`."""
        for key in keys:
            numbers = [number for number, _ in self.sums(key).values()]
            with self.database.transaction():
                changed = "UPDATE search_state SET changes = changes + 1 WHERE changes = ?"
                if not self.database.run(changed, (seen,)):
                    return False
                self._remove(numbers)
                self.database.run("DELETE FROM search_documents WHERE key = ?", (key,))
            seen += 1
        return True

    def search(
        self, phrases: Sequence[Phrase], *, limit: int | None, where: str = "", values: Sequence[Any] = ()
    ) -> list[FoundPassage]:
        """Return the passages that hold all phrases, what was indexed last first.

        Args:
            phrases: result of `phrases_of`.
            limit: maximum number of results.
            where: a further condition in SQL, with `p` for the passage and `d` for the document.
            values: values of the condition's parameters.
        """
        columns = "d.key, d.about, p.message_id, p.position, p.role, p.model, p.created_at, p.body"
        top = "" if limit is None else f" LIMIT {int(limit)}"
        if self._kind == "sqlite":
            sql, given = self.select(columns, phrases, where, values)
            return _read_found(self.database.rows(f"{sql} ORDER BY w.rowid DESC{top}", given))
        with self._planned():
            if limit is not None:  # frequent words
                sql, given = self.select(columns, phrases, f"{where} AND p.id > ?", [*values, self._first_newest()])
                rows = self.database.rows(f"{sql} ORDER BY p.id DESC{top}", given)
                if len(rows) == limit:
                    return _read_found(rows)
            sql, given = self.select(columns, phrases, where, values)
            # no index has this order: PostgreSQL would go through all passages by it, and test each
            return _read_found(self.database.rows(f"{sql} ORDER BY p.id + 0 DESC{top}", given))

    def count(self, phrases: Sequence[Phrase], limit: int, where: str = "", values: Sequence[Any] = ()) -> int:
        """Return how many passages hold all phrases, counting up to a limit; `where` as for `search`.

        PostgreSQL does not count words that a tenth of the newest passages hold: the limit is returned.
        """
        with self._planned():
            if self._kind == "postgresql":
                sql, given = self.select("1", phrases, f"{where} AND p.id > ?", [*values, self._first_newest()])
                many = max(_NEWEST // 10, 1)
                if self._count(sql, given, many) == many:
                    return limit
            return self._count(*self.select("1", phrases, where, values), limit)

    def _count(self, sql: str, given: Sequence[Any], limit: int) -> int:
        return int(self.database.rows(f"SELECT count(*) FROM ({sql} LIMIT {int(limit)}) found", given)[0][0])

    def _first_newest(self) -> int:
        (last,) = self.database.rows("SELECT coalesce(max(id), 0) FROM search_passages")[0]
        return int(last) - _NEWEST

    @contextmanager
    def _planned(self) -> Iterator[None]:
        """Let PostgreSQL plan each query for its words, which are frequent or rare, and not once for all."""
        if self._kind == "sqlite":
            yield
            return
        with self.database.transaction():
            self.database.run("SET LOCAL plan_cache_mode = force_custom_plan")
            yield

    def select(
        self, columns: str, phrases: Sequence[Phrase], where: str = "", values: Sequence[Any] = ()
    ) -> tuple[str, list[Any]]:
        """Return a query for columns of the passages that hold all phrases, and its values; `where` as for `search`."""
        return f"SELECT {columns} {_SEARCH[self._kind]}{where}", [self.expression(phrases), *values]

    def expression(self, phrases: Sequence[Phrase]) -> str:
        """Return the phrases in the database's own language of queries."""
        if self._kind == "sqlite":
            return " ".join(f'"{" ".join(phrase.words)}"{"*" if phrase.is_prefix else ""}' for phrase in phrases)
        parts = [" <-> ".join(f"'{word}'" for word in phrase.words) for phrase in phrases]
        return " & ".join(f"({part}{':*' if one.is_prefix else ''})" for part, one in zip(parts, phrases, strict=True))


def _read_found(rows: Iterable[Row]) -> list[FoundPassage]:
    return [
        FoundPassage(
            key=key, about=orjson.loads(about), message_id=message, position=position, role=role, model=model,
            created_at=made, text=None if body is None else _decoded(body),
        )
        for key, about, message, position, role, model, made, body in rows
    ]  # fmt: skip


def check_sum(text: str) -> int:
    """Return a number that tells two versions of a passage apart."""
    return zlib.crc32(_encoded(text))


def _prepared(passage: Passage) -> tuple[str, int]:
    return " ".join(words_of(passage.text)), check_sum(passage.text)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _decoded(body: bytes) -> str:
    return zlib.decompress(body).decode()
