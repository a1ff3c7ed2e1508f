"""Every recorded failure of these two wires has the class that a small rule table of its own gives it."""

from __future__ import annotations

import json

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import ProviderError
from interlingua_cli.replay.exchange import Matcher, replay
from interlingua_cli.replay.source import read_entry
from tests.plugins.openai.error_rules import expected
from tests.support.corpus import Corpus

FILES = {"openai-chat": 40, "openai-responses": 30, "groq-chat": 20, "deepseek-chat": 5, "xai-chat": 3}


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(Registry())


@pytest.mark.parametrize("file", FILES)
def test_class_and_retryable_follow_the_rules(file: str, corpus: Corpus, matcher: Matcher) -> None:
    wrong, seen = {}, 0
    for entry in corpus.entries(file):
        rule = expected(entry)
        if rule is None:
            continue
        seen += 1
        error = replay(read_entry(json.dumps(entry).encode(), entry["id"]), matcher).error
        found = (type(error).__name__, error.retryable) if isinstance(error, ProviderError) else (repr(error), None)
        if found != rule:
            wrong[entry["id"]] = (found, rule)

    assert seen >= FILES[file], f"only {seen}: the reader has gone blind"
    assert not wrong
