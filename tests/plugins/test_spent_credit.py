"""Spent credit at every host, and the delay that a failed answer asks for, by each installed provider."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlingua import Registry
from interlingua.errors import OverloadedError, ProviderError, QuotaExceededError, RateLimitError
from interlingua.plugins import RequestContext, WireResponse
from interlingua.types import Origin

REGISTRY = Registry()
ANSWERS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("spent_credit.toml").read_text("utf-8"))[
    "answer"
]
KEYS = [key for key in REGISTRY.found() if key not in ("fake", "parrot")]


def error_of(origin: Origin, status: int, body: str, **headers: str) -> ProviderError:
    """Return the error of a failed answer, as the provider's plugin reads it."""
    context = RequestContext(origin=origin, message_id="01K000000000000000000000AA")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = WireResponse(status=status, headers=named, body=body.encode())
    return REGISTRY.provider(origin.provider).from_wire_error(answer, context)


def origin_of(key: str) -> Origin:
    """Return a model of a provider and the API that it is asked by."""
    provider = REGISTRY.provider(key)
    model = next((info.id for info in provider.models()), "a-model")
    return Origin(key, provider.capabilities(model).api, model)


@pytest.mark.parametrize(
    ("host", "answer"),
    [(host, answer) for answer in ANSWERS for host in answer["hosts"]],
    ids=[f"{host} {answer['status']}" for answer in ANSWERS for host in answer["hosts"]],
)
def test_spent_credit_is_not_retried(host: str, answer: dict[str, Any]) -> None:
    error = error_of(Origin(*host.split()), answer["status"], answer["body"])

    assert type(error) is QuotaExceededError, answer["source"]
    assert not error.retryable
    assert error.status == answer["status"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("body", ["", "{}", '{"error":{"message":"no"}}', '{"message":"no"}', "<html>no</html>"])
def test_402_means_spent_credit_everywhere(key: str, body: str) -> None:
    error = error_of(origin_of(key), 402, body)

    assert (type(error), error.retryable) == (QuotaExceededError, False)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("given", "seconds"),
    [({"retry_after": "7"}, 7.0), ({"retry_after_ms": "1500"}, 1.5), ({"retry_after": "-1"}, 0.0), ({}, None)]
    + [({"retry_after": odd}, None) for odd in ("nan", "inf", "-inf", "1e400", "soon", "")],
)  # fmt: skip
def test_the_delay_is_a_finite_number_or_none(key: str, given: dict[str, str], seconds: float | None) -> None:
    for status, kinds in ((429, (RateLimitError,)), (503, (OverloadedError,))):
        error = error_of(origin_of(key), status, '{"error":{"message":"later"}}', **given)
        assert isinstance(error, kinds)
        assert error.retryable
        assert error.retry_after == seconds
