"""Sessions of every format can be sent to every kind of service: a request without fault, or a typed refusal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from interlingua.plugins import Registry, build_request
from interlingua.types import Message, RequestOptions, Role, user
from interlingua_cli.lint import covers_request, lint_request
from interlingua_transcripts import TranscriptError, read_transcript
from tests.transcripts.histories import own_file, writable_systems
from tests.transcripts.samples import FOLDER, samples

MODELS = {
    "anthropic": ("anthropic", "claude-sonnet-4-5", {}),
    "openai, Responses": ("openai", "gpt-5", {}),
    "openai, Chat Completions": ("openai", "gpt-4o", {"api": "chat"}),
    "google": ("google", "gemini-2.5-flash", {}),
    "mistral": ("mistral", "mistral-large-latest", {}),
}
FORMATS = (
    "pi", "openclaw", "claude-code", "codex", "atif", "gemini", "opencode", "openhands", "inspect", "sweagent",
    "mini-swe-agent", "chat-ft", "role-list", "role-jsonl",
)  # fmt: skip
COUNT = int(os.environ.get("INTERLINGUA_TRANSCRIPT_SENT", "10"))  # sessions of each format; 200 is all there are


@cache
def _registry() -> Registry:
    return Registry()


def _send(messages: Sequence[Message], target: str, name: str) -> None:
    """Write the request that goes on with a conversation, as chat would, and lint it."""
    key, model, options = MODELS[target]
    provider = _registry().provider(key)
    if not messages or messages[-1].role is not Role.USER:
        messages = [*messages, user("Go on.", session_id=messages[-1].session_id if messages else "default")]
    request = build_request(provider, messages, [], RequestOptions(model=model, **options))
    assert covers_request(provider, request)
    assert lint_request(provider, request) == (), name


def _sessions(name: str) -> Iterator[tuple[str, Sequence[Message]]]:
    small_first = sorted(samples(name), key=lambda one: len(one[1]))
    for sample, data in small_first[:: max(1, len(small_first) // COUNT)]:
        try:
            read = read_transcript(data)
        except TranscriptError:  # another program's lines
            continue
        yield sample["id"], read.messages
        yield f"{sample['id']}, context", read.context


@pytest.mark.parametrize("target", MODELS)
def test_our_own_history_is_sent_from_every_system(target: str) -> None:
    for system in writable_systems():
        _send(read_transcript(own_file(system)).messages, target, system.name)


@pytest.mark.skipif(not FOLDER, reason="INTERLINGUA_TRANSCRIPTS names no folder of session files")
@pytest.mark.parametrize("name", FORMATS)
def test_real_sessions_are_sent(name: str) -> None:
    for about, messages in _sessions(name):
        for target in MODELS:
            _send(messages, target, f"{about} -> {target}")
