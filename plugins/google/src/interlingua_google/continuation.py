"""How an answer goes on that the service cut at its cap for one request (sheet gemini §6, CONTINUATION).

Never sends anything: the caller asks again with the token.
Applications come in.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.types.messages import Message


def continuation_token(message: Message) -> str | None:
    """Return the token that continues a paused answer, None where there is none or its trace was trimmed.

    Send the conversation without the answer again, with `provider_options={"continuationToken": token}`: what comes
    back goes on where the answer stopped.
    """
    origin, raw = message.metadata.origin, message.metadata.provider_raw
    trace = raw.get("trace") if raw is not None and origin is not None and origin.provider == "google" else None
    token = trace.get("continuationToken") if isinstance(trace, Mapping) else None
    return token if isinstance(token, str) else None
