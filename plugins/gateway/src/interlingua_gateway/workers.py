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
    running: dict[int, float] = {}
    stopping = False

    def send(number: int) -> None:
        for process in list(running):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def stop(number: int, _frame: Any) -> None:
        nonlocal stopping
        stopping = True
        send(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, lambda *_: send(signal.SIGHUP))
    failed = False
    while not stopping and len(running) < count:
        running[fork(partial(start, listener))] = time.monotonic()
    while running:
        process, _status = os.wait()
        started = running.pop(process, None)
        if started is None:
            continue
        forget_metrics(process)
        if stopping:
            continue
        if time.monotonic() - started < _SOON:
            failed = stopping = True
            send(signal.SIGTERM)
        else:
            click.echo(f"worker {process} ended and is replaced", err=True)
            running[fork(partial(start, listener))] = time.monotonic()
    if failed:
        raise CallerError("a worker ended soon after its start, so all were stopped; its message is above")


def fork(start: Callable[[], None]) -> int:
    """Start a process; return its id.

    Args:
        start: what it does until it is stopped; an exception is printed and ends it with exit code 1.
    """
    if sys.platform == "win32":
        raise NotImplementedError  # the caller looked
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
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
