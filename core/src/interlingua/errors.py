"""Every error that core raises, as one tree.

InterlinguaError
├── CallerError            a mistake of the caller; nothing was sent
│   └── InvalidConversationError, UnsupportedSchemaError, CapabilityError, UnknownProviderError, DecodeError
├── ProviderError          the service answered with a failure
│   ├── AuthenticationError, PermissionDeniedError, RateLimitError, QuotaExceededError, OverloadedError,
│   │   ContextWindowExceededError, ContentRefusedError, ModelNotFoundError, ServerError
│   └── BadRequestError ── RejectedAnswerError
├── WireError              no readable answer
│   ├── MalformedResponseError, StreamInterruptedError
│   └── APIConnectionError ── APITimeoutError
└── PluginError            a plugin is missing, broken or misbehaves
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal


class InterlinguaError(Exception):
    """Base class of every error that interlingua raises.

    Attributes:
        provider: provider key, or None.
        model: the requested model, without the provider key.
        status: HTTP status, or None without an answer.
        request_id: id that the service gave the request; quote it to its support.
        retryable: True if the same request may succeed later.
        retry_after: delay in seconds that the service requested, or None.
        body: raw body of the answer, or None.
        partial: the message received so far, if a stream had started; received tokens are never lost.
    """

    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        body: bytes | None = None,
        code: str | None = None,
        partial: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.model = model
        self.status = status
        self.request_id = request_id
        self.retryable = self.default_retryable if retryable is None else retryable
        self.retry_after = retry_after
        self.body = body
        self.code = code
        self.partial = partial

    def __str__(self) -> str:
        """Return the message with provider, model, status, code and request id in one line."""
        model = f"{self.provider}:{self.model}" if self.provider and self.model else self.provider
        facts = [fact for fact in (model, f"HTTP {self.status}" if self.status else None, self.code) if fact]
        if self.request_id:
            facts.append(f"request {self.request_id}")
        if self.retry_after:
            facts.append(f"retry after {self.retry_after:.12g} s")
        return f"{self.message} ({', '.join(facts)})" if facts else self.message

    def __repr__(self) -> str:
        """Return the class and the line of `str`, cut after 300 characters."""
        return f"<{type(self).__name__}: {str(self)[:300]}>"

    @property
    def place(self) -> str | None:
        """Place in the input that the error refers to, or None."""
        return getattr(self, "path", None)


class CallerError(InterlinguaError):
    """A mistake of the caller, found before anything was sent."""


class InvalidConversationError(CallerError):
    """A conversation violates numbered rules of the canonical format; `violations` lists all of them."""

    def __init__(self, violations: Sequence[Any], **facts: Any) -> None:
        self.violations = tuple(violations)
        lines = "; ".join(str(violation) for violation in self.violations[:5])
        more = f" (and {len(self.violations) - 5} more)" if len(self.violations) > 5 else ""
        super().__init__(f"the conversation violates {len(self.violations)} rule(s): {lines}{more}", **facts)


class _Located(InterlinguaError):
    def __init__(self, message: str, *, path: str = "", **facts: Any) -> None:
        super().__init__(f"{message} (at {path})" if path else message, **facts)
        self.path = path


class UnsupportedSchemaError(_Located, CallerError):
    """A tool schema uses an unsupported keyword (format.md, Tools); `path` is the JSON pointer of the keyword."""


class DecodeError(_Located, CallerError):
    """Stored or imported data is not a canonical value; `path` is the place of the first fault."""


class CapabilityError(_Located, CallerError):
    """The target cannot do what was requested, and dropping it would change the meaning.

    Attributes:
        path: place in the input.
        hint: what to do instead, with names of other installed models; shown with the error, and not part of
            `message`, which a gateway passes to its callers.
    """

    def __init__(self, message: str, *, hint: str = "", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.hint = hint

    def __str__(self) -> str:
        """Return the message with its facts and the hint in one line."""
        return f"{super().__str__()}; {self.hint}" if self.hint else super().__str__()


class UnknownProviderError(CallerError):
    """No installed plugin and no configured preset has this provider key."""


class ProviderError(InterlinguaError):
    """The service answered with a failure.

    Attributes:
        refuses_thinking: the service refused thinking of earlier answers because it belongs to another conversation;
            the client sends the request once more without it.
    """

    refuses_thinking: bool = False


class AuthenticationError(ProviderError):
    """The key is missing, wrong or expired."""


class PermissionDeniedError(ProviderError):
    """The key is valid but lacks permission for this request."""


class RateLimitError(ProviderError):
    """Too many requests or tokens at the moment; `retry_after` is the requested delay in seconds, if there is one."""

    default_retryable = True


class QuotaExceededError(ProviderError):
    """The budget or plan of the account is used up; waiting does not help."""


class OverloadedError(ProviderError):
    """The service is overloaded."""

    default_retryable = True


class ContextWindowExceededError(ProviderError):
    """The request does not fit the model's context window."""


class ContentRefusedError(ProviderError):
    """A content filter rejected the request, and there is no message."""


class BadRequestError(ProviderError):
    """The service rejected the request as invalid."""


class RejectedAnswerError(BadRequestError):
    """The service rejected the output of its model because it violates a schema; `partial` holds it."""


class ModelNotFoundError(ProviderError):
    """The service does not offer this model, or not to this account."""


class ServerError(ProviderError):
    """The service failed internally."""

    default_retryable = True


class WireError(InterlinguaError):
    """No readable answer arrived."""


class MalformedResponseError(_Located, WireError):
    """The answer is not valid in the API of the service; `path` is the place, if known."""


class StreamInterruptedError(WireError):
    """A stream ended before its terminal event; `partial` holds the received part."""

    default_retryable = True


class APIConnectionError(WireError):
    """Connecting, sending or reading failed; if `phase` is "connect", nothing was sent, and otherwise "response"."""

    default_retryable = True

    def __init__(self, message: str, *, phase: Literal["connect", "response"] = "response", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.phase = phase


class APITimeoutError(APIConnectionError):
    """A time limit was exceeded; `phase` is "response" for the first byte, the next chunk and the end."""


class PluginError(InterlinguaError):
    """A plugin is missing or broken, or returns a value that its hook does not allow."""
