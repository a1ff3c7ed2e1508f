"""Metrics: instruments, units, buckets, attributes; new names and those of 1.41."""

from __future__ import annotations

from typing import Any

import pytest

import interlingua as il
from tests.otel.asking import answer, ask
from tests.otel.conftest import Telemetry
from tests.support.fake_provider import STREAM, Reply, served

COMMON = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "fake", "gen_ai.request.model": "known"}
DOUBLING = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
QUADRUPLING = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]


def _common(url: str) -> dict[str, Any]:
    return {**COMMON, "server.address": "127.0.0.1", "server.port": int(url.rpartition(":")[2])}


def test_a_stream_gives_durations_and_tokens(telemetry: Telemetry) -> None:
    with served(Reply(body=[*STREAM])) as server:  # the first request loads modules
        ask(True, server.url, object(), stream=True)
    pieces: list[bytes | float | None] = [STREAM[0], 0.05, STREAM[1], 0.05, STREAM[2], STREAM[3]]
    with served(Reply(body=pieces)) as server:
        ask(True, server.url, telemetry.plugin(), stream=True)
        common = _common(server.url)

    found = telemetry.points()
    assert set(found) == {
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.time_to_first_chunk",
        "gen_ai.client.inference.time_per_output_chunk",
        "gen_ai.client.inference.usage.input_tokens",
        "gen_ai.client.inference.usage.output_tokens",
        "gen_ai.client.inference.operation.input_tokens",
        "gen_ai.client.inference.operation.output_tokens",
    }
    [duration] = found["gen_ai.client.inference.duration"]
    [span] = telemetry.spans
    assert (dict(duration.attributes), duration.count) == (common, 1)
    assert duration.sum == pytest.approx(((span.end_time or 0) - (span.start_time or 0)) / 1e9, abs=0.01)
    assert list(duration.explicit_bounds) == pytest.approx(DOUBLING)
    [first] = found["gen_ai.client.inference.time_to_first_chunk"]
    assert (dict(first.attributes), first.count) == (common, 1)
    assert first.sum < 0.05
    [chunks] = found["gen_ai.client.inference.time_per_output_chunk"]
    assert 1 <= chunks.count <= 3  # two may arrive as one
    assert 0.09 < chunks.sum < duration.sum
    [read] = found["gen_ai.client.inference.usage.input_tokens"]
    assert (read.value, dict(read.attributes)) == (3, common | {"gen_ai.token.modality": "unknown"})
    [written] = found["gen_ai.client.inference.operation.output_tokens"]
    assert (written.sum, dict(written.attributes)) == (2, common)
    assert list(written.explicit_bounds) == QUADRUPLING


def test_a_whole_answer_has_no_chunks(telemetry: Telemetry) -> None:
    with served(Reply(body=[answer()])) as server:
        ask(True, server.url, telemetry.plugin())

    assert not [name for name in telemetry.points() if "chunk" in name]


def test_a_failure_counts_its_duration_with_the_error_and_no_tokens(telemetry: Telemetry) -> None:
    with served(Reply(status=400, body=[b"{}"])) as server, pytest.raises(il.errors.BadRequestError):
        ask(True, server.url, telemetry.plugin())

    found = telemetry.points()
    [duration] = found["gen_ai.client.inference.duration"]
    assert dict(duration.attributes)["error.type"] == "BadRequestError"
    [read] = found["gen_ai.client.inference.usage.input_tokens"]
    assert (read.value, dict(read.attributes)["gen_ai.token.modality"]) == (0, "unknown")
    assert "error.type" not in dict(read.attributes)
    assert "gen_ai.client.inference.operation.input_tokens" not in found


def test_names_of_1_41(telemetry: Telemetry) -> None:
    with served(Reply(body=STREAM)) as server:
        ask(True, server.url, telemetry.plugin(conventions="1.41"), stream=True)

    found = telemetry.points()
    assert set(found) <= {
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.operation.time_per_output_chunk",
        "gen_ai.client.token.usage",
    }
    usage = {dict(point.attributes)["gen_ai.token.type"]: point.sum for point in found["gen_ai.client.token.usage"]}
    assert usage == {"input": 3, "output": 2}
