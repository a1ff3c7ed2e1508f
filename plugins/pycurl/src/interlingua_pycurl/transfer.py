"""One request with libcurl, which runs when its sockets are ready: in a waiting thread, on asyncio or on trio.

A transfer does not share its connections and keeps them for the next request. libcurl reads only while the caller waits
for data, and returns everything that has arrived by then as one piece.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio
import pycurl

_READ, _WRITE = pycurl.POLL_IN, pycurl.POLL_OUT  # the numbers that selectors has for them too
_Selector = getattr(
    selectors, "PollSelector", selectors.SelectSelector
)  # created for each wait, so it should need no file


class Failure(Exception):
    """A failed request: libcurl's error number and text."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


class Transfer:
    """A handle of libcurl for one request after another, each by one thread or task."""

    def __init__(self) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        easy = pycurl.Curl()
        self._easy = getattr(easy, "handle", easy)  # pytest-recording wraps it
        self._sockets: dict[int, int] = {}
        self._due: float | None = None  # when libcurl must run even if no socket is ready
        self._lines: list[bytes] = []
        self._has_head = False
        self._data: list[bytes] = []
        self._ended = False
        self._failure: Failure | None = None

    def _watch(self, what: int, number: int, _multi: Any, _own: Any) -> None:
        if what in (pycurl.POLL_REMOVE, pycurl.POLL_NONE):
            self._sockets.pop(number, None)
        else:
            self._sockets[number] = what

    def _set_timer(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def begin(self, options: Mapping[int, Any]) -> None:
        """Begin a request.

        Raises:
            Failure: an option cannot be set; `number` is the option's.
        """
        self._lines, self._data, self._has_head, self._ended, self._failure = [], [], False, False, None
        easy = self._easy
        easy.reset()
        for number, value in options.items():
            try:
                easy.setopt(number, value)
            except (pycurl.error, TypeError, ValueError) as error:
                raise Failure(number, str(error)) from None
        easy.setopt(pycurl.HEADERFUNCTION, self._take_line)
        easy.setopt(pycurl.WRITEFUNCTION, self._data.append)
        self._multi.add_handle(easy)

    def end(self) -> bool:
        """End the request and close the connection if its answer was not read to its end; return True if reusable."""
        if self._multi.closed:  # by the garbage collector: nothing refers to this any more
            return False
        self._multi.remove_handle(self._easy)
        return True

    def close(self) -> None:
        """Close the connections."""
        self._easy.close()
        self._multi.close()

    def socket_number(self) -> int:
        """Return the file descriptor of the socket that the answer arrives on, -1 without one."""
        found: int = self._easy.getinfo(pycurl.ACTIVESOCKET)
        return found

    def read_blocking(self, limit: float | None) -> bytes | None:
        """Return what has arrived of the body, None at its end.

        Raises:
            TimeoutError: nothing arrived in `limit` seconds.
            Failure: the connection broke.
        """
        end = None if limit is None else time.monotonic() + limit
        while (data := self._take()) == b"":
            self._wait(end)
        return data

    async def read(self, limit: float | None) -> bytes | None:
        """As `read_blocking`."""
        end = None if limit is None else time.monotonic() + limit
        while (data := self._take()) == b"":
            await self._wait_async(end)
        return data

    def read_head_blocking(self, limit: float | None) -> list[bytes]:
        """Return the lines of the answer's head, its status line first; limit and errors as in `read_blocking`."""
        end = None if limit is None else time.monotonic() + limit
        while not (head := self._take_head()):
            self._wait(end)
        return head

    async def read_head(self, limit: float | None) -> list[bytes]:
        """As `read_head_blocking`."""
        end = None if limit is None else time.monotonic() + limit
        while not (head := self._take_head()):
            await self._wait_async(end)
        return head

    def _take_line(self, line: bytes) -> None:
        """Take a line of a head, or of the trailers behind a body, which are not kept."""
        if line.startswith(b"HTTP/"):
            self._lines, self._has_head = [line], False
        elif not line.strip():
            self._has_head = True
        elif not self._has_head:
            self._lines.append(line)

    def _take(self) -> bytes | None:
        """Return the data that has arrived, b"" if nothing has, None at the end."""
        if not self._data:
            if self._ended:
                self._raise_failure()
                return None
            return b""
        data = b"".join(self._data)
        self._data.clear()
        return data

    def _take_head(self) -> list[bytes]:
        """Return the head of the final answer once it is complete; not that of an interim answer or of a proxy."""
        if self._has_head and self._easy.getinfo(pycurl.RESPONSE_CODE) >= 200:
            return self._lines
        if self._ended:
            self._raise_failure()
            raise Failure(pycurl.E_GOT_NOTHING, "the answer has no head")
        return []

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self, ready: Iterable[int]) -> None:
        """Let libcurl work on sockets that are ready and on timers that are due."""
        running = 1
        for number in ready:
            _, running = self._multi.socket_action(number, 0)
        if running and self._due is not None and self._due <= time.monotonic():
            self._due = None
            _, running = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        if not running:
            _, _, failed = self._multi.info_read()
            self._failure = Failure(failed[0][1], failed[0][2] or _name_of(failed[0][1])) if failed else None
            self._ended = True

    def _left(self, end: float | None) -> float | None:
        """Return the seconds until libcurl's timer or `end`, the earlier; raise TimeoutError after `end`."""
        now = time.monotonic()
        if end is not None and end <= now:
            raise TimeoutError
        ends = [each for each in (self._due, end) if each is not None]
        return max(min(ends) - now, 0) if ends else None

    def _wait(self, end: float | None) -> None:
        left = self._left(end)
        if not left and left is not None:
            self._run(())
            return
        with _Selector() as selector:
            for number, what in self._sockets.items():
                selector.register(number, what)
            ready = [key.fd for key, _ in selector.select(left)]
        self._run(ready)

    async def _wait_async(self, end: float | None) -> None:
        left = self._left(end)
        if not left and left is not None:
            self._run(())
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # trio runs
            self._run(await _wait_in_tasks(self._sockets, left))
            return
        future: asyncio.Future[None] = loop.create_future()
        ready: list[int] = []

        def wake(*numbers: int) -> None:
            ready.extend(numbers)
            if not future.done():
                future.set_result(None)

        watched = list(self._sockets.items())
        for number, what in watched:
            if what & _READ:
                loop.add_reader(number, wake, number)
            if what & _WRITE:
                loop.add_writer(number, wake, number)
        timer = None if left is None else loop.call_later(left, wake)
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            for number, what in watched:
                if what & _READ:
                    loop.remove_reader(number)
                if what & _WRITE:
                    loop.remove_writer(number)
        self._run(dict.fromkeys(ready))


def _name_of(number: int) -> str:
    """Return the name of an error for which libcurl has no text."""
    names = [name for name, value in vars(pycurl).items() if name.startswith("E_") and value == number]
    return f"libcurl's error {number}" + (f", {names[0]}" if names else "")


async def _wait_in_tasks(sockets: Mapping[int, int], seconds: float | None) -> list[int]:
    """Wait on any event loop until sockets are ready, by a task for each; return those that are."""
    ready: list[int] = []

    async def wait(until: Callable[[int], Awaitable[None]], number: int) -> None:
        await until(number)
        ready.append(number)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        if seconds is not None:
            group.cancel_scope.deadline = anyio.current_time() + seconds
        for number, what in sockets.items():
            if what & _READ:
                group.start_soon(wait, anyio.wait_readable, number)
            if what & _WRITE:
                group.start_soon(wait, anyio.wait_writable, number)
        if not sockets:
            await anyio.sleep_forever()
    return ready
