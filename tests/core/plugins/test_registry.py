"""Discovery and loading: lazy, isolated, one key one distribution, versions checked, wrappers around every provider."""

from __future__ import annotations

import importlib.metadata
import logging
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from interlingua._plugins.hookspecs import hookimpl
from interlingua._plugins.registry import Registry
from interlingua.errors import CallerError, PluginError, UnknownProviderError
from interlingua.plugins import build_request
from interlingua.types.blocks import TextBlock
from interlingua.types.events import StreamEvent, TextDelta
from interlingua.types.factories import user
from interlingua.types.options import RequestOptions
from tests.support.fake_provider import STREAM, Fake

EntryPoint = importlib.metadata.EntryPoint
OPTIONS = RequestOptions(model="known")


class Distribution(importlib.metadata.Distribution):
    """A distribution that exists in this test only."""

    def __init__(self, name: str, version: str = "1.0") -> None:
        self._facts = {"Name": name, "Version": version}

    @property
    def metadata(self) -> Any:
        return self._facts

    def read_text(self, filename: str) -> str | None:
        return None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


def entry(group: str, name: str, value: str, distribution: str) -> EntryPoint:
    made = EntryPoint(name=name, value=value, group=f"interlingua.{group}")
    vars(made)["dist"] = Distribution(distribution)
    return made


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[..., types.ModuleType]:
    """Make an importable module of this test's objects."""

    def make(name: str, **members: Any) -> types.ModuleType:
        made = types.ModuleType(name)
        vars(made).update(members)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    return make


def test_a_provider_is_imported_when_it_is_first_asked_for() -> None:
    registry = Registry(entry_points=[entry("providers", "lazy", "no_such_module_at_all:plugin", "dist-lazy")])

    assert list(registry.found()) == ["lazy"]
    with pytest.raises(PluginError, match=r"'lazy' from dist-lazy 1\.0 cannot be loaded: ModuleNotFoundError"):
        registry.provider("lazy")


