"""The store's workloads, ours and the floor's: SQLite by hand, the same rows, no values made of them.

No ratio is computed here. `bench.py` runs it once for each side and round, as it runs the adapters.
A workload makes its own database in a temporary folder; only what is named below it is timed.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import common
import data
import orjson
from report import FLOOR_NAME, OUR_NAME
from run_interlingua import A

from interlingua._http.client import Client
from interlingua.types import new_tool_use_id
from interlingua.types.blocks import TextBlock, ToolUseBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import (
    Message,
    MessageMetadata,
    Role,
    RoutingDecision,
    RoutingMode,
    StopReason,
    Usage,
)
from interlingua_sessions import Store, open_store
from interlingua_sessions.session import Session

SESSION = "01K00000000000000000000000"
ROUTING = RoutingDecision(mode=RoutingMode.DEFAULT, chosen_model=A.model, reason="the default")
REASONS = (StopReason.END_TURN, StopReason.TOOL_USE)
ROOMY = {"max_context_tokens": 10**9}  # a session of this length is past every window; who asks asserts it is not
ASKED: dict[str, Any] = {"max_tokens": 1024, "capabilities": ROOMY}
USAGE = Usage(input_tokens=1830, output_tokens=212, cost_usd=Decimal("0.00289"), pricing_version="v1", latency_ms=820)


@contextmanager
def new_store() -> Iterator[tuple[Path, Store]]:
    """Make a store with one session in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with open_store(path) as store:
            store.create_session(SESSION)
            yield path, store


def generated(content: list[Any], reason: StopReason) -> Message:
    """Return an answer as the client returns one."""
    metadata = MessageMetadata(
        model=A.model, provider="anthropic", api="messages", routing=ROUTING, usage=USAGE, stop_reason=reason
    )
    return Message(role=Role.ASSISTANT, content=content, session_id=SESSION, metadata=metadata)


def with_two_calls(number: int) -> Message:
    """Return an answer that asks for two tools."""
    calls = [
        ToolUseBlock(
            id=new_tool_use_id(), name=data.TOOL_NAME, provider_id=f"toolu_{number}_{each}",
            input=data.arguments_of(300, f"{number % 20} {each}"),
        )
        for each in range(2)
    ]  # fmt: skip
    return generated([TextBlock(text=data.text_of(200, f"{number % 20}")), *calls], StopReason.TOOL_USE)


# -- appending a message with two tool calls -------------------------------------------------------------------------
def append_ours(count: int) -> float:
    """Append through the store -> µs per message."""
    with new_store() as (_, store):
        store.append(user("warm", session_id=SESSION))
        messages = [with_two_calls(number) for number in range(count)]
        cpu, _ = common.timed(lambda: [store.append(message) for message in messages])
        common.expect(store.count_messages(SESSION), count + 1)
    return cpu / count


def append_floor(count: int) -> float:
    """Insert the very rows that the store writes, ready made, with its schema, transactions and PRAGMAs."""
    rows = []
    with new_store() as (path, store), closing(sqlite3.connect(path)) as connection:
        for number in range(count):
            store.append(with_two_calls(number))
        found = connection.execute("SELECT * FROM messages ORDER BY id").fetchall()
        for message in found:
            calls = connection.execute("SELECT * FROM tool_calls WHERE message_id = ?", (message[0],)).fetchall()
            rows.append((message, calls))
    with new_store() as (path, store), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        cpu, _ = common.timed(lambda: _insert(connection, rows))
        common.expect(store.count_messages(SESSION), count)
    return cpu / count


def _insert(connection: sqlite3.Connection, rows: list[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]) -> None:
    execute, many = connection.execute, connection.executemany
    for message, calls in rows:
        execute("BEGIN IMMEDIATE")
        execute("UPDATE sessions SET updated_at = ? WHERE id = ?", (message[5], SESSION))
        execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", message)
        many("INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", calls)
        execute("COMMIT")


