"""MCP servers as tools: the tools are listed once, and called in the event loop that owns the connection."""

from __future__ import annotations

import asyncio
import base64
import binascii
import difflib
import hashlib
import inspect
import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import attrs

from interlingua import CallerError
from interlingua.errors import APIConnectionError, UnsupportedSchemaError
from interlingua.plugins import explain_arguments, thaw
from interlingua.types import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    SideEffects,
    TextBlock,
    ToolDefinition,
    document_block,
)
from interlingua_agents.schemas import normalise_schema
from interlingua_agents.tools import Tool, ToolContext, ToolError, ToolOutput

if TYPE_CHECKING:
    from mcp import Client as McpClient

T = TypeVar("T")
_log = logging.getLogger("interlingua")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FOREIGN = re.compile(r"[^a-z0-9]+")
_MAX_NAME = 64  # length of a tool's canonical name
_KEPT = 27  # characters kept at each end of a shortened name; two underscores and 8 digits of a digest are between them
_CONTEXT = "interlingua context"  # a tool whose schema has a property of this name is not offered
_MAX_PAGES = 1000
_UNKNOWN_EFFECT = "whether the tool took effect is unknown"


@attrs.frozen(kw_only=True)
class Elicitation:
    """A question that a server asks while it runs a tool.

    Attributes:
        server: the server's name (`McpServer.name`).
        message: the question.
        schema: JSON Schema of the answer; None if the person must open `url` instead.
        url: a URL to open, or None.
    """

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


ElicitAnswer: TypeAlias = Mapping[str, Any] | bool | None
Elicit: TypeAlias = Callable[[Elicitation], ElicitAnswer | Awaitable[ElicitAnswer]]
"""Answers a server's question: an object that fits its schema, True for an opened URL, None to decline."""


def _places() -> dict[str, str]:
    first = dict.fromkeys(("command", "args", "url"), "pass the command, as a list of words, or the URL first")
    return first | {
        "headers": "pass a transport of the package mcp: McpServer(streamable_http_client(url, http_client=…))",
        "confirm": "pass it to the agent: Agent(…, confirm=…)",
        "tools": "the tools of the server are its attribute tools",
    }


