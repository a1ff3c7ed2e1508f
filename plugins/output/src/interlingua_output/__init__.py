"""Typed answers for interlingua: `Client.send(..., output=SomeType)`."""

from __future__ import annotations

from interlingua_output.answers import Answer, Attempt, Output, OutputMode, OutputProblem, Partial
from interlingua_output.partial import PartialReader
from interlingua_output.plan import OutputAttempts, OutputPlan
from interlingua_output.streams import AsyncOutputStream, OutputStream

__all__ = [
    "Answer",
    "AsyncOutputStream",
    "Attempt",
    "Output",
    "OutputAttempts",
    "OutputMode",
    "OutputPlan",
    "OutputProblem",
    "OutputStream",
    "Partial",
    "PartialReader",
]
