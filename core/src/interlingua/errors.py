"""Every error core raises, as one tree that can be drawn.

InterlinguaError
├── CallerError            a local mistake; nothing was sent
│   └── InvalidConversationError, UnsupportedSchemaError, CapabilityError, UnknownProviderError, DecodeError
├── ProviderError          the remote service answered with a failure
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
    """The root: catch this to catch everything interlingua raises.

    Attributes:
        provider: provider key, where one was involved.
        model: the model asked for, without the provider key.
        status: HTTP status, where there was an answer.
        request_id: the provider's id of the exchange, for its support desk.
        retryable: True when the same request may succeed later.
        retry_after: seconds that the provider asked to wait, or None.
        body: the raw answer body, where there was one.
        partial: the message received so far when a stream had begun; tokens received are never lost.
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
        """Say what happened and where, in one line."""
        model = f"{self.provider}:{self.model}" if self.provider and self.model else self.provider
        facts = [fact for fact in (model, f"HTTP {self.status}" if self.status else None, self.code) if fact]
        if self.request_id:
            facts.append(f"request {self.request_id}")
        if self.retry_after:
            facts.append(f"retry after {self.retry_after:.12g} s")
        return f"{self.message} ({', '.join(facts)})" if facts else self.message

    @property
    def place(self) -> str | None:
        """Where in the input, for errors that point into it; None elsewhere."""
        return getattr(self, "path", None)


class CallerError(InterlinguaError):
    """A local mistake of the caller; nothing was sent."""


class InvalidConversationError(CallerError):
    """A conversation breaks numbered rules of the canonical format; `violations` lists all of them."""

    def __init__(self, violations: Sequence[Any], **facts: Any) -> None:
        self.violations = tuple(violations)
        lines = "; ".join(str(violation) for violation in self.violations[:5])
        more = f" (and {len(self.violations) - 5} more)" if len(self.violations) > 5 else ""
        super().__init__(f"the conversation breaks {len(self.violations)} rule(s): {lines}{more}", **facts)


class _Located(InterlinguaError):
    def __init__(self, message: str, *, path: str = "", **facts: Any) -> None:
        super().__init__(f"{message} (at {path})" if path else message, **facts)
        self.path = path


class UnsupportedSchemaError(_Located, CallerError):
    """A tool's schema is outside the accepted subset (format.md, Tools); `path` is the JSON pointer of the keyword."""


class DecodeError(_Located, CallerError):
    """Stored or imported data is not a canonical value; `path` names the place in it."""


class CapabilityError(_Located, CallerError):
    """The target cannot do what was asked, and dropping it silently would be a lie; `path` names it if a block."""


class UnknownProviderError(CallerError):
    """No installed plugin or configured preset has this provider key."""


class ProviderError(InterlinguaError):
    """The remote service answered with a failure."""


class AuthenticationError(ProviderError):
    """The key is missing, wrong or expired."""


class PermissionDeniedError(ProviderError):
    """The key is good but may not do this."""


class RateLimitError(ProviderError):
    """Too many requests or tokens for now; `retry_after` is the wait in seconds, where the provider gave one."""

    default_retryable = True


class QuotaExceededError(ProviderError):
    """The account's money or plan is used up: waiting does not help."""


class OverloadedError(ProviderError):
    """The service is short of capacity."""

    default_retryable = True


class ContextWindowExceededError(ProviderError):
    """The request does not fit the model's context window."""


class ContentRefusedError(ProviderError):
    """A content filter refused the request without giving a message."""


class BadRequestError(ProviderError):
    """The service found the request wrong."""


class RejectedAnswerError(BadRequestError):
    """The service refused what its own model wrote, for it breaks a schema; `partial` has it."""


class ModelNotFoundError(ProviderError):
    """The service does not have this model, or not for this account."""


class ServerError(ProviderError):
    """The service failed by itself."""

    default_retryable = True


class WireError(InterlinguaError):
    """The protocol broke."""


class MalformedResponseError(_Located, WireError):
    """What arrived is not what the wire format allows; `path` names the place where it is known."""


class StreamInterruptedError(WireError):
    """A stream ended before its terminal event; `partial` holds what was received."""

    default_retryable = True


class APIConnectionError(WireError):
    """Connecting, sending or reading failed, so there is no answer."""

    default_retryable = True


class APITimeoutError(APIConnectionError):
    """A time limit was passed.

    Attributes:
        phase: "connect", or "response" where the first byte, the next chunk or the end did not arrive in time.
    """

    def __init__(self, message: str, *, phase: Literal["connect", "response"] = "response", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.phase = phase


class PluginError(InterlinguaError):
    """A plugin is missing, broken, or answers what its hook may not."""
