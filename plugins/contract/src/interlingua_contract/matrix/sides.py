"""The sides there are: one for each wire of each installed provider, third parties' included.

Never loads what was not asked for. The command `matrix` comes in, and tests.
A provider's key names all its wires; a slash and the wire's name choose one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua.errors import CallerError
from interlingua.plugins.provider import Provider
from interlingua.plugins.registry import Registry
from interlingua.plugins.wire import ConnectionSettings
from interlingua_contract.matrix.side import UNKNOWN_MODEL, Side


def sides(registry: Registry, only: Iterable[str] = ()) -> list[Side]:
    """Return one side for each wire of each provider, in order of their names.

    Args:
        registry: what is installed.
        only: keys of providers, or names of sides; empty takes all.

    Raises:
        CallerError: nothing is installed under one of these names.
    """
    wanted = dict.fromkeys(only)
    keys = {name.partition("/")[0] for name in wanted}
    providers = [registry.provider(key) for key in sorted(keys)] if keys else registry.providers()
    found = [side for provider in providers for side in _of(provider)]
    if not wanted:
        return found
    chosen = [side for side in found if side.name in wanted or side.provider.key in wanted]
    missing = [name for name in wanted if not any(name in (side.name, side.provider.key) for side in chosen)]
    if missing:
        raise CallerError(f"no such wire: {', '.join(missing)}; there are {', '.join(side.name for side in found)}")
    return chosen


def _of(provider: Provider) -> list[Side]:
    endpoints: Any = provider.connection(ConnectionSettings()).endpoints
    apis = tuple(endpoints) or (provider.capabilities(UNKNOWN_MODEL).api,)
    key = provider.key
    return [Side(provider, api, f"{key}/{api}" if len(apis) > 1 else key) for api in sorted(apis)]
