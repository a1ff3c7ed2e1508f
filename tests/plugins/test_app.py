"""What applications keep on a message is in no request, on every installed provider."""

from __future__ import annotations

import attrs
import pytest

from interlingua._http.client import Client
from interlingua._plugins.registry import Registry
from interlingua.types import MessageMetadata, assistant, user

REGISTRY = Registry()
NOTES = MessageMetadata(app={"acme-notes": {"rating": 5, "word": "never-sent"}})  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [provider.key for provider in REGISTRY.providers()])
def test_it_is_not_sent_and_changes_no_request(key: str) -> None:
    bare = [user("hi"), assistant("yes"), user("and?")]
    with Client(f"{key}:any", registry=REGISTRY, environ={}) as client:
        noted = client.build_request([attrs.evolve(one, metadata=NOTES) for one in bare])

        assert noted.body == client.build_request(bare).body
    assert b"never-sent" not in noted.body
