"""Media by reference: files of the workspace and image URLs, made bytes only where they must be."""


# ruff: noqa: SIM117  a server, its client and the failure are three things

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import attrs
import pytest

import interlingua as il
from tests.support.fake_provider import CAPABLE, Fake, Got, Reply, Server, registry, served

PNG = b"\x89PNG\r\n\x1a\n rest"
EMBEDDED = base64.b64encode(PNG).decode()


def image(kind: str, data: str) -> il.Message:
    return il.user([il.ImageBlock(source=il.types.MediaSource(kind=kind, data=data))])  # type: ignore[arg-type]


def images(request: il.plugins.WireRequest) -> list[str]:
    found: list[str] = json.loads(request.body)["images"]
    return found


def test_a_file_of_the_workspace_is_inlined_once(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    message = image("file_ref", "a.png")
    with il.Client("fake:known", registry=registry(), environ={}, workspace=tmp_path) as c:
        assert images(c.build_request([message])) == [EMBEDDED]
        (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n other")
        assert images(c.build_request([message, il.assistant("nice"), il.user("more")])) == [EMBEDDED]


def test_a_workspace_may_be_named_by_text(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    with il.Client("fake:known", registry=registry(), environ={}, workspace=str(tmp_path)) as c:
        assert images(c.build_request([image("file_ref", "a.png")])) == [EMBEDDED]


@pytest.mark.parametrize("reference", ["../b.png", "/etc/hostname", "link.png", "missing.png"])
def test_nothing_outside_the_workspace_is_read(tmp_path: Path, reference: str) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "b.png").write_bytes(PNG)
    (inside / "link.png").symlink_to(tmp_path / "b.png")
    with il.Client("fake:known", registry=registry(), environ={}, workspace=inside) as c:
        with pytest.raises(il.CallerError):
            c.build_request([image("file_ref", reference)])


def test_a_file_without_a_workspace_is_refused() -> None:
    with (
        il.Client("fake:known", registry=registry(), environ={}) as c,
        pytest.raises(il.CallerError, match="workspace"),
    ):
        c.build_request([image("file_ref", "a.png")])


def answer(got: Got) -> Reply:
    return Reply(body=[PNG]) if got.path.endswith(".png") else Reply()


def sent_images(server: Server) -> list[list[str]]:
    return [json.loads(got.body)["images"] for got in server.got if got.path == "/say"]


def test_an_image_url_is_fetched_once_where_the_target_cannot_take_it() -> None:
    with served(choose=answer) as server:
        message = image("url", server.url + "/a.png")
        with il.Client("fake:known", registry=registry(), api_key="k", base_url=server.url, fetch="any") as c:
            c.send([message])
            c.send([message, il.assistant("nice"), il.user("more")])
            assert images(c.build_request([message])) == [EMBEDDED]  # it is here already
        assert [got.path for got in server.got] == ["/a.png", "/say", "/say"]
        assert sent_images(server) == [[EMBEDDED], [EMBEDDED]]
        assert "x-key" not in server.got[0].headers


def test_the_asynchronous_client_fetches_too() -> None:
    async def main(url: str) -> None:
        async with il.AsyncClient("fake:known", registry=registry(), api_key="k", base_url=url, fetch="any") as c:
            await c.send([image("url", url + "/a.png")])

    with served(choose=answer) as server:
        asyncio.run(main(server.url))
    assert sent_images(server) == [[EMBEDDED]]


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_to_wire_fetches_nothing_and_names_what_would_be(kind: str) -> None:
    with served(choose=answer) as server:
        url = server.url + "/a.png"
        messages = [image("url", url)]
        made = getattr(il, kind)("fake:known", registry=registry(), api_key="k", base_url=server.url, fetch="any")

        async def look() -> tuple[il.plugins.WireRequest, int]:
            async with made:
                request = await made.build_request(messages)
                asked = len(server.got)
                await made.send(messages)
                return request, asked

        if kind == "Client":
            with made:
                request, asked = made.build_request(messages), len(server.got)
                made.send(messages)
        else:
            request, asked = asyncio.run(look())
        assert asked == 0
        assert sent_images(server) == [[EMBEDDED]]  # and not the preview
    assert [base64.b64decode(one).decode() for one in images(request)] == [url]
    (row,) = request.losses
    assert (row.path, row.block_type, row.verdict) == ("messages[0]", "image", "rewritten")
    assert url in row.reason


def test_an_image_url_goes_as_it_is_where_the_target_takes_it() -> None:
    fake = Fake(attrs.evolve(CAPABLE, supports_image_urls=True))
    url = "http://127.0.0.1:9/a.png"
    with il.Client("fake:known", registry=registry(fake), environ={}) as c:
        assert images(c.build_request([image("url", url)])) == [url]


def test_a_url_that_gives_no_image_is_the_callers_mistake() -> None:
    with (
        served(Reply(status=404)) as server,
        il.Client("fake:known", registry=registry(), environ={}, fetch="any") as c,
    ):
        with pytest.raises(il.CallerError, match="404"):
            c.send([image("url", server.url)])
