"""pluggy's plugin managers: made, filled and checked, so that its silences become errors (STYLE: pluggy's silences).

Never discovers anything and never calls a provider's hook.
The registry comes in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pluggy

from interlingua.errors import PluginError
from interlingua.hookspecs import CONTRACT_VERSION, PLUGIN_HOOKS, PROJECT, PROVIDER_HOOKS, PluginHooks, ProviderHooks

REQUIRED = ("capabilities", "to_wire", "from_wire_response", "stream_response", "connection", "models")


def new_manager(plugins: Iterable[Any] = ()) -> pluggy.PluginManager:
    """Make a manager that knows the specs and holds these general plugins."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ProviderHooks)
    manager.add_hookspecs(PluginHooks)
    for plugin in plugins:
        register(manager, plugin, getattr(plugin, "__name__", repr(plugin)))
    return manager


def register(manager: pluggy.PluginManager, plugin: Any, name: str) -> None:
    """Register a plugin: its hooks must be callable, known, and take only arguments that exist.

    Raises:
        PluginError: they are not; the message names plugin, hook and argument.
    """
    for hook in PROVIDER_HOOKS | PLUGIN_HOOKS:
        if hasattr(plugin, hook) and not callable(getattr(plugin, hook)):
            raise PluginError(f"plugin {name!r}: {hook} is not callable; a plugin is an object: MODULE:OBJECT")
    try:
        manager.register(plugin, name=name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise PluginError(f"plugin {name!r} breaks the hook specs: {error}") from error


def provider_manager(plugin: Any, key: str, where: str, plugins: Iterable[Any]) -> pluggy.PluginManager:
    """Make the manager of one provider, with every general plugin around it.

    Raises:
        PluginError: it was written for another contract version, or lacks a required hook.
    """
    wanted = getattr(plugin, "contract_version", CONTRACT_VERSION)
    if wanted != CONTRACT_VERSION:
        raise PluginError(
            f"provider {key!r} from {where} is written for contract version {wanted}; this core has {CONTRACT_VERSION}"
        )
    manager = new_manager(plugins)
    register(manager, plugin, f"{key} ({where})")
    missing = [name for name in REQUIRED if not _answers(manager, name, plugin)]
    if missing:
        raise PluginError(f"provider {key!r} from {where} lacks the hook(s) {', '.join(missing)}")
    return manager


def folded(manager: pluggy.PluginManager, hook: str) -> list[Any]:
    """Return one caller per plugin that answers a hook, in pluggy's order, so that each may see the result so far."""
    answering = [implementation.plugin for implementation in reversed(getattr(manager.hook, hook).get_hookimpls())]
    others = manager.get_plugins()
    return [manager.subset_hook_caller(hook, others - {plugin}) for plugin in answering]


def check_general(plugin: Any, name: str) -> bool:
    """Check a general plugin: it may wrap a provider's hooks, never answer them. Return whether it has any hook.

    Raises:
        PluginError: it answers one, for every provider at once.
    """
    manager = new_manager()
    register(manager, plugin, name)
    for hook in sorted(PROVIDER_HOOKS):
        for implementation in getattr(manager.hook, hook).get_hookimpls():
            if not (implementation.wrapper or implementation.hookwrapper):
                raise PluginError(
                    f"plugin {name!r} answers {hook}; only a provider may, a plugin wraps it (wrapper=True). "
                    "Install a provider's distribution, or name it with its key: KEY=MODULE:OBJECT"
                )
    return bool(manager.get_hookcallers(plugin))


def _answers(manager: pluggy.PluginManager, name: str, plugin: Any) -> bool:
    return any(implementation.plugin is plugin for implementation in getattr(manager.hook, name).get_hookimpls())