# -- opening a long session and building the next turn's wire --------------------------------------------------------
def fill(store: Store, count: int) -> None:
    """Store a long conversation as it would have been generated."""
    made: list[Message] = []
    calls: dict[str, ToolUseBlock] = {}
    for each in data.conversation(count)[:-1]:
        if each["role"] == "user":
            made.append(user(each["text"], session_id=SESSION))
        elif each["role"] == "tool":
            made.append(tool_result(calls[each["id"]], each["content"], session_id=SESSION))
        else:
            asked = [
                ToolUseBlock(id=new_tool_use_id(), name=call["name"], input=call["args"], provider_id=call["id"])
                for call in each["calls"]
            ]
            calls |= {str(call.provider_id): call for call in asked}
            made.append(generated([TextBlock(text=each["text"]), *asked], REASONS[bool(asked)]))
    store.extend(made)


def wire_of(session: Session) -> bytes:
    """Return the bytes of the next turn."""
    return session.build_request("And on a Sunday?", **ASKED).body


def cold_wire(path: Path, client: Client | None = None) -> bytes:
    """Open the store and the session, and return the bytes of the next turn."""
    with open_store(path) as store, client or Client(A.model, api_key="x") as used:
        return wire_of(Session.open(store, SESSION, client=used))


def session_ours(count: int, *, open_already: bool) -> float:
    """Open the session and build the next turn's wire, or, open already, build it after one more exchange -> µs."""
    with new_store() as (path, store), Client(A.model, api_key="x") as client:
        fill(store, count)
        wanted = cold_wire(path)  # by a client of its own: as in a new process, the other has not seen the session
        client.build_request("warm", **ASKED)

        if not open_already:
            cpu, body = common.timed(lambda: cold_wire(path, client))
            common.expect(body == wanted, True)
            return cpu
        session = Session.open(store, SESSION, client=client)
        session.turn(
            "And on a Sunday?", **ASKED
        ).build_request()  # an exchange as a turn makes it: its question is stored
        session.add(generated([TextBlock(text="No.")], StopReason.END_TURN))
        cpu, body = common.timed(lambda: wire_of(session))
        common.expect(len(body) > len(wanted), True)
        return cpu


def session_floor(count: int) -> float:
    """Read the session's rows and parse their JSON -> µs."""
    sql = """SELECT id, session_id, role, content_json, metadata_json, created_at, schema_version
        FROM messages WHERE session_id = ? ORDER BY id"""

    def read() -> list[tuple[Any, Any]]:
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(sql, (SESSION,)).fetchall()
        return [(orjson.loads(row[3]), orjson.loads(row[4])) for row in rows]

    with new_store() as (path, store):
        fill(store, count)
        cpu, parsed = common.timed(read)
        common.expect(len(parsed), count)
    return cpu


Work = Callable[[int], float]
WORKLOADS: dict[str, tuple[int, int, Work, Work]] = {  # messages in full, messages when quick, ours, floor
    "store_append": (1000, 20, append_ours, append_floor),
    "session_cold": (10_000, 100, lambda count: session_ours(count, open_already=False), session_floor),
    "session_open": (10_000, 100, lambda count: session_ours(count, open_already=True), session_floor),
}


def main() -> None:
    """Print a JSON row for each workload asked for."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--side", choices=["ours", "floor"], required=True)
    arguments.add_argument("--workloads", default=",".join(WORKLOADS))
    arguments.add_argument("--quick", action="store_true")
    asked = arguments.parse_args()
    for name in asked.workloads.split(","):
        full, quick, *sides = WORKLOADS[name]
        work, who = sides[asked.side == "floor"], FLOOR_NAME if asked.side == "floor" else OUR_NAME
        row = {"name": who, "wire": "sqlite", "workload": name}
        try:
            took = [work(quick if asked.quick else full) for _ in range(1 if asked.quick else 3)]
            print(json.dumps(row | {"us": statistics.median(took)}), flush=True)
        except Exception as error:
            print(json.dumps(row | {"error": f"{type(error).__name__}: {error}"[:300]}), flush=True)


if __name__ == "__main__":
    main()
