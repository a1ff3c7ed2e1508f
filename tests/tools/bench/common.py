"""The measuring side: the adapter interface, the calibration loop, the workloads, and the `main` every adapter ends in.

Each workload prints one JSON row, which `bench.py` reads.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

# A proxy or a key of this machine must not change what is measured.
for _name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(_name, None)
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"

import data  # noqa: E402


class Variant:
    """One library on one wire; an adapter's classes derive from it.

    A method left as None is reported as not supported.

    Attributes:
        name: the row's name, the same for both wires.
        wire: `anthropic` or `openai`: which floor it is compared with.
        is_async: the methods but `__init__` and `build` are coroutines (this harness runs none such).
        COLD: source of a new process: import the library and make a client ready to send; `{base}` is the address.
        COLD_REQ: source run after it: one small answer, its text in `out`.
    """

    name: str = "?"
    wire: str = "anthropic"
    is_async: bool = False
    COLD: ClassVar[str | None] = None
    COLD_REQ: ClassVar[str | None] = None

    ask: Any = None
    stream_text: Any = None
    stream_tool: Any = None
    stream_think: Any = None
    build: Any = None
    send: Any = None
    receive: Any = None
    stored: Any = None
    turn: Any = None
    open_stream: Any = None

    def __init__(self, base: str) -> None:
        self.base = base

    def close(self) -> None:
        """Close connections."""


class Row(dict[str, Any]):
    """What one workload gave, as it is printed."""


# -- time ------------------------------------------------------------------------------------------------------------
_LOOP = json.dumps({"type": "delta", "index": 0, "delta": {"kind": "text", "text": " one more piece of the answer"}})


def calibrate() -> float:
    """Return the CPU microseconds of a fixed loop, median of 5: how fast the machine is at this moment.

    A shared machine's speed drifts from second to second; each repetition is divided by this figure, taken just before
    and just after it, so figures read "on a machine where the loop takes 1,000 µs".
    """
    was_on = gc.isenabled()
    gc.disable()
    loads, clock = json.loads, time.process_time
    took = []
    for _ in range(5):
        start = clock()
        kept = []
        for at in range(550):
            kept.append(loads(_LOOP)["delta"]["text"] + str(at))
        "".join(kept)
        took.append((clock() - start) * 1e6)
    if was_on:
        gc.enable()
    return statistics.median(took)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run once -> (scaled CPU microseconds of the whole process, what it returned)."""
    gc.collect()
    before = calibrate()
    start = time.process_time()
    made = work()
    spent = (time.process_time() - start) * 1e6
    return spent / ((before + calibrate()) / 2) * 1000, made


class Wrong(Exception):
    """A repetition whose result is not what the wire carried: an error, not a figure."""


def expect(got: object, wanted: object) -> None:
    """Raise `Wrong` unless they are equal."""
    if got != wanted:
        raise Wrong(f"got {str(got)[:90]!r}, not {str(wanted)[:90]!r}")


# -- workloads -------------------------------------------------------------------------------------------------------
Workload = Callable[[type[Variant], str, bool], float]


def small(kind: type[Variant], server: str, quick: bool) -> float:
    """Small whole answers, one after the other -> µs per request."""
    variant = kind(f"{server}/x/small")
    wanted = data.scenario("small").full
    count = 20 if quick else 100

    def asked() -> str:
        for _ in range(count):
            text: str = variant.ask()
        return text

    expect(variant.ask(), wanted)
    asked()
    took = []
    for _ in range(1 if quick else 3):
        cpu, text = timed(asked)
        expect(text, wanted)
        took.append(cpu / count)
    variant.close()
    return statistics.median(took)


def streamed(method: str, name: str, repetitions: int, *, blocks: bool = False) -> Workload:
    """Make a streaming workload -> µs per delta; `quick` shortens the answer to 50 deltas."""

    def run(kind: type[Variant], server: str, quick: bool) -> float:
        scenario_name = name.rstrip("0123456789") + "50" if quick else name
        answer = data.scenario(scenario_name)
        variant = kind(f"{server}/x/{scenario_name}" + (".blk" if blocks else ""))
        stream = getattr(variant, method)
        wanted = answer.full if answer.args is None else answer.args
        expect(stream()[1], wanted)  # warm: the connection stands
        took = []
        for _ in range(1 if quick else repetitions):
            cpu, (_, got) = timed(stream)
            expect(got, wanted)
            took.append(cpu / len(answer.pieces))
        variant.close()
        return statistics.median(took)

    return run


def history_first(kind: type[Variant], server: str, quick: bool) -> float:
    """Make a 400-message history of the library's own messages, send it, read the answer -> µs per request."""
    variant = kind(f"{server}/x/small")
    neutral = data.conversation(40 if quick else 400)
    wanted = data.scenario("small").full
    expect(variant.send(variant.build(neutral)), wanted)
    took = []
    for _ in range(1 if quick else 5):
        cpu, text = timed(lambda: variant.send(variant.build(neutral)))
        expect(text, wanted)
        took.append(cpu)
    variant.close()
    return statistics.median(took)


