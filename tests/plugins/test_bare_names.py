"""A model's bare name means the provider of its maker, never the first by alphabet."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CallerError


def installed(*keys: str) -> Registry:
    """Return a registry in which these providers alone are installed."""
    every = entry_points()
    kept = [entry for entry in every.select(group="interlingua.providers") if entry.name in keys]
    kept += [entry for entry in every.select(group="interlingua.presets") if entry.name in keys]
    return Registry(entry_points=[*kept, *every.select(group="interlingua.formats")])


@pytest.mark.parametrize(
    ("name", "provider"),
    [("gpt-5-mini", "openai"), ("gpt-4o", "openai"), ("o3", "openai"), ("claude-haiku-4-5", "anthropic"),
     ("claude-opus-4-5", "anthropic"), ("gemini-2.5-flash", "google")],
)  # fmt: skip
def test_a_bare_name_means_the_makers_own_provider(name: str, provider: str) -> None:
    assert Registry().resolve(name).provider == provider


def test_a_host_alone_is_meant() -> None:
    assert str(installed("azure").resolve("gpt-4o")) == "azure:gpt-4o"


@pytest.mark.parametrize(
    ("keys", "name", "candidates"),
    [(("azure", "vertex"), "claude-opus-4-5", r"azure:claude-opus-4-5\S*, vertex:"),
     (("groq", "openrouter", "together"), "openai/gpt-oss-120b", "groq:openai/gpt-oss-120b, openrouter:")],
)  # fmt: skip
def test_several_hosts_without_the_maker_are_named(keys: tuple[str, ...], name: str, candidates: str) -> None:
    with pytest.raises(CallerError, match=candidates):
        installed(*keys).resolve(name)


def test_no_bare_name_depends_on_the_order_of_providers() -> None:
    registry = Registry()
    makers = {info.maker for provider in registry.providers() for info in provider.models()} - {None}
    for provider in registry.providers():
        for info in provider.models():
            if info.maker not in (None, provider.key):
                assert registry.resolve(info.id).provider == info.maker
    assert makers == {"anthropic", "deepseek", "google", "openai", "xai"}
