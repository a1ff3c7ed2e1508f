"""Real session files, where they are: `INTERLINGUA_TRANSCRIPTS` names the folder that holds `dev/<format>.jsonl.gz`."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("INTERLINGUA_TRANSCRIPTS")
needs_samples = pytest.mark.skipif(not FOLDER, reason="INTERLINGUA_TRANSCRIPTS names no folder of session files")


def samples(name: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield each sample of a format: what is known of it, and the file's bytes."""
    with gzip.open(Path(FOLDER or "") / "dev" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            sample = json.loads(line)
            yield sample, sample["text"].encode("utf-8", "surrogatepass")
