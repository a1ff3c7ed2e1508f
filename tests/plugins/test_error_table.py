"""One table of failed answers: the authored ones at every host of their wire, and every recorded one.

The class that is expected comes from rules over the raw text (`error_rules`), which cite pages, SDKs and recordings.
`python -m tests.plugins.test_error_table` prints the table; with INTERLINGUA_CORPUS, the recorded failures too.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlingua import Registry
from interlingua.errors import ProviderError
from interlingua.plugins import RequestContext, WireResponse
from interlingua.types import Origin
from interlingua_cli.replay.exchange import Matcher, replay
from interlingua_cli.replay.source import read_entry
from tests.plugins.error_rules import RULES, failure_in, rule_of
from tests.support import corpus as recorded
from tests.support.corpus import Corpus
from tests.support.error_table import rows_of

HERE = Path(__file__).parent
REGISTRY = Registry()
PRESETS = (
    "compatible",
    "baseten",
    "cerebras",
    "deepseek",
    "fireworks",
    "groq",
    "huggingface",
    "llamacpp",
    "lmstudio",
    "meta",
    "moonshot",
    "nebius",
    "novita",
    "nvidia",
    "perplexity",
    "qwen",
    "sambanova",
    "together",
    "vllm",
    "xai",
)
# the folder of an authored table -> the wire of the rules, and the hosts that answer so
TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "anthropic": (
        "anthropic",
        (
            "anthropic messages",
            "azure messages",
            "vertex messages",
            "deepseek-messages messages",
            "minimax-messages messages",
        ),
    ),
    "chat_completions": ("chat", tuple(f"{key} chat" for key in PRESETS)),
    "cohere": ("cohere", ("cohere chat",)),
    "google": ("google", ("google generate", "vertex generate")),
    "mistral": ("mistral", ("mistral chat",)),
    "ollama": ("ollama", ("ollama native",)),
    "openai": (
        "responses",
        (
            *("openai responses", "openai chat", "azure responses", "azure chat"),
            *(f"{key}-responses responses" for key in ("groq", "mistral", "openrouter", "xai")),
        ),
    ),
    "openrouter": ("openrouter", ("openrouter chat",)),
    "zai": ("zai", ("zai chat",)),
}
WIRES = {"messages": "anthropic", "generate": "google", "responses": "responses"}
# the files of recorded traffic -> the wire, and the smallest number of failures in it
RECORDED = {
    "anthropic-messages": ("anthropic", 30), "bedrock-converse": ("bedrock", 8), "cohere-chat": ("cohere", 1),
    "deepseek-chat": ("chat", 5), "google-generate": ("google", 25), "groq-chat": ("chat", 20),
    "mistral-chat": ("mistral", 3), "ollama-chat": ("ollama", 1), "openai-chat": ("chat", 40),
    "openai-responses": ("responses", 30), "openrouter-chat": ("openrouter", 30), "xai-chat": ("chat", 3),
}  # fmt: skip


class Failure(NamedTuple):
    """A row: what the service says, and what it must become."""

    host: str
    wire: str
    status: int
    body: str
    kind: str
    retryable: bool
    source: str


def authored() -> Iterator[Failure]:
    """Yield the authored failures at each host."""
    for folder, (wire, hosts) in TABLES.items():
        for row in rows_of(HERE / folder / "errors.toml"):
            status = row.get("status", 200)
            rule = rule_of(wire, status, row["body"])
            for host in hosts:
                yield Failure(host, wire, status, row["body"], row["class"], row.get("retryable", False), rule.source)
    for row in tomllib.loads((HERE / "spent_credit.toml").read_text("utf-8"))["answer"]:
        for host in row["hosts"]:
            key, api = host.split()[:2]
            wire = WIRES.get(api) or (key if key in ("cohere", "mistral", "openrouter", "zai") else "chat")
            yield Failure(host, wire, row["status"], row["body"], "QuotaExceededError", False, row["source"])


AUTHORED = list(authored())
MODELS = {"messages": "claude-haiku-4-5", "generate": "gemini-2.5-flash"}


def error_of(failure: Failure, **headers: str) -> ProviderError:
    """Return the error that the host's plugin makes of a failure."""
    key, api, *model = failure.host.split()
    origin = Origin(key, api, model[0] if model else MODELS.get(api, "a-model"))
    context = RequestContext(origin=origin, message_id="01K000000000000000000000AA")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = failure.body.encode()
    if failure.status >= 400:
        answer = WireResponse(status=failure.status, headers=named, body=body)
        return REGISTRY.provider(key).from_wire_error(answer, context)
    with pytest.raises(ProviderError) as caught:
        REGISTRY.provider(key).from_wire_response(WireResponse(headers=named, body=body), context)
    return caught.value


