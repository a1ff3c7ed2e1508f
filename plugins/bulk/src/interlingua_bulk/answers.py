"""The output file: answers are appended as they arrive, synced to disk in groups, and recovered after a crash."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import attrs
import orjson

from interlingua.errors import CallerError, DecodeError

FORMAT = "interlingua-bulk/1"
GROUP = 64  # lines after which the file is synchronised
PAUSE_S = 0.2  # the longest time a line waits for that

_HEAD = re.compile(rb'\{"index":(\d+),"status":"(ok|error)"(?:,"key":"([0-9a-f]{32})")?')
OK, FAILED = 1, 2  # states of rows; 0 is open
_PLACE_BITS = 44  # of 64, in a slot of `SharedAnswers`; the others are of the key
_SIDE = ".run.json"


@attrs.frozen
class BulkInput:
    """Facts about an input, or a part of it, collected before anything is sent.

    Attributes:
        path: the file.
        rows: how many it has.
        size: size in bytes.
        sha256: digest of all its bytes, as 64 hexadecimal digits.
        start: byte of the file at which it begins.
        line: number of its first line in the file.
    """

    path: Path
    rows: int
    size: int
    sha256: str
    start: int = 0
    line: int = 1


class SharedAnswers:
    """Finds the answers that other rows may share, in 16 to 32 bytes of memory a row; none until the first is added.

    Each slot of the hash table has part of a key and the place of its line; the line has the whole key.

    Args:
        path: the output.
        rows: most answers that are kept; further ones are not shared.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._left = path, rows
        self._slots = array("Q")
        self._file: BinaryIO | None = None

    def add(self, key: str, place: int) -> bool:
        """Add the answer whose line begins at this byte of the output; the last one of a key is found.

        Returns:
            True if the key is new; False also for about one new key in 10^6.
        """
        self._slots = self._slots or array("Q", bytes(8 << (2 * self._left).bit_length()))
        slot, tag = self._find(key)
        while self._slots[slot] and self._slots[slot] >> _PLACE_BITS != tag:
            slot = (slot + 1) % len(self._slots)
        is_new = not self._slots[slot]
        if is_new and not self._left:
            return True
        self._left -= is_new
        self._slots[slot] = tag << _PLACE_BITS | (place + 1)
        return is_new

    def get(self, key: str) -> Any:
        """Return the JSON object of an answer's line, or None."""
        slot, tag = self._find(key) if self._slots else (0, 0)
        while self._slots and (found := self._slots[slot]):
            if found >> _PLACE_BITS == tag:
                self._file = self._file or self._path.open("rb")
                self._file.seek((found & ((1 << _PLACE_BITS) - 1)) - 1)
                line = self._file.readline()
                if (head := _HEAD.match(line)) and head[3] == key.encode():
                    return orjson.loads(line)
            slot = (slot + 1) % len(self._slots)
        return None

    def close(self) -> None:
        """Close the file that the lines were read from."""
        if self._file is not None:
            self._file.close()

    def _find(self, key: str) -> tuple[int, int]:
        """Return the first slot in which a key may be, and the part of the key in it."""
        value = int(key, 16)
        return value % len(self._slots), value >> (4 * len(key) - 64 + _PLACE_BITS)


