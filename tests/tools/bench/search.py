"""Search in many sessions: what the first index takes, and each search after it.

`python tests/tools/bench/search.py FOLDER` writes 10,000 session files, 1 GB, of Claude Code, Codex and pi into a home
below FOLDER (once), and times `interlingua transcript search` as new processes: the first, which makes the index, and
later ones. `--store` does the same with `session search` and a store that got the sessions by `transcript import`;
`--store postgresql://...` names a server instead of a file. Times are in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID

ROUNDS = 7
TURN = 6_000  # bytes of a short turn: a question, three calls with their results, an answer
TURNS = 40  # of a session at most; longer ones have longer results
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
QUERIES = {
    "a rare word": "needle7",
    "a rare word and a frequent one": "needle7 function",
    "two of the 20 most frequent": "{10} {15}",
    "the most frequent": "{0}",
    "a phrase of frequent words": '"{1} {2}"',
    "the beginning of many words": "{0:.3}",
    "a word that is nowhere": "absentword",
}


class Words:
    """Words as frequent as in a language (the n-th in proportion to 1/n), identifiers, paths, numbers."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        syllables = [a + b for a in "bcdfgklmnprstvz" for b in "aeiou"]
        self.common = [a + b + c for a in syllables for b in syllables for c in ("n", "r", "s")]
        self.random.shuffle(self.common)
        self._weights = list(accumulate(1 / (number + 1) for number in range(len(self.common))))

    def prose(self, count: int) -> str:
        """Return so many words, in lines."""
        drawn = self.random.choices(self.common, cum_weights=self._weights, k=count)
        return "\n".join([" ".join(drawn[at : at + 12]) for at in range(0, count, 12)])

    def output(self, lines: int) -> str:
        """Return what a tool prints: numbered lines of code, each with an identifier that is rare."""
        drawn = self.random.choices(self.common, cum_weights=self._weights, k=lines * 4)
        rare = self.random.getrandbits
        return "\n".join([
            f"{at + 1:6}\t{drawn[at * 4]}.{drawn[at * 4 + 1]}_{rare(24):x} = function({drawn[at * 4 + 2]!r}, "
            f"{drawn[at * 4 + 3]}={rare(10)})"
            for at in range(lines)
        ])  # fmt: skip


