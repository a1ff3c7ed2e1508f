"""Which installed provider and API a recorded exchange belongs to: by its host and endpoint, as connections declare.

Never names a service and never looks into a body. The command line comes in, and tests.
A host nobody claims is served by whoever reads that endpoint's format, the `compatible` row before others.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import attrs

from interlingua.errors import UnknownProviderError
from interlingua.plugins.provider import Provider
from interlingua.plugins.registry import Registry
from interlingua.plugins.wire import Connection, ConnectionSettings
from interlingua_cli.replay.entry import Entry

GENERIC = "compatible"


@attrs.frozen(kw_only=True)
class Match:
    """The provider that reads an entry, and by which of its APIs."""

    provider: Provider
    api: str
    connection: Connection


@attrs.frozen
class _Service:
    provider: Provider
    connection: Connection
    endpoints: tuple[tuple[str, re.Pattern[str]], ...]

    def api(self, path: str) -> str | None:
        """Return the API whose endpoint the path ends with."""
        return next((api for api, pattern in self.endpoints if pattern.search(path)), None)

    def nearness(self, hosts: tuple[str, ...]) -> int:
        """Tell how exactly this service claims a host: the length of the name that matches, 0 for not at all."""
        return max(
            (len(name) for name in self.connection.hosts if any(_claims(name, host) for host in hosts)), default=0
        )


def _claims(name: str, host: str) -> bool:
    """A host belongs to a name that it is or ends with, at a dot or (regions do so) at a hyphen."""
    return host == name or host.endswith((f".{name}", f"-{name}"))


def _hosts(netloc: str) -> tuple[str, ...]:
    """Return the host without and with its port: of local servers only the port tells which one it is."""
    both = netloc.rpartition("@")[2].lower()
    host, colon, port = both.rpartition(":")
    return (host, both) if colon and port.isdigit() else (both,)


class Matcher:
    """Finds the provider of each entry; loads every installed provider once, a broken one is left out with a WARN."""

    def __init__(self, registry: Registry) -> None:
        self._services = [_service(provider) for provider in registry.providers()]
        self._known: dict[tuple[str, str, str, str], Match | None] = {}

    def match(self, entry: Entry) -> Match:
        """Return who reads this entry.

        Raises:
            UnknownProviderError: no installed adapter has this endpoint.
        """
        url = urlsplit(entry.url)
        key = (url.netloc, url.path, entry.provider, entry.endpoint)
        if key not in self._known:
            self._known[key] = self._found(_hosts(url.netloc), url.path, entry)
        found = self._known[key]
        if found is None:
            place = f"{url.netloc}{url.path}" or "an entry without a URL"
            raise UnknownProviderError(f"no installed adapter reads {place}")
        return found

    def _found(self, hosts: tuple[str, ...], path: str, entry: Entry) -> Match | None:
        candidates = self._by_path(path.rstrip("/")) or self._by_path(f"/{entry.endpoint.strip('/')}")
        if not candidates:
            return None

        def rank(found: tuple[_Service, str]) -> tuple[int, bool, bool]:
            service = found[0]
            key = service.provider.key
            return service.nearness(hosts), key == entry.provider, key == GENERIC

        service, api = max(candidates, key=rank)  # of equals the first, which is the first by key
        return Match(provider=service.provider, api=api, connection=service.connection)

    def _by_path(self, path: str) -> list[tuple[_Service, str]]:
        return [(service, api) for service in self._services if (api := service.api(path)) is not None]


def _service(provider: Provider) -> _Service:
    connection = provider.connection(ConnectionSettings())
    endpoints = [(api, re.compile(f"(?:{pattern})$")) for api, pattern in connection.endpoints.items()]
    return _Service(provider, connection, tuple(endpoints))
