"""The registry room: what is installed, loaded lazily, checked, and wrapped.

Never names a provider and never does a provider's work.
The client, the command line and the contract suite come in.
"""

from __future__ import annotations

from interlingua.registry.discovery import FORMATS, PLUGINS, PROVIDERS, ROWS, Found
from interlingua.registry.registry import Registry

__all__ = ["FORMATS", "PLUGINS", "PROVIDERS", "ROWS", "Found", "Registry"]
