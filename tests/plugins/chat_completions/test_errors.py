"""Failed answers to typed errors (WIRE.md, Errors; case 26; shapes seen in recorded traffic)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua import errors
from interlingua.errors import ProviderError
from interlingua.plugins import WireResponse
from tests.plugins.chat_completions.support import context, preset, provider


def failed(status: int, answer: Any, headers: dict[str, str] | None = None) -> ProviderError:
    raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return provider().from_wire_error(WireResponse(status=status, headers=headers or {}, body=raw), context())


def coded(code: Any, kind: str | None = None, message: str = "text") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(("status", "answer", "name"), [
    (400, coded("unsupported_parameter", "invalid_request_error"), "BadRequestError"),
    (400, coded("context_length_exceeded", "invalid_request_error"), "ContextWindowExceededError"),
    (400, coded(400, "exceed_context_size_error"), "ContextWindowExceededError"),
    (400, coded(400, "too_many_prompt_tokens"), "ContextWindowExceededError"),
    (400, coded("model_decommissioned", "invalid_request_error"), "ModelNotFoundError"),
    (400, coded("content_filter"), "ContentRefusedError"),
    (401, coded("invalid_api_key", "invalid_request_error"), "AuthenticationError"),
    (401, coded(None, "api_error"), "AuthenticationError"),
    (403, coded("unsupported_country_region_territory"), "PermissionDeniedError"),
    (404, coded("model_not_found", "invalid_request_error"), "ModelNotFoundError"),
    (404, {"error": "Specified model not found"}, "ModelNotFoundError"),
    (404, {"code": "Some requested entity was not found", "error": "deprecated"}, "ModelNotFoundError"),
    (400, {"code": 400, "message": "Validation", "type": "Bad Request"}, "BadRequestError"),
    (422, {"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]}, "BadRequestError"),
    (401, {"detail": "Unauthorized"}, "AuthenticationError"),
    (429, coded("rate_limit_exceeded"), "RateLimitError"),
    (429, coded("slow_down", "rate_limit_error"), "RateLimitError"),
    (503, coded("slow_down"), "RateLimitError"),
    (429, coded("insufficient_quota", "insufficient_quota"), "QuotaExceededError"),
    (429, coded("credit_balance_exhausted"), "QuotaExceededError"),
    (500, coded(None, "server_error"), "ServerError"),
    (503, coded("server_is_overloaded", "service_unavailable_error"), "OverloadedError"),
    (502, b"<html>bad gateway</html>", "ServerError"),
    (500, b"", "ServerError"),
    (400, [{"error": {"message": "in a list", "code": 400}}], "BadRequestError"),
])  # fmt: skip
def test_class(status: int, answer: Any, name: str) -> None:
    error = failed(status, answer)
    assert type(error) is getattr(errors, name)
    assert error.status == status


@pytest.mark.parametrize("status", [400, 413, 429, 500])
@pytest.mark.parametrize("text", [
    "This model's maximum context length is 1048565 tokens. However, you requested 1250025 tokens",
    "prompt too long; exceeded max context length by 1119046 tokens",
    "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
])  # fmt: skip
def test_case_26_overflow_is_recognised_by_its_text(status: int, text: str) -> None:
    error = failed(status, coded(None, "invalid_request_error", text))
    assert type(error) is errors.ContextWindowExceededError
    assert not error.retryable


@pytest.mark.parametrize(("headers", "seconds"), [
    ({"retry-after": "7"}, 7.0), ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5), ({}, None),
])  # fmt: skip
def test_case_26_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    error = failed(429, coded("rate_limit_exceeded"), headers)
    assert (error.retry_after, error.retryable) == (seconds, True)


def test_case_26_the_service_may_say_whether_to_retry() -> None:
    assert not failed(500, coded(None, "server_error"), {"x-should-retry": "false"}).retryable
    assert failed(429, coded("x"), {"x-request-id": "req_1"}).request_id == "req_1"


def test_a_dialect_adds_its_own_codes() -> None:
    target = preset(dialect={"error_codes": {"1113": "QuotaExceededError"}})
    raw = json.dumps({"error": {"code": "1113", "message": "in arrears"}}).encode()
    error = target.from_wire_error(WireResponse(status=429, body=raw), context())
    assert type(error) is errors.QuotaExceededError


@pytest.mark.parametrize(("message", "seconds"), [
    ("Rate limit reached for m on requests per min. Please try again in 20s.", 20.0),
    ("Rate limit reached for m. Please try again in 7.66s. Need more tokens?", 7.66),
    ("Rate limit reached for m. Please try again in 6m0s.", 360.0),
    ("Rate limit reached for m. Please try again in 500ms.", 0.5),
    ("Rate limit reached for m. Please try again later.", None),
])  # fmt: skip
def test_the_wait_of_a_message_counts_where_no_header_has_one(message: str, seconds: float | None) -> None:
    """As OpenAI and Groq write it: https://console.groq.com/docs/rate-limits."""
    assert failed(429, coded("rate_limit_exceeded", message=message)).retry_after == seconds
    assert failed(429, coded("rate_limit_exceeded", message=message), {"retry-after": "3"}).retry_after == 3.0
    assert failed(400, coded(None, message=message)).retry_after is None


@pytest.mark.parametrize("message", [
    "image input is not supported - hint: you may need to provide the mmproj", "tools param requires --jinja flag",
    "Cannot use both json_schema and grammar",
])  # fmt: skip
def test_a_server_error_of_llamacpp_that_every_attempt_would_meet_is_a_bad_request(message: str) -> None:
    raw = json.dumps({"error": {"code": 500, "message": message, "type": "server_error"}}).encode()
    error = provider("llamacpp").from_wire_error(WireResponse(status=500, body=raw), context("llamacpp"))
    assert type(error) is errors.BadRequestError
    assert not error.retryable
