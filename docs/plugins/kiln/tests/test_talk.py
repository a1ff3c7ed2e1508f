"""Conversations with the kiln over loopback, and in processes that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from interlingua import AsyncClient, Client, codec, system, user
from interlingua.errors import APITimeoutError, AuthenticationError, ModelNotFoundError, OverloadedError, ServerError
from interlingua.types import MessageStatus, StopReason
from kiln_server import KEY, Service, served

PROMPT = "Please make a large jar with two handles, and a lid that fits."


def kiln(url: str, key: str = KEY, **more: object) -> Client:
    settings = {"kiln": {"base_url": url, "api_key": key}}
    return Client("kiln:earthen-1", settings=settings, environ={}, retry=0, **more)  # type: ignore[arg-type]


@pytest.fixture
def service() -> Iterator[Service]:
    with served() as service:
        yield service


def test_a_job_is_asked_for_until_it_is_done(service: Service) -> None:
    with kiln(service.url) as client:
        answer = client.send([system("Be brief."), user(PROMPT)])

    assert answer.text == f"Be brief. You asked: {PROMPT}"
    assert (answer.stop_reason, service.created, service.cancelled) == (StopReason.END_TURN, 1, [])
    assert answer.usage is not None
    assert answer.usage.cost_usd is not None


def test_a_stream_from_its_own_address(service: Service) -> None:
    with kiln(service.url) as client, client.stream(PROMPT) as stream:
        pieces = list(stream.text_stream)
        answer = stream.message

    assert len(pieces) > 10
    assert "".join(pieces) == answer.text == f"You asked: {PROMPT}"
    assert service.created == 1


def test_a_limit(service: Service) -> None:
    with kiln(service.url) as client:
        assert client.send(PROMPT, max_tokens=3).stop_reason is StopReason.MAX_TOKENS


@pytest.mark.parametrize("streamed", [False, True])
def test_a_job_that_failed_is_not_created_again(service: Service, streamed: bool) -> None:
    def fail(client: Client) -> object:
        if not streamed:
            return client.send("crack it")
        with client.stream("crack it") as stream:
            return stream.message

    with kiln(service.url) as client, pytest.raises(ServerError, match="the pot cracked"):
        fail(client)

    assert service.created == 1


def test_refusals(service: Service) -> None:
    with kiln(service.url, key="sand") as client, pytest.raises(AuthenticationError, match="not the key"):
        client.send(PROMPT)
    with kiln(service.url) as client:
        with pytest.raises(ModelNotFoundError, match="no glass"):
            client.send(PROMPT, model="kiln:glass")
        with pytest.raises(OverloadedError, match="full"):
            client.send("busy?")

    assert service.created == 0


def test_a_time_limit_cancels_the_job(service: Service) -> None:
    with kiln(service.url, timeout=1.0) as client, pytest.raises(APITimeoutError):
        client.send("slowly")

    assert service.cancelled == ["job-1"]


def test_leaving_a_stream_cancels_the_job(service: Service) -> None:
    with kiln(service.url) as client, client.stream(f"slowly {PROMPT}") as stream:
        next(iter(stream))

    assert (stream.message.metadata.status, service.cancelled) == (MessageStatus.CANCELLED, ["job-1"])


def test_an_event_loop(service: Service) -> None:
    async def talk() -> str:
        settings = {"kiln": {"base_url": service.url, "api_key": KEY}}
        async with AsyncClient("kiln:earthen-1", settings=settings, environ={}) as client:
            return (await client.send(PROMPT)).text

    assert asyncio.run(talk()) == f"You asked: {PROMPT}"


BEGIN = """
import asyncio, os, signal, sys
from interlingua import AsyncClient, Client, codec
url, file, kind, streamed = sys.argv[1:]
given = {"settings": {"kiln": {"base_url": url, "api_key": "clay"}}, "environ": {}}
prompt = "Please make a jar, slowly."

def keep(message):
    with open(file, "w") as out:
        out.write(codec.dumps_message(message))
    os.kill(os.getpid(), signal.SIGKILL)

async def begin():
    async with AsyncClient("kiln:earthen-1", **given) as client:
        if not streamed:
            keep(await client.start(prompt))
        async with client.stream(prompt) as stream:
            await anext(aiter(stream))
            keep(stream.partial)

if kind == "async":
    asyncio.run(begin())
client = Client("kiln:earthen-1", **given)
if not streamed:
    keep(client.start(prompt))
with client.stream(prompt) as stream:
    next(iter(stream))
    keep(stream.partial)
"""
RESUME = """
import asyncio, sys
from interlingua import AsyncClient, Client, codec
url, file, kind, _ = sys.argv[1:]
given = {"settings": {"kiln": {"base_url": url, "api_key": "clay"}}, "environ": {}}
pending = codec.loads_message(open(file).read())

async def resume():
    async with AsyncClient("kiln:earthen-1", **given) as client:
        return await client.resume(pending)

answer = asyncio.run(resume()) if kind == "async" else Client("kiln:earthen-1", **given).resume(pending)
sys.stdout.write(codec.dumps_message(answer))
"""


@pytest.mark.parametrize("kind", ["blocking", "async"])
@pytest.mark.parametrize("streamed", ["", "streamed"], ids=["whole", "streamed"])
def test_a_process_that_was_killed_pays_once(service: Service, tmp_path: Path, kind: str, streamed: str) -> None:
    """Kill -9 after the creation, before a poll or within the stream; two other processes take the answer up."""
    file = tmp_path / "pending.json"
    environ = {
        **os.environ,
        "INTERLINGUA_PLUGINS": "kiln=interlingua_kiln.plugin:plugin",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }

    def process(program: str, kind: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, service.url, str(file), kind, streamed]
        return subprocess.run(command, env=environ, check=False, capture_output=True, text=True)

    assert process(BEGIN, kind).returncode == -signal.SIGKILL
    assert codec.loads_message(file.read_text()).metadata.status is MessageStatus.PARTIAL
    assert service.polled == 0
    service.left = dict.fromkeys(service.left, 2)  # the job ends
    answers = [codec.loads_message(process(RESUME, other).stdout) for other in ("blocking", "async")]

    assert {one.text for one in answers} == {"You asked: Please make a jar, slowly."}
    assert {one.usage and one.usage.cost_usd for one in answers} == {answers[0].usage and answers[0].usage.cost_usd}
    assert answers[0].usage is not None
    assert answers[0].usage.cost_usd is not None
    assert (service.created, service.cancelled) == (1, [])
