"""Recorded requests are read and written for the same service: 98 % are equal, and the ledger reports what differs.

Two requests are equal if they are the same after the forms of `FORMS`, which each module of an API names. In full, all
recorded requests are compared with the table requests.json, else a part of them is held to the law alone;
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
from tests.serving import chat, generate, interactions, messages, ollama, responses
from tests.serving.compare import LEDGER, Form, reasons, written_back
from tests.support import corpus as corpora
from tests.support.counts import FULL, chosen

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
OPENAI_HOSTS = ("api.openai.com", ".openai.azure.com", ".services.ai.azure.com")
OTHERS = "others"  # services that have no provider here; their requests are written for OpenAI
LEAST = 0.98  # of the requests are equal


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
    options: dict[str, str]


SERVED = {
    "messages": Served(messages.FORMS, messages.OPTIONS),
    "chat": Served(chat.FORMS, chat.OPTIONS),
    "responses": Served(responses.FORMS, responses.OPTIONS),
    "generate": Served(generate.FORMS, generate.OPTIONS),
    "interactions": Served(interactions.FORMS, interactions.OPTIONS),
    "chat-native": Served(ollama.FORMS, ollama.OPTIONS),
}
_GENERATE = re.compile(r"/(?:models/)?(?P<model>[^/:?]+):(stream)?[gG]enerateContent$")


def _which(url: str, body: dict[str, Any]) -> tuple[str, str, str] | None:
    """Return the provider whose API a request speaks, the API, and the model; None for requests of other APIs."""
    path, host = url.partition("?")[0], url.split("/")[2] if "://" in url else ""
    model = body.get("model", body.get("agent"))
    if isinstance(model, str) and path.endswith("/interactions"):
        return "google", "interactions", model
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
        return CHAT_SERVICES.get(host, "openai" if not host or host.endswith(OPENAI_HOSTS) else OTHERS), "chat", model
    return None


def _recorded(name: str, url: str, headers: dict[str, str], body: Any) -> Iterator[Recorded]:
    if isinstance(body, dict) and (found := _which(url, body)) is not None:
        key, api, model = found
        path = "/" + url.split("/", 3)[-1] if "://" in url else url
        yield Recorded(name, key, api, path, {each.lower(): text for each, text in headers.items()}, body, model)


def _of_corpus() -> Iterator[Recorded]:
    corpus = corpora.find()
    assert corpus is not None
    for file in (*corpus.apis, "google-interactions"):
        for entry in corpus.entries(file) if corpus.file(file).exists() else ():
            if 200 <= (entry["status"] or 0) < 300 and chosen(entry["id"], 8):
                yield from _recorded(entry["id"], entry["url"], entry["request_headers"], entry["request"])


def _captured() -> Iterator[Recorded]:
    for path in sorted(Path(FOLDER or "").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for at, line in enumerate(lines):
                entry = json.loads(line)
                yield from _recorded(f"{path.name}#{at}", entry["path"], entry["headers"], entry["body"])


def _table(requests: Callable[[], Iterator[Recorded]]) -> dict[str, Any]:
    """Return per API and service: requests, how many came back the same and how many equal, and the reasons."""
    table: dict[str, Any] = {}
    unexplained: list[str] = []
    for each in requests():
        row = table.setdefault(
            f"{each.api} of {each.key}", {"requests": 0, "same": 0, "equal": 0, "reasons": Counter()}
        )
        row["requests"] += 1
        served = SERVED[each.api]
        try:
            wire = written_back(_writer(each.key), each.api, each.path, each.headers, each.body, each.model)
        except Exception as error:
            unexplained.append(f"{each.name}: {type(error).__name__}: {error}")
            continue
        losses: Sequence[Loss] = wire.losses
        body = json.loads(wire.body)
        found, others = reasons(each.body, body, losses, served.forms, served.options)
        row["same"] += not found and not others
        row["equal"] += not others and not any(one.startswith(LEDGER) for one in found)
        row["reasons"].update(found)
        unexplained += [f"{each.name}: {one.place} {one.kind}: {str(one)[:300]}" for one in others]
    assert not unexplained, f"{len(unexplained)} differences without a reason:\n" + "\n".join(unexplained[:20])
    return {name: {**row, "reasons": dict(sorted(row["reasons"].items()))} for name, row in sorted(table.items())}


def _writer(key: str) -> str:
    return "openai" if key == OTHERS else key


def _law(table: dict[str, Any]) -> None:
    """Hold the requests of services that have a provider to the law, and print the table."""
    print("\nrequests | equal | share | API and service")
    for name, row in table.items():
        print(f"{row['requests']:>8} | {row['equal']:>5} | {row['equal'] / row['requests']:.1%} | {name}")
    own = [row for name, row in table.items() if not name.endswith(OTHERS)]
    equal, requests = sum(row["equal"] for row in own), sum(row["requests"] for row in own)
    print(f"{requests:>8} | {equal:>5} | {equal / requests:.1%} | all but of {OTHERS}")
    assert equal / requests >= LEAST


def _check(name: str, found: dict[str, Any]) -> None:
    stored = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    if os.environ.get("INTERLINGUA_SERVE_TABLE") == "write":
        stored[name] = found
        TABLE.write_text(json.dumps(stored, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    assert found == stored[name]


@pytest.mark.usefixtures("quiet")
@pytest.mark.skipif(corpora.find() is None, reason=corpora.SKIP_REASON)
def test_recorded_requests_come_back_as_they_were() -> None:
    table = _table(_of_corpus)
    _law(table)
    if FULL:
        _check("recorded", table)


@pytest.mark.usefixtures("quiet")
@pytest.mark.skipif(not FOLDER, reason="INTERLINGUA_GATEWAY names no folder of captured requests")
def test_requests_of_agents_come_back_as_they_were() -> None:
    _check("captured", _table(_captured))