def test_case_27_a_broken_provider_costs_one_warning_and_the_rest_work(
    module: Callable[..., types.ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    module("good_one", plugin=Fake())
    registry = Registry(
        entry_points=[
            entry("providers", "bad", "no_such_module_at_all:plugin", "dist-bad"),
            entry("providers", "good", "good_one:plugin", "dist-good"),
        ]
    )

    with caplog.at_level(logging.WARNING, "interlingua"):
        keys = [provider.key for provider in registry.providers()]
        again = [provider.key for provider in registry.providers()]

    assert keys == again == ["good"]
    assert len(caplog.records) == 1
    assert "dist-bad 1.0" in caplog.text


def test_case_27_a_broken_plugin_costs_one_warning(
    module: Callable[..., types.ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    module("good_one", plugin=Fake())
    with caplog.at_level(logging.WARNING, "interlingua"):
        registry = Registry(
            entry_points=[
                entry("plugins", "broken", "no_such_module_at_all:plugin", "dist-broken"),
                entry("providers", "good", "good_one:plugin", "dist-good"),
            ]
        )

    assert registry.provider("good").models()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'broken' from dist-broken 1.0" in caplog.text


def test_case_27_importing_core_pulls_in_no_provider_and_no_http_library() -> None:
    """General plugins are loaded with the registry; of them, only the module that the entry point names."""
    code = (
        "import sys, interlingua, interlingua._plugins.registry; interlingua._plugins.registry.Registry().found(); "
        "from importlib.metadata import entry_points; "
        "named = {e.module for e in entry_points(group='interlingua.plugins')}; "
        "named |= {n.partition('.')[0] for n in named}; "
        "heavy = ('httpx', 'cattrs', 'sqlite3', 'click'); "
        "print([n for n in sys.modules if n.startswith(heavy) or n.startswith('interlingua_') and n not in named])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_two_distributions_with_one_key_are_refused() -> None:
    registry = Registry(
        entry_points=[entry("providers", "acme", "a:b", "acme-one"), entry("providers", "acme", "c:d", "acme-two")]
    )

    with pytest.raises(PluginError, match=r"'acme': acme-one 1\.0 and acme-two 1\.0; uninstall one"):
        registry.found()


def test_precedence_is_users_row_then_distribution_then_shipped_row(
    module: Callable[..., types.ModuleType],
) -> None:
    def from_preset(key: str, preset: dict[str, Any]) -> Fake:
        assert (key, preset) == ("acme", {"base_url": "http://mine"})
        return Fake()

    module("formats", from_preset=from_preset, shipped=Fake(), installed=Fake())
    entries = [
        entry("presets", "acme", "formats:shipped", "format-dist"),
        entry("formats", "chatty", "formats:from_preset", "format-dist"),
    ]
    installed = [*entries, entry("providers", "acme", "formats:installed", "acme-dist")]
    presets = {"acme": {"base_url": "http://mine", "format": "chatty"}}

    assert Registry(entry_points=entries).provider("acme").distribution.name == "format-dist"
    assert Registry(entry_points=installed).provider("acme").distribution.name == "acme-dist"
    assert Registry(presets=presets, entry_points=installed).provider("acme").distribution.name == "your configuration"


def test_an_unknown_key_says_what_there_is_and_what_to_do() -> None:
    registry = Registry(providers={"fake": Fake()}, entry_points=[])

    with pytest.raises(UnknownProviderError, match=r"no provider 'nope' is installed \(installed: fake\).*pip install"):
        registry.provider("nope")


def test_a_misspelt_hook_an_unknown_argument_and_a_missing_hook_are_named() -> None:
    class Misspelt(Fake):
        @hookimpl
        def to_wires(self, messages: object) -> None:
            """No such hook."""

    class Unknown(Fake):
        @hookimpl
        def models(self, nonsense: object) -> list[Any]:
            return []

    class Lacking:
        @hookimpl
        def models(self) -> list[Any]:
            return []

    for plugin, why in ((Misspelt(), "to_wires"), (Unknown(), "nonsense"), (Lacking(), "lacks the hook.*to_wire")):
        with pytest.raises(PluginError, match=why):
            Registry(providers={"fake": plugin}, entry_points=[]).provider("fake")


def test_a_hook_that_is_not_callable_is_named() -> None:
    class Wrong:
        observe = 7

    with pytest.raises(PluginError, match="observe is not callable"):
        Registry([Wrong()], entry_points=[])


class Redact:
    """A general plugin: takes a word out of every request, and shouts what comes back."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    @hookimpl(trylast=True)
    def prepare_request(self, messages: Sequence[Any], tools: Any, options: Any) -> Any:
        return [user(one.text.replace("secret", "***")) for one in messages], tools, options

    @hookimpl(wrapper=True)
    def stream_response(self, response_stream: Any, context: Any) -> Any:
        stream: AsyncIterator[StreamEvent] = yield

        async def shout() -> AsyncIterator[StreamEvent]:
            async for event in stream:
                yield TextDelta(index=event.index, text=event.text.upper()) if type(event) is TextDelta else event

        return shout()

    @hookimpl
    def observe(self, event: Any) -> None:
        self.events.append(event)


def test_a_plugin_wraps_every_provider_whenever_it_is_loaded() -> None:
    from interlingua._response.decode import StreamDecoder
    from interlingua._response.framing import framer
    from interlingua.plugins import RequestContext
    from interlingua.types.messages import Origin

    registry = Registry([Redact()], providers={"one": Fake(), "two": Fake()}, entry_points=[])
    for key in ("one", "two"):
        context = RequestContext(origin=Origin(key, "say", "known"))
        decoder = StreamDecoder(registry.provider(key), framer("sse"), context)
        for data in STREAM:
            decoder.feed(data)
        decoder.end()
        assert decoder.message().text == "HELLO"


def test_prepare_request_is_folded_over_all_plugins() -> None:
    class Greet:
        @hookimpl
        def prepare_request(self, messages: Sequence[Any], tools: Any, options: Any) -> Any:
            return [*messages, user("bye secret")], tools, options

    registry = Registry([Greet(), Redact()], providers={"fake": Fake()}, entry_points=[])
    messages, _, _ = registry.provider("fake").prepare([user("a secret")], (), OPTIONS)

    assert [one.text for one in messages] == ["a ***", "bye ***"]


def test_observers_are_told_and_a_failing_one_is_not_in_the_way(caplog: pytest.LogCaptureFixture) -> None:
    class Fails:
        @hookimpl
        def observe(self, event: Any) -> None:
            raise RuntimeError("no")

    redact = Redact()
    Registry([redact], entry_points=[]).observe({"type": "route.decided"})
    with caplog.at_level(logging.WARNING, "interlingua"):
        Registry([Fails()], entry_points=[]).observe({"type": "route.decided"})

    assert redact.events == [{"type": "route.decided"}]
    assert "an observer failed on route.decided" in caplog.text


def test_a_general_plugin_may_wrap_a_providers_hook_but_not_answer_it() -> None:
    class Answers:
        @hookimpl
        def models(self) -> list[Any]:
            return []

    with pytest.raises(PluginError, match="implements models, which only a provider may"):
        Registry([Answers()], entry_points=[])


def test_extra_plugins_load_by_name(module: Callable[..., types.ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    redact = Redact()
    module("extra_plugin", redact=redact)
    monkeypatch.setenv("INTERLINGUA_PLUGINS", "extra_plugin:redact")

    assert Registry(entry_points=[]).plugins == [redact]
    with pytest.raises(PluginError, match="'nowhere' cannot be loaded"):
        Registry(entry_points=[]).load_plugin("nowhere")


def test_a_provider_that_is_not_installed_is_given_with_its_key(module: Callable[..., types.ModuleType]) -> None:
    module("extra_provider", plugin=Fake())
    registry = Registry(entry_points=[])
    registry.load_plugin("acme=extra_provider:plugin")

    assert registry.provider("acme").key == "acme"
    assert registry.plugins == []
    with pytest.raises(PluginError, match="load the plugin as a provider: KEY=MODULE:OBJECT"):
        registry.load_plugin("extra_provider:plugin")


def test_commands_of_plugins_reach_the_command_line() -> None:
    class Adds:
        @hookimpl
        def register_commands(self, cli: Any) -> None:
            cli.append("command")

    commands: list[str] = []
    Registry([Adds()], entry_points=[]).register_commands(commands)

    assert commands == ["command"]


def test_aliases_resolve_to_canonical_ids() -> None:
    registry = Registry(providers={"fake": Fake()}, entry_points=[], aliases={"mine": "fake:known", "short": "mine"})

    assert str(registry.resolve("short")) == "fake:known"
    assert str(registry.resolve("known")) == "fake:known"
    assert str(registry.resolve("fake:a/b:c")) == "fake:a/b:c"
    with pytest.raises(CallerError, match="write <provider>:<model>"):
        registry.resolve("nobody-knows-this")


def test_text_blocks_pass_through_the_facade() -> None:
    provider = Registry(providers={"fake": Fake()}, entry_points=[]).provider("fake")
    request = build_request(provider, [user([TextBlock(text="hi")])], (), OPTIONS)

    assert b'"hi"' in request.body
    assert request.losses == ()


def test_an_unknown_provider_close_to_one_is_asked_about() -> None:
    registry = Registry(entry_points=(), providers={"acme": object(), "other": object()})

    with pytest.raises(UnknownProviderError, match="did you mean 'acme'"):
        registry.provider("amce")
    with pytest.raises(UnknownProviderError, match=r"'zzz' is installed \(installed: acme, other\)"):
        registry.provider("zzz")


def test_a_plugin_without_a_hook_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    Registry(entry_points=()).load_plugin("string")

    assert "'string' implements no hook" in caplog.text


class _Apart(Fake):
    @hookimpl
    def wire_rules(self) -> Any:
        from interlingua_apart.rules import RULES  # type: ignore[import-not-found]

        return RULES


def test_a_hook_that_needs_another_distribution_says_which() -> None:
    provider = Registry(providers={"fake": _Apart()}, entry_points=[]).provider("fake")

    with pytest.raises(PluginError, match=r"provider 'fake': the hook wire_rules failed.*interlingua-apart"):
        provider.call_hook("wire_rules")


def test_a_hook_without_an_answer_is_a_mistake_unless_it_is_optional() -> None:
    provider = Registry(providers={"fake": Fake()}, entry_points=[]).provider("fake")

    assert provider.call_hook("wire_rules", optional=True) is None
    with pytest.raises(PluginError, match="the hook wire_rules returned nothing"):
        provider.call_hook("wire_rules")
