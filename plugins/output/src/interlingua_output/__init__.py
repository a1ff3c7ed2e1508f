"""Typed answers for interlingua: `Client.send(..., output=SomeType)`."""

from __future__ import annotations

from interlingua_output.partial import PartialReader
from interlingua_output.plan import OutputAttempts, OutputPlan

__all__ = ["OutputAttempts", "OutputPlan", "PartialReader"]
