"""The class of a failed answer by rules over its raw text, each from a service's page, its SDK, or a recording.

Nothing of an adapter is imported and no JSON is read into shapes: a rule is a wire, a status and a pattern.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

RETRYABLE = ("RateLimitError", "OverloadedError", "ServerError")
ANTHROPIC = "SDK types/shared/error_type.py; platform.claude.com/docs/en/api/errors"
OPENAI = "SDK _exceptions.py; developers.openai.com/api/docs/guides/error-codes"
GOOGLE = "SDK errors.py; google.rpc.Code; ai.google.dev/gemini-api/docs/troubleshooting"
BEDROCK = "botocore bedrock-runtime service-2.json"
OPENROUTER = "SDK apierrortype.py; openrouter.ai/docs/api-reference/errors"
COHERE = "docs.cohere.com/reference/errors"
MISTRAL = "SDK errors; docs.mistral.ai/resources/known-limitations"
OLLAMA = "github.com/ollama/ollama api/types.go, server/routes.go"
ZAI = "docs.z.ai/api-reference/api-code"
SEEN = "recorded words"
HTTP = "RFC 9110, 15.5 and 15.6"


class Rule(NamedTuple):
    """A status and a pattern of the text in lower case; the first rule that holds decides.

    Attributes:
        wires: the wires, separated by spaces; empty: all.
        statuses: the statuses of the answer (200: a failure inside a good answer); empty: all.
        pattern: a regular expression.
        kind: the name of the error class.
        source: the page, the SDK's file or the recording that says so.
        final: not retryable although its class is.
    """

    wires: str
    statuses: tuple[int, ...]
    pattern: str
    kind: str
    source: str
    final: bool = False

    @property
    def retryable(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in RETRYABLE and not self.final


_ZAI = r'"code": ?"(?:%s)"'
RULES = (
    # spent credit, whatever its status
    Rule("", (402,), "", "QuotaExceededError", HTTP),
    Rule("", (), r'"insufficient_quota"|credit_balance_exhausted|exceeded_current_quota', "QuotaExceededError", OPENAI),
    Rule("anthropic", (), r"_spend_limit_reached|billing_error", "QuotaExceededError", ANTHROPIC),
    Rule("anthropic openrouter", (400,), "credit balance is too low", "QuotaExceededError",
         "anthropics/claude-code#66314"),
    Rule("chat", (), "used all available credits", "QuotaExceededError", "continuedev/continue#10373"),
    Rule("google", (), "credits are depleted", "QuotaExceededError", "JeffOtano/roni#125"),
    Rule("cohere", (), "api calls / month", "QuotaExceededError", COHERE),
    Rule("zai", (), _ZAI % "1113|1304|1308|1309|1310|1313", "QuotaExceededError", ZAI),
    # Z.AI: the code decides, not the status
    Rule("zai", (), _ZAI % "100[0-4]", "AuthenticationError", ZAI),
    Rule("zai", (), _ZAI % "111[0-2]|1121|1220|1311", "PermissionDeniedError", ZAI),
    Rule("zai", (), _ZAI % "1211", "ModelNotFoundError", ZAI),
    Rule("zai", (), _ZAI % "121[0-5]|122[12]|1231", "BadRequestError", ZAI),
    Rule("zai", (), _ZAI % "1261", "ContextWindowExceededError", ZAI),
    Rule("zai", (), _ZAI % "1300|1301", "ContentRefusedError", ZAI),
    Rule("zai", (), _ZAI % "1302|1303|1305", "RateLimitError", ZAI),
    Rule("zai", (), _ZAI % "1312", "OverloadedError", ZAI),
    Rule("zai", (434,), "", "PermissionDeniedError", ZAI),
    Rule("zai", (435,), "", "BadRequestError", ZAI),
    Rule("zai", (), _ZAI % "1120|1230|1234|500", "ServerError", ZAI),
    # codes and words: the pages say to look at them first
    Rule("", (), r"request too large.*tokens per min", "RateLimitError", OPENAI, final=True),
    Rule("", (), r"context_length_exceeded|exceed_context_size|(maximum|max) context length",
         "ContextWindowExceededError", OPENAI),
    Rule("anthropic", (400,), "prompt is too long", "ContextWindowExceededError", SEEN),
    Rule("google", (400,), "exceeds the maximum number of tokens", "ContextWindowExceededError", SEEN),
    Rule("cohere", (400,), "too many tokens: max tokens", "BadRequestError", COHERE),
    Rule("cohere", (400,), "too many tokens|too_many_tokens", "ContextWindowExceededError", COHERE),
    Rule("bedrock", (), "input is too long", "ContextWindowExceededError", SEEN),
    Rule("", (), r'"?content_filter|responsibleaipolicy|content_policy_violation', "ContentRefusedError", OPENAI),
    Rule("chat responses", (200,), "_policy", "ContentRefusedError", OPENAI),
    Rule("responses", (200,), "data_residency_mismatch", "PermissionDeniedError", "SDK responses/response_error.py"),
    Rule("mistral", (403,), "guardrail", "ContentRefusedError", MISTRAL),
    Rule("openrouter", (403,), "moderation|flagged|violates usage guidelines", "ContentRefusedError",
         OPENROUTER),
    Rule("openrouter", (404,), "no endpoints found that support", "BadRequestError", SEEN),
    Rule("openrouter", (404,), "data policy", "PermissionDeniedError", SEEN),
    Rule("openrouter", (400,), "is not a valid model id", "ModelNotFoundError", SEEN),
    Rule("openrouter", (502,), "provider_unavailable", "OverloadedError", OPENROUTER),
    Rule("", (), r'"(model_not_found|model_decommissioned|deploymentnotfound)"', "ModelNotFoundError", OPENAI),
    Rule("chat responses", (400,), "incorrect api key", "AuthenticationError", SEEN),
    Rule("chat responses", (400,), '"model not found|`m-1.5` does not exist', "ModelNotFoundError", SEEN),
    Rule("chat", (400,), "model not exist", "ModelNotFoundError", "langbot-app/LangBot#1643"),
    Rule("mistral", (400,), '"invalid_model"', "ModelNotFoundError", SEEN),
    Rule("bedrock", (400,), "model identifier is invalid", "ModelNotFoundError", SEEN),
    Rule("bedrock", (403,), "security token included in the request is (invalid|expired)", "AuthenticationError", SEEN),
    Rule("chat", (404,), "is not supported in this model", "BadRequestError", SEEN),
    Rule("chat responses", (500,), r"requires --jinja|image input is not supported|cannot use both json_schema",
         "BadRequestError", SEEN),
    Rule("chat", (200, 400), '"failed_generation"', "RejectedAnswerError", "console.groq.com/docs/errors"),
    Rule("google", (400,), "api_key_invalid", "AuthenticationError", SEEN),
    Rule("google", (400,), "failed_precondition", "PermissionDeniedError", GOOGLE),
    Rule("google", (400,), '"resource_exhausted"', "RateLimitError", SEEN),
    Rule("google", (200,), '"unavailable"', "OverloadedError", GOOGLE),
    Rule("google", (200,), 'blockreason|"safety"', "ContentRefusedError", GOOGLE),
    Rule("google", (200,), "malformed_function_call", "ServerError", GOOGLE),
    Rule("google", (499,), "", "ServerError", GOOGLE, final=True),
    Rule("cohere", (498,), "", "AuthenticationError", COHERE),
    Rule("responses chat", (503,), '"slow_down"', "RateLimitError", OPENAI),
    # then the status
    Rule("", (401,), "", "AuthenticationError", HTTP),
    Rule("", (403,), "", "PermissionDeniedError", HTTP),
    Rule("", (404,), "", "ModelNotFoundError", HTTP),
    Rule("", (408, 409), "", "ServerError", OPENAI),
    Rule("", (413,), "", "ContextWindowExceededError", HTTP),
    Rule("", (429,), "", "RateLimitError", HTTP),
    Rule("", (503, 529), "", "OverloadedError", HTTP),
    Rule("", (400, 422), "", "BadRequestError", HTTP),
    Rule("", (500, 502, 504, 524), "", "ServerError", HTTP),
    # inside a 200
    Rule("", (200,), r'"invalid_request_error"|"invalid_prompt"', "BadRequestError", OPENAI),
    Rule("openrouter", (200,), '"code": ?400', "BadRequestError", SEEN),
    Rule("", (200,), r'"rate_limit_exceeded"', "RateLimitError", OPENAI),
    Rule("", (200,), r'"server_is_overloaded"|server busy|overloaded', "OverloadedError", OPENAI),
    Rule("", (200,), r'unauthorized', "AuthenticationError", OLLAMA),
    Rule("", (200,), r'"status": 404', "ModelNotFoundError", OLLAMA),
    Rule("", (200,), "", "ServerError", OPENAI),
)  # fmt: skip


def rule_of(wire: str, status: int, text: str) -> Rule:
    """Return the rule for a failure.

    Args:
        wire: `chat`, `responses`, or the name of a service with a wire of its own.
        status: the status of the answer; 200 for a failure inside a good one.
        text: the raw body, or the event with the failure.
    """
    said = text.lower()
    for rule in RULES:
        wires, statuses = rule.wires.split() or [wire], rule.statuses or [status]
        if wire in wires and status in statuses and re.search(rule.pattern, said, re.DOTALL):
            return rule
    raise AssertionError(f"no rule for {wire}: {status} {text[:200]}")


def failure_in(entry: dict[str, Any]) -> str | None:
    """Return the text of a recorded failure, None for an answer that is none.

    In a 200 that is a body or an event with a truthy `error`, or a failed response.
    """
    text = str(entry["response_text"])
    if (entry["status"] or 200) >= 400:
        return text
    if '"error"' not in text:
        return None
    for piece in [text] if entry["kind"] == "json" else re.findall(r"^data: ?(\{.*)$", text, re.MULTILINE):
        found = json.loads(piece)
        response = found.get("response") if isinstance(found, dict) else None
        choices = found.get("choices") if isinstance(found, dict) else None
        holders = [found, response, *(choices if isinstance(choices, list) else ())]
        if any(isinstance(holder, dict) and holder.get("error") for holder in holders):
            return str(piece)
    return None
