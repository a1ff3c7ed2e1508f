"""Serving plugins: find them, call their hooks, and turn their mistakes into typed errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from json import JSONDecodeError
from typing import Any, NamedTuple

import pluggy

from interlingua.errors import CallerError, CapabilityError, InterlinguaError, PluginError
from interlingua.plugins import Registry, WireRequest, WireResponse
from interlingua.types import Message
from interlingua_serving.hookspecs import OLDEST_SERVING, PROJECT, SERVING_HOOKS, SERVING_VERSION, ServingHooks
from interlingua_serving.values import InboundRequest, ServeContext, ServedApi, StreamWriter

REQUIRED = ("served_apis", "from_wire_request", "to_wire_response", "stream_to_wire", "to_wire_error")
"""Hooks that every serving plugin implements."""
_log = logging.getLogger("interlingua.serving")


class ServingPlugin:
    """One provider's serving plugin.

    Attributes:
        key: the provider key.
        apis: the APIs it serves.
    """

    def __init__(self, key: str, hook: Any) -> None:
        self.key, self._hook = key, hook
        self.apis: tuple[ServedApi, ...] = tuple(hook.served_apis() or ())
        if wrong := [api for api in self.apis if not isinstance(api, ServedApi)]:
            raise PluginError(f"served_apis of {key!r} must return ServedApi values, not {wrong[0]!r}", provider=key)

    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        """Read a request that a caller made in this provider's API.

        Raises:
            CallerError: the request is not valid in this API.
            CapabilityError: the plugin does not serve this API.
        """
        try:
            inbound: InboundRequest = self._answer("from_wire_request", context, request=request)
        except CallerError as error:  # callers may read the message of a value's class, but not the name of the class
            error.message = re.sub(r"^[A-Z]\w+\.", "", error.message)
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, JSONDecodeError) else "a field is missing or has the wrong type"
            raise CallerError(f"invalid request: {why}") from error
        return inbound

    def continue_request(
        self, request: WireRequest, earlier: bytes, answer: bytes, context: ServeContext
    ) -> WireRequest:
        """Return a request with the conversation that it continues.

        Args:
            request: the request.
            earlier: the body of the request of the answer that it continues.
            answer: the body of that answer.
            context: as for `from_wire_request`.

        Raises:
            CapabilityError: the API has no such requests, or the plugin does not serve it.
        """
        given = {"request": request, "earlier": earlier, "answer": answer}
        whole: WireRequest = self._answer("continue_request", context, **given)
        return whole

    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        """Write a complete answer.

        Raises:
            CapabilityError: the plugin does not serve this API.
        """
        response: WireResponse = self._answer("to_wire_response", context, message=message)
        return response

    def stream_to_wire(self, context: ServeContext) -> StreamWriter:
        """Return an object that writes the events of an answer.

        Raises:
            CapabilityError: the plugin does not serve this API.
        """
        writer: StreamWriter = self._answer("stream_to_wire", context)
        return writer

    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse:
        """Write a failure.

        Raises:
            CapabilityError: the plugin does not serve this API.
        """
        response: WireResponse = self._answer("to_wire_error", context, error=error)
        return response

    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse:
        """Write the answer to a request that is not a conversation.

        Args:
            kind: `models`, `model`, `count_tokens`, `version` or `delete`.
            value: a list of model names, a `ServedModel`, a number of tokens, None, or the id of a deleted answer.
            context: the API, and ids for the answer.

        Raises:
            CapabilityError: the API has no such request, or the plugin does not serve it.
        """
        response: WireResponse = self._answer("to_wire_auxiliary", context, kind=kind, value=value)
        return response

    def _answer(self, name: str, context: ServeContext, **arguments: Any) -> Any:
        answer = getattr(self._hook, name)(**arguments, context=context)
        if answer is None:
            raise CapabilityError(f"{self.key} does not serve {context.api!r} ({name})", provider=self.key)
        return answer


class FoundApi(NamedTuple):
    """An API and the plugin that serves it."""

    plugin: ServingPlugin
    api: ServedApi


def find_apis(registry: Registry, order: Sequence[str] = ()) -> list[FoundApi]:
    """Return the APIs that the registry's providers serve: those named in `order` first, then by provider key.

    A serving plugin that cannot be loaded is logged and left out.

    Args:
        registry: the providers. Serving plugins come from the entry point group `interlingua.serving`; a provider
            object passed to the registry may implement the serving hooks itself.
        order: provider keys.
    """
    given = [key for key, entry in registry.found().items() if entry.kind == "given"]
    keys = {entry.name for entry in registry.entry_points(PROJECT)}.intersection(registry.found()).union(given)
    found = []
    for key in sorted(keys, key=lambda key: (order.index(key) if key in order else len(order), key)):
        try:
            plugin = find_serving_plugin(registry, key)
        except CapabilityError:
            continue
        except PluginError as error:
            _log.warning("%s", error)
        else:
            found += [FoundApi(plugin, api) for api in plugin.apis]
    return found


def find_serving_plugin(registry: Registry, key: str) -> ServingPlugin:
    """Return the serving plugin of a provider.

    Args:
        registry: the providers, as for `find_apis`.
        key: the provider key.

    Raises:
        UnknownProviderError: the registry has no such provider.
        CapabilityError: the provider has no serving plugin.
        PluginError: the serving plugin cannot be loaded.
    """
    provider = registry.entry(key)
    if provider.kind == "given" and (hook := _register(registry, provider.load(), key, None)) is not None:
        return ServingPlugin(key, hook)
    for entry in registry.entry_points(PROJECT):
        if entry.name == key:
            try:
                plugin = entry.load()
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise PluginError(f"{_name(key, entry)} cannot be loaded: {why}") from error
            if (hook := _register(registry, plugin, key, entry)) is not None:
                return ServingPlugin(key, hook)
            raise PluginError(f"{_name(key, entry)} implements no serving hook", provider=key)
    raise CapabilityError(f"provider {key!r} does not serve its API: it has no serving plugin", provider=key)


def _name(key: str, entry: EntryPoint | None) -> str:
    """Return the name of a serving plugin in errors; for it the metadata of its distribution are read."""
    if entry is None:
        return f"serving plugin {key!r} from the registry's arguments"
    where = "?" if entry.dist is None else f"{entry.dist.metadata['Name']} {entry.dist.version}"
    return f"serving plugin {key!r} from {where}"


def _register(registry: Registry, plugin: Any, key: str, entry: EntryPoint | None) -> Any:
    """Return the hook caller of a plugin, wrapped by the registry's general plugins; None if it has no serving hook.

    Raises:
        PluginError: the plugin was written for another version, lacks hooks, or does not match the hook specs.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ServingHooks)
    try:
        for other in registry.plugins:
            manager.register(other)
        manager.register(plugin, key)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise PluginError(f"{_name(key, entry)} does not match the hook specs: {error}", provider=key) from error
    implemented = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    if not implemented & SERVING_HOOKS:
        return None
    _check_version(key, entry, getattr(plugin, "serving_version", 1))
    if missing := [hook for hook in REQUIRED if hook not in implemented]:
        raise PluginError(f"{_name(key, entry)} lacks the hook(s) {', '.join(missing)}", provider=key)
    return manager.hook


def _check_version(key: str, entry: EntryPoint | None, written: Any) -> None:
    if not isinstance(written, int) or isinstance(written, bool):
        raise PluginError(f"{_name(key, entry)}: serving_version must be an integer, not {written!r}")
    if OLDEST_SERVING <= written <= SERVING_VERSION:
        return
    supported = f"this interlingua-serving supports {OLDEST_SERVING} to {SERVING_VERSION}"
    upgrade = "interlingua-serving" if written > SERVING_VERSION else "the plugin"
    raise PluginError(f"{_name(key, entry)} has serving version {written}, but {supported}: upgrade {upgrade}")
