"""Every way the one loop is run: by a session or an agent, blocking or async, whole or streamed, stored or not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

import interlingua as il
from interlingua.testing import AsyncMemoryTransport, MemoryTransport
from interlingua_agents import Agent, RunStop, messages_of
from interlingua_agents.loop import AgentLoop
from tests.agents.scripted import MODEL, Theatre, playing, playing_async, registry

STREAMED = (
    "session stream", "async session stream", "agent stream", "async agent stream", "agent stream in session",
    "async agent stream in session",
)  # fmt: skip
LISTENED = ("session listening", "async session listening")
STOPPABLE = (*LISTENED, *STREAMED)
WAYS = ("session", "async session", "agent", "async agent", "agent in session", "async agent in session", *STREAMED)


@attrs.frozen(kw_only=True)
class Played:
    """The outcome of a run.

    Attributes:
        messages: the conversation, the question first.
        stopped: how it ended; None where it failed.
        error: what it raised.
        events: what a stream yielded, or a listener heard.
        rows: the store's rows of the calls, in their order; None where nothing is stored.
        findings: what the store's check finds.
        kept: whole results that are kept of shortened ones, by call id.
    """

    messages: Sequence[il.Message]
    stopped: RunStop | None
    error: BaseException | None = None
    events: Sequence[Any] = ()
    rows: Sequence[Any] | None = None
    findings: Sequence[Any] = ()
    kept: dict[str, Any] = attrs.field(factory=dict)

    @property
    def answer(self) -> il.Message:
        """The last answer."""
        assert self.stopped is not None
        return self.stopped.message

    @property
    def roles(self) -> list[str]:
        return [message.role.value for message in self.messages]

    @property
    def results(self) -> list[il.ToolResultBlock]:
        return [result for message in self.messages for result in message.tool_results]

    def statuses(self) -> list[str]:
        """How the calls ended: by the store, or by the results if nothing is stored."""
        if self.rows is not None:
            return [row.status.value for row in self.rows]
        return ["failed" if result.is_error else "succeeded" for result in self.results]


def play(
    way: str,
    theatre: Theatre,
    place: Path,
    tools: Any,
    *,
    text: str | None = "go",
    history: Sequence[il.Message] = (),
    model: str = MODEL,
    plugins: Sequence[Any] = (),
    cancel_after: str | None = None,
    on_event: Callable[[Any, Callable[[], None]], None] | None = None,
    workspace: str = "",
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> Played:
    """Run a loop one way.

    Args:
        way: one of `WAYS` or `STOPPABLE`.
        theatre: the script.
        place: folder of the store.
        tools: of the loop.
        text: the question.
        history: before it; of a session, added to it.
        model: asked.
        plugins: of the registry.
        cancel_after: cancels the run when a call of the tool of this name is answered.
        on_event: called with each event and what cancels the run.
        workspace: of the conversation.
        options: of the requests.
        settings: of the loop or agent.
    """
    made = _Way(
        way, theatre, place / "s.db", tools, text, history, model, plugins, workspace, options or {}, settings, [],
        cancel_after, on_event,
    )  # fmt: skip
    return asyncio.run(made.play_async()) if way.startswith("async") else made.play()


@attrs.define
class _Way:
    way: str
    theatre: Theatre
    place: Path
    tools: Any
    text: str | None
    history: Sequence[il.Message]
    model: str
    plugins: Sequence[Any]
    workspace: str
    options: dict[str, Any]
    settings: dict[str, Any]
    events: list[Any]
    cancel_after: str | None
    on_event: Callable[[Any, Callable[[], None]], None] | None
    stopped: RunStop | None = None
    error: BaseException | None = None
    whole: Any = None

    def heard(self, event: Any, cancel: Callable[[], None]) -> None:
        self.events.append(event)
        if event.type == "tool_end" and event.call.name == self.cancel_after:
            cancel()
        if self.on_event is not None:
            self.on_event(event, cancel)

    @property
    def agent(self) -> Agent[str]:
        settings = dict(self.settings)
        if "in session" not in self.way:
            settings["workspace"] = self.workspace
        return Agent(self.model, tools=self.tools, options=self.options, **settings)

    @property
    def loop(self) -> AgentLoop:
        loop: AgentLoop
        if "listening" in self.way:
            self.settings["listen"] = lambda event: self.heard(event, loop.cancel)
        loop = AgentLoop(self.tools, on_stop=self.stop, **self.settings)
        return loop

    def stop(self, stopped: RunStop) -> None:
        self.stopped = stopped

    def play(self) -> Played:
        if "session" not in self.way:
            transport = MemoryTransport(self.theatre)
            with il.Client(registry=registry(self.plugins), transport=transport, retry=0) as client:
                return self.alone(lambda: self.run_agent(history=self.history, client=client))
        more = {"plugins": self.plugins, "model": self.model, "workspace": self.workspace}
        with playing(self.theatre, self.place, **more) as session:
            for message in self.history:
                session.add(message)
            try:
                if self.way.startswith("agent"):
                    self.run_agent(session=session)
                elif "stream" in self.way:
                    with session.stream(self.text, tools=self.loop, **self.options) as stream:
                        for event in stream:
                            self.heard(event, stream.cancel)
                else:
                    session.send(self.text, tools=self.loop, **self.options)
            except (il.InterlinguaError, KeyboardInterrupt) as error:
                self.error = error
            return self.stored(session)

    async def play_async(self) -> Played:
        if "session" not in self.way:
            async with il.AsyncClient(
                registry=registry(self.plugins), transport=AsyncMemoryTransport(self.theatre), retry=0
            ) as client:
                messages: Sequence[il.Message] = ()
                try:
                    messages = await self.run_agent_async(history=self.history, client=client)
                except il.InterlinguaError as error:
                    self.error, messages = error, messages_of(error)
                return self.played(messages)
        async with playing_async(
            self.theatre, self.place, plugins=self.plugins, workspace=self.workspace, asked=self.model
        ) as session:
            for message in self.history:
                session.add(message)
            try:
                if "agent" in self.way:
                    await self.run_agent_async(session=session)
                elif "stream" in self.way:
                    async with session.stream(self.text, tools=self.loop, **self.options) as stream:
                        async for event in stream:
                            self.heard(event, stream.cancel)
                else:
                    await session.send(self.text, tools=self.loop, **self.options)
            except il.InterlinguaError as error:
                self.error = error
            return self.stored(session)

    def run_agent(self, **given: Any) -> Sequence[il.Message]:
        if "stream" not in self.way:
            run = self.agent.run_sync(self.text, **given)
        else:
            with self.agent.stream_sync(self.text, **given) as stream:
                try:
                    for event in stream:
                        self.heard(event, stream.cancel)
                except KeyboardInterrupt as error:
                    stream.__exit__(None, None, None)
                    self.error = error
                    return stream.messages
                run = stream.result
        self.stopped, self.whole = run.stop, run.whole_results
        return run.messages

    async def run_agent_async(self, **given: Any) -> Sequence[il.Message]:
        if "stream" not in self.way:
            run = await self.agent.run(self.text, **given)
        else:
            async with self.agent.stream(self.text, **given) as stream:
                async for event in stream:
                    self.heard(event, stream.cancel)
                run = await stream.result
        self.stopped, self.whole = run.stop, run.whole_results
        return run.messages

    def alone(self, run: Callable[[], Sequence[il.Message]]) -> Played:
        messages: Sequence[il.Message] = ()
        try:
            messages = run()
        except il.InterlinguaError as error:
            self.error, messages = error, messages_of(error)
        return self.played(messages)

    def played(self, messages: Sequence[il.Message]) -> Played:
        whole = [*self.history, *messages]
        if self.error is None or isinstance(self.error, il.InterlinguaError):
            assert not il.validate_conversation(whole)
        return Played(
            messages=whole, stopped=self.stopped, error=self.error, events=self.events, kept=dict(self.whole or {})
        )

    def stored(self, session: Any) -> Played:
        store = session.store
        rows = store.tool_calls("s")
        return Played(
            messages=list(store.messages("s")),
            stopped=self.stopped,
            error=self.error,
            events=self.events,
            rows=rows,
            findings=list(store.verify("s")),
            kept={row.id: whole for row in rows if (whole := store.kept_result(row.id)) is not None},
        )


def calls_at_end(played: Played) -> list[str]:
    """The names of the calls that have no result."""
    answered = {result.tool_use_id for result in played.results}
    return [call.name for message in played.messages for call in message.tool_calls if call.id not in answered]