def history_next(kind: type[Variant], server: str, quick: bool) -> float:
    """Send a history whose messages were sent before, with one more exchange each time -> µs per request."""
    variant = kind(f"{server}/x/small")
    wanted = data.scenario("small").full
    history = variant.build(data.conversation(40 if quick else 400))
    expect(variant.send(history), wanted)

    def turn() -> str:
        history.extend(variant.build(data.one_exchange()))
        text: str = variant.send(history)
        return text

    turn()
    took = []
    for _ in range(1 if quick else 7):
        cpu, text = timed(turn)
        expect(text, wanted)
        took.append(cpu)
    variant.close()
    return statistics.median(took)


def first_send(method: str) -> Workload:
    """Make a workload that sends 400 messages for the first time; making them is not timed -> µs per request."""

    def run(kind: type[Variant], server: str, quick: bool) -> float:
        variant = kind(f"{server}/x/small")
        make = getattr(variant, method)
        neutral = data.conversation(40 if quick else 400)
        wanted = data.scenario("small").full
        expect(variant.send(make(neutral)), wanted)
        took = []
        for _ in range(1 if quick else 5):
            history = make(neutral)
            cpu, text = timed(lambda messages=history: variant.send(messages))
            expect(text, wanted)
            took.append(cpu)
        variant.close()
        return statistics.median(took)

    return run


def received_next(kind: type[Variant], server: str, quick: bool) -> float:
    """Go on with a received conversation: each turn appends the answer it got and a question -> µs per request."""
    variant = kind(f"{server}/x/small")
    wanted = data.scenario("small").full
    history = variant.receive(data.conversation(40 if quick else 400))
    variant.turn(history)
    expect(variant.turn(history), wanted)
    took = []
    for _ in range(1 if quick else 7):
        cpu, text = timed(lambda: variant.turn(history))
        expect(text, wanted)
        took.append(cpu)
    variant.close()
    return statistics.median(took)


# -- memory: KB that Python's allocator holds, not µs -----------------------------------------------------------------
def traced(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run once -> (KB allocated by it and still held, what it returned)."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / 1024, kept


def memory_stream(kind: type[Variant], server: str, quick: bool) -> float:
    """Hold a stream open, half of a long answer read -> KB."""
    variant = kind(f"{server}/x/text2000")
    for _ in range(2):  # connections and modules are there when it counts
        variant.open_stream()[0].close()
    held, (stack, _) = traced(variant.open_stream)
    stack.close()
    variant.close()
    return held


def memory_history(kind: type[Variant], server: str, quick: bool) -> float:
    """Receive 400 messages and send them: what the history and all that is kept of it hold afterwards -> KB."""
    variant = kind(f"{server}/x/small")
    neutral = data.conversation(40 if quick else 400)
    variant.turn(variant.receive(data.conversation(8)))

    def work() -> list[Any]:
        history: list[Any] = variant.receive(neutral)
        variant.turn(history)
        return history

    held, history = traced(work)
    expect(len(history), len(neutral) + 2)
    variant.close()
    return held


WORKLOADS: dict[str, tuple[tuple[str, ...], Workload]] = {
    "text_16k": (("stream_text",), streamed("stream_text", "text2000", 5, blocks=True)),
    "text": (("stream_text",), streamed("stream_text", "text2000", 3)),
    "tool_2000": (("stream_tool",), streamed("stream_tool", "tool2000", 3)),
    "tool_8000": (("stream_tool",), streamed("stream_tool", "tool8000", 1)),
    "think": (("stream_think",), streamed("stream_think", "think2000", 1)),
    "received_first": (("receive", "send"), first_send("receive")),
    "received_next": (("receive", "turn"), received_next),
    "stored_first": (("stored", "send"), first_send("stored")),
    "handmade_first": (("build", "send"), first_send("build")),
    "history_first": (("build", "send"), history_first),
    "history_next": (("build", "send"), history_next),
    "small": (("ask",), small),
    "memory_stream": (("open_stream",), memory_stream),
    "memory_history": (("receive", "turn"), memory_history),
}


def measure(kind: type[Variant], workload: str, server: str, *, quick: bool) -> Row:
    """Run one workload -> its row, with `us` or `error`."""
    needs, run = WORKLOADS[workload]
    row = Row(name=kind.name, wire=kind.wire, workload=workload)
    if any(getattr(kind, method) is None for method in needs):
        return Row(row, error="not supported")
    try:
        return Row(row, us=run(kind, server, quick))
    except Exception as error:
        return Row(row, error=f"{type(error).__name__}: {error}"[:300])


def main(_file: str, variants: Sequence[type[Variant]]) -> None:
    """Run an adapter's variants and print a JSON row for each."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, help="of the replay server")
    arguments.add_argument("--workloads", default=",".join(WORKLOADS))
    arguments.add_argument("--wire", help="only this one")
    arguments.add_argument("--quick", action="store_true", help="short answers, one repetition: is it right?")
    arguments.add_argument("--list", action="store_true", help="print the variants and leave")
    asked = arguments.parse_args()
    for kind in variants:
        if asked.wire in (None, kind.wire) and asked.list:
            print(json.dumps(Row(name=kind.name, wire=kind.wire, cold=kind.COLD, cold_req=kind.COLD_REQ)))
        elif asked.wire in (None, kind.wire):
            for workload in asked.workloads.split(","):
                row = measure(kind, workload, f"http://127.0.0.1:{asked.port}", quick=asked.quick)
                print(json.dumps(row), flush=True)
