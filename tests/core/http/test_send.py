"""`Client.send` and `to_wire` against a real server: what leaves, what comes back, what is refused before sending.

The wire is the made-up one of tests/support; adapters have tests of their own.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
from threading import Thread

import httpx
import pytest

import interlingua as il
from tests.support.fake_provider import CAPABLE, STREAM, WHOLE, Fake, Reply, Server, registry, served


def client(server: Server, **more: object) -> il.Client:
    more.setdefault("registry", registry())
    more.setdefault("retry", 0)
    return il.Client("fake:known", api_key="sk-secret", base_url=server.url, **more)  # type: ignore[arg-type]


def test_an_answer_is_a_priced_and_timed_message() -> None:
    with served() as server, client(server) as c:
        question = il.user("hi")
        message = c.send([question])

    assert message.text == "hello"
    metadata = message.metadata
    assert (metadata.model, metadata.provider, metadata.api) == ("fake:known", "fake", "say")
    assert metadata.routing is not None
    assert (metadata.routing.mode, metadata.routing.chosen_model) == (il.types.RoutingMode.DEFAULT, "fake:known")
    assert metadata.usage is not None
    assert metadata.usage.latency_ms is not None
    assert (metadata.usage.cost_usd, metadata.usage.cost_note) == (None, "no price known for known")
    assert message.id > question.id  # monotonic per session
    assert message.session_id == question.session_id


def test_a_named_model_is_a_manual_choice_and_an_unknown_one_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    with served() as server, client(server) as c, caplog.at_level(logging.WARNING, "interlingua"):
        first = c.send("hi", model="fake:other")
        c.send("hi", model="fake:other")

    assert first.metadata.routing is not None
    assert first.metadata.routing.mode is il.types.RoutingMode.MANUAL
    assert [record.message for record in caplog.records if "does not know" in record.message] == [
        "the catalogue does not know fake:other: default capabilities, no price"
    ]


def test_headers_are_layered_connection_wire_caller_auth() -> None:
    with served() as server, client(server, headers={"X-Mine": "client", "X-From": "client"}) as c:
        c.send("hi", headers={"X-Mine": "call", "x-key": "not this"})

    headers = server.got[0].headers
    assert headers["x-version"] == "2"
    assert headers["x-from"] == "client"
    assert headers["x-mine"] == "call"
    assert headers["x-key"] == "sk-secret"
    assert headers["content-type"] == "application/json"


def test_no_log_line_and_no_wire_request_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    with served() as server, client(server) as c, caplog.at_level(logging.DEBUG, "interlingua"):
        request = c.build_request("hi")
        c.send("hi")

    assert caplog.records
    assert "sk-secret" not in caplog.text
    assert "sk-secret" not in repr(request)
    assert len(server.got) == 1


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-sécret…"])
def test_a_key_no_header_can_hold_is_the_callers_mistake_and_is_not_repeated(key: str) -> None:
    with served() as server, il.Client("fake:known", api_key=key, base_url=server.url, registry=registry()) as c:
        with pytest.raises(il.CallerError, match="line break") as caught:
            c.send("hi")
        assert not server.got
    assert "cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_without_a_key_the_error_says_where_to_put_one() -> None:
    with il.Client("fake:known", registry=registry(), environ={}) as c:
        assert c.build_request("hi").path == "/say"
        with pytest.raises(il.errors.AuthenticationError, match="FAKE_KEY"):
            c.send("hi")


NO_CONVERSATION = [
    *(
        5,
        [{"role": "user", "content": "hi"}],
        {"role": "user", "content": "hi"},
        {-1: il.user("x")},
        b"hi",
        None,
        ["hi"],
    ),
    *(
        [il.user("a"), "b", il.user("c")],
        iter([il.user("a")]),
        {il.user("a").id: il.user("a")},
        il.TextBlock(text="hi"),
    ),
]


@pytest.mark.parametrize("given", NO_CONVERSATION, ids=range(len(NO_CONVERSATION)))
def test_what_is_no_conversation_says_what_one_is(given: object) -> None:
    wanted = pytest.raises(il.CallerError, match=r"a sequence of Message values; interlingua\.user")
    with il.Client("fake:known", registry=registry(), environ={}, api_key="k") as c:
        for call in (c.build_request, c.send, c.stream, c.count_tokens):
            with wanted:
                call(given)  # type: ignore[arg-type]
    other = il.AsyncClient("fake:known", registry=registry(), environ={}, api_key="k")

    async def run() -> None:
        with wanted:
            await other.build_request(given)  # type: ignore[arg-type]
        with wanted:
            await other.send(given)  # type: ignore[arg-type]
        with wanted:
            async with other.stream(given):  # type: ignore[arg-type]
                pass
        await other.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("argument", "given", "wanted"),
    [
        ("tools", {"name": "add"}, "tools must be a sequence of ToolDefinition values, not dict"),
        ("tools", "add", "tools must be a sequence of ToolDefinition values, not str"),
        ("tools", 3, "tools must be a sequence of ToolDefinition values, not int"),
        ("user_id", 3, "option user_id: expected str, got int"),
        ("model", 3, "model must be a string '<provider>:<model>', not int"),
        ("routing", "manual", "routing must be a RoutingDecision, not str"),
    ],
)
def test_other_wrong_arguments_say_what_to_pass(argument: str, given: object, wanted: str) -> None:
    c = il.Client("fake:known", registry=registry(), environ={}, api_key="k")
    with c, pytest.raises(il.CallerError) as caught:
        c.send("hi", **{argument: given})  # type: ignore[arg-type]
    assert str(caught.value).startswith(wanted)


def test_what_is_no_tool_says_what_reads_one() -> None:
    c = il.Client("fake:known", registry=registry(), environ={})
    with c, pytest.raises(il.CallerError, match="not dict; from_wire_tool"):
        c.build_request("hi", tools=[{"name": "add"}])  # type: ignore[list-item]


@pytest.mark.parametrize("given", ["", " \n", [il.user("")], [il.user([]), il.user("")]])
def test_nothing_to_say_is_not_sent(given: object) -> None:
    with client(Server("http://nowhere.test", [])) as c, pytest.raises(il.CallerError, match="nothing to send"):
        c.send(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("temperature", "hot", "expected number, got str"),
        ("temperature", True, "expected number, got bool"),
        ("max_tokens", "5", "expected int, got str"),
        ("max_tokens", 5.5, "expected int, got float"),
        ("thinking", "yes", "expected bool, got str"),
        ("stop", 3, "expected array, got int"),
        ("stop", [3], "expected str, got int"),
        ("effort", "huge", "low, medium, high"),
        ("tool_choice", "sometimes", "ToolChoice"),
        ("response_schema", "an object", "expected object, got str"),
        ("provider_options", "x=1", "expected object, got str"),
        ("headers", {"x-a": 1}, "a dict of strings"),
        ("capabilities", {"supports_telepathy": True}, "ModelCapabilities"),
    ],
)
def test_an_options_value_of_another_kind_is_the_callers_mistake(option: str, value: object, wanted: str) -> None:
    with client(Server("http://nowhere.test", [])) as c, pytest.raises(il.CallerError) as caught:
        c.send("hi", **{option: value})

    assert str(caught.value).startswith(f"option {option}")
    assert wanted in str(caught.value)


def test_what_an_options_value_says_is_left_to_the_adapter() -> None:
    with served() as server, client(server) as c:
        c.send("hi", temperature=99, max_tokens=-1, stop=("a", "b"), effort=None, headers={"x-a": "b"})


def test_a_closed_client_says_so() -> None:
    with served() as server:
        c = client(server)
        c.close()
        with pytest.raises(il.CallerError, match="the client is closed"):
            c.send("hi")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [({"timeout": "x"}, "seconds"), ({"timeout": -1}, "seconds"), ({"retry": "x"}, "number of further attempts"),
     ({"retry": -1}, "number of further attempts")],
)  # fmt: skip
def test_a_limit_that_is_none_is_the_callers_mistake(given: dict[str, object], wanted: str) -> None:
    with pytest.raises(il.CallerError, match=wanted):
        il.Client("fake:known", registry=registry(), **given)  # type: ignore[arg-type]


def test_a_forced_tool_is_one_of_those_given() -> None:
    tool = il.ToolDefinition(
        name="read", description="", input_schema={"type": "object"}, side_effects=il.SideEffects.READ
    )
    with client(Server("http://nowhere.test", [])) as c, pytest.raises(il.CallerError, match=r"'write', but .* read"):
        c.build_request("hi", tools=[tool], tool_choice=il.ToolChoice("write"))


def test_a_model_is_named_by_text_or_by_its_id() -> None:
    with client(Server("http://nowhere.test", [])) as c:
        assert c.build_request("hi", model=il.types.ModelId("fake", "known")).path == "/say"  # type: ignore[arg-type]
        with pytest.raises(il.CallerError, match="must be a string"):
            c.build_request("hi", model=5)  # type: ignore[arg-type]


def test_an_http_client_of_the_other_kind_is_the_callers_mistake() -> None:
    with pytest.raises(il.CallerError, match="AsyncClient takes this one"):
        il.Client("fake:known", registry=registry(), http_client=httpx.AsyncClient())
    with httpx.Client() as blocking, pytest.raises(il.CallerError, match="; Client takes this one"):
        il.AsyncClient("fake:known", registry=registry(), http_client=blocking)
    with pytest.raises(il.CallerError, match="must be an httpx client"):
        il.Client("fake:known", registry=registry(), http_client="http://proxy.test")


def test_a_limit_is_given_to_the_client() -> None:
    c = il.Client("fake:known", registry=registry(), environ={})
    with c, pytest.raises(il.CallerError, match=r"unknown option 'timeout': pass it to the client: Client\("):
        c.build_request("hi", timeout=5)


def test_an_unknown_option_lists_near_ones() -> None:
    with il.Client("fake:known", registry=registry(), environ={}) as c:
        with pytest.raises(il.CallerError, match="temperature"):
            c.build_request("hi", temprature=0)
        with pytest.raises(il.CallerError, match=r"interlingua\.system"):
            c.build_request("hi", system="be nice")


TOOL = il.ToolDefinition(
    name="add",
    description="adds",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    side_effects=il.SideEffects.NONE,
)


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"tools": [TOOL]}, "tools"),
        ({"response_schema": {"type": "object"}}, "response_schema"),
        ({"stream": True}, "s"),
    ],
)
def test_what_the_target_cannot_do_is_refused_before_sending(asked: dict[str, object], path: str) -> None:
    fake = Fake(il.types.ModelCapabilities(supports_system_prompt=True, api="say"))
    with il.Client("fake:known", registry=registry(fake), environ={}) as c:
        with pytest.raises(il.errors.CapabilityError) as caught:
            c.build_request("hi", **asked)  # type: ignore[arg-type]
        assert caught.value.path.startswith(path)


def test_a_conversation_beyond_repair_is_refused_and_a_dangling_call_is_not() -> None:
    call = il.ToolUseBlock(id=il.types.new_tool_use_id(), name="add", input={"a": 1})
    with il.Client("fake:known", registry=registry(), environ={}) as c:
        c.build_request([il.user("hi"), il.assistant([call]), il.user("well?")], tools=[TOOL])
        with pytest.raises(il.errors.InvalidConversationError, match="'add'"):
            c.build_request("hi", tools=[TOOL, TOOL])  # names are unique


def test_api_key_without_a_default_model_belongs_to_nobody() -> None:
    with pytest.raises(il.CallerError, match="settings="):
        il.Client(api_key="x", registry=registry())


def test_settings_reach_other_providers_and_misspelt_ones_are_refused() -> None:
    with served() as server:
        settings = {"fake": {"api_key": "k2", "base_url": server.url}}
        with il.Client(registry=registry(), settings=settings) as c:
            c.send("hi", model="fake:known")
        assert server.got[0].headers["x-key"] == "k2"
    with pytest.raises(il.CallerError, match="keyy"):
        il.Client(registry=registry(), settings={"fake": {"api_keyy": "k2"}})


def test_eight_threads_of_twenty_requests_each_get_their_own_answer() -> None:
    def echo(got: object) -> Reply:
        text = json.loads(got.body)["texts"][0]  # type: ignore[attr-defined]
        return Reply(body=[json.dumps({"say": text, "end": "end_turn"}).encode()])

    wrong: list[str] = []
    ids: list[str] = []

    def work(c: il.Client, number: int) -> None:
        for turn in range(20):
            asked = f"{number}.{turn}"
            message = c.send(asked)
            ids.append(message.id)
            if message.text != asked:
                wrong.append(asked)

    with served(choose=echo) as server, client(server) as c:
        threads = [Thread(target=work, args=(c, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert not wrong
    assert len(set(ids)) == 160


def test_an_http_client_of_the_user_is_used_and_left_open() -> None:
    httpx2 = pytest.importorskip("httpx2")
    with served() as server, httpx2.Client(headers={"x-theirs": "1"}) as theirs:
        with client(server, http_client=theirs) as c:
            assert c.send("hi").text == "hello"
        assert not theirs.is_closed
        assert server.got[0].headers["x-theirs"] == "1"


@pytest.mark.parametrize("stream", [False, True], ids=["send", "stream"])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])
def test_a_hook_of_the_users_client_may_read_the_answer(stream: bool, blocking: bool) -> None:
    read = list[bytes]()
    body = b"".join(STREAM if stream else (WHOLE,))

    def log(response: httpx.Response) -> None:
        read.append(response.read())

    async def log_async(response: httpx.Response) -> None:
        read.append(await response.aread())

    def ask(server: Server) -> str:
        with httpx.Client(event_hooks={"response": [log]}) as theirs, client(server, http_client=theirs) as c:
            if not stream:
                return c.send("hi").text
            with c.stream("hi") as opened:
                return opened.message.text

    async def ask_async(server: Server) -> str:
        async with (
            httpx.AsyncClient(event_hooks={"response": [log_async]}) as theirs,
            il.AsyncClient(
                "fake:known", api_key="k", base_url=server.url, registry=registry(), retry=0, http_client=theirs
            ) as c,
        ):
            if not stream:
                return (await c.send("hi")).text
            async with c.stream("hi") as opened:
                return (await opened.message).text

    with served(Reply(body=[gzip.compress(body)], headers={"content-encoding": "gzip"})) as server:
        text = ask(server) if blocking else asyncio.run(ask_async(server))

    assert text == "hello"
    assert read == [body]


@pytest.mark.parametrize("stream", [False, True], ids=["send", "stream"])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])
def test_an_answer_that_a_hook_has_consumed_is_not_asked_for_again(stream: bool, blocking: bool) -> None:
    def consume(response: httpx.Response) -> None:
        list(response.iter_bytes())

    async def consume_async(response: httpx.Response) -> None:
        _ = [piece async for piece in response.aiter_bytes()]

    def ask(server: Server) -> None:
        with httpx.Client(event_hooks={"response": [consume]}) as theirs, client(server, http_client=theirs) as c:
            if stream:
                c.stream("hi").__enter__()
            c.send("hi")

    async def ask_async(server: Server) -> None:
        async with (
            httpx.AsyncClient(event_hooks={"response": [consume_async]}) as theirs,
            il.AsyncClient(
                "fake:known", api_key="k", base_url=server.url, registry=registry(), http_client=theirs
            ) as c,
        ):
            if stream:
                await c.stream("hi").__aenter__()
            await c.send("hi")

    with served(Reply(body=STREAM if stream else [WHOLE])) as server:
        with pytest.raises(il.CallerError, match=r"has consumed the answer: let it call response\.read\(\)"):
            ask(server) if blocking else asyncio.run(ask_async(server))
        assert len(server.got) == 1


@pytest.mark.parametrize("own", [False, True], ids=["of ours", "of the user"])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])
def test_a_request_is_freed_once_it_is_answered(own: bool, blocking: bool) -> None:
    def requests() -> int:
        return sum(isinstance(each, httpx.Request) and each.method == "POST" for each in gc.get_objects())

    async def ask(server: Server, http_client: httpx.AsyncClient | None) -> int:
        async with il.AsyncClient(
            "fake:known", api_key="k", base_url=server.url, registry=registry(), http_client=http_client
        ) as c:
            for _ in range(5):
                await c.send("hi")
            return requests()

    async def ask_by_theirs(server: Server) -> int:
        async with httpx.AsyncClient() as theirs:
            return await ask(server, theirs)

    gc.collect()
    gc.disable()  # with the body, which may be large, it would stay until the next collection
    try:
        before = requests()
        with served() as server, httpx.Client() as theirs:
            if blocking:
                with client(server, http_client=theirs if own else None) as c:
                    for _ in range(5):
                        c.send("hi")
                    after = requests()
            else:
                after = asyncio.run(ask_by_theirs(server) if own else ask(server, None))
    finally:
        gc.enable()
    assert after == before


def test_capable_fake_is_the_default() -> None:
    assert registry().provider("fake").capabilities("known") is CAPABLE
