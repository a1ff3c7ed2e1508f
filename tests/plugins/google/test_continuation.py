"""Answers that reach the limit of one request: continued until they end, whole and streamed, taken up again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from google import genai
from google.genai import types

import interlingua as il
from interlingua import codec
from interlingua.types import MessageStatus, StopReason, TextBlock, ToolDefinition
from interlingua.types.messages import Message
from tests.plugins.google.wire import NEW, chunk
from tests.support.cassettes import load_exchanges
from tests.support.fake_provider import Got, Reply, Server, served

QUESTION = "Tell all of it."
PROMPT, FIRST, SECOND, LAST = 11, 5, 6, 7  # tokens


def hop(*parts: dict[str, Any], token: str | None = None, out: int = 0, **more: Any) -> dict[str, Any]:
    """Return one answer: at its end a token, or the last one."""
    made = chunk(*parts, finish="CONTINUATION" if token else "STOP")
    made["candidates"][0] |= {"index": 0, **more} | ({"continuationToken": token} if token else {})
    counts = {"promptTokenCount": PROMPT, "candidatesTokenCount": out, "totalTokenCount": PROMPT + out}
    details = [{"modality": "TEXT", "tokenCount": PROMPT}]
    return made | {"usageMetadata": counts | {"promptTokensDetails": details}}


CALL = {"functionCall": {"id": "c1", "name": "look", "args": {"at": "b"}}, "thoughtSignature": "c2ln"}
SUPPORT = {"groundingChunks": [{"web": {"uri": "https://a.example", "title": "a"}}], "webSearchQueries": ["a"]}
CITED = SUPPORT | {"groundingSupports": [{"segment": {"text": "Once"}, "groundingChunkIndices": [0]}]}
HOPS = [
    [
        chunk({"text": "hm", "thought": True}) | {"usageMetadata": {"promptTokenCount": PROMPT}},
        hop({"text": "Once", "thoughtSignature": "dGV4dA=="}, {"text": " upon"}, token="dG9rMQ==", out=FIRST,
            groundingMetadata=CITED),
    ],
    [chunk({"text": " a"}), hop({"text": " time"}, token="dG9rMg==", out=SECOND)],
    [hop({"text": "."}, CALL, out=LAST)],
]  # fmt: skip
WHOLE = [
    hop({"text": "hm", "thought": True}, {"text": "Once", "thoughtSignature": "dGV4dA=="}, {"text": " upon"},
        token="dG9rMQ==", out=FIRST, groundingMetadata=CITED),
    hop({"text": " a time"}, token="dG9rMg==", out=SECOND),
    HOPS[2][0],
]  # fmt: skip
TEXTS = ["Once", " upon a time."]


class Service:
    """The service: each request's token says which answer is next; `faults` answer at a place instead, once each."""

    def __init__(self, **faults: Reply) -> None:
        self.faults, self.tokens = faults, list[str | None]()

    def __call__(self, got: Got) -> Reply:
        sent = json.loads(got.body)
        token = sent.pop("continuationToken", None)
        self.tokens.append(token)
        sent.pop("generationConfig", None)  # the SDK sends an empty one
        assert sent == {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]} | (
            {"tools": sent["tools"]} if "tools" in sent else {}
        )
        place = {None: 0, "dG9rMQ==": 1, "dG9rMg==": 2}[token]
        if (fault := self.faults.pop(f"at_{place}", None)) is not None:
            return fault
        if ":stream" in got.path:
            return Reply(body=sse(HOPS[place]))
        return Reply(body=(json.dumps(WHOLE[place]).encode(),))


def sse(chunks: list[dict[str, Any]]) -> list[bytes]:
    return [b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in chunks]


LOOK = ToolDefinition(name="look", description="Look.", input_schema={"type": "object"}, side_effects="none")


def client(url: str, **more: Any) -> il.Client:
    return il.Client(f"google:{NEW}", api_key="k", base_url=url, **more)


