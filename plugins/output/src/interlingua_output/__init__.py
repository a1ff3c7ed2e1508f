"""Typed answers for interlingua: `Client.send(..., output=SomeType)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlingua_output.answers import (
    Answer,
    Attempt,
    InvalidOutputError,
    Output,
    OutputMode,
    OutputProblem,
    OutputTruncatedError,
    Partial,
)
from interlingua_output.partial import PartialReader
from interlingua_output.plan import OutputAttempts, OutputPlan

if TYPE_CHECKING:
    from interlingua_output.streams import AsyncOutputStream, OutputStream


def __getattr__(name: str) -> Any:
    if name not in ("AsyncOutputStream", "OutputStream"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interlingua_output import streams  # noqa: PLC0415  they load the client and its HTTP library

    return getattr(streams, name)


__all__ = [
    "Answer",
    "AsyncOutputStream",
    "Attempt",
    "InvalidOutputError",
    "Output",
    "OutputAttempts",
    "OutputMode",
    "OutputPlan",
    "OutputProblem",
    "OutputStream",
    "OutputTruncatedError",
    "Partial",
    "PartialReader",
]
