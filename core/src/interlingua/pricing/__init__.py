"""What a request cost, computed here from dated list prices and never taken from the provider (seed 003 §6.3).

Never holds a price and never asks the network.
The client, the CLI and stores come in.
"""

from __future__ import annotations

from interlingua.pricing.cost import cost_fields, cost_of
from interlingua.pricing.reprice import reprice

__all__ = ["cost_fields", "cost_of", "reprice"]
