"""Stores from 1,000 to 1,000,000 messages: what each operation takes as they grow.

`python tests/tools/bench/stores.py FOLDER` fills one SQLite store step by step, ten messages a session, measures at
each power of ten, and prints a table; `--plot FILE` also draws it. `--largest` ends earlier. Times are the processor
time of single calls in milliseconds, median and 99th percentile: waiting for a disk is not in them, and other work of
the machine is only through its caches. `postgresql://...` instead of FOLDER fills an empty database of a server; times
are then on the clock, and 50 processes also append at the same time.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from math import log10
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import orjson

from interlingua import Client
from interlingua.testing import MemoryTransport
from interlingua.types import Message, new_ulid
from interlingua.types.factories import assistant, user
from interlingua_sessions import Compaction, Session, Store, open_store

EACH = 10  # messages of a session
TOGETHER = 500  # sessions that grow at the same time, so their messages are mixed in the file
LONG = 200  # messages of the session that is exported and compacted
STEPS = (1_000, 10_000, 100_000, 1_000_000)
WRITERS = 50  # processes that append to a server at the same time
MODEL = "anthropic:claude-haiku-4-5"
SUMMARY = orjson.dumps({
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "They spoke of many things."}],
    "usage": {"input_tokens": 900, "output_tokens": 9},
})  # fmt: skip

Figures = dict[str, tuple[float, float]]
"""Of each operation: median and 99th percentile, milliseconds."""


class Texts:
    """Texts of 15 to 60 words, as frequent as in natural language: the n-th word in proportion to 1/n."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        starts, ends = [a + b for a in "bdfgklmnprst" for b in "aeiou"], ["n", "r", "s", "l", "t"]
        self.words = [a + b + c for a in starts for b in starts for c in ends]
        self.random.shuffle(self.words)
        self._weights = [1 / (number + 1) for number in range(len(self.words))]

    def text(self) -> str:
        """Return one text."""
        return " ".join(self.random.choices(self.words, self._weights, k=self.random.choice((15, 60))))

    def pool(self, count: int) -> list[str]:
        """Return so many; drawing words one by one would take longer than storing them."""
        drawn = self.random.choices(self.words, self._weights, k=count * 40)
        return [" ".join(drawn[at * 40 : at * 40 + self.random.choice((15, 40))]) for at in range(count)]


