"""Guards around a check: the network closed, side effects watched, the loss warnings collected."""

from __future__ import annotations

import decimal
import locale
import logging
import os
import random
import socket
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from logging.handlers import BufferingHandler
from typing import Any, NoReturn
from unittest.mock import patch

_CLOCK = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "strftime",
    "ctime", "sleep", "localtime", "gmtime",
)  # fmt: skip

_CALLS: dict[Any, str] = {
    **{getattr(time, name): f"the clock (time.{name})" for name in _CLOCK},
    os.urandom: "randomness (os.urandom)",
    os.getpid: "the process (os.getpid)",
    os.getcwd: "the working directory (os.getcwd)",
    socket.gethostname: "the machine (socket.gethostname)",
    open: "files (open)",
}
if sys.platform != "win32":
    _CALLS[os.uname] = "the machine (os.uname)"

_METHODS = {
    "now": (datetime, "the clock (datetime.now)"),
    "utcnow": (datetime, "the clock (datetime.utcnow)"),
    "today": (date, "the clock (date.today)"),
    "random": (random.Random, "randomness (random)"),
    "getrandbits": (random.Random, "randomness (random)"),
}

_PYTHON = {
    uuid.uuid4.__code__: "randomness (uuid.uuid4)",
    uuid.uuid1.__code__: "randomness (uuid.uuid1)",
    os.getenv.__code__: "the environment (os.getenv)",
    type(os.environ).__getitem__.__code__: "the environment (os.environ)",
    socket.create_connection.__code__: "the network (socket)",
}


class NetworkUsed(AssertionError):
    """A connection was attempted while the network is closed."""


@contextmanager
def no_network() -> Iterator[None]:
    """Let every attempt to open a connection or to resolve a name fail."""

    def refuse(*_args: Any, **_named: Any) -> NoReturn:
        raise NetworkUsed("the network is closed here: an adapter is a pure translator, core does all I/O")

    with (
        patch.object(socket.socket, "connect", refuse),
        patch.object(socket.socket, "connect_ex", refuse),
        patch.object(socket, "getaddrinfo", refuse),
        patch.object(socket, "create_connection", refuse),
    ):
        yield


@contextmanager
def watch_side_effects() -> Iterator[set[str]]:
    """Yield a set that collects what is used of clock, randomness, environment, files and network."""
    seen: set[str] = set()

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call":
            what = _side_effect_of(argument)
        elif event == "call":
            what = _PYTHON.get(frame.f_code)
        else:
            return
        if what is not None and not _caused_elsewhere(frame):
            seen.add(what)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(before)


def _side_effect_of(function: Any) -> str | None:
    owner = getattr(function, "__self__", None)
    known = _METHODS.get(function.__name__)
    if known is not None:
        kind, what = known
        cls = owner if isinstance(owner, type) else type(owner)
        return what if issubclass(cls, kind) else None
    try:
        return _CALLS.get(function)
    except TypeError:  # a method of something unhashable
        return None


def _caused_elsewhere(frame: Any) -> bool:
    """True for logging, whose records carry a time, and for Hypothesis, which times the garbage collector."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(("logging", "hypothesis.")):
            return True
        if name.startswith("interlingua_contract.rules"):
            return False  # what runs the rule is not the adapter
        frame = frame.f_back
    return False


def _set_environment(value: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(value)


_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "the environment": (lambda: dict(os.environ), _set_environment),
    "the locale": (lambda: locale.setlocale(locale.LC_ALL), lambda value: locale.setlocale(locale.LC_ALL, value)),
    "the random numbers of `random`": (random.getstate, random.setstate),
    "the decimal context": (lambda: decimal.getcontext().copy(), decimal.setcontext),
    "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "the time limit of sockets": (socket.getdefaulttimeout, socket.setdefaulttimeout),
    "the filters of warnings": (lambda: list(warnings.filters), lambda value: setattr(warnings, "filters", value)),
    "the working directory": (os.getcwd, os.chdir),
    "the import path": (lambda: list(sys.path), lambda value: sys.path.__setitem__(slice(None), value)),
    "the level of the root logger": (lambda: logging.root.level, logging.root.setLevel),
}


def read_settings() -> dict[str, Any]:
    """Return the settings of this process that other code depends on."""
    return {name: read() for name, (read, _) in _SETTINGS.items()}


def restore_settings(before: dict[str, Any]) -> list[str]:
    """Set what differs from `before` back, and return its names."""
    changed = []
    for name, (read, write) in _SETTINGS.items():
        if repr(read()) != repr(before[name]):
            write(before[name])
            changed.append(name)
    return changed


@contextmanager
def odd_settings() -> Iterator[None]:
    """Set unusual values, so that a hook which sets the usual ones is noticed; restore them at the end."""
    before = read_settings()
    random.seed("contract")
    decimal.getcontext().prec = 31
    socket.setdefaulttimeout(54321.0)
    sys.setrecursionlimit(sys.getrecursionlimit() + 37)
    warnings.filters = [("default", None, DeprecationWarning, None, 54321)]
    os.environ["TZ"] = "Pacific/Chatham"  # not in force: `time.tzset` was not called
    try:
        yield
    finally:
        restore_settings(before)


@contextmanager
def silence_log() -> Iterator[None]:
    """Log nothing: generated conversations lose blocks by the thousand, and a matrix lists its losses."""
    logger = logging.getLogger("interlingua")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def record_logs() -> Iterator[list[logging.LogRecord]]:
    """Yield the records that core logs inside, of every level."""
    logger = logging.getLogger("interlingua")
    handler, level, propagate, handlers = BufferingHandler(sys.maxsize), logger.level, logger.propagate, logger.handlers
    logger.handlers = [handler]  # losses that a rule causes are not warnings for the user
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield handler.buffer
    finally:
        logger.handlers = handlers
        logger.setLevel(level)
        logger.propagate = propagate
