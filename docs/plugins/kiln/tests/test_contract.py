"""The whole contract, from the cassettes beside this file."""

from __future__ import annotations

from pathlib import Path

from interlingua_contract.suite import ProviderContract


class TestKiln(ProviderContract):
    provider = "kiln"
    cassettes = Path(__file__).parent / "cassettes"
