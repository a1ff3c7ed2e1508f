"""Adapters that declare what is not so, about models, the service and themselves.

Nothing here is shipped. The shelf comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from tests.contract.broken.machine import Mutant, in_capabilities


def _fresh(inner: Callable[..., Any], **_: Any) -> Any:
    found = inner()
    return attrs.evolve(found, max_output_tokens=found.max_output_tokens)


def _connection(change: Callable[[Any, Any], Any]) -> dict[str, Callable[..., Any]]:
    return {"connection": lambda inner, settings: change(inner(), settings)}


def _two_names(inner: Callable[..., Any]) -> Any:
    models = list(inner())
    return [*models[:-1], attrs.evolve(models[-1], aliases=(models[0].id,))]


def _unpriced(inner: Callable[..., Any]) -> Any:
    return [attrs.evolve(model, pricing_version=None) for model in inner()]


DECLARATIONS = (
    Mutant("audio declared, which the wire has not", "C11", in_capabilities(
        supports_audio=True, accepted_audio_media_types=("audio/wav",))),
    Mutant("video declared without a cassette", "C51", in_capabilities(supports_video=True)),
    Mutant("schemas undeclared, and sent all the same", "C19", in_capabilities(supports_structured_output=False)),
    Mutant("a new declaration for every question", "C45", {"capabilities": _fresh}),
    Mutant("an unknown model taken for known", "C45", in_capabilities(assumed=False)),
    Mutant("one name for two models", "C45", {"models": _two_names}),
    Mutant("prices without a version", "C45", {"models": _unpriced}),
    Mutant("the key in the base URL", "C43", _connection(
        lambda made, settings: attrs.evolve(made, base_url=f"{made.base_url}?key={settings.api_key}"))),
    Mutant("the key in the public headers", "C43", _connection(
        lambda made, settings: attrs.evolve(made, headers={**made.headers, "x-key": settings.api_key or ""}))),
    Mutant("plain http", "C44", _connection(
        lambda made, _: attrs.evolve(made, base_url="http://api.example.com"))),
    Mutant("another base URL ignored", "C44", _connection(
        lambda made, _: attrs.evolve(made, base_url="https://api.example.com"))),
    Mutant("no endpoints", "C44", _connection(lambda made, _: attrs.evolve(made, endpoints={}))),
)  # fmt: skip
