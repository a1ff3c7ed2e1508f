"""The cassettes of this project: their folder, their one reader, and the configuration that records and replays them.

Both the reader and the form of the files are core's own, as third parties have them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from interlingua_cli.cassettes import RecordedExchange, read_cassette
from interlingua_contract import recorder
from interlingua_contract.recorder import register
from tests.support.tree import ROOT

__all__ = [
    "FOLDER",
    "LOADER",
    "REQUEST_HEADERS",
    "RESPONSE_HEADERS",
    "RecordedExchange",
    "load_exchanges",
    "register",
    "vcr_config",
]

FOLDER = ROOT / "cassettes"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if PyYAML has it
_WIRES = {"anthropic-version", "anthropic-beta", "api-revision"}
REQUEST_HEADERS = recorder.REQUEST_HEADERS | _WIRES
RESPONSE_HEADERS = recorder.RESPONSE_HEADERS | {"x-amzn-errortype", "x-amzn-requestid"}  # what fails, and its id


def vcr_config(provider: str | None = None) -> dict[str, Any]:
    """Return vcr's options: the body matched too, only the allowed headers kept, secrets removed.

    Args:
        provider: key of the only provider whose exchanges are kept; None keeps all.
    """
    return recorder.vcr_config(_WIRES, provider)


def load_exchanges(path: str | Path) -> list[RecordedExchange]:
    """Read a cassette's exchanges.

    Args:
        path: absolute, or relative to the cassettes folder.
    """
    return read_cassette(FOLDER / path)