def fill(store: Store, texts: Texts, begin: int, end: int) -> None:
    """Add the messages from number `begin` to `end`; each 10,000th has its own word."""
    for first in range(begin, end, EACH * TOGETHER):
        names = [f"s{first // EACH + at:07}" for at in range(min(TOGETHER, (end - first) // EACH))]
        for name in names:
            store.create_session(name)
        pool = texts.pool(len(names) * EACH)
        pool[0] += f" unique{first // 10_000}" if first % 10_000 == 0 else ""
        made: list[Message] = []
        for turn in range(EACH):
            make = assistant if turn % 2 else user
            made += [make(pool[turn * len(names) + at], session_id=name) for at, name in enumerate(names)]
        store.extend(made)


def timed(place: str, count: int, work: Callable[[int], Any]) -> tuple[float, float]:
    """Call a function so often with a number -> median and 99th percentile in milliseconds."""
    return summary(times(time.perf_counter if is_server(place) else time.process_time, count, work))


def times(clock: Callable[[], float], count: int, work: Callable[[int], Any]) -> list[float]:
    """Call a function so often with a number -> milliseconds of each call."""
    took = []
    for number in range(count):
        began = clock()
        work(number)
        took.append((clock() - began) * 1000)
    return took


def is_server(place: str) -> bool:
    """Tell whether a store is in PostgreSQL."""
    return place.startswith("postgresql:")


def summary(took: list[float]) -> tuple[float, float]:
    """Return median and 99th percentile."""
    return statistics.median(took), sorted(took)[min(int(len(took) * 0.99), len(took) - 1)]


def measure(place: str, texts: Texts, size: int) -> Figures:
    """Measure each operation on a store of so many messages, in sessions drawn by chance."""
    found: Figures = {}
    any_session = texts.random.randrange
    names = size // EACH

    def name() -> str:
        return f"s{any_session(names):07}"

    with open_store(place) as store, Client(MODEL, api_key="x", transport=MemoryTransport(lambda _: SUMMARY)) as client:
        long = new_ulid()
        store.create_session(long)
        store.extend([(assistant if at % 2 else user)(texts.text(), session_id=long) for at in range(LONG)])
        began = time.perf_counter()
        store.update_index()
        print(f"  indexed in {time.perf_counter() - began:.1f} s", file=sys.stderr)
        waiting = [user(text, session_id=name()) for text in texts.pool(2_000)]
        found["append"] = timed(place, len(waiting), lambda at: store.append(waiting[at]))
        store.update_index()
        found["open a session, read it"] = timed(
            place, 500, lambda _: Session.open(store, name(), client=client).messages
        )
        found["list the newest 20"] = timed(place, 200, lambda _: list(store.sessions(limit=20)))
        found["search, a message just stored"] = timed(
            place, 50, lambda at: _store_and_find(store, name(), f"fresh{size}x{at}")
        )
        found["search, a rare word"] = timed(
            place, 50, lambda at: _found(store, f"unique{at % max(size // 10_000, 1)}")
        )
        found["search, two words of many"] = timed(
            place, 50, lambda at: _found(store, " ".join(texts.words[at : at + 2]))
        )
        found["search, the most frequent"] = timed(place, 50, lambda _: _found(store, texts.words[0]))
        found["search, an absent word"] = timed(place, 50, lambda at: store.search(f"absent{at}"))
        found["turns with a rare word"] = timed(
            place, 20, lambda at: _first_turns(store, f"unique{at % max(size // 10_000, 1)}")
        )
        found["turns with a frequent word"] = timed(place, 20, lambda at: _first_turns(store, texts.words[at]))
        found[f"export {LONG} messages"] = timed(place, 50, lambda _: list(store.export_lines(long)))
        found[f"compact {LONG} messages"] = timed(place, 10, lambda at: _compact(store, client, long, f"{long}-{at}"))
    found["open the store"] = timed(place, 50, lambda _: open_store(place).close())
    if is_server(place):
        found[f"append, {WRITERS} processes at once"] = _append_together(place, names)
    return found


def _found(store: Store, query: str) -> None:
    if not store.search(query):
        raise AssertionError(f"{query!r} is not found")


def _store_and_find(store: Store, session: str, word: str) -> None:
    store.append(user(f"a {word} word", session_id=session))
    _found(store, word)


def _append_together(place: str, sessions: int) -> tuple[float, float]:
    """Append by many processes to sessions drawn by chance -> median and 99th percentile of one append."""
    forked = get_context("fork")
    ready = forked.Barrier(WRITERS)
    with ProcessPoolExecutor(WRITERS, forked, _Writer.start, (place, sessions, ready)) as pool:
        return summary([took for run in pool.map(_Writer.run, range(WRITERS)) for took in run])


class _Writer:
    """Appends of one process; a class, because a barrier reaches a process only as it starts."""

    place: str
    sessions: int
    ready: Barrier

    @classmethod
    def start(cls, place: str, sessions: int, ready: Barrier) -> None:
        cls.place, cls.sessions, cls.ready = place, sessions, ready

    @classmethod
    def run(cls, seed: int) -> list[float]:
        texts = Texts()
        texts.random.seed(seed)
        waiting = [user(text, session_id=f"s{texts.random.randrange(cls.sessions):07}") for text in texts.pool(40)]
        with open_store(cls.place) as store:
            cls.ready.wait(60)
            return times(time.perf_counter, len(waiting), lambda at: store.append(waiting[at]))


def _first_turns(store: Store, word: str) -> None:
    found = [turn for turn, _ in zip(store.turns(words=[word]), range(10), strict=False)]
    if not found:
        raise AssertionError(f"no turn has {word!r}")


def _compact(store: Store, client: Client, source: str, name: str) -> None:
    """Copy a session, and send a question that is preceded by a summary of it."""
    store.import_lines(list(store.export_lines(source)), name)
    with Session.open(store, name, client=client, compactor=Compaction(limit=4_000)) as session:
        session.send("What did we say?", max_tokens=100)
        if not session.entries:
            raise AssertionError("nothing was compacted")


def steps(place: str, largest: int) -> Iterator[tuple[int, Figures]]:
    """Fill a new store step by step -> its size and figures at each."""
    texts, begin = Texts(), 0
    for size in (step for step in STEPS if step <= largest):
        began = time.perf_counter()
        with open_store(place) as store:
            fill(store, texts, begin, size)
        took = time.perf_counter() - began
        print(f"  {size - begin:,} messages stored in {took:.1f} s", file=sys.stderr)
        yield size, measure(place, texts, size)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        stored = "" if is_server(place) else f"{Path(place).stat().st_size / 2**20:,.0f} MB, "
        print(f"  {size:,}: {stored}peak memory {peak:.0f} MB", file=sys.stderr)
        begin = size


def table(found: dict[int, Figures]) -> str:
    """Return the figures as Markdown."""
    lines = ["| operation, p50 / p99 in ms | " + " | ".join(f"{size:,}" for size in found) + " |"]
    lines.append("|---|" + "--:|" * len(found))
    for name in next(iter(found.values())):
        cells = (f"{figures[name][0]:.3g} / {figures[name][1]:.3g}" for figures in found.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 460, 60, 270, 20, 45
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b")


def plot(found: dict[int, Figures]) -> str:
    """Return the 99th percentiles as an SVG picture; both axes are logarithmic."""
    names = list(next(iter(found.values())))
    values = [figures[name][1] for figures in found.values() for name in names]
    low, high = int(log10(min(values)) // 1), int(log10(max(values)) // 1) + 1
    first, last = log10(min(found)), log10(max(found))

    def x(size: int) -> float:
        return LEFT + (log10(size) - first) / max(last - first, 1) * (WIDTH - LEFT - RIGHT)

    def y(milliseconds: float) -> float:
        return HEIGHT - BOTTOM - (log10(milliseconds) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        'font-family="sans-serif" font-size="12">',
        "<title>99th percentile of each operation against the number of stored messages</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} ms</text>')
    for size in found:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - 24}" text-anchor="middle">{size:,}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">messages in the store</text>'
    )
    labels = sorted((y(found[max(found)][name][1]), name) for name in names)
    place = 0.0
    for at, (height, name) in enumerate(labels):
        place = max(place + 15, height + 4)
        colour, dash = COLOURS[at % len(COLOURS)], ' stroke-dasharray="5 3"' if at >= len(COLOURS) else ""
        points = " ".join(f"{x(size):.1f},{y(figures[name][1]):.1f}" for size, figures in found.items())
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{place:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Fill, measure, print and draw."""
    arguments = argparse.ArgumentParser(description="Measure a store as it grows.")
    arguments.add_argument("folder", help="for the store, or the URL of a database; it should be empty")
    arguments.add_argument("--largest", type=int, default=STEPS[-1], help="messages of the last step")
    arguments.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures as SVG")
    asked = arguments.parse_args()
    place = asked.folder if is_server(asked.folder) else str(Path(asked.folder, "stores.db"))
    found = dict(steps(place, asked.largest))
    print(table(found))
    if asked.plot is not None:
        asked.plot.write_text(plot(found), encoding="utf-8")


if __name__ == "__main__":
    main()
