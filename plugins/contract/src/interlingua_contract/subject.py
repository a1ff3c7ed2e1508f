"""The provider under test: its hooks behind core's façade, its cassettes, and its quirks."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs

from interlingua._response.framing import framer
from interlingua.errors import CallerError, CapabilityError, InterlinguaError
from interlingua.plugins import (
    EMPTY,
    Connection,
    ConnectionSettings,
    Provider,
    Registry,
    RequestContext,
    WireRequest,
    build_request,
)
from interlingua.types import Message, ModelCapabilities, Origin, RequestOptions, ToolDefinition
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from interlingua_contract.follow_ups import split_chains
from interlingua_serving import ServingPlugin, find_serving_plugin

QUIRKS_FILE = "quirks.toml"
"""Name of the file beside the cassettes that `interlingua check` reads; its fields are the fields of `Quirks`."""


@attrs.frozen(kw_only=True)
class Quirks:
    """Facts and declared deviations of one provider.

    Attributes:
        models: api -> model names to try; by default one per distinct declaration in the catalogue, and one unknown.
        elements: api -> path of the array in the request body that grows with the conversation (`messages`), and,
            after spaces, of others that grow beside it; by default the array is found by comparing requests.
        ids_on_wire: False for a wire that matches results to calls by order and carries no ids; may differ by api.
        estimate_band: lowest and highest allowed estimate / recorded input tokens.
        deviations: rule number -> words of a finding -> reason why this provider has it. Each row must match a finding;
            other findings of the rule still fail.
        unevidenced: capability -> reason why there can be no cassette that shows it.
        unpaired: cassette -> reason why its answer differs from its streamed sibling's.
        dropped_kinds: block kind -> reason why the adapter may leave it out though core sends it (with a ledger row).
        thinking_scope: why reasoning may go back to another model (the section that allows it), where that is declared.
        errors: cassette of a failure -> the error class that the documentation asks for.
        echoed: api -> pointer into a whole answer at what callers send back with the next request: an element, or an
            array of elements.
        headers: lower-case names of headers that cassettes may hold beyond the usual ones.
        connection: connection options (`settings=` of a client) that every request needs, such as a project's id.
        key_exchange: for a service that exchanges the key: `answer`, the JSON of a good answer with made-up values;
            `secret`, the token in it; `expires_at`, the time at which it expires (TOML: a date with time and zone).
        import_ms: milliseconds of processor time that importing the plugin may take beyond core.
    """

    models: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    elements: Mapping[str, str] = attrs.field(factory=dict)
    ids_on_wire: bool | Mapping[str, bool] = True
    estimate_band: tuple[float, float] = (0.4, 2.5)
    deviations: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    unevidenced: Mapping[str, str] = attrs.field(factory=dict)
    unpaired: Mapping[str, str] = attrs.field(factory=dict)
    dropped_kinds: Mapping[str, str] = attrs.field(factory=dict)
    thinking_scope: str = ""
    errors: Mapping[str, str] = attrs.field(factory=dict)
    echoed: Mapping[str, str] = attrs.field(factory=dict)
    headers: frozenset[str] = frozenset()
    connection: Mapping[str, Any] = attrs.field(factory=dict)
    key_exchange: Mapping[str, Any] = attrs.field(factory=dict)
    import_ms: int = 300

    def __attrs_post_init__(self) -> None:
        """Refuse a deviation without a reason."""
        for kind in ("unevidenced", "unpaired", "dropped_kinds"):
            if bare := [name for name, reason in getattr(self, kind).items() if not reason.strip()]:
                raise ValueError(f"quirks.{kind} needs a reason for {', '.join(bare)}")
        given: Mapping[str, Any] = self.deviations
        for number, rows in given.items():
            if not isinstance(rows, Mapping) or not rows or not all(map(str.strip, [*rows, *rows.values()])):
                raise ValueError(
                    f'quirks.deviations.{number} needs a reason for each finding: "words of it" = "reason"'
                )

    def has_call_ids(self, api: str) -> bool:
        """Return True if calls have ids on this wire."""
        return self.ids_on_wire if isinstance(self.ids_on_wire, bool) else self.ids_on_wire.get(api, True)


def read_quirks(path: Path) -> Quirks:
    """Read quirks from a TOML file; every field is optional.

    Raises:
        CallerError: an unknown field, a deviation without reason, or no TOML.
    """
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        models = {api: tuple(names) for api, names in fields.pop("models", {}).items()}
        band = tuple(fields.pop("estimate_band", Quirks().estimate_band))
        headers = frozenset(fields.pop("headers", ()))
        return Quirks(models=models, estimate_band=(band[0], band[1]), headers=headers, **fields)
    except (tomllib.TOMLDecodeError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise CallerError(f"{path} holds no quirks: {error}") from error


def find_cassettes(registry: Registry, key: str) -> Path | None:
    """Return the folder of a provider's cassettes, or None.

    That is `cassettes/KEY` in the current directory, else in the project that its distribution is installed from (as an
    editable install), or in a folder above that project, up to the root of the repository.
    """
    here = Path("cassettes") / key
    if here.is_dir():
        return here
    project = _find_project(registry, key)
    for folder in () if project is None else (project, *project.parents):
        if (found := folder / "cassettes" / key).is_dir():
            return found
        if (folder / ".git").exists():
            break
    own = project / "tests" / "cassettes" if project is not None else None
    return own if own is not None and own.is_dir() else None


def _find_project(registry: Registry, key: str) -> Path | None:
    """Return the folder that a provider's distribution is installed from; None if it is a copy."""
    try:
        text = distribution(registry.entry(key).distribution.name).read_text("direct_url.json")
    except (PackageNotFoundError, InterlinguaError, ValueError):
        return None
    source = json.loads(text or "{}")
    editable = source.get("dir_info", {}).get("editable") is True
    return Path(unquote(urlsplit(source["url"]).path)) if editable else None