def blocking(url: str, work: str, *given: Any, **more: Any) -> Message:
    with client(url, **more) as ours:
        if work == "stream":
            with ours.stream(QUESTION, tools=[LOOK]) as stream:
                return stream.message
        return ours.send(QUESTION, tools=[LOOK]) if work == "send" else getattr(ours, work)(*given or (QUESTION,))


def asynchronous(url: str, work: str, *given: Any, **more: Any) -> Message:
    async def run() -> Message:
        async with il.AsyncClient(f"google:{NEW}", api_key="k", base_url=url, **more) as ours:
            if work == "stream":
                async with ours.stream(QUESTION, tools=[LOOK]) as stream:
                    return await stream.message
            made = ours.send(QUESTION, tools=[LOOK]) if work == "send" else getattr(ours, work)(*given or (QUESTION,))
            return await made

    return asyncio.run(run())


Run = Callable[..., Message]
BOTH = pytest.mark.parametrize("run", [blocking, asynchronous])
WAYS = pytest.mark.parametrize("work", ["send", "stream"])


def check(message: Message) -> None:
    assert [block.text for block in message.content if block.type == "text"] == TEXTS
    assert [block.text for block in message.content if block.type == "thinking"] == ["hm"]
    assert [(call.name, call.input) for call in message.tool_calls] == [("look", {"at": "b"})]
    assert (message.metadata.stop_reason, message.metadata.stop_reason_raw) == (StopReason.TOOL_USE, "STOP")
    assert message.metadata.status is MessageStatus.COMPLETE
    usage = message.metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3 * PROMPT, FIRST + SECOND + LAST)
    first, raw = message.content[1], message.metadata.provider_raw
    assert isinstance(first, TextBlock)
    assert (len(first.citations), first.signature) == (1, "dGV4dA==")
    assert raw is not None
    assert "continuationToken" not in raw["trace"]


@BOTH
@WAYS
def test_it_is_continued_to_its_end(run: Run, work: str) -> None:
    with served(choose=(service := Service())) as server:
        check(run(server.url, work))

    assert service.tokens == [None, "dG9rMQ==", "dG9rMg=="]


@WAYS
def test_the_official_sdk_reads_as_much(work: str) -> None:
    """Its text, counts and calls of the same three answers."""
    with served(choose=Service()) as server:
        options = types.HttpOptions(base_url=server.url, api_version="v1beta")
        sdk = genai.Client(api_key="k", vertexai=False, http_options=options)
        if work == "send":
            whole: Any = sdk.models.generate_content(model=NEW, contents=QUESTION)
            text, usage, calls = whole.text, whole.usage_metadata, whole.function_calls
        else:
            chunks: list[Any] = list(sdk.models.generate_content_stream(model=NEW, contents=QUESTION))
            text, usage = "".join(each.text or "" for each in chunks), chunks[-1].usage_metadata
            calls = [call for each in chunks for call in each.function_calls or ()]
        ours = blocking(server.url, work)

    assert (text, calls[0].args) == (ours.text, dict(ours.tool_calls[0].input))
    assert ours.metadata.usage is not None
    assert usage.prompt_token_count == ours.metadata.usage.input_tokens
    assert usage.candidates_token_count == ours.metadata.usage.output_tokens


@BOTH
@WAYS
@pytest.mark.parametrize("place", ["at_1", "at_2"])
def test_an_attempt_that_failed_is_repeated_from_its_token(run: Run, work: str, place: str) -> None:
    with served(choose=(service := Service(**{place: Reply(status=503)}))) as server:
        check(run(server.url, work))

    assert service.tokens.count(None) == 1
    assert len(service.tokens) == 4


@BOTH
@WAYS
@pytest.mark.parametrize("fault", ["cut", "failed"])
def test_what_was_paid_for_is_kept_and_taken_up_by_another_client(run: Run, work: str, fault: str) -> None:
    cut = Reply(body=[*sse(HOPS[1][:1]), None]) if work == "stream" else Reply(body=(b'{"cand', None))
    with served(choose=(service := Service(at_1=Reply(status=503) if fault == "failed" else cut))) as server:
        with pytest.raises(il.errors.InterlinguaError) as caught:
            run(server.url, work, retry=0)
        stored = codec.loads_message(codec.dumps_message(caught.value.partial))
        if work == "stream":
            assert stored.text == "".join(["Once", " upon", " a"] if fault == "cut" else ["Once", " upon"])
        message = run(server.url, "resume", stored)

    check(message)
    assert (message.id, service.tokens) == (stored.id, [None, "dG9rMQ==", "dG9rMQ==", "dG9rMg=="])


