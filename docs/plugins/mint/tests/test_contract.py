"""The whole contract, from the cassettes beside this file."""

from __future__ import annotations

from pathlib import Path

from interlingua_contract.suite import ProviderContract


class TestMint(ProviderContract):
    provider = "mint"
    cassettes = Path(__file__).parent / "cassettes"
