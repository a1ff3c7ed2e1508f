"""A wire format that a provider does not speak is refused by name, on every installed provider; its own are taken.

The providers are found by entry points, so a new one is asked too.
"""

from __future__ import annotations

import pytest

from interlingua._http.client import Client
from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings

REGISTRY = Registry()
KEYS = [provider.key for provider in REGISTRY.providers()]


@pytest.mark.parametrize("key", KEYS)
def test_the_apis_are_taken_by_name_and_others_refused(key: str) -> None:
    with Client(f"{key}:any", registry=REGISTRY, environ={}) as client:
        for api in REGISTRY.provider(key).connection(ConnectionSettings(environ={})).endpoints:
            assert client.build_request("hi", api=api).api == api
        with pytest.raises(CapabilityError, match=r"no API 'telepathy'( for any)?; available: ") as caught:
            client.build_request("hi", api="telepathy")
    assert caught.value.path == "options.api"
