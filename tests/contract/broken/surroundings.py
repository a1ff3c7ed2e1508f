"""Adapters that depend on what surrounds them: time, time zone, folder, process, threads, settings of the process."""

from __future__ import annotations

import decimal
import hashlib
import json
import locale
import os
import random
import socket
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from tests.contract.broken.machine import Mutant, in_message, in_request
from tests.contract.broken.memory import Hooks, changed_body


def _header(name: str, value: Callable[[], str]) -> Hooks:
    return in_request(lambda request, **_: attrs.evolve(request, headers={**request.headers, name: value()}))


# -- other processes -------------------------------------------------------------------------------------------------


def _traced(message: Any, **facts: Any) -> Any:
    raw = dict(message.metadata.provider_raw or {})
    raw["trace"] = {**(raw.get("trace") or {}), **facts}
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, provider_raw=raw))


def _local_time(inner: Any, response: Any, **_: Any) -> Any:
    created = json.loads(response.body).get("created", 1_700_000_000)
    return _traced(inner(), created=str(datetime.fromtimestamp(int(created))))


def _local_midnight(inner: Any, **_: Any) -> Any:
    error = inner()
    if error.status == 500:
        reset = time.mktime(time.strptime("2026-11-22", "%Y-%m-%d"))
        error.retry_after = max(reset - datetime(2026, 11, 21, tzinfo=UTC).timestamp(), 0.0)
    return error


def _of_kind(kind: str, change: Callable[[Any], Any]) -> Hooks:
    return in_message(
        lambda message: attrs.evolve(
            message, content=tuple([change(block) if block.type == kind else block for block in message.content])
        )
    )


def _hashed_id(block: Any) -> Any:
    return attrs.evolve(block, provider_id=f"call_{hash(block.name) % 10**8}")


def _cited_by_a_set(block: Any) -> Any:
    known = {repr(one): one for one in block.citations}
    return attrs.evolve(block, citations=tuple([known[name] for name in set(known)]))


def _with_header(name: str, value: Callable[[], str]) -> Hooks:
    def connection(inner: Any, **_: Any) -> Any:
        made = inner()
        return attrs.evolve(made, headers={**made.headers, name: value()})

    return {"connection": connection}


_APP = os.environ.get("USER", "?")  # the moment of import
_STARTED_IN = Path.cwd().name


def _in_local_zone(message: Any) -> Any:
    return _traced(message, hour=message.created_at.astimezone().hour)


# -- clocks and chance in rare places --------------------------------------------------------------------------------


def _nonce(inner: Any, **_: Any) -> Any:
    made = inner()
    return attrs.evolve(made, auth=lambda request: {**made.auth(request), "x-nonce": uuid.uuid4().hex})


def _signed_now(inner: Any, **_: Any) -> Any:
    made = inner()
    if made.sign is None:
        return made
    return attrs.evolve(made, sign=lambda out, secret: made.sign(out._replace(time=datetime.now(UTC)) if hasattr(
        out, "_replace") else attrs.evolve(out, time=datetime.now(UTC)), secret))  # fmt: skip


def _expired(request: Any, **_: Any) -> Any:
    def change(body: dict[str, Any]) -> None:
        if time.time() % 600 > 300:  # "the service has forgotten it by now"
            body["input"] = [item for item in body["input"] if item.get("type") != "reasoning"]

    return changed_body(request, change)


def _jitter(inner: Any, **_: Any) -> Any:
    error = inner()
    if error.retry_after:
        error.retry_after += random.random()
    return error


def _named_batch(inner: Any, kind: str, **_: Any) -> Any:
    request = inner()
    if request is None or kind != "count_tokens":
        return request
    return attrs.evolve(request, headers={**request.headers, "x-asked": datetime.now(UTC).isoformat()})


def _served_now(inner: Any, **_: Any) -> Any:
    response = inner()
    return attrs.evolve(response, headers={**response.headers, "date": time.strftime("%a, %d %b %Y %H:%M:%S")})


# -- settings of the process -----------------------------------------------------------------------------------------


def _setting(set_it: Callable[[], object], hook: str = "to_wire") -> Hooks:
    def broken(inner: Any, **_: Any) -> Any:
        set_it()
        return inner()

    return {hook: broken}


def _set_zone() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()


# -- threads ---------------------------------------------------------------------------------------------------------

_current: dict[str, Any] = {}


def _options_aside(inner: Any, options: Any, **_: Any) -> Any:
    """Put the options where another thread finds them too, and read them after the work."""
    _current["user"] = options.user_id
    request = inner()
    return attrs.evolve(request, headers={**request.headers, "x-user": str(_current["user"])})


