"""What a person can do about an error, where the error itself does not say it.

Never changes what an error says and never shows a key, only the name of the variable that holds it.
The group and the chats come in, and commands of plugins, to print an error.
"""

from __future__ import annotations

import click

from interlingua.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextWindowExceededError,
    InterlinguaError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from interlingua.plugins.wire import ConnectionSettings
from interlingua_cli.state import State

_BUSY = "the service has trouble of its own: ask again later"


_ODD = "nothing that came is an answer: is the address that of an API?"


_ADVICE: dict[type[InterlinguaError], str] = {
    PermissionDeniedError: "the key may not do this there; `interlingua models {} --live` lists what it may use",
    ModelNotFoundError: "`interlingua models {} --live` lists what the service has",
    ContextWindowExceededError: "`interlingua models {}` shows what each model holds",
    ContentRefusedError: "a content filter refused this: say it in other words, or ask another model",
    QuotaExceededError: "the account's money or plan is used up, and waiting does not help",
    OverloadedError: _BUSY,
    ServerError: _BUSY,
    MalformedResponseError: _ODD,
}


def print_error(state: State, error: Exception) -> None:
    """Print an error on one line of stderr, with what to do about it where that helps."""
    where = isinstance(error, OSError) and error.filename and error.strerror
    text = f"{error.filename}: {error.strerror}" if where else str(error)  # type: ignore[attr-defined]
    advice = advice_on(state, error) if isinstance(error, InterlinguaError) else None
    click.echo(f"error: {' '.join((f'{text}; {advice}' if advice else text).split())}", err=True)


def advice_on(state: State, error: InterlinguaError) -> str | None:
    """Return what to do about what a service answered; None where the error says it, or nobody knows."""
    if error.provider is None:
        return None
    if isinstance(error, StreamInterruptedError):
        begun = error.partial is not None and error.partial.content
        return "the answer is not whole: ask again" if begun else _ODD
    if error.status is None:
        return None
    if isinstance(error, AuthenticationError):
        variable = _key_variable(state, error.provider)
        return f"is the key in {variable} right, and meant for this service?" if variable else None
    if isinstance(error, RateLimitError):
        wait = f"in {error.retry_after:g} s" if error.retry_after else "in a while"
        return f"too much was asked for in a short time: ask again {wait}"
    return next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "").format(error.provider) or None


def _key_variable(state: State, provider: str) -> str | None:
    """Return the name of the variable that the provider's key was taken from, or would be."""
    own: str | None = state.config.providers.get(provider, {}).get("api_key_env")
    if own:
        return own
    try:
        looked_at = state.registry.provider(provider).connection(ConnectionSettings(environ=state.environ)).env
    except InterlinguaError:
        return None
    keys = [name for name in looked_at if "KEY" in name or "TOKEN" in name]
    return next((name for name in keys if state.environ.get(name)), keys[0] if keys else None)