class AnswerFile:
    """The answers of one run: a line per row, appended; the last line of a row counts.

    `<file>.run.json` beside it has the run's arguments, so that answers to another input or model are not mixed in.

    Args:
        path: the file; created if it does not exist.
        source: the input.
        asked: model and options, as JSON; must be the same when a run is resumed.
        force: resume although input, model or options are not the same.

    Raises:
        CallerError: another process writes the file, or it belongs to another run.
        DecodeError: a line that is not the last is not an answer.
    """

    def __init__(self, path: Path, source: BulkInput, asked: Mapping[str, Any], *, force: bool = False) -> None:
        self.path, self.source = path, source
        self.states = bytearray(source.rows)
        self.shared = SharedAnswers(path, source.rows)
        self.size = self._synchronised = 0  # bytes
        self._unsynchronised = 0  # lines
        self._wake = asyncio.Event()
        self._synchronised_more = asyncio.Condition()
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = self._ended = False
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        try:
            _lock(self._fd, path)
            self._check(source, dict(asked), force=force)
            self.size = self._synchronised = recover(self._fd, path, self.states, self.shared)
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def done(self) -> int:
        """How many rows have an answer."""
        return self.states.count(OK)

    @property
    def failed(self) -> int:
        """How many rows have an error."""
        return self.states.count(FAILED)

    def is_open(self, index: int) -> bool:
        """Return True for a row that has neither an answer nor an error."""
        return not self.states[index]

    def is_failed(self, index: int) -> bool:
        """Return True for a row whose last line is an error."""
        return self.states[index] == FAILED

    def is_unanswered(self, index: int) -> bool:
        """Return True for a row that has no answer."""
        return self.states[index] != OK

    def start(self) -> None:
        """Start writing added lines, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._synchronise())

    async def add(self, index: int, line: bytes, *, ok: bool, key: str | None = None) -> None:
        """Write a row's line. It survives a kill of this process and, once synced, a crash of the machine.

        Raises:
            CallerError: the disk is full, or fails; the file has no part of the line.
        """
        append_line(self._fd, self.path, line, self.size)
        if key is not None and ok:
            self.shared.add(key, self.size)
        self.size += len(line)
        self.states[index] = OK if ok else FAILED
        self._unsynchronised += 1
        if self._unsynchronised in (1, GROUP):
            self._wake.set()
        elif self._unsynchronised > 16 * GROUP:  # the disk is slower than the service
            await self.flush()

    async def flush(self) -> None:
        """Wait until everything added so far is on disk."""
        until = self.size
        self._wake.set()
        async with self._synchronised_more:
            await self._synchronised_more.wait_for(lambda: self._synchronised >= until or self._ended)
        if self._synchronised < until and self._error is None:  # the task was cancelled
            sync_data(self._fd)
        self._raise()

    async def close(self) -> None:
        """Write the remaining lines, and unlock the file for other processes."""
        self._closing = True
        self._wake.set()
        try:
            if self._task is not None:
                await self._task
            self._raise()
        finally:
            self.shared.close()
            os.close(self._fd)

    async def __aenter__(self) -> AnswerFile:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _synchronise(self) -> None:
        """Sync to disk in groups, until the file is closed, the disk fails or the task is cancelled."""
        try:
            await self._synchronise_groups()
        finally:
            self._ended = True
            async with self._synchronised_more:
                self._synchronised_more.notify_all()

    async def _synchronise_groups(self) -> None:
        """Sync to disk after `GROUP` lines or `PAUSE_S` seconds, whichever is first."""
        while not (self._closing and self._synchronised == self.size) and self._error is None:
            await self._wake.wait()
            self._wake.clear()
            if self._unsynchronised < GROUP and not self._closing:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), PAUSE_S)
                self._wake.clear()
            size, self._unsynchronised = self.size, 0
            try:
                if size > self._synchronised:
                    await asyncio.to_thread(sync_data, self._fd)
                self._synchronised = size
            except OSError as error:
                self._error = unwritten(self.path, error)
            async with self._synchronised_more:
                self._synchronised_more.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _check(self, source: BulkInput, asked: dict[str, Any], *, force: bool) -> None:
        """Compare with the run that began this file, or store this run's arguments."""
        known = {"path": str(source.path.resolve()), "rows": source.rows, "sha256": source.sha256}
        asked = orjson.loads(orjson.dumps(asked, default=str))  # equal to what is read again
        facts = {"format": FORMAT, "input": known, "asked": asked}
        before = read_facts(self.path)
        if before is None:
            if os.fstat(self._fd).st_size:
                raise CallerError(f"{self.path} exists and is not an output of `bulk run`: choose another file")
            write_facts(self.path, facts)
            return
        if before.get("format") != FORMAT:
            raise CallerError(f"{self.path} was written by another version: {before.get('format')!r}, not {FORMAT!r}")
        if force:
            write_facts(self.path, facts)
            return
        if before["input"]["sha256"] != source.sha256:
            raise CallerError(
                f"{self.path} holds answers for a different input ({before['input']['path']} at that time):"
                " choose another output file, or pass --force (force=True) to mix them"
            )
        if changed := [name for name, value in asked.items() if before["asked"].get(name) != value]:
            raise CallerError(
                f"{self.path} was started with another {' and another '.join(sorted(changed))}:"
                " choose another output file, or pass --force (force=True) to mix answers"
            )


