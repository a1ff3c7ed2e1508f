"""Uploads that do not end well: time limits, callers who leave, redirects, processes that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest

from interlingua import AsyncClient, Client, Retry
from interlingua.errors import APITimeoutError, BadRequestError, ServerError
from interlingua.plugins import Connection, HttpRequest, KeyExchange
from interlingua_uploads import Uploads
from interlingua_uploads.uploads import _account
from tests.support.fake_provider import Reply
from tests.support.fake_provider import served as served_replies
from tests.uploads.file_service import KEY, Service
from tests.uploads.test_uploads import BOTH, MODELS, PDF, Run, blocking, question, settings


@BOTH
def test_the_time_of_a_call_has_its_uploads(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.uploads.test_uploads.settings", partial(settings, timeout=0.4))
    began = time.monotonic()
    with Service("anthropic") as service:
        service.stored = lambda: time.sleep(2.0)
        with pytest.raises(APITimeoutError, match=r"content\[1\]: the document could not be uploaded.*total=0\.4 s"):
            run("anthropic", service, Uploads(above=1000), [question()])
        assert time.monotonic() - began < 1.9
        assert service.asked == []


def test_a_wait_beyond_the_time_of_the_call_is_not_begun() -> None:
    began = time.monotonic()
    with Service("anthropic") as service:
        service.refusals = [503]
        own = settings("anthropic", service, Uploads(above=1000), timeout=5.0) | {"retry": Retry(initial_delay=60.0)}
        with Client(MODELS["anthropic"], **own) as client, pytest.raises(ServerError):
            client.send([question()])
    assert time.monotonic() - began < 4


def test_a_file_that_is_not_ready_in_time_is_deleted() -> None:
    with Service("google", processing=10**6) as service:
        own = settings("google", service, uploads := Uploads(above=1000), timeout=1.0)
        with Client(MODELS["google"], **own) as client, pytest.raises(APITimeoutError, match="has not read the file"):
            client.send([question()])

    assert (service.deleted, uploads.files, service.asked) == (["file-1abc"], (), [])


def test_a_caller_who_leaves_deletes_a_file_that_is_not_ready() -> None:
    async def run() -> None:
        async with AsyncClient(MODELS["google"], **settings("google", service, uploads)) as client:
            with anyio.move_on_after(0.5):
                await client.send([question()])

    with Service("google", processing=10**6) as service:
        uploads = Uploads(above=1000)
        asyncio.run(run())

    assert (service.deleted, uploads.files) == (["file-1abc"], ())


@pytest.mark.parametrize("own", [False, True], ids=["our transport", "a caller's httpx"])
def test_an_upload_is_not_redirected(own: bool) -> None:
    with served_replies() as foreign, httpx.Client(follow_redirects=True) as theirs:
        moved = Reply(status=307, headers={"location": f"{foreign.url}/v1/files"}, body=(b"",))
        with served_replies(moved) as server:
            settings = {"anthropic": {"api_key": KEY, "base_url": server.url}}
            with Client(
                MODELS["anthropic"], settings=settings, environ={}, uploads=Uploads(above=0),
                http_client=theirs if own else None,
            ) as client, pytest.raises(BadRequestError, match="redirects are not followed"):  # fmt: skip
                client.send([question()])
    assert foreign.got == []


SEND = """
import sys
from interlingua import Client, user
from interlingua_uploads import Uploads
url, key, memory, document = sys.argv[1:]
own = {"anthropic": {"api_key": key, "base_url": url}}
with Client("anthropic:claude-haiku-4-5", settings=own, environ={}, uploads=Uploads(memory, above=1000)) as client:
    print(client.send([user("Who signed?", documents=[open(document, "rb").read()])]).text)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills by SIGKILL")
def test_a_process_that_is_killed_before_it_remembers_an_upload(tmp_path: Path) -> None:
    """The next one reads the memory and uploads again; the file of the first stays at the service, unknown."""
    memory, document = tmp_path / "uploads.jsonl", tmp_path / "contract.pdf"
    document.write_bytes(PDF)
    with Service("anthropic") as service:
        blocking("anthropic", service, Uploads(memory, above=1000), [question(PDF + b"other")])
        command = [sys.executable, "-c", SEND, service.url, KEY, str(memory), str(document)]
        with subprocess.Popen(command) as first:
            service.stored = lambda: os.kill(first.pid, signal.SIGKILL)
        assert first.returncode == -signal.SIGKILL
        assert [file.id for file in Uploads(memory).files] == ["file-1abc"]
        service.stored = lambda: None
        for _ in range(2):
            assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "Seen.\n"

    assert [file.id for file in Uploads(memory).files] == ["file-1abc", "file-3abc"]
    assert (len(service.uploads), len(service.asked)) == (3, 3)


def test_accounts_differ_by_the_key_that_is_exchanged() -> None:
    def account(key: str) -> str:
        def request(time: datetime) -> HttpRequest:
            return HttpRequest("POST", "https://keys.acme.example/token", {}, f"key={key}".encode(), time)

        exchange = KeyExchange(request=request, read=lambda response: response.body)
        return _account(Connection(base_url="https://api.acme.example", key_exchange=exchange))

    assert account("one") == account("one") != account("two")
