"""Typed errors from failed answers of both APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import ProviderError
from interlingua.plugins import WireResponse
from interlingua_chat_completions import errors
from interlingua_chat_completions.dialect import Dialect

# Error codes of a failed response beyond those both wires share (WIRE.md, Errors).
ERROR_CODES = {
    "invalid_prompt": "BadRequestError",
    "bio_policy": "ContentRefusedError",
    "misalignment_policy_violation": "ContentRefusedError",
    "data_residency_mismatch": "PermissionDeniedError",
}
_DIALECT = Dialect(error_codes=ERROR_CODES)
_NO_SUCH_PATH = (404, 405, 501)
_NO_HEADERS: Mapping[str, str] = {}


def from_wire_error(response: WireResponse, api: str = "", *, has_chat: bool = False) -> ProviderError:
    """Return the typed error of a failed answer: by its body, or by its status if the body is not readable.

    Many servers have Chat Completions only: the error of a path that they do not have says how to use it. `has_chat`:
    the provider writes Chat Completions for them, which presets and hosts may not.
    """
    error = errors.from_wire_error(response, _DIALECT)
    if has_chat and api == "responses" and response.status in _NO_SUCH_PATH and error.code is None:
        error.message += "; if this server has no Responses API, use its Chat Completions with api='chat'"
    return error


def from_wire_error_body(
    body: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] = _NO_HEADERS
) -> ProviderError:
    """Return the typed error of an error inside a good answer or a stream; a status below 400 is ignored."""
    failed = status if status is not None and status >= 400 else None
    return errors.from_wire_error_body(body, _DIALECT, status=failed, headers=headers)
