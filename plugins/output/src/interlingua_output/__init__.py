"""Typed answers for interlingua: `Client.send(..., output=SomeType)`."""

from __future__ import annotations

from interlingua.output import (
    Answer,
    Attempt,
    InvalidOutputError,
    OutputMode,
    OutputProblem,
    OutputTruncatedError,
    Partial,
)
from interlingua_output.answers import Output
from interlingua_output.partial import PartialReader
from interlingua_output.plan import SchemaAttempts, SchemaPlan

__all__ = [
    "Answer",
    "Attempt",
    "InvalidOutputError",
    "Output",
    "OutputMode",
    "OutputProblem",
    "OutputTruncatedError",
    "Partial",
    "PartialReader",
    "SchemaAttempts",
    "SchemaPlan",
]
