"""What is known about models without asking the network: limits, capability overrides, facts, dated list prices.

Never computes a cost and never holds a model of its own: every row comes from a plugin's data file.
Pricing, the registry, provider plugins and the CLI come in.
"""

from __future__ import annotations

from interlingua.catalogue.find import find_model
from interlingua.catalogue.reader import load_catalogue
from interlingua.catalogue.values import ModelInfo, Price, PriceTier

__all__ = ["ModelInfo", "Price", "PriceTier", "find_model", "load_catalogue"]
