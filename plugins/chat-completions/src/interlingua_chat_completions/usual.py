"""The short way for the answer most often given: one choice, one text, whole.

Never guesses: whatever else an answer holds sends it through the reader, which makes this very message of the others.
The reader of whole bodies comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.plugins.wire import RequestContext
from interlingua.types.blocks import TextBlock
from interlingua.types.messages import Message
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.extras import BODY_FIELDS, CHOICE_FIELDS, MESSAGE_FIELDS
from interlingua_chat_completions.stop import from_wire_finish
from interlingua_chat_completions.usage import from_wire_usage

_SPOKEN = frozenset(("role", "content"))


def from_wire_usual(body: dict[str, Any], context: RequestContext, dialect: Dialect) -> Message | None:
    """Read a body that holds one text and its token counts and nothing else that is said; None: it is not that."""
    choices, usage, tier = body.get("choices"), body.get("usage"), body.get("service_tier")
    if not (type(choices) is list and len(choices) == 1 and type(usage) is dict and usage) or "error" in body:
        return None
    text = _only_text(choices[0])
    if text is None or not (tier is None or type(tier) is str) or any(name in body for name in dialect.citation_fields):
        return None
    trace = {
        name: value for name, value in body.items() if name not in BODY_FIELDS and value is not None and value != ""
    }
    trace["usage"] = usage
    finish = choices[0]["finish_reason"]
    return context.message(
        (TextBlock(text=text),),
        stop_reason=from_wire_finish(finish, calls=False, refused=False),
        stop_reason_raw=finish,
        usage=from_wire_usage(usage, tier),
        trace=trace,
    )


def _only_text(choice: Any) -> str | None:
    if type(choice) is not dict or choice.get("index") != 0 or not choice.keys() <= CHOICE_FIELDS:
        return None
    message = choice.get("message")
    if choice.get("logprobs") is not None or choice.get("usage") is not None or type(message) is not dict:
        return None
    if not choice.get("finish_reason") or type(choice["finish_reason"]) is not str or "delta" in choice:
        return None
    text = message.get("content")
    if type(text) is not str or not text or not message.keys() <= MESSAGE_FIELDS:
        return None
    if any(value for name, value in message.items() if name not in _SPOKEN):
        return None
    return text