def recover(fd: int, path: Path, states: bytearray, shared: SharedAnswers) -> int:
    """Read a file into `states` and `shared`, cut off an incomplete last line, and return the size.

    Raises:
        DecodeError: another line is not an answer to one of the rows.
    """
    size = 0
    with os.fdopen(os.dup(fd), "rb", buffering=1 << 20) as file:
        file.seek(0)
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            head = _HEAD.match(line)
            index = int(head[1]) if head else len(states)
            if head is None or index >= len(states):
                raise DecodeError(f"{path}, line {number} is not an answer of this run: {line[:80]!r}")
            states[index] = OK if head[2] == b"ok" else FAILED
            if head[3] and head[2] == b"ok":
                shared.add(head[3].decode(), size)
            size += len(line)
    os.ftruncate(fd, size)
    return size


def side_file(path: Path) -> Path:
    """Return the path of the file with a run's arguments."""
    return path.with_name(path.name + _SIDE)


def read_facts(path: Path) -> dict[str, Any] | None:
    """Return the arguments of an output file's run, or None.

    Raises:
        DecodeError: the file beside it cannot be read.
    """
    side = side_file(path)
    try:
        facts: dict[str, Any] = orjson.loads(side.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DecodeError(f"{side} is not JSON: {error}") from None
    return facts


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Write the file with a run's arguments; a crash leaves the old file or the new one."""
    replace_file(side_file(path), orjson.dumps(facts, option=orjson.OPT_INDENT_2, default=str) + b"\n")


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, on disk when this returns.

    Raises:
        CallerError: it cannot be written.
    """
    with part_file(path) as part:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    sync_folder(path.parent)


@contextmanager
def part_file(path: Path) -> Iterator[Path]:
    """Yield a path beside a file, to write a new one there and to move it; a failure removes what was written.

    Raises:
        CallerError: the disk is full, or the folder cannot be written.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
    except OSError as error:
        if error.filename not in (None, str(part)):
            raise
        raise unwritten(path, error) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def append_line(fd: int, path: Path, line: bytes, size: int) -> None:
    """Append a line to a file that has so many bytes.

    Raises:
        CallerError: the disk is full, or fails; the file has no part of the line.
    """
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(fd, size)  # the next line must not follow a part of this one
        raise unwritten(path, error) from error


def unwritten(path: Path, error: OSError) -> CallerError:
    """Return the error of a file that cannot be written."""
    return CallerError(f"{path} cannot be written: {error.strerror or error}")


def sync_data(fd: int) -> None:
    """Sync a file's data to disk."""
    getattr(os, "fdatasync", os.fsync)(fd)


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk; Windows cannot open a folder for that."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_answers(path: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield each whole line of an output file, in the order in which the answers came.

    Args:
        path: the file.
        start: bytes to skip; a line that begins before it is skipped too.
    """
    with path.open("rb", buffering=1 << 20) as file:
        if start:
            file.seek(start - 1)
            file.readline()
        for line in file:
            if line.endswith(b"\n"):
                yield orjson.loads(line)


def last_lines(path: Path) -> Iterator[bytes]:
    """Yield the last whole line of each row, in the input's order; 8 bytes of memory a row."""
    places = array("Q")  # of each row: 0, or the place of its last line in bytes, from 1
    size = 0
    with path.open("rb", buffering=1 << 20) as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                head = _HEAD.match(line)
                if head is None:
                    raise DecodeError(f"{path}, line {number} is not an answer: {line[:80]!r}")
                index = int(head[1])
                if index >= len(places):
                    places.frombytes(bytes(places.itemsize * (index + 1 - len(places))))
                places[index] = size + 1
            size += len(line)
        for place in filter(None, places):
            file.seek(place - 1)
            yield file.readline()


def compact_answers(path: Path) -> int:
    """Rewrite an output in the input's order, one line a row; a crash leaves the old file or the new one.

    Returns:
        The number of rows.

    Raises:
        CallerError: another process writes the file, or the new one cannot be written.
    """
    count = 0
    with path.open("rb") as before:
        _lock(before.fileno(), path)
        with part_file(path) as part:
            with part.open("wb") as file:
                for line in last_lines(path):
                    file.write(line)
                    count += 1
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        sync_folder(path.parent)
    return count


def _lock(fd: int, path: Path) -> None:
    """Keep other processes from writing the same file; the lock ends with the process."""
    if sys.platform == "win32":
        return  # a lock there also stops reads of the file
    import fcntl  # noqa: PLC0415  not on Windows

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CallerError(f"another process writes {path}: wait for it, or choose another file") from None