@BOTH
def test_start_returns_after_the_first_answer(run: Run) -> None:
    with served(choose=(service := Service())) as server:
        pending = run(server.url, "start")
        assert (pending.metadata.status, service.tokens) == (MessageStatus.PARTIAL, [None])
        check(run(server.url, "resume", codec.loads_message(codec.dumps_message(pending))))

    assert service.tokens == [None, "dG9rMQ==", "dG9rMg=="]


@BOTH
@WAYS
def test_a_token_that_is_given_twice_ends_the_answer(run: Run, work: str) -> None:
    """The same request again would only be the same answer again."""
    same = hop({"text": " and"}, token="dG9rMQ==", out=1)
    body = sse([same]) if work == "stream" else (json.dumps(same).encode(),)
    with served(choose=(service := Service(at_1=Reply(body=body)))) as server:
        message = run(server.url, work)

    assert (message.text, message.metadata.stop_reason) == ("Once upon and", StopReason.PAUSE_TURN)
    assert service.tokens == [None, "dG9rMQ=="]


class Recorded:
    """A service that answers as a cassette says, and compares the requests."""

    def __init__(self, name: str) -> None:
        self.exchanges = load_exchanges(f"google/{name}.yaml")

    def __call__(self, got: Got) -> Reply:
        found = self.exchanges.pop(0)
        sent = json.loads(got.body)
        sent.pop("generationConfig", None)  # the SDK sends an empty one
        assert sent == found.request
        return Reply(body=(found.body,), headers={"content-type": found.headers["content-type"]})


@pytest.mark.parametrize(("name", "work"), [("continued", "send"), ("continued_streamed", "stream")])
def test_the_cassettes_are_what_the_official_sdk_reads(name: str, work: str) -> None:
    """Our client, the SDK, and what is shown of both."""
    prompt = "Compare a.txt and b.txt."
    with served(choose=Recorded(name)) as server, client(server.url) as ours:
        if work == "send":
            message = ours.send(prompt)
        else:
            with ours.stream(prompt) as stream:
                message = stream.message
    with served(choose=Recorded(name)) as server:
        options = types.HttpOptions(base_url=server.url, api_version="v1beta")
        sdk = genai.Client(api_key="k", vertexai=False, http_options=options)
        models = sdk.models
        one = models.generate_content(model=NEW, contents=prompt) if work == "send" else None
        seen: list[Any] = [one] if one else list(models.generate_content_stream(model=NEW, contents=prompt))

    assert message.text == "".join(each.text or "" for each in seen) == "The two files differ in one line."
    counts, usage = seen[-1].usage_metadata, message.metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.reasoning_tokens) == (counts.prompt_token_count, counts.thoughts_token_count)
    assert usage.output_tokens == counts.candidates_token_count + counts.thoughts_token_count == 29


def test_leaving_early_sends_nothing_more() -> None:
    def leave(server: Server) -> None:
        with client(server.url) as ours, ours.stream(QUESTION) as stream:
            next(iter(stream))

    with served(choose=(service := Service())) as server:
        leave(server)
    assert service.tokens == [None]


def test_vertex_continues_too() -> None:
    def choose(got: Got) -> Reply:
        assert got.path.startswith("/v1beta1/projects/p/locations/l/publishers/google/models/")
        return service(got)

    service = Service()
    with served(choose=choose) as server:
        options = {"project": "p", "location": "l", "credentials": lambda: "t"}
        settings = {"vertex": {"base_url": server.url, "options": options}}
        with il.Client(f"vertex:{NEW}", settings=settings) as ours:
            check(ours.send(QUESTION, tools=[LOOK]))
    assert len(service.tokens) == 3
