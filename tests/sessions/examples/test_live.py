"""The worked examples through a real store, live against a llama.cpp server of its own."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlingua._http.client import Client
from interlingua.types.factories import user
from interlingua.types.messages import MessageStatus, RoutingMode
from interlingua_cli.demo.session import local_scenario
from interlingua_sessions import Store, open_store
from interlingua_sessions.routing.policy import SwapRefusedError
from tests.sessions.examples.course import SWAP, check_tool_turn, opened, read_a_file
from tests.tools.local_server import files
from tests.tools.local_server.server import LocalServer

ABSENT = files.missing()
pytestmark = [pytest.mark.live, pytest.mark.skipif(ABSENT is not None, reason=ABSENT or "")]
PROJECT = Path(__file__).resolve().parents[3]
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LocalServer() as server:
        yield server.url


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "sessions.db") as opened_store:
        yield opened_store


def test_examples_1_to_4(url: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)  # the demo's cast is found from there
    cast = local_scenario(url)
    one, other = cast.models
    keys = {key: {**settings, "api_key": "k"} for key, settings in cast.settings.items()}
    with Client(settings=keys, environ={}) as client:
        with opened(store, client, cast, "sess_41").stream("Say hello.", max_tokens=8) as stream:
            hello = stream.message
        assert hello.text
        assert hello.metadata.status is MessageStatus.COMPLETE
        assert hello.metadata.routing is not None
        assert hello.metadata.routing.reason == "workspace default"

        session = opened(store, client, cast)
        read_a_file(session, cast.turns[0].text)
        check_tool_turn(store, session, one, mode=RoutingMode.DEFAULT)
        session.switch(other, reason=SWAP)
        read_a_file(session, cast.turns[1].text)
        check_tool_turn(store, session, other, mode=RoutingMode.MANUAL)

        session.add(user("", images=[PIXEL]))
        with pytest.raises(SwapRefusedError, match="session contains images that this model can't process"):
            session.switch(_text_only(client))
        assert session.active_model == other
    assert [entry for entry in store.verify() if not entry.repairable] == []


def _text_only(client: Client) -> str:
    """Return a model whose catalogue entry says that it takes no images."""
    for provider in client.registry.providers():
        for info in provider.models():
            if not provider.capabilities(info.id).supports_images:
                return f"{provider.key}:{info.id}"
    pytest.fail("no catalogue has a model without images")
