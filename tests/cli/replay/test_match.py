"""The adapter of an entry is found by its host and endpoint; hosts nobody claims go by endpoint alone."""

from __future__ import annotations

import pytest

from interlingua.errors import UnknownProviderError
from interlingua_cli.replay.exchange import Matcher
from interlingua_cli.replay.source import read_entry
from tests.cli.replay.acme import Acme, line, registry

SERVICES = {
    "acme": Acme(hosts=("api.acme.test",)),
    "acme_eu": Acme(hosts=("eu.api.acme.test", "acme.cloud.test")),
    "compatible": Acme(),
    "local": Acme(hosts=("localhost:9999",)),
    "other": Acme(hosts=("api.other.test",), endpoint="/(messages|v2:talk)"),
}


@pytest.mark.parametrize(
    ("url", "fields", "expected"),
    [
        ("https://api.acme.test/v1/say", {}, "acme"),
        ("https://API.acme.test:443/v1/say?alt=sse", {}, "acme"),
        ("https://eu.api.acme.test/v1/say", {}, "acme_eu"),  # two names fit: the longer one
        ("https://us1-acme.cloud.test/say", {}, "acme_eu"),  # regions stand before a hyphen
        ("https://notapi.acme.test/say", {}, "compatible"),
        ("https://api.other.test/v1/say", {}, "compatible"),  # a known host, an endpoint it does not declare
        ("https://nobody.test/v1/say", {}, "compatible"),
        ("https://nobody.test/v1/say", {"provider": "acme"}, "acme"),  # the recorder's word
        ("http://localhost:9999/v1/say", {}, "local"),
        ("http://localhost:1/v1/say", {}, "compatible"),
        ("https://nobody.test/models/v2:talk", {}, "other"),
        ("https://proxy.test/v1/say/", {}, "compatible"),
        ("https://proxy.test/opaque", {"endpoint": "messages"}, "other"),
        ("", {"endpoint": "say", "provider": "acme"}, "acme"),
    ],
)
def test_match(url: str, fields: dict[str, str], expected: str) -> None:
    match = Matcher(registry(**SERVICES)).match(read_entry(line("{}", url=url, **fields), ""))

    assert match.provider.key == expected
    assert match.api == "say"


def test_an_endpoint_nobody_has_is_an_error() -> None:
    entry = read_entry(line("{}", url="https://api.acme.test/v1/saying"), "")

    with pytest.raises(UnknownProviderError, match=r"api\.acme\.test/v1/saying"):
        Matcher(registry(**SERVICES)).match(entry)