class McpServer:
    """A server of the Model Context Protocol and its tools. Use it in `async with`, or in `with` in blocking code.

    The tools are listed once, on entry. One task enters the connection, makes the calls and leaves the connection, so
    that servers may be closed in any order and tools may be called from any thread. If the server is gone or fails, the
    call gets an error result that the model reads.

    Args:
        server: a command as a list of words, which communicates over its standard input and output; a URL (Streamable
            HTTP); or another argument of `mcp.Client`: a transport, or a server object in this process.
        prefix: prepended to the tools' names, with an underscore.
        env: environment variables of the command, in addition to a few harmless ones (`PATH`, `HOME`, …).
        timeout: seconds that one request to the server may take; None for no limit.
        start_timeout: seconds that starting and listing may take.
        trust: True to accept the server's statements about side effects; otherwise every tool counts as `execute`.
        side_effects: side effects by the server's tool names, overriding the server's statements.
        elicit: answers questions that the server asks during a call; without it a call with a question fails. A plain
            function is called in a thread.
        pin: a file with the approved tools. The first start writes it; a later one fails if a tool has
            been added or removed, or its description, schema or hints have changed.

    Raises:
        CallerError: `env` is set without a command, or the package `mcp` is missing.
    """

    @explain_arguments(places=_places)
    def __init__(
        self,
        server: Sequence[str] | Any,
        *,
        prefix: str = "",
        env: Mapping[str, str] | None = None,
        timeout: float | None = 30.0,
        start_timeout: float = 60.0,
        trust: bool = False,
        side_effects: Mapping[str, SideEffects | str] | None = None,
        elicit: Elicit | None = None,
        pin: str | Path | None = None,
    ) -> None:
        self._target = server
        self._is_command = isinstance(server, Sequence) and not isinstance(server, str)
        if self._is_command and not server:
            raise CallerError("the command of an MCP server must not be empty")
        if env is not None and not self._is_command:
            raise CallerError("env= needs a command: a URL or a server object starts no process")
        self.name = prefix or _label(server, is_command=self._is_command)
        self._prefix = prefix
        self._env = dict(env or {})
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._trust = trust
        self._side_effects = {name: SideEffects(effects) for name, effects in (side_effects or {}).items()}
        self._elicit = elicit
        self._pin = None if pin is None else Path(pin)
        self._tools: tuple[Tool, ...] | None = None
        self._client: McpClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._owner: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The server's tools, ordered by name.

        Raises:
            CallerError: the server is not open.
        """
        if self._tools is None:
            raise CallerError("the MCP server is not open: use it in a with or async with statement")
        return self._tools

    async def __aenter__(self) -> Self:
        self._refuse_second()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(lambda: _settle(ready)), name=f"interlingua-mcp {self.name}")
        self._owner.add_done_callback(partial(_fail_with, ready))
        try:
            async with asyncio.timeout(self._start_timeout):
                await asyncio.shield(ready)
        except TimeoutError:
            await self._stop_owner()
            raise self._not_started(f"no answer within {self._start_timeout:g} s") from None
        except asyncio.CancelledError:
            await self._stop_owner()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._owner is not None  # noqa: S101  it was entered
        assert self._closing is not None  # noqa: S101  as above
        self._closing.set()
        owner, self._owner = self._owner, None
        cancelled = False
        while not owner.done():
            try:
                await asyncio.wait([owner])
            except asyncio.CancelledError:
                cancelled = True
                owner.cancel()
        if cancelled:
            raise asyncio.CancelledError

    def __enter__(self) -> Self:
        self._refuse_second()
        started = threading.Event()
        failure: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(self._own_in_thread(started.set))
            except BaseException as error:  # raised again on the caller's thread
                failure.append(error)
            finally:
                started.set()

        self._thread = threading.Thread(target=run, name=f"interlingua-mcp {self.name}", daemon=True)
        self._thread.start()
        in_time = started.wait(self._start_timeout)
        if not in_time:
            self._stop_thread()
            raise self._not_started(f"no answer within {self._start_timeout:g} s")
        if failure:
            self._thread = self._owner = None
            raise failure[0]
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._loop is not None  # noqa: S101  it was entered
        assert self._closing is not None  # noqa: S101  as above
        with suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._closing.set)
        thread, self._thread, self._owner = self._thread, None, None
        if thread is not None:
            thread.join()

    # the owner

    def _refuse_second(self) -> None:
        if self._owner is not None or self._thread is not None:
            raise CallerError("the MCP server is already open: make one McpServer for each with statement")

    async def _own_in_thread(self, ready: Callable[[], object]) -> None:
        self._owner = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        await self._own(ready)

    async def _own(self, ready: Callable[[], object]) -> None:
        """Enter the connection, list the tools, wait for the end and leave, all in one task."""
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        started = False
        try:
            async with self._new_client() as client:
                self._tools = tuple(await self._list_tools(client))
                self._client = client
                started = True
                ready()
                await self._closing.wait()
        except Exception as error:
            first = _first_error(error)
            if started:
                _log.warning("the MCP server %s ended with %s", self.name, type(first).__name__)
            elif isinstance(first, CallerError):
                raise first from None
            else:
                words = f"{type(first).__name__}: {first}" if str(first) else type(first).__name__
                raise self._not_started(words) from first
        finally:
            self._client = None

    async def _stop_owner(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.cancel()
            await asyncio.wait([owner])

    def _stop_thread(self) -> None:
        owner, self._owner = self._owner, None
        thread, self._thread = self._thread, None
        if self._loop is not None and owner is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(owner.cancel)
        if thread is not None:
            thread.join(self._start_timeout)

    def _not_started(self, why: str) -> APIConnectionError:
        return APIConnectionError(f"the MCP server {self.name} did not start: {why}")

    def _new_client(self) -> McpClient:
        try:
            from mcp import Client, StdioServerParameters  # noqa: PLC0415  seconds to import, and an extra
        except ImportError as error:
            raise CallerError("MCP servers need the package mcp: pip install 'interlingua-agents[mcp]'") from error
        target: Any = self._target
        if self._is_command:
            command, *arguments = map(str, self._target)
            target = StdioServerParameters(command=command, args=arguments, env=self._env)
        return Client(
            target,
            read_timeout_seconds=self._timeout,
            elicitation_callback=None if self._elicit is None else self._answer_question,
        )

    async def _list_tools(self, client: McpClient) -> Iterable[Tool]:
        listed: list[Any] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            raise CallerError(f"the MCP server {self.name} lists more than {_MAX_PAGES} pages of tools")
        if unknown := self._side_effects.keys() - {tool.name for tool in listed}:
            raise CallerError(f"side_effects= names tools that {self.name} does not have: {', '.join(sorted(unknown))}")
        if self._pin is not None:
            _check_pin(self._pin, listed, self.name)
        named: dict[str, Any] = {}
        for tool in listed:
            name = mcp_tool_name(tool.name, self._prefix)
            if name in named:
                raise CallerError(f"the tools {named[name].name!r} and {tool.name!r} of {self.name} are both {name!r}")
            named[name] = tool
        made = [self._tool(name, named[name]) for name in sorted(named)]
        return [tool for tool in made if tool is not None]

    def _tool(self, name: str, tool: Any) -> Tool | None:
        """Return a listed tool; None, with a warning, if its schema is outside the subset for tool schemas."""
        try:
            schema = normalise_schema(tool.input_schema).schema
            if _CONTEXT in schema.get("properties", {}):
                raise UnsupportedSchemaError(f"it has a property {_CONTEXT!r}")
        except UnsupportedSchemaError as error:
            _log.warning("the tool %s of the MCP server %s is not offered: %s", tool.name, self.name, error)
            return None
        effects = self._side_effects.get(tool.name) or _side_effects(tool.annotations if self._trust else None)
        definition = ToolDefinition(
            name=name,
            description=tool.description or tool.title or "",
            input_schema=schema,
            side_effects=effects,
            requires_workspace=False,
        )

        async def call(**arguments: Any) -> ToolOutput:
            context = arguments.pop(_CONTEXT)
            return await self._in_owners_loop(self._call(tool.name, thaw(arguments), context))

        limit = None if self._timeout is None else self._timeout + 5.0  # the server's own limit has the better message
        return Tool(definition=definition, function=call, context=_CONTEXT, timeout=limit)

    # calls

    async def _in_owners_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the connection; cancelling it here cancels it there."""
        loop = self._loop
        if loop is asyncio.get_running_loop():
            return await work
        try:
            if loop is None or loop.is_closed():
                raise RuntimeError("closed")
            running = asyncio.run_coroutine_threadsafe(work, loop)
        except RuntimeError:
            work.close()
            raise self._gone() from None
        return await asyncio.wrap_future(running)

    def _gone(self) -> ToolError:
        return ToolError(f"the MCP server {self.name} is gone")

    async def _call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        from mcp import MCPError  # noqa: PLC0415  as above; loaded by now
        from pydantic import ValidationError  # noqa: PLC0415  as above

        client = self._client
        if client is None:
            raise self._gone()

        async def show(progress: float, total: float | None, message: str | None) -> None:
            context.update({"progress": progress, "total": total, "message": message})  # the context drops late reports

        try:
            result = await client.call_tool(name, arguments, progress_callback=show)
        except MCPError as error:
            effect = "" if error.code in _REFUSED else f"; {_UNKNOWN_EFFECT}"
            raise ToolError(f"{error.message} (MCP error {error.code}){effect}", code=str(error.code)) from error
        except ValidationError as error:
            text = f"the MCP server {self.name} sent a result that breaks the protocol; {_UNKNOWN_EFFECT}"
            raise ToolError(text, code="invalid_result") from error
        blocks = tuple(block for one in result.content for block in read_content(one))
        structured = result.structured_content
        return ToolOutput(
            content=structured if not blocks and structured is not None else blocks,
            details=structured,
            is_error=result.is_error,
        )

    async def _answer_question(self, context: Any, params: Any) -> Any:
        from mcp.types import ElicitResult  # noqa: PLC0415  as above

        assert self._elicit is not None  # noqa: S101  not called otherwise
        question = Elicitation(
            server=self.name,
            message=params.message,
            schema=thaw(params.requested_schema) if params.mode == "form" else None,
            url=None if params.mode == "form" else params.url,
        )
        if inspect.iscoroutinefunction(self._elicit):
            answer = await self._elicit(question)
        else:
            answer = await asyncio.to_thread(self._elicit, question)
        if answer is None or answer is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=dict(answer) if isinstance(answer, Mapping) else None)


