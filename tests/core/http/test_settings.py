"""Misspelt settings of a client: said at once, for every provider, also one that core has never seen."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import pytest

import interlingua as il
from interlingua._catalogue import ModelInfo
from interlingua.errors import UnknownProviderError
from interlingua.plugins import Connection, ConnectionSettings, Registry, hookimpl
from tests.support.fake_provider import Fake, registry, served


class Choosy(Fake):
    """A third party's plugin that reads two connection options."""

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Return a connection; the version is read with a default, as most plugins do."""
        version = settings.options.get("version", "1")
        headers = {"x-version": version, **({"x-team": settings.options["team"]} if "team" in settings.options else {})}
        return Connection(base_url="http://127.0.0.1:9", headers=headers)


class Copying(Fake):
    """A plugin that takes whatever options there are."""

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Return a connection with a header per option."""
        return Connection(base_url="http://127.0.0.1:9", headers={**settings.options})


def warnings_of(options: Mapping[str, str], caplog: pytest.LogCaptureFixture, plugin: type[Fake] = Choosy) -> list[str]:
    providers = Registry(providers={"acme": plugin()}, entry_points=[])
    with caplog.at_level(logging.WARNING, "interlingua"):
        providers.provider("acme").connection(ConnectionSettings(options=options))
    return [record.getMessage() for record in caplog.records]


def test_an_option_that_no_plugin_looks_at_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of({"version": "2", "taem": "blue"}, caplog) == [
        "provider 'acme' does not use the connection option(s) taem; it reads team, version"
    ]


def test_options_that_are_used_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of({"version": "2", "team": "blue"}, caplog) == []
    assert warnings_of({"anything": "2"}, caplog, Copying) == []


def test_settings_of_a_provider_that_is_not_there_name_the_nearest() -> None:
    with pytest.raises(UnknownProviderError, match="did you mean 'fake'"):
        il.Client(registry=registry(), settings={"fkae": {"api_key": "k"}})


def test_a_setting_that_is_not_there_names_those_there_are() -> None:
    with pytest.raises(il.CallerError, match=r"key.*there are \['api', 'api_key', 'base_url', 'options'\]"):
        il.Client(registry=registry(), settings={"fake": {"key": "k"}})


def test_a_provider_without_a_catalogue_is_not_expected_to_know_its_models(caplog: pytest.LogCaptureFixture) -> None:
    class Local(Fake):
        @hookimpl
        def models(self) -> Sequence[ModelInfo]:
            return ()

    with (
        served() as server,
        il.Client("fake:gemma", api_key="k", base_url=server.url, registry=registry(Local())) as client,
        caplog.at_level(logging.WARNING, "interlingua"),
    ):
        client.send("hi")

    assert caplog.records == []
