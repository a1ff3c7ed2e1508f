"""Secrets: planted ones of every kind in every surrounding are found; real sessions have no false alarm."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path

import pytest

from interlingua_transcripts.secrets import SecretSearch
from tests.transcripts.planted import SURROUNDINGS, planted
from tests.transcripts.samples import FOLDER, needs_samples, samples


def redacted(text: str) -> str:
    """Return a session's line that holds a string, with its secrets replaced."""
    made = b"".join(SecretSearch(redact=True).through([json.dumps({"type": "text", "text": text}).encode() + b"\n"]))
    return str(json.loads(made)["text"])


@pytest.mark.parametrize("seed", range(3))
def test_planted_secrets_are_found(seed: int) -> None:
    missed = defaultdict(list)
    total = 0
    for name, text, parts in planted(random.Random(seed)):
        for where, surround in SURROUNDINGS.items():
            total += 1
            left = redacted(surround(text))
            if any(part in left for part in parts):
                missed[name].append(where)
    left_in = sum(map(len, missed.values()))
    assert total > 2_500
    assert not missed, f"{left_in} of {total}: {dict(missed)}"


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=your-api-key-goes-here-12",
        "OPENAI_API_KEY=sk-" + "x" * 24,
        "api_key = os.environ['SERVICE_API_KEY_2']",
        "token: ${{ secrets.GITHUB_TOKEN_V2_PROD }}",
        "Authorization: Bearer $ACCESS_TOKEN_1234",
        "Authorization: Bearer <access-token-2024>",
        "postgres://user:password@localhost:5432/db",
        "cache_key = 'a1b2c3d4e5f6a7b8c9d0e1f2'",
        "input_tokens: 1234, page_token: 'a1b2c3d4e5f6a7b8c9d0'",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "task-runner-that-has-a-very-long-name-with-words-1",
        "id 550e8400-e29b-41d4-a716-446655440000, primary_key = 550e8400-e29b-41d4-a716-446655440000",
        "sha256:" + "0123456789abcdef" * 4,
        "the file begins with -----BEGIN " + "PRIVATE KEY-----, then lines",
        "data:image/png;base64," + "iVBORw0KGgo" * 30,
    ],
)
def test_other_texts_stay(text: str) -> None:
    for surround in SURROUNDINGS.values():
        assert redacted(surround(text)) == surround(text)


@needs_samples
def test_real_sessions_have_no_false_alarm() -> None:
    found: dict[str, dict[str, int]] = {}
    for path in sorted(Path(FOLDER or "").glob("dev/*.jsonl.gz")):
        search = SecretSearch()
        list(search.through(data for _, data in samples(path.name.removesuffix(".jsonl.gz"))))
        if search.found:
            found[path.name.removesuffix(".jsonl.gz")] = dict(search.found)
    assert found == {"openclaw": {"assigned secret": 5}}  # a person read each: all are keys
