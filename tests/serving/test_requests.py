"""Recorded requests are read and written back: what differs is listed in requests.json, and nothing else differs.

`INTERLINGUA_SERVE_TABLE=write` writes the table anew.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua.plugins import Loss
from tests.serving import chat, generate, messages, ollama, responses
from tests.serving.compare import Form, Known, reasons, written_back
from tests.support import corpus as corpora

TABLE = Path(__file__).with_name("requests.json")
FOLDER = os.environ.get("INTERLINGUA_GATEWAY")
CHAT_SERVICES = {
    "openrouter.ai": "openrouter",
    "api.mistral.ai": "mistral",
    "api.groq.com": "groq",
    "api.x.ai": "xai",
    "api.deepseek.com": "deepseek",
    "api.z.ai": "zai",
    "api.cerebras.ai": "cerebras",
}


@attrs.frozen
class Recorded:
    """One request that a client made."""

    name: str
    key: str
    api: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    model: str


@attrs.frozen
class Served:
    """An API under test."""

    forms: Sequence[Form]
    known: Sequence[Known]
    options: dict[str, str]


SERVED = {
    "messages": Served(messages.FORMS, messages.KNOWN, messages.OPTIONS),
    "chat": Served(chat.FORMS, chat.KNOWN, chat.OPTIONS),
    "responses": Served(responses.FORMS, responses.KNOWN, responses.OPTIONS),
    "generate": Served(generate.FORMS, generate.KNOWN, generate.OPTIONS),
    "chat-native": Served(ollama.FORMS, ollama.KNOWN, ollama.OPTIONS),
}
_GENERATE = re.compile(r"/(?:models/)?(?P<model>[^/:?]+):(stream)?[gG]enerateContent$")


def _which(url: str, body: dict[str, Any]) -> tuple[str, str, str] | None:
    """Return the provider whose API a request speaks, the API, and the model; None for requests of other APIs."""
    path, host = url.partition("?")[0], url.split("/")[2] if "://" in url else ""
    model = body.get("model")
    if found := _GENERATE.search(path):
        return "google", "generate", found["model"]
    if isinstance(model, str) and path.rstrip("/").endswith("/responses"):
        return "openai", "responses", model
    if not isinstance(model, str) or "messages" not in body:
        return None
    if path.endswith("/api/chat"):
        return "ollama", "chat-native", model
    if path.endswith("/v1/messages"):
        return "anthropic", "messages", model
    if path.endswith("/chat/completions"):
        return CHAT_SERVICES.get(host, "openai"), "chat", model
    return None


def _recorded(name: str, url: str, headers: dict[str, str], body: Any) -> Iterator[Recorded]:
    if isinstance(body, dict) and (found := _which(url, body)) is not None:
        key, api, model = found
        path = "/" + url.split("/", 3)[-1] if "://" in url else url
        yield Recorded(name, key, api, path, {each.lower(): text for each, text in headers.items()}, body, model)


def _of_corpus() -> Iterator[Recorded]:
    corpus = corpora.find()
    assert corpus is not None
    for file in corpus.apis:
        for entry in corpus.entries(file):
            if 200 <= (entry["status"] or 0) < 300:
                yield from _recorded(entry["id"], entry["url"], entry["request_headers"], entry["request"])


def _captured() -> Iterator[Recorded]:
    for path in sorted(Path(FOLDER or "").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for at, line in enumerate(lines):
                entry = json.loads(line)
                yield from _recorded(f"{path.name}#{at}", entry["path"], entry["headers"], entry["body"])


def _table(requests: Callable[[], Iterator[Recorded]]) -> dict[str, Any]:
    """Return per API and service: requests, how many came back equal, and the others by reason."""
    table: dict[str, Any] = {}
    unexplained: list[str] = []
    for each in requests():
        row = table.setdefault(f"{each.api} of {each.key}", {"requests": 0, "equal": 0, "reasons": Counter()})
        row["requests"] += 1
        served = SERVED[each.api]
        try:
            wire = written_back(each.key, each.api, each.path, each.headers, each.body, each.model)
        except Exception as error:
            unexplained.append(f"{each.name}: {type(error).__name__}: {error}")
            continue
        losses: Sequence[Loss] = wire.losses
        body = json.loads(wire.body)
        found, others = reasons(each.body, body, losses, served.forms, served.known, served.options)
        row["equal"] += not found and not others
        row["reasons"].update(found)
        unexplained += [f"{each.name}: {one.place} {one.kind}: {str(one)[:300]}" for one in others]
    assert not unexplained, f"{len(unexplained)} differences without a reason:\n" + "\n".join(unexplained[:20])
    return {name: {**row, "reasons": dict(sorted(row["reasons"].items()))} for name, row in sorted(table.items())}


def _check(name: str, found: dict[str, Any]) -> None:
    stored = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    if os.environ.get("INTERLINGUA_SERVE_TABLE") == "write":
        stored[name] = found
        TABLE.write_text(json.dumps(stored, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    assert found == stored[name]


@pytest.mark.skipif(corpora.find() is None, reason=corpora.SKIP_REASON)
def test_recorded_requests_come_back_as_they_were() -> None:
    _check("recorded", _table(_of_corpus))


@pytest.mark.skipif(not FOLDER, reason="INTERLINGUA_GATEWAY names no folder of captured requests")
def test_requests_of_agents_come_back_as_they_were() -> None:
    _check("captured", _table(_captured))
