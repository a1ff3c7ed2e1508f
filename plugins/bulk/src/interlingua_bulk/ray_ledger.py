"""The ledger of a run on a cluster: each answer as it arrives, on a disk that all machines share.

Ray runs a block of rows again when its worker is lost. The ledger has the answers that were paid for by then; what it
has left from a run that was killed, the next one adds to the output.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from interlingua.errors import CallerError
from interlingua_bulk.answers import append_line, replace_file, sync_data, unwritten

STARTS = 4  # of one chunk without a new answer; Ray itself starts it again without end
_SUFFIX = ".ledger"
_FACTS = "run.json"
_CLAIM_S = 1.0  # in which the actors of an earlier run see that the ledger is another run's
_SYNC_S = 0.25  # the longest time that an answer is not on disk


class RunLedger:
    """The folder of a run's ledger; no other folder is changed or removed.

    Args:
        out: the output of the run.
        parent: a folder for the ledgers of all runs, on a disk that all machines share; None for the output's folder.

    Attributes:
        folder: this run's own.
    """

    def __init__(self, out: Path, parent: Path | None) -> None:
        name = out.name
        if parent is not None:  # runs whose outputs have the same name
            name = f"{name}-{hashlib.sha256(os.fsencode(out.resolve())).hexdigest()[:8]}"
        self.folder = (out.parent if parent is None else parent).resolve() / (name + _SUFFIX)

    def check(self, facts: Mapping[str, Any], *, force: bool) -> None:
        """Raise `CallerError` if the folder is not a ledger, or has answers of another input, model or options."""
        if not self.folder.exists() or not any(self.folder.iterdir()):
            return
        try:
            before = orjson.loads((self.folder / _FACTS).read_bytes())
        except (OSError, ValueError):
            raise CallerError(
                f"{self.folder} exists and is not the ledger of a run: move it, or choose another output"
            ) from None
        if not force and _asked(before) != _asked(facts):
            raise CallerError(
                f"{self.folder} has answers of a run with another input, model, options or tools:"
                " remove it, choose another output, or pass --force (force=True) to mix them"
            )

    async def claim(self, facts: Mapping[str, Any], run: str) -> None:
        """Stop the actors of a run that was killed: they may send for seconds after it, if Ray still runs.

        Args:
            facts: the run's arguments.
            run: name of this run.
        """
        if self.folder.exists():
            self._write_facts(facts, run)
            await asyncio.sleep(_CLAIM_S)

    def begin(self, facts: Mapping[str, Any], run: str) -> None:
        """Begin an empty ledger with these arguments."""
        self.remove()
        self.folder.mkdir(parents=True)
        self._write_facts(facts, run)

    def _write_facts(self, facts: Mapping[str, Any], run: str) -> None:
        replace_file(self.folder / _FACTS, orjson.dumps({**facts, "run": run}))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of all chunks."""
        for path in sorted(self.folder.glob("chunk-*.jsonl")):
            yield from _whole_lines(path.read_bytes()).values()

    def clear(self) -> None:
        """Remove the lines of all chunks."""
        for path in self.folder.glob("chunk-*"):
            path.unlink()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


class ChunkLedger:
    """The lines of one chunk's rows, appended as they arrive.

    Args:
        folder: the run's.
        number: of the chunk.

    Attributes:
        path: the file.
        kept: the lines by the index of their rows, also one that could not be written.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.path = folder / f"chunk-{number}.jsonl"
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            data = self.path.read_bytes()
            self._size = data.rfind(b"\n") + 1
            os.ftruncate(self._fd, self._size)
        except BaseException:
            os.close(self._fd)
            raise
        self.kept = _whole_lines(data)
        self._unsynchronised = False
        self._ended = asyncio.Event()
        self._task = asyncio.create_task(self._synchronise())

    def count_starts(self) -> int:
        """Record a start, and return how often the chunk has started without a new answer."""
        now = str(len(self.kept))
        with self.path.with_suffix(".starts").open("a+") as file:
            file.write(now + "\n")
            file.seek(0)
            counts = file.read().split()
        return len(counts) - next((at for at in range(len(counts), 0, -1) if counts[at - 1] != now), 0)

    def add(self, index: int, line: bytes) -> None:
        """Write a row's line. It survives the loss of this worker and, once synced, of its machine.

        Raises:
            CallerError: the disk is full, or fails; the line is in `kept` nevertheless.
        """
        self.kept[index] = line
        append_line(self._fd, self.path, line, self._size)
        self._size += len(line)
        self._unsynchronised = True

    async def close(self) -> None:
        """Close the file.

        Raises:
            CallerError: the disk fails.
        """
        self._ended.set()
        try:
            await self._task
        except OSError as error:
            raise unwritten(self.path, error) from error
        finally:
            os.close(self._fd)

    async def _synchronise(self) -> None:
        while not self._ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _SYNC_S)
            if self._unsynchronised:
                self._unsynchronised = False
                await asyncio.to_thread(sync_data, self._fd)


def is_claimed(folder: Path, run: str) -> bool:
    """Return True if the ledger is another run's by now."""
    try:
        return bool(orjson.loads((folder / _FACTS).read_bytes())["run"] != run)
    except FileNotFoundError:
        return True


def _asked(facts: Mapping[str, Any]) -> tuple[Any, Any]:
    return facts["input"]["sha256"], facts["asked"]


def _whole_lines(data: bytes) -> dict[int, bytes]:
    """Return the last line of each row by its index, without lines that are incomplete: their rows are sent again."""
    found = {}
    for line in data.splitlines(keepends=True):
        with suppress(ValueError):
            if line.endswith(b"\n"):
                found[orjson.loads(line)["index"]] = line
    return found
