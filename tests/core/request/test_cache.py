"""What a client remembers of conversations: bounded in number and bytes, gone when it closes, never in a message."""

from __future__ import annotations

import base64
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import attrs
import pytest

import interlingua as il
from interlingua._request.conversation import ConversationCache, ConversationState
from interlingua.types import Message, user
from tests.core.request import scene
from tests.support.fake_provider import CAPABLE, Fake, registry, served
from tests.support.loopback import loopback, send_bytes

TARGET = scene.target()
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def sent(cache: ConversationCache, messages: list[Message], size: int = 10) -> ConversationState:
    with cache.claim(messages) as conversation:
        conversation.check()
        conversation.project(TARGET, messages)
        conversation.note_written(TARGET, size)
    return conversation


def test_the_last_conversations_are_kept_and_no_more() -> None:
    cache = ConversationCache(size=2)
    first, second, third = [user("1")], [user("2")], [user("3")]
    kept = [sent(cache, messages) for messages in (first, second, first, third)]

    assert kept[0] is kept[2]
    assert sent(cache, [*first, user("more")]) is kept[0]
    assert sent(cache, [*second, user("more")]) is not kept[1]


@pytest.mark.parametrize(
    ("sizes", "left"), [((30, 30, 30), 3), ((50, 30, 30), 2), ((30, 30, 80), 1), ((10, 10, 101), 0)]
)
def test_written_pieces_are_bounded_and_the_oldest_go_first(sizes: tuple[int, ...], left: int) -> None:
    cache = ConversationCache(max_bytes=100)
    conversations = [[user(str(size))] for size in sizes]
    kept = [sent(cache, messages, size) for messages, size in zip(conversations, sizes, strict=True)]
    again = [cache.claim(messages) for messages in conversations]

    assert [one is other for one, other in zip(kept, again, strict=True)] == [False] * (3 - left) + [True] * left


def test_a_grown_conversation_counts_once() -> None:
    cache = ConversationCache(max_bytes=100)
    messages = [user("0")]
    first = sent(cache, messages, 20)
    for size in (40, 60, 80):
        messages.append(user("more"))
        assert sent(cache, messages, size) is first


@pytest.mark.parametrize("end", [il.Client.forget, il.Client.close])
def test_a_closed_client_has_forgotten(end: Callable[[il.Client], None]) -> None:
    with served() as server:
        client = il.Client("fake:known", api_key="k", base_url=server.url, registry=registry())
        question = user("hi")
        client.send([question])
        with client._shared.conversations.claim([question]) as conversation:
            assert conversation._projections
        end(client)
        client.close()
    assert not client._shared.conversations.claim([question])._projections
    assert not client._shared.prefix_watch._last


def test_a_short_message_keeps_nothing_of_its_conversation() -> None:
    with served() as server:
        client = il.Client("fake:known", api_key="k", base_url=server.url, registry=registry())
        client.send("warm")
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        history = [user(f"{at} " + "x" * 20_000) for at in range(200)]
        short = user("why")
        client.send([*history, short])
        held = tracemalloc.get_traced_memory()[0] - before
        del history
        server.got.clear()  # the test server keeps what it got
        client.close()
        left, end = held, time.monotonic() + 10
        while left > 200_000 and time.monotonic() < end:  # a thread of the server may not have ended yet
            gc.collect()
            left = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert held > 4_000_000
    assert left < 200_000
    assert short.text == "why"


@contextmanager
def pictures() -> Iterator[tuple[str, list[str]]]:
    """Serve a picture under every path; the second value lists the paths that were asked for."""
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        asked.append(handler.path)
        send_bytes(handler, 200, "image/png", PIXEL)

    with loopback(answer) as url:
        yield url, asked


def test_a_cut_conversation_sends_its_images_again_without_fetching_them() -> None:
    inlining = Fake(attrs.evolve(CAPABLE, supports_images=True, supports_image_urls=False))
    with pictures() as (url, asked), served() as server:
        client = il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(inlining), fetch="any")
        with client:
            seen = user([il.image_block(f"{url}/a.png"), il.TextBlock(text="what is it?")])
            first = client.send([seen])
            client.send([seen, first, user("sure?")])
            client.send([seen, first, user("really?")])  # cut and continued
            client.send([seen])  # cut to its beginning
            assert asked == ["/a.png"]
            client.send([attrs.evolve(seen)])  # another message: the picture may have changed
            assert asked == ["/a.png", "/a.png"]
            for name in range(8):  # eight others push it out
                client.send([user([il.image_block(f"{url}/{name}.png")])])
            for name in range(20):
                client.send(f"something else {name}")
            client.send([seen])
            assert asked[2:] == [f"/{name}.png" for name in range(8)] + ["/a.png"]
