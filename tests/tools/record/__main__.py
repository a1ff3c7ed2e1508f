"""`python -m tests.tools.record [URL] [--provider …] [--only …]`: record the cassettes again.

Without URL and provider, llama.cpp servers are started and ended here, one kind after the other.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from typing import Any

from tests.tools.local_server import files
from tests.tools.local_server.server import LocalServer
from tests.tools.record import demo
from tests.tools.record.recorder import record
from tests.tools.record.scenarios import Scenario, scenarios_of
from tests.tools.record.wires import WIRES, Wire

_SERVERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strict": {"api_key": "local-key", "context": 256},
    "router": {"router": True},
}


def main() -> int:
    """Record; the exit status is 2 when nothing can be recorded."""
    given = _arguments()
    if given.provider != "local":
        return _from_service(given.provider, given.only)
    if given.url is None and (absent := files.missing()):
        return _refuse(absent)
    for kind, options in _SERVERS.items():
        chosen = [(wire, scenario) for wire, scenario in _chosen(given.only) if scenario.server == kind]
        with_demo = kind == "plain" and fnmatch("demo/session", given.only)
        if not chosen and not with_demo:
            continue
        if given.url is not None and kind != "plain":
            print(f"left as they are, for they need a {kind} server of their own: {_names(chosen)}")
            continue
        # a local server's prompt cache is off: the same request is then answered alike
        with _server(given.url, options) as url:
            for wire, scenario in chosen:
                print(record(scenario, wire, url), flush=True)
            if with_demo:
                demo.record(url)
    return 0


def _from_service(provider: str, only: str) -> int:
    wires = {key: wire for key, wire in WIRES.items() if wire.provider == provider}
    variable = next(iter(wires.values())).key
    if variable is None or not os.environ.get(variable):
        return _refuse(f"set {variable} to record from the real {provider} service; without PROVIDER a local server is")
    for wire, scenario in _chosen(only):
        if wire.provider == provider and scenario.service:
            print(record(scenario, wire, None), flush=True)
    return 0


def _chosen(only: str) -> Iterator[tuple[Wire, Scenario]]:
    for key, wire in WIRES.items():
        for scenario in scenarios_of(key):
            if fnmatch(wire.cassette(scenario.name).removesuffix(".yaml"), only):
                yield wire, scenario


def _server(url: str | None, options: dict[str, Any]) -> AbstractContextManager[str]:
    return nullcontext(url) if url is not None else _Url(LocalServer(**options))


class _Url(AbstractContextManager[str]):
    """A server for a `with` block that gives its address."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    def __enter__(self) -> str:
        return self._server.__enter__().url

    def __exit__(self, *_: object) -> None:
        self._server.stop()


def _names(chosen: list[tuple[Wire, Scenario]]) -> str:
    return ", ".join(wire.cassette(scenario.name) for wire, scenario in chosen)


def _refuse(why: str) -> int:
    print(f"nothing recorded: {why}", file=sys.stderr)
    return 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.record", description=main.__doc__)
    parser.add_argument("url", nargs="?", help="a running llama.cpp server (default: start one)")
    services = sorted({wire.provider for wire in WIRES.values() if wire.key})
    parser.add_argument("--provider", default="local", choices=["local", *services], help="who answers")
    parser.add_argument("--only", default="*", help="cassettes to record, such as 'openai/*tool*' or demo/session")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