def find_quirks(cassettes: Path | None) -> Quirks:
    """Return the quirks beside the cassettes, or empty ones."""
    path = cassettes / QUIRKS_FILE if cassettes is not None else None
    return read_quirks(path) if path is not None and path.is_file() else Quirks()


_CLOCK = datetime(2026, 11, 21, tzinfo=UTC)
_MESSAGE_ID = "01KAKDPZ0000000000000000AA"
UNKNOWN_MODEL = "contract-unknown-model"
UNKNOWN_OF_VENDOR = f"contract-vendor/{UNKNOWN_MODEL}"


@attrs.frozen(kw_only=True)
class Aim:
    """One thing requests are written for: a wire format and a model, with what is declared for them."""

    api: str
    model: str
    capabilities: ModelCapabilities
    connection: Mapping[str, Any] = EMPTY

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.api}/{self.model}"

    def options(self, **settings: Any) -> RequestOptions:
        """Return a request's options."""
        return RequestOptions(model=self.model, api=self.api, **{"connection": self.connection, **settings})


_SIZE_LIMITS = ("max_context", "max_output", "max_image", "many_images", "max_document", "max_media")

# models that differ in sizes only are written alike, and so are those that differ in what core plans typed answers by
_FOR_PLANS = ("schema_", "structured_in_prompt", "forced_tool_with_thinking", "thinks_by_default")
_WITHOUT_SIZES: dict[str, Any] = {
    field.name: field.default
    for field in attrs.fields(ModelCapabilities)
    if field.name == "assumed" or field.name.startswith((*_SIZE_LIMITS, *_FOR_PLANS))
}  # fmt: skip


def model_of(exchange: RecordedExchange, connection: Connection) -> str | None:
    """Return the model that an exchange's address or body names, or None."""
    endpoint = connection.find_endpoint(urlsplit(exchange.uri).path)
    if endpoint is not None and endpoint.model is not None:
        return endpoint.model
    model = exchange.request.get("model") if isinstance(exchange.request, Mapping) else None
    return str(model) if model else None