@pytest.mark.parametrize("failure", AUTHORED, ids=lambda row: f"{row.host} {row.status} {row.kind}")
def test_an_authored_failure_has_its_class_at_every_host(failure: Failure) -> None:
    error = error_of(failure)

    assert (type(error).__name__, error.retryable) == (failure.kind, failure.retryable), failure.source
    assert error.status == (failure.status if failure.status >= 400 else error.status)


@pytest.mark.parametrize("failure", AUTHORED, ids=lambda row: f"{row.host} {row.status} {row.kind}")
def test_the_authored_class_is_that_of_the_pages(failure: Failure) -> None:
    rule = rule_of(failure.wire, failure.status, failure.body)

    assert (rule.kind, rule.retryable) == (failure.kind, failure.retryable), rule.source


@pytest.mark.parametrize(
    "failure", [row for row in AUTHORED if row.status >= 400], ids=lambda row: f"{row.host} {row.status}"
)
def test_the_delay_asked_for_is_on_every_error(failure: Failure) -> None:
    said = error_of(failure).retry_after

    assert error_of(failure, retry_after="7").retry_after == (7.0 if said is None else said)
    assert error_of(failure, retry_after="nan").retry_after == said


@functools.cache
def matcher() -> Matcher:
    return Matcher(Registry())


def recorded_rows(corpus: Corpus, file: str) -> Iterator[tuple[str, Failure, object]]:
    """Yield id, row and error of each recorded failure."""
    for entry in corpus.entries(file):
        text = failure_in(entry)
        if text is None:
            continue
        rule = rule_of(RECORDED[file][0], entry["status"] or 200, text)
        host = f"{entry['provider']} {entry['endpoint']}"
        row = Failure(host, RECORDED[file][0], entry["status"] or 200, text, rule.kind, rule.retryable, rule.source)
        yield entry["id"], row, replay(read_entry(json.dumps(entry).encode(), entry["id"]), matcher()).error


@pytest.mark.parametrize("file", RECORDED)
def test_a_recorded_failure_has_the_class_of_the_pages(file: str, corpus: Corpus) -> None:
    wrong, seen = {}, 0
    for name, row, error in recorded_rows(corpus, file):
        seen += 1
        found = (type(error).__name__, getattr(error, "retryable", None))
        if found != (row.kind, row.retryable):
            wrong[name] = (found, (row.kind, row.retryable), row.status, row.body[:200])

    assert seen >= RECORDED[file][1], f"only {seen}: the reader has gone blind"
    assert not wrong


def test_every_rule_is_used() -> None:
    used = {rule_of(row.wire, row.status, row.body) for row in AUTHORED}
    only_recorded = {rule for rule in RULES if rule.source in ("recorded words", "console.groq.com/docs/errors")}

    assert not set(RULES) - used - only_recorded


def print_table() -> None:
    """Print the rows: host, status, class, retryable, retry_after, source, and the start of the body."""

    def line(row: Failure, error: Any) -> str:
        cells = (row.host, row.status, type(error).__name__, error.retryable, error.retry_after, row.source)
        return f"| {' | '.join(map(str, cells))} | `{' '.join(row.body.split())[:80]}` |"

    print("| host | status | class | retryable | retry_after | source | body |\n|---|---|---|---|---|---|---|")
    for row in AUTHORED:
        print(line(row, error_of(row)))
    corpus = recorded.find()
    for file in RECORDED if corpus is not None else ():
        for _, row, error in recorded_rows(corpus, file):  # type: ignore[arg-type]  # found above
            print(line(row, error))


if __name__ == "__main__":
    print_table()