_REFUSED = {-32600, -32601, -32602, -32700}  # JSON-RPC: the server did not understand the request, so no tool ran


def mcp_tool_name(name: str, prefix: str = "") -> str:
    """Return the canonical name of a server's tool; the middle of a long name is replaced by a digest."""
    whole = f"{prefix}_{name}" if prefix else name
    made = _FOREIGN.sub("_", _HUMP.sub("_", whole).lower()).strip("_")
    if not made[:1].isalpha():
        made = f"tool_{made}"
    if len(made) <= _MAX_NAME:
        return made
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{made[:_KEPT]}_{digest}_{made[-_KEPT:]}"


def read_content(content: Any) -> list[ContentBlock]:
    """Convert one content block of a server's result; bytes never become text."""
    if content.type == "text":
        return [TextBlock(text=content.text)] if content.text else []
    if content.type in ("image", "audio"):
        return [_read_media(content.data, content.mime_type, "")]
    if content.type == "resource_link":
        return [TextBlock(text=f"[resource {content.name}: {content.uri}]")]
    resource = content.resource
    if hasattr(resource, "text"):
        return [TextBlock(text=resource.text)]
    return [_read_media(resource.blob, resource.mime_type or "", str(resource.uri))]


def _read_media(data: str, media_type: str, uri: str) -> ContentBlock:
    kind = media_type.partition(";")[0].strip().lower()
    source = MediaSource(kind="base64", data=data)
    try:
        raw = base64.b64decode(data, validate=True)
        if kind.startswith("image/"):
            return ImageBlock(source=source, media_type=kind)
        if kind.startswith("audio/"):
            return AudioBlock(source=source, media_type=kind)
        if kind.startswith("text/"):
            return TextBlock(text=raw.decode("utf-8", "replace"))
        if kind == "application/pdf":
            return DocumentBlock(source=source, media_type=kind, title=uri or None)
        return document_block(raw, title=uri or None)
    except (CallerError, binascii.Error, ValueError, TypeError):
        return TextBlock(
            text=f"[{' '.join(filter(None, ['content', uri, kind]))}: not shown, because no model reads it]"
        )


