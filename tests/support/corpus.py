"""The recorded traffic the tests may read: where it lies, and one entry at a time.

Nothing of the corpus is copied into the project or changed, and no test decides by itself what its absence means.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from tests.support.counts import chosen

FOLDER_VARIABLE = "INTERLINGUA_CORPUS"
REQUIRE_VARIABLE = "INTERLINGUA_REQUIRE_CORPUS"
SKIP_REASON = f"no corpus: set {FOLDER_VARIABLE} to a folder that holds dev/*.jsonl.gz"


@attrs.frozen
class Corpus:
    """A folder of recorded exchanges, one gzipped JSON Lines file per API."""

    path: Path

    def file(self, api: str) -> Path:
        """Return the file of one API, such as `openai-chat`; that of an API of this autumn is in another folder."""
        found = self.path / "dev" / f"{api}.jsonl.gz"
        return found if found.exists() else self.path / "new" / found.name

    @property
    def apis(self) -> list[str]:
        """Return the APIs that have a file, sorted."""
        return sorted(path.name.removesuffix(".jsonl.gz") for path in (self.path / "dev").glob("*.jsonl.gz"))

    def entries(self, api: str) -> Iterator[dict[str, Any]]:
        """Yield the exchanges of one API as they stand in the file, reading as it goes."""
        with gzip.open(self.file(api), "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)

    def answers(self, api: str, kind: str, of: int = 1) -> list[tuple[str, bytes]]:
        """Return id and body of each answer that is no failure, whole (`json`) or streamed (`sse`, `ndjson`).

        Only CI looks at all of them if `of` is larger than 1; otherwise it is a fixed one in so many.
        """
        entries = (entry for entry in self.entries(api) if chosen(entry["id"], of))
        found = (entry for entry in entries if entry["kind"] == kind and (entry["status"] or 200) < 400)
        return [(entry["id"], entry["response_text"].encode()) for entry in found]


def find() -> Corpus | None:
    """Return the corpus the environment names, or None when there is none to read."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    path = Path(folder).expanduser().resolve()
    return Corpus(path) if any((path / "dev").glob("*.jsonl.gz")) else None


def required() -> bool:
    """Tell whether a test that skips for want of the corpus has failed (.ci/run says so)."""
    return os.environ.get(REQUIRE_VARIABLE, "") not in {"", "0"}


def is_corpus_skip(reason: str) -> bool:
    """Tell whether a skip's reason is the missing corpus, whoever worded it."""
    return "corpus" in reason.lower()
