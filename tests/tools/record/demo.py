"""Record the demo's session from a llama.cpp server: `python -m tests.tools.record.demo [URL]`.

Without URL a server is started and ended here; the cassette is written to cassettes/demo/session.yaml.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

from interlingua._http.client import Client
from interlingua_cli.demo.printer import DemoPrinter
from interlingua_cli.demo.session import find_folder, local_scenario, run_demo
from tests.tools.local_server.server import LocalServer
from tests.tools.record.provenance import write_row
from tests.tools.record.recorder import LOCAL_SOURCE, recording

TEST = "tests/tools/record/test_demo.py"


def record(url: str) -> None:
    """Play the session against the server and write what crossed the wire."""
    chosen = local_scenario(url)
    path = find_folder() / "session.yaml"
    printer = DemoPrinter()
    with recording(path), Client(settings=chosen.settings) as client:
        for step in run_demo(client, chosen.models, chosen.turns, **chosen.options):
            printer.print_step(step)
    printer.print_end(f"recorded from {url} into {path.relative_to(path.parents[2])}")
    write_row("demo/session.yaml", provenance="recorded", source=LOCAL_SOURCE, test=TEST)


def main() -> None:
    """Find or start the server, and record."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with nullcontext() if given else LocalServer() as server:
        record(given or server.url)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
