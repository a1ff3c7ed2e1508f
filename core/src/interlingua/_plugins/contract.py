"""Contract versions: which plugins this interlingua runs, and how it runs those written for an older contract."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from interlingua.errors import PluginError

CONTRACT_VERSION = 1
"""The contract of this interlingua: hooks, their arguments, and the fields of what they take and return."""

OLDEST_CONTRACT = 1
"""The oldest contract that it runs: at least the previous one, and for at least twelve months."""

_STEPS: Mapping[int, Callable[[Any], Any]] = {}
"""Contract version -> a function that wraps a plugin of it as a plugin of the next version."""


def check_contract(key: str, where: str, plugin: Any) -> int:
    """Return a plugin's contract version, or raise a PluginError; `where` is its distribution and version."""
    written = getattr(plugin, "contract_version", 1)
    subject, range_ = f"provider {key!r} from {where}", f"{OLDEST_CONTRACT} to {CONTRACT_VERSION}"
    if not isinstance(written, int) or isinstance(written, bool):
        raise PluginError(f"{subject}: contract_version must be an integer, not {written!r}", provider=key)
    if written > CONTRACT_VERSION:
        why = f"needs contract {written}, but this interlingua supports {range_}: upgrade interlingua"
        raise PluginError(f"{subject} {why}", provider=key)
    if written < OLDEST_CONTRACT:
        why = f"uses contract {written}, which is no longer supported ({range_}): upgrade the plugin"
        raise PluginError(f"{subject} {why}", provider=key)
    if written < CONTRACT_VERSION:
        page = f"docs/plugins/how-to/move-to-contract-{CONTRACT_VERSION}.md"
        why = f"uses contract {written}, which a later release will not support; see {page}"
        warnings.warn(f"{subject} {why}", DeprecationWarning, stacklevel=2)
    return written


def adapt(plugin: Any, written: int) -> Any:
    """Return a plugin of the current contract: the plugin itself, or a wrapper around an older one."""
    for version in range(written, CONTRACT_VERSION):
        step = _STEPS.get(version)  # a version that only added things needs no step
        plugin = plugin if step is None else step(plugin)
    return plugin