_reading: dict[str, Any] = {}


def _body_aside(inner: Any, response: Any, **_: Any) -> Any:
    _reading["id"] = hashlib.sha256(response.body).hexdigest()
    message = inner()
    raw = dict(message.metadata.provider_raw or {})
    raw["trace"] = {**(raw.get("trace") or {}), "response": _reading["id"]}
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, provider_raw=raw))


_local = threading.local()


def _names_of_the_thread(inner: Any, tools: Any, **_: Any) -> Any:
    request = inner()
    first = not hasattr(_local, "seen")
    _local.seen = True
    return attrs.evolve(request, headers={**request.headers, "x-first": "1"}) if first else request


def _in_the_main_thread(message: Any) -> Any:
    if threading.current_thread() is threading.main_thread():
        return message
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, stop_reason_raw="end"))


SURROUNDINGS = (
    Mutant("chat: times of answers in the local zone", "C68", {"from_wire_response": _local_time}, "openai", "chat"),
    Mutant("mistral: a delay up to local midnight", "C68", {"from_wire_error": _local_midnight}, "mistral"),
    Mutant("google: ids of calls by hash", "C58", _of_kind("tool_use", _hashed_id), "google", "generate"),
    Mutant("cohere: citations in the order of a set", "C58", _of_kind("text", _cited_by_a_set), "cohere"),
    Mutant("bedrock: the folder it was started in", "C68", _with_header("x-project", lambda: _STARTED_IN), "bedrock"),
    Mutant("openrouter: a title taken at import", "C68", _with_header("x-title", lambda: _APP), "openrouter"),
    Mutant("ollama: the local hour of an answer", "C68", in_message(_in_local_zone), "ollama"),
    Mutant("an estimate that hashes", "C58", {
        "estimate_input_tokens": lambda inner, **_: inner() + hash("a") % 3}),
    Mutant("a nonce beside the key", "C93", {"connection": _nonce}),
    Mutant("bedrock: signed at another time than it is sent", "C93", {"connection": _signed_now}, "bedrock"),
    Mutant("responses: reasoning that is forgotten after minutes", "C93", in_request(_expired), "openai", "responses"),
    Mutant("mistral: a delay with some chance in it", "C93", {"from_wire_error": _jitter}, "mistral"),
    Mutant("google: the time in a count", "C93", {"auxiliary_request": _named_batch}, "google", "generate"),
    Mutant("a served answer dated by the clock", "C93", {"to_wire_response": _served_now}),
    Mutant("openrouter: the name of the machine", "C93", _header("x-machine", socket.gethostname), "openrouter"),
    Mutant("ollama: the name of the system", "C93", _header("user-agent", lambda: os.uname().nodename), "ollama"),
    Mutant("cohere: the number of the process", "C93", _header("x-client", lambda: f"c-{os.getpid()}"), "cohere"),
    Mutant("the working directory as project", "C93", _header("x-project", os.getcwd)),
    Mutant("chat: chance seeded for everybody", "C100", _setting(lambda: random.seed(0)), "openai", "chat"),
    Mutant("google: the time zone of the process set", "C100", _setting(_set_zone), "google", "generate"),
    Mutant("ollama: the locale set to read dates", "C100", _setting(
        lambda: locale.setlocale(locale.LC_TIME, "C.UTF-8"), "from_wire_error"), "ollama"),
    Mutant("mistral: deeper recursion for everybody", "C100", _setting(
        lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1)), "mistral"),
    Mutant("cohere: the decimal context set", "C100", _setting(
        lambda: setattr(decimal.getcontext(), "prec", 12), "from_wire_response"), "cohere"),
    Mutant("bedrock: warnings silenced", "C100", _setting(
        lambda: warnings.simplefilter("ignore", DeprecationWarning), "connection"), "bedrock"),
    Mutant("openrouter: a time limit for all sockets", "C100", _setting(
        lambda: socket.setdefaulttimeout(60), "connection"), "openrouter"),
    Mutant("options left where another thread reads them", "C92", {"to_wire": _options_aside}),
    Mutant("google: an answer's hash left where another thread reads it", "C92", {"from_wire_response": _body_aside},
           "google"),
    Mutant("ollama: a header of each thread's first request", "C92", {"to_wire": _names_of_the_thread}, "ollama"),
    Mutant("cohere: other words outside of the main thread", "C92", in_message(_in_the_main_thread), "cohere"),
)  # fmt: skip
