"""Which class of error a type, a code or a sentence of a failure leads to, in each place where services write it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.errors import InterlinguaError, ProviderError
from interlingua.plugins import WireResponse, error_class_for_status
from interlingua_contract.recordings import Frames, read_stream
from interlingua_contract.rule import NotApplicable
from interlingua_contract.subject import Subject

_STATUSES = (400, 429, 500)
_SAYS = "it failed"

_TYPES = (
    *("invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error"),
    *("request_too_large", "conflict_error", "rate_limit_error", "api_error", "timeout_error", "overloaded_error"),
    *("enforced_spend_limit_reached", "context_length_exceeded", "exceed_context_size_error", "insufficient_quota"),
    *("billing_hard_limit_reached", "insufficient_balance", "payment_required", "exceeded_current_quota_error"),
    *("rate_limit_exceeded", "too_many_requests", "server_is_overloaded", "overloaded", "engine_overloaded_error"),
    *("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "model_not_found"),
    *("DeploymentNotFound", "invalid_api_key", "permission_denied", "unsupported_country_region_territory"),
    *("server_error", "internal_server_error", "timeout", "invalid_prompt", "bio_policy", "data_residency_mismatch"),
    *("provider_overloaded", "provider_unavailable", "payload_too_large", "image_too_large", "max_tokens_exceeded"),
    *("token_limit_exceeded", "precondition_failed", "not_found", "refusal", "invalid_model", "tool_use_failed"),
    *("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"),
    *("RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNKNOWN", "UNAVAILABLE", "API_KEY_INVALID"),
    *("API_KEY_EXPIRED", "ACCESS_TOKEN_EXPIRED", "BILLING_DISABLED", "TOO_MANY_TOKENS"),
    *("AccessDeniedException", "ExpiredTokenException", "IncompleteSignature", "InternalServerException"),
    *("InvalidClientTokenId", "InvalidSignatureException", "MissingAuthenticationToken", "ModelErrorException"),
    *("ModelNotReadyException", "ModelStreamErrorException", "ModelTimeoutException", "ResourceNotFoundException"),
    *("ServiceQuotaExceededException", "ServiceUnavailableException", "ThrottlingException", "throttlingException"),
    *("ThrottlingException:http://internal/", "com.amazon.coral.service#ThrottlingException", "ValidationException"),
    *("UnrecognizedClientException", "1001", "1113", "1211", "1261", "1301", "1302", "1305"),
)
"""Types and codes of errors, as services document them."""

_SENTENCES = (
    "prompt is too long: 9 tokens > 8 maximum",
    "Input is too long for requested model.",
    "This model's maximum context length is 8 tokens.",
    "The input token count (9) exceeds the maximum number of tokens allowed (8).",
    "too many tokens: 9",
    "the prompt exceeds the context length",
    "Your credit balance is too low to access the API.",
    "Your prepayment credits are depleted.",
    "Insufficient Balance",
    "You exceeded your current quota, please check your plan and billing details.",
    "Incorrect API key provided",
    "API key not valid. Please pass a valid API key.",
    "model 'contract' not found",
    "The model `contract` does not exist.",
    "The provided model identifier is invalid.",
    "server busy, please try again",
    "The security token included in the request is expired",
)
"""Messages that decide where no type does."""


_HEADERS = ("x-amzn-errortype",)
_OF_TYPES = (
    *("error.type", "error.code", "error.status", "error.details.reason", "error.details.error_code"),
    *("error.metadata.error_type", "error.innererror.code", "__type", "code", "type", "error_type"),
)
_OF_SENTENCES = ("error.message", "error", "message")
_EVENT = "event"
_IN_STREAMS = ("error.type", "error.code", "error.status", *_OF_SENTENCES, _EVENT)
_NO_WORD = "contract_word"


def observe_error_words(subject: Subject, known: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return API -> word -> classes with the places that lead to them; words without an effect are left out.

    Args:
        subject: the provider.
        known: API -> word -> anything; words that the author wrote are tried too.
    """
    return {api: dict(_facts(_Failures(subject, api), known.get(api, {}))) for api in subject.apis}


def _facts(failures: _Failures, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for word in dict.fromkeys((*_TYPES, *_SENTENCES, *known)):
        classes: dict[str, list[str]] = {}
        for place in _OF_SENTENCES if " " in word else (*_HEADERS, *_OF_TYPES, _EVENT):
            whole = [] if place == _EVENT else list(failures.classes(place, word))
            streamed = failures.streamed_class(place, word) if place in _IN_STREAMS else ""
            if whole == [streamed]:
                whole, streamed = [f"{streamed}, streamed too"], ""
            for shown in (*whole, *([f"{streamed} if streamed"] if streamed else [])):
                classes.setdefault(shown, []).append(place)
        if classes:
            yield word, " | ".join(f"{shown}: {', '.join(places)}" for shown, places in classes.items())


class _Failures:
    """Failures of one API with a word in one place."""

    def __init__(self, subject: Subject, api: str) -> None:
        self._subject = subject
        self._api = api
        streams = [one for one in subject.exchanges if one.good and one.streamed and subject.api_of(one) == api]
        self._stream = streams[0] if streams else None
        self._frames = Frames(subject, streams[0]) if streams else None
        self._usual: dict[str, str] = {}

    def classes(self, place: str, word: str) -> Iterator[str]:
        """Yield the classes that a word leads to, each with its statuses if the status decides too."""
        found: dict[str, list[int]] = {}
        for status in _STATUSES:
            headers = {place: word} if place in _HEADERS else {}
            response = WireResponse(status=status, headers=headers, body=_body(place, word))
            error = self._subject.provider.from_wire_error(response, self._subject.context_for(self._api, "m"))
            found.setdefault(_show(error), []).append(status)
        for shown, statuses in found.items():
            if len(found) == 1:
                yield shown
            elif changed := [status for status in statuses if error_class_for_status(status).__name__ != shown]:
                yield f"{shown} at {' '.join(map(str, changed))}"

    def streamed_class(self, place: str, word: str) -> str:
        """Return the class of an error event with a word; empty if any word leads to it."""
        if place not in self._usual:
            self._usual[place] = self._read(place, _NO_WORD)
        shown = self._read(place, word)
        return "" if shown == self._usual[place] else shown

    def _read(self, place: str, word: str) -> str:
        if self._frames is None or self._stream is None:
            return ""
        try:
            event = self._frames.event(_body(place, word), word if place == _EVENT else "error")
        except NotApplicable:  # a framing that cannot be written
            return ""
        read = read_stream(self._subject, self._stream, self._frames.join([event]))
        return _show(read.error) if isinstance(read.error, ProviderError) else ""


def _body(place: str, word: str) -> bytes:
    body: dict[str, Any] = {"message": _SAYS}
    first, *inner = place.split(".")
    if place in _OF_SENTENCES[1:] or (not inner and place not in (*_HEADERS, _EVENT)):
        body = {**body, place: word} if place != "error" else {"error": word}
    elif inner:
        held: Any = {inner[-1]: word}
        if len(inner) > 1:
            held = {inner[0]: [held] if inner[-1] == "reason" else held}
        body = {first: {"message": _SAYS, **held}}
    return json.dumps(body).encode()


def _show(error: InterlinguaError) -> str:
    usual = error.retryable is type(error).default_retryable
    return type(error).__name__ + ("" if usual else f" (retryable: {error.retryable})")
