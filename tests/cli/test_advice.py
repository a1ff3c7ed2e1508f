"""An error of a service is one line that ends with what to do about it; a mistake of one's own says so already."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    CallerError,
    ContextWindowExceededError,
    InterlinguaError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    StreamInterruptedError,
)
from interlingua.types import assistant
from interlingua_cli.output import advise
from interlingua_cli.state import State
from tests.cli.conftest import Run
from tests.cli.local import LocalServer


def failed(kind: type[InterlinguaError], status: int | None, **facts: object) -> InterlinguaError:
    return kind("no", provider="acme", model="m", status=status, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (failed(ModelNotFoundError, 404), "interlingua models acme --live"),
        (failed(ContextWindowExceededError, 400), "interlingua models acme"),
        (failed(RateLimitError, 429, retry_after=7.5), "in 7.5 s"),
        (failed(RateLimitError, 429), "in a while"),
        (failed(OverloadedError, 529), "later"),
        (failed(MalformedResponseError, 200), "the address"),
        (failed(StreamInterruptedError, None), "the address"),
        (failed(StreamInterruptedError, None, partial=assistant("one")), "ask again"),
    ],
)  # fmt: skip
def test_what_to_do(home: Path, error: InterlinguaError, said: str) -> None:
    assert said in str(advise(State(), error))


def test_what_says_it_already_gets_no_advice(home: Path) -> None:
    for error in (failed(BadRequestError, 400), CallerError("name a model"), failed(AuthenticationError, None)):
        assert advise(State(), error) is None


def test_a_refused_key_is_told_by_its_variable(run: Run, server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other-key-for-tests")
    own, known = run("send", "here:refused", "hi"), run("send", "anthropic:refused", "hi", "--url", server.url)

    assert "is the key in MY_OWN_KEY right" in own.stderr.splitlines()[-1]
    assert "is the key in ANTHROPIC_API_KEY right" in known.stderr.splitlines()[-1]
    assert "key-for-tests" not in own.stderr + known.stderr