def with_streaming(exchange: RecordedExchange, provider: Provider, api: str) -> RecordedExchange:
    """Return the exchange with `streamed` as the framing of its API reads the body: content types do not tell."""
    framing = provider.connection(ConnectionSettings(api=api)).framing
    return attrs.evolve(exchange, streamed=_is_framed(framing, exchange))


def _is_framed(framing: Any, exchange: RecordedExchange) -> bool:
    """Return True if the body is not a JSON value, and the framing finds events in it."""
    body = exchange.body.removeprefix(b"\xef\xbb\xbf").lstrip()
    if framing == "ndjson" and exchange.streamed:
        return True  # a stream of one line is a JSON value too
    if framing == "sse" and body.startswith((b"{", b"[")):
        return False
    try:
        json.loads(body)
    except ValueError:
        made = framer(framing)
        try:
            return any(True for _ in chain(made.feed(exchange.body), made.close()))
        except Exception:  # a framer may raise anything: the body is not a stream of its format
            return False
    return False


def _find_unwritten(tree: ast.Module) -> Iterator[str]:
    """Yield the messages of functions whose body is only a docstring and `raise NotImplementedError("…")`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            match node.body[ast.get_docstring(node) is not None :]:
                case [ast.Raise(exc=ast.Call(ast.Name("NotImplementedError"), [ast.Constant(value=str(text))]))]:
                    yield text


class Subject:
    """One provider under test.

    Args:
        key: provider key.
        cassettes: folder of its cassettes; None for none.
        quirks: what is different about it; by default what the file `quirks.toml` beside the cassettes holds.
        registry: the registry that has the provider, and its wrappers.
        examples: generated conversations per rule.
        seed: seed of their generation.
        shrink_s: seconds spent on making a failing example smaller; 0 where only the failure counts.
    """

    def __init__(
        self,
        key: str,
        cassettes: Path | None = None,
        quirks: Quirks | None = None,
        *,
        registry: Registry | None = None,
        examples: int = 40,
        seed: int = 0,
        shrink_s: float = 3.0,
    ) -> None:
        self.key = key
        self.folder = cassettes
        self.quirks = quirks if quirks is not None else find_quirks(cassettes)
        self.informed = quirks is not None or cassettes is not None  # of what only its authors can say
        self.registry = registry or Registry()
        self.examples = examples
        self.seed = seed
        self.shrink_s = shrink_s

    def entries(self, group: str) -> list[EntryPoint]:
        """Return the installed entry points of one group under this provider's key."""
        return list(entry_points(group=group, name=self.key))

    @cached_property
    def provider(self) -> Provider:
        """The façade."""
        return self.registry.provider(self.key)

    @cached_property
    def serving(self) -> ServingPlugin:
        """The serving plugin of this provider.

        Raises:
            CapabilityError: it has none.
        """
        return find_serving_plugin(self.registry, self.key)

    @property
    def _plugin(self) -> Any:
        found = self.provider._hook.to_wire.get_hookimpls()
        return next((each.plugin for each in found if not (each.hookwrapper or each.wrapper)), None)

    @property
    def contract_version(self) -> int:
        """The contract that the plugin states; 1 if it states none."""
        return int(getattr(self._plugin, "contract_version", 1))

    @cached_property
    def unwritten(self) -> tuple[str, ...]:
        """Messages of the plugin's functions that only raise NotImplementedError, in the order to write them."""
        plugin = self._plugin
        module = sys.modules.get(type(plugin).__module__)
        place = getattr(module, "__file__", None)  # missing if the plugin is a class: its type is a builtin
        if module is None or place is None:
            return ()
        path = Path(place)
        return tuple(
            text
            for file in (sorted(path.parent.glob("*.py")) if module.__package__ else [path])
            if "NotImplementedError" in (source := file.read_text(encoding="utf-8"))
            for text in _find_unwritten(ast.parse(source))
        )

    @cached_property
    def connection(self) -> Connection:
        """The connection without any key or environment."""
        return self.provider.connection(ConnectionSettings())

    @cached_property
    def exchanges(self) -> tuple[RecordedExchange, ...]:
        """All recorded exchanges of conversations, in order; of linked ones (`follow_up`), the last answer."""
        if self.folder is None:
            return ()
        found: list[RecordedExchange] = []
        for path in sorted(self.folder.rglob("*.yaml")):
            with suppress(CallerError):  # C46 reports it, once
                chains = split_chains(self, read_cassette(path))
                found += [steps[-1].answer for steps in chains if steps[-1].found is None]  # else it was left
        return tuple(
            with_streaming(each, self.provider, api)
            for each in found
            if each.method == "POST" and (api := self.api_of(each)) is not None
        )

    def _request_of(self, exchange: RecordedExchange) -> WireRequest:
        place, api = urlsplit(exchange.uri), self.api_of(exchange) or self.apis[0]
        path = place.path.removeprefix(urlsplit(self.connection.base_url).path) + (
            f"?{place.query}" * bool(place.query)
        )
        return WireRequest(path=path, body=exchange.request_body, api=api, stream=exchange.streamed)

    @cached_property
    def apis(self) -> tuple[str, ...]:
        """The wire formats."""
        return tuple(self.connection.endpoints) or (self.provider.capabilities(UNKNOWN_MODEL).api,)

    @cached_property
    def aims(self) -> tuple[Aim, ...]:
        """The aims of requests: each API with one model per distinct declaration."""
        found: dict[tuple[str, ModelCapabilities], Aim] = {}
        for api in self.apis:
            for name in self.quirks.models.get(api) or (
                self.unknown_model,
                *[info.id for info in self.provider.models()],
            ):
                try:
                    declared = self.provider.capabilities(name, RequestOptions(model=name, api=api))
                except CapabilityError:
                    continue  # this API does not offer this model
                written_alike = attrs.evolve(declared, **_WITHOUT_SIZES)
                made = self.aim(api, name, declared)
                found.setdefault((api, written_alike), made)
        return tuple(found.values())

    def aim(self, api: str, model: str, declared: ModelCapabilities) -> Aim:
        """Return the aim of requests for a model."""
        return Aim(api=api, model=model, capabilities=declared, connection=self.quirks.connection)

    @cached_property
    def unknown_model(self) -> str:
        """A model in no catalogue, named as the known ones are: with a vendor if all of them have one."""
        names = [info.id for info in self.provider.models()]
        return UNKNOWN_OF_VENDOR if names and all("/" in name for name in names) else UNKNOWN_MODEL

    def api_of(self, exchange: RecordedExchange) -> str | None:
        """Return the API an exchange was made on, or None when it is not a conversation of this provider."""
        found = self.connection.find_endpoint(urlsplit(exchange.uri).path)
        return found.api if found is not None and found.read else None

    def model_of(self, exchange: RecordedExchange) -> str:
        """Return the model an exchange was made with."""
        return model_of(exchange, self.connection) or self.unknown_model

    def context(self, exchange: RecordedExchange) -> RequestContext:
        """Return a context for an exchange; every value is the same each time."""
        made = self.context_for(self.api_of(exchange) or self.apis[0], self.model_of(exchange))
        if not self.provider.answers_later:
            return made
        return attrs.evolve(made, echo=exchange.echo, request=self._request_of(exchange))

    def context_for(self, api: str, model: str) -> RequestContext:
        """Return a context with fixed ids and a fixed clock."""
        numbers = count(1)
        return RequestContext(
            origin=Origin(self.key, api, model),
            message_id=_MESSAGE_ID,
            session_id="contract",
            mint_tool_use_id=lambda: f"tu_01KAKDPZ000000000000{next(numbers):06d}",
            clock=lambda: _CLOCK,
        )

    def new_provider(self) -> Provider:
        """Return another façade of the same provider, without anything cached."""
        return Provider(self.key, self.provider._hook, self.provider.distribution)

    def write(
        self, aim: Aim, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any
    ) -> WireRequest:
        """Write a request.

        Raises:
            CapabilityError: the wire cannot express it.
        """
        return build_request(self.provider, messages, tools, aim.options(**options))

    def body(self, aim: Aim, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> Any:
        """Write a request and return its body parsed."""
        return json.loads(self.write(aim, messages, tools, **options).body)
