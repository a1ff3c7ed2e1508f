"""Several worker processes on one port: started, restarted after a crash, stopped and reloaded together."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import click
from prometheus_client import multiprocess, values

from interlingua.errors import CallerError, InterlinguaError

_METRICS = "PROMETHEUS_MULTIPROC_DIR"  # prometheus-client adds the numbers of all processes with files in this folder
_SOON = 5.0  # seconds within which a worker that ends has not started


@contextmanager
def shared_metrics() -> Iterator[None]:
    """Make a folder through which processes add up their metrics; enter it before the first metric is made."""
    before, kind = os.environ.get(_METRICS), values.ValueClass
    with tempfile.TemporaryDirectory(prefix="interlingua-gateway-") as folder:
        os.environ[_METRICS] = folder
        # chosen at its import, when the folder was not set
        values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            values.ValueClass = kind
            if before is None:
                del os.environ[_METRICS]
            else:
                os.environ[_METRICS] = before


class _Workers:
    """The worker processes that run, by id, with the times of their start."""

    def __init__(self) -> None:
        self.running: dict[int, float] = {}
        self.stopping = False

    def note(self, process: int) -> None:
        self.running[process] = time.monotonic()
        if self.stopping:  # since just before its start
            self.send(signal.SIGTERM)

    def send(self, number: int, _frame: Any = None) -> None:
        for process in list(self.running):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def stop(self, number: int, _frame: Any = None) -> None:
        self.stopping = True
        self.send(number)


def run_workers(count: int, listener: socket.socket, start: Callable[[socket.socket], None]) -> None:
    """Run worker processes until SIGINT or SIGTERM.

    A worker that ends is replaced; if it ends within five seconds of its start, all stop. SIGHUP goes to each worker.

    Args:
        count: the number of workers.
        listener: the socket on which all accept connections.
        start: serves in a worker until it is stopped.

    Raises:
        CallerError: this system cannot fork, or a worker does not start.
    """
    if sys.platform == "win32":
        raise CallerError("workers need a system that can fork: start several gateways instead")
    workers, failed = _Workers(), False
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, workers.stop)
    signal.signal(signal.SIGHUP, workers.send)
    while not workers.stopping and len(workers.running) < count:
        fork(partial(start, listener), workers.note)
    while workers.running:
        process, _status = os.wait()
        started = workers.running.pop(process, None)
        if started is None:
            continue
        forget_metrics(process)
        if workers.stopping:
            continue
        if time.monotonic() - started < _SOON:
            failed = True
            workers.stop(signal.SIGTERM)
        else:
            click.echo(f"worker {process} ended and is replaced", err=True)
            fork(partial(start, listener), workers.note)
    if failed:
        raise CallerError("a worker ended soon after its start, so all were stopped; its message is above")


def fork(start: Callable[[], None], note: Callable[[int], None]) -> int:
    """Start a process; return its id.

    Signals wait meanwhile: until `note` is done here, and the handlers of this process are removed there.

    Args:
        start: what it does until it is stopped; an exception is printed and ends it with exit code 1.
        note: called with the id.
    """
    if sys.platform == "win32":
        raise NotImplementedError  # the caller looked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    process = -1
    try:
        process = os.fork()
        if process:
            note(process)
            return process
    finally:
        if process:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        start()
        code = 0
    except InterlinguaError as error:
        click.echo(f"error: {error.message}", err=True)
    except KeyboardInterrupt:
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the rest of the command is the parent's


def forget_metrics(process: int) -> None:
    """Leave the requests in progress of a process that has ended out of the metrics."""
    if os.environ.get(_METRICS):
        multiprocess.mark_process_dead(process)  # type: ignore[no-untyped-call]