def _side_effects(hints: Any) -> SideEffects:
    """Return a tool's side effects by the hints of a trusted server; a missing hint means the worse case."""
    if hints is None:
        return SideEffects.EXECUTE
    if hints.read_only_hint:
        return SideEffects.READ if hints.open_world_hint is False else SideEffects.NETWORK
    return SideEffects.WRITE if hints.destructive_hint is False else SideEffects.EXECUTE


def _label(server: Any, *, is_command: bool) -> str:
    """Return a name for messages, without arguments and parts of URLs that may hold secrets."""
    if is_command:
        return str(server[0])
    return server.partition("?")[0].rpartition("@")[2] if isinstance(server, str) else type(server).__name__


def _first_error(error: BaseException) -> BaseException:
    """Return the first error of a group; the SDK's tasks raise groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _fail_with(ready: asyncio.Future[None], owner: asyncio.Task[None]) -> None:
    """Pass a failed start on to the caller that waits for `ready`."""
    error = None if owner.cancelled() else owner.exception()
    if not ready.done():
        if error is None:
            ready.cancel()
        else:
            ready.set_exception(error)
            ready.exception()  # marks it as retrieved: the caller may be gone


def _check_pin(file: Path, listed: Iterable[Any], server: str) -> None:
    """Compare the tools of a server with those in a file; write the file if it is missing.

    Raises:
        CallerError: they differ, with the difference; or the file cannot be read or written.
    """
    kept = {"title", "description", "input_schema", "annotations"}
    tools = {tool.name: tool.model_dump(mode="json", include=kept, exclude_none=True) for tool in listed}
    now = json.dumps(tools, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        if not file.exists():
            file.write_text(now, encoding="utf-8")
            return
        before = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CallerError(f"the pinned tools of the MCP server {server} cannot be kept in {file}: {error}") from error
    if before != now:
        changed = difflib.unified_diff(before.splitlines(), now.splitlines(), str(file), "now", lineterm="", n=2)
        advice = "models read them; delete the file to approve the change"
        raise CallerError(
            f"the tools of the MCP server {server} have changed since they were pinned: {advice}\n" + "\n".join(changed)
        )