def claude_code(own: str, talk: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session of Claude Code."""
    above = None
    for number, (kind, text) in enumerate(talk):
        facts = {"uuid": f"{own}-{number}", "parentUuid": above, "sessionId": own, "cwd": "/srv/app",
                 "version": "2.1.0", "timestamp": _at(number), "isSidechain": False}  # fmt: skip
        above = facts["uuid"]
        if kind in ("question", "result"):
            part = {"type": "tool_result", "tool_use_id": f"toolu_{number - 1}", "content": text}
            yield {**facts, "type": "user",
                   "message": {"role": "user", "content": text if kind == "question" else [part]}}  # fmt: skip
        else:
            call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": text}}
            part = call if kind == "call" else {"type": "text", "text": text}
            yield {**facts, "type": "assistant", "requestId": f"req_{own}{number}", "message": {
                "id": f"msg_{own}{number}", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
                "content": [part], "stop_reason": "tool_use" if kind == "call" else "end_turn",
                "usage": {"input_tokens": 9, "output_tokens": 90, "cache_read_input_tokens": 900}}}  # fmt: skip


def codex(own: str, talk: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a rollout of Codex."""
    meta = {"id": own, "timestamp": _at(0), "cwd": "/srv/app", "originator": "codex_cli_rs", "cli_version": "0.140.0"}
    yield {"timestamp": _at(0), "type": "session_meta", "payload": meta}
    for number, (kind, text) in enumerate(talk):
        if kind == "call":
            item = {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": text}),
                    "call_id": f"call_{number}"}  # fmt: skip
        elif kind == "result":
            item = {"type": "function_call_output", "call_id": f"call_{number - 1}", "output": text}
        else:
            role, part = ("user", "input_text") if kind == "question" else ("assistant", "output_text")
            item = {"type": "message", "role": role, "content": [{"type": part, "text": text}]}
        yield {"timestamp": _at(number), "type": "response_item", "payload": item}


def pi(own: str, talk: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session of pi."""
    yield {"type": "session", "version": 3, "id": own, "timestamp": _at(0), "cwd": "/srv/app"}
    model = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-6", "stopReason": "stop"}
    above = None
    for number, (kind, text) in enumerate(talk):
        said: dict[str, Any] = {"role": "user", "content": text}
        if kind == "result":
            said = {"role": "toolResult", "toolCallId": f"call_{number - 1}", "toolName": "bash", "isError": False,
                    "content": [{"type": "text", "text": text}]}  # fmt: skip
        elif kind != "question":
            call = {"type": "toolCall", "id": f"call_{number}", "name": "bash", "arguments": {"command": text}}
            said = {
                "role": "assistant",
                **model,
                "content": [call if kind == "call" else {"type": "text", "text": text}],
            }
        own_id = f"{number:08x}"
        yield {"type": "message", "id": own_id, "parentId": above, "timestamp": _at(number),
               "message": {**said, "timestamp": 1767225600000 + number}}  # fmt: skip
        above = own_id


def _at(seconds: int) -> str:
    return (BEGAN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


PLACES: Sequence[tuple[Callable[..., Iterator[dict[str, Any]]], str]] = (
    (claude_code, ".claude/projects/-srv-app-{group}/{own}.jsonl"),
    (codex, ".codex/sessions/2026/01/{group:02}/rollout-2026-01-01T00-00-00-{own}.jsonl"),
    (pi, ".pi/agent/sessions/--srv-app-{group}--/2026-01-01T00-00-00-000Z_{own}.jsonl"),
)


def fill(home: Path, sessions: int, total: int) -> int:
    """Write so many sessions of `total` bytes together, their lengths spread as real ones are; return the bytes."""
    words = Words()
    lengths = [words.random.lognormvariate(0, 1.2) for _ in range(sessions)]
    scale = total / sum(lengths)
    written = 0
    for number, length in enumerate(lengths):
        own = str(UUID(int=words.random.getrandbits(128), version=4))
        turns = min(max(int(scale * length / TURN), 1), TURNS)
        lines = max(int((scale * length / turns - 3_400) / 150), 1)  # of each result, which fill most of a session
        talk = [("question", words.prose(40))]
        for _ in range(turns):
            for _ in range(3):
                talk += [("call", f"cat {'/'.join(words.prose(3).split())}.py"), ("result", words.output(lines))]
            talk += [("answer", words.prose(80)), ("question", words.prose(25))]
        talk[-1] = ("question", f"{talk[-1][1]} needle{number}")
        make, place = PLACES[number % len(PLACES)]
        path = home / place.format(group=number % 28 + 1, own=own)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in make(own, talk))
        os.utime(path, (1767225600 + number,) * 2)
        written += path.stat().st_size
    return written


def timed(command: Sequence[str], environ: dict[str, str]) -> tuple[float, float, int]:
    """Run a command -> seconds on the clock, seconds of the processor, how many places it found."""
    program = Path(sys.executable).with_name("interlingua")
    before = _processor_seconds()
    began = time.perf_counter()
    done = subprocess.run([program, *command], env=environ, capture_output=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return took, _processor_seconds() - before, len(json.loads(done.stdout or "[]"))


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(name: str, command: Sequence[str], environ: dict[str, str], words: Sequence[str]) -> None:
    """Print what the first and later searches take."""
    first, worked, _ = timed([*command, "absentword", "--json"], environ)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"\n{name}: the first search {first:.1f} s, {worked:.1f} s of the processor, at most {peak:.0f} MB of memory\n"
    )
    print("| search | found | clock, median | longest | processor, median | longest |\n|---|--:|--:|--:|--:|--:|")
    for what, query in QUERIES.items():
        runs = [timed([*command, query.format(*words), "--json"], environ) for _ in range(ROUNDS)]
        figures = []
        for took in ([run[0] for run in runs], [run[1] for run in runs]):
            figures += [f"{statistics.median(took):.3f}", f"{max(took):.3f}"]
        print(f"| {what} | {runs[0][2]} | {' | '.join(figures)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--store", nargs="?", const="", help="also `session search`, over a file or this server")
    given = parser.parse_args()
    home = given.folder / "home"
    if not home.exists():
        began = time.perf_counter()
        written = fill(home, given.sessions, given.megabytes * 1_000_000)
        took = time.perf_counter() - began
        print(f"{given.sessions:,} files, {written / 1e6:,.0f} MB, written in {took:.0f} s", file=sys.stderr)
    environ = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(given.folder / "cache")}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"):
        environ.pop(name, None)
    words = Words().common
    report("transcript search", ["transcript", "search"], environ, words)
    if given.store is not None:
        place = given.store or str(given.folder / "store.db")
        if given.store or not Path(place).exists():
            began = time.perf_counter()
            folders = [str(path) for path in home.iterdir()]
            program = Path(sys.executable).with_name("interlingua")
            command = [program, "transcript", "import", *folders, "--store", place]
            subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
            print(f"\nimported in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        report("session search", ["session", "search", "--store", place], environ, words)


if __name__ == "__main__":
    main()
