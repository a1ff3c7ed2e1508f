"""Record the demo's session from a llama.cpp server: `python -m tests.record.demo [URL]`.

Without URL a server is started and ended here. The cassette is written to cassettes/demo/session.yaml.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

import vcr

from interlingua.cli.demo import cast, script, show
from interlingua.client import Client
from tests.local_server.server import LocalServer
from tests.support.cassettes import register, vcr_config


def record(url: str) -> None:
    """Play the session against the server and write what crossed the wire."""
    chosen = cast.local(url)
    recorder = vcr.VCR(**{**vcr_config(), "record_mode": "all"})
    register(recorder)
    path = cast.find_folder() / cast.CASSETTE
    path.unlink(missing_ok=True)
    printed = show.Show()
    with recorder.use_cassette(str(path)), Client(settings=chosen.settings) as client:
        for step in script.play(client, chosen.models, chosen.turns, **chosen.options):
            printed(step)
    printed.end(f"recorded from {url} into {path.relative_to(path.parents[2])}")


def main() -> None:
    """Find or start the server, and record."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with nullcontext() if given else LocalServer() as server:
        record(given or server.url)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
