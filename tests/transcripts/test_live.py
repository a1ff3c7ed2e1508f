"""Real sessions go on live: one of each format, imported, answered by a llama.cpp server, written back with the answer.

Skipped where the session files, the server or its model are not on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, compress

import attrs
import pytest

from interlingua import Client, Message, Role, user
from interlingua.codec import dumps_message
from interlingua_transcripts import Transcript, TranscriptError, read_transcript, session_format, write_transcript
from tests.tools.local_server import files
from tests.tools.local_server.server import MODEL, LocalServer
from tests.transcripts.samples import needs_samples, samples
from tests.transcripts.test_sending import FORMATS

pytestmark = [needs_samples, pytest.mark.skipif(files.missing() is not None, reason=files.missing() or "")]
CONTEXT = 8192  # tokens that the model can hold
LARGEST = 8_000  # characters of a conversation as JSON: what is read of it takes the server some seconds


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LocalServer(context=CONTEXT) as server:
        yield server.url


def _session(name: str) -> tuple[Transcript, tuple[Message, ...]]:
    """Return the session whose beginning has the most kinds of message, and that beginning; whole where it is small."""
    found = []
    for _, data in samples(name):
        try:
            read = read_transcript(data)
        except TranscriptError:  # another program's lines
            continue
        sizes = accumulate(len(dumps_message(message)) for message in read.messages)
        start = tuple(compress(read.messages, [size <= LARGEST for size in sizes]))
        roles = {message.role for message in start}
        if Role.ASSISTANT in roles:
            found.append(((len(roles), len(start) == len(read.messages), -len(start)), read, start))
    assert found, f"no session of {name} begins with a small answer"
    return max(found, key=lambda one: one[0])[1:]


@pytest.mark.parametrize("name", FORMATS)
def test_a_session_goes_on(url: str, name: str) -> None:
    read, start = _session(name)
    wire = "anthropic" if FORMATS.index(name) % 2 else "llamacpp"
    question = user("Go on.", session_id=start[-1].session_id)
    settings = {"llamacpp": {"base_url": f"{url}/v1"}, "anthropic": {"base_url": url, "api_key": "k"}}
    with Client(settings=settings, environ={}) as client:
        answer = client.send([*start, question], model=f"{wire}:{MODEL}", max_tokens=16, temperature=0.0)

    assert answer.text or answer.tool_calls
    assert answer.metadata.usage is not None
    assert (answer.metadata.usage.input_tokens or 0) > 20
    if session_format(read.system).writable:
        longer: tuple[Message, ...] = (*start, question, answer)
        again = read_transcript(write_transcript(attrs.evolve(read, messages=longer)))
        assert again.messages[: len(start)] == start
        assert [message.text for message in again.messages[-2:]] == ["Go on.", answer.text]
