"""What a recorded failure on these two wires has to become, by a few rules over the raw text.

Nothing of an adapter is imported and no JSON is read into shapes: a rule is a status and a pattern.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple


class Rule(NamedTuple):
    """The first rule that holds decides; `statuses` empty: any."""

    statuses: tuple[int, ...]
    pattern: str
    kind: str
    retryable: bool = False


RULES = (
    # words first: WIRE.md, Errors says to look at the code, not the status alone
    Rule((), r"request too large.*tokens per min", "RateLimitError"),
    Rule((), r"context_length_exceeded|exceed_context_size|(maximum|max) context length", "ContextWindowExceededError"),
    Rule((), r'"insufficient_quota"|credit_balance_exhausted', "QuotaExceededError"),
    Rule((), r"content_filter|responsibleaipolicy", "ContentRefusedError"),
    Rule((), r'"(model_not_found|model_decommissioned|deploymentnotfound)"', "ModelNotFoundError"),
    Rule((400,), r"incorrect api key", "AuthenticationError"),
    Rule((400,), r'"model not found', "ModelNotFoundError"),
    Rule((404,), r"is not supported in this model", "BadRequestError"),
    # a server's own 500 for what it will never do
    Rule((500,), r"requires --jinja|image input is not supported|cannot use both json_schema", "BadRequestError"),
    # an answer that Groq made and refused stands in its error: a BadRequestError with that text
    Rule((200, 400), r'"failed_generation"', "RejectedAnswerError"),
    # then the status
    Rule((400, 422), "", "BadRequestError"),
    Rule((401,), "", "AuthenticationError"),
    Rule((403,), "", "PermissionDeniedError"),
    Rule((404,), "", "ModelNotFoundError"),
    Rule((413,), "", "ContextWindowExceededError"),
    Rule((429,), "", "RateLimitError", True),
    Rule((503, 529), "", "OverloadedError", True),
    Rule((500, 502, 504), "", "ServerError", True),
    # inside a 200
    Rule((200,), r'"invalid_request_error"|"invalid_prompt"', "BadRequestError"),
    Rule((200,), r'"server_error"', "ServerError", True),
)


def expected(entry: dict[str, Any]) -> tuple[str, bool] | None:
    """Return (class name, retryable) of a recorded failure, None for an answer that is none."""
    status = entry["status"] or 200
    text = entry["response_text"] if status >= 400 else failure_in(entry)
    if text is None:
        return None
    said = text.lower()
    for rule in RULES:
        if (not rule.statuses or status in rule.statuses) and re.search(rule.pattern, said, re.DOTALL):
            return rule.kind, rule.retryable
    raise AssertionError(f"no rule for {entry['id']}: {status} {text[:200]}")


def failure_in(entry: dict[str, Any]) -> str | None:
    """Return the text of an error inside a 200: a body or an event with a truthy `error`, or a failed response."""
    text = entry["response_text"]
    if '"error"' not in text:
        return None
    for piece in [text] if entry["kind"] == "json" else re.findall(r"^data: ?(\{.*)$", text, re.MULTILINE):
        found = json.loads(piece)
        response = found.get("response") if isinstance(found, dict) else None
        if isinstance(found, dict) and (found.get("error") or (isinstance(response, dict) and response.get("error"))):
            return str(piece)
    return None
