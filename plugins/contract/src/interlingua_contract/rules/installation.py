"""Rules on the plugin as a whole: all written, connection, catalogue, entry point, metadata, import without effects."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from importlib.resources import files
from urllib.parse import urlsplit

import attrs

from interlingua._plugins.hookspecs import PROJECT
from interlingua._plugins.registry import PRESETS, PROVIDERS
from interlingua.plugins import CONTRACT_VERSION, ConnectionSettings
from interlingua.types import user
from interlingua_contract.hook_calls import describe
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.scenes import offered_tools
from interlingua_contract.signing import read_credentials, secret_headers
from interlingua_contract.subject import UNKNOWN_MODEL, UNKNOWN_OF_VENDOR, Subject

_KEY = "contract-made-up-key-0123456789"
_OTHER_KEY = "contract-other-key-9876543210"
UNWRITTEN = "C00"
"""Number of the rule that lists the unwritten functions; other rules that need one of them are skipped."""


@rule(
    UNWRITTEN,
    "Every function of the plugin is written.",
    source="docs/plugins/tutorial.md",
    fix="""Write the functions in the listed order, as the tutorial does, and run the suite again; rules that need a
    missing function are skipped until then. A function counts as missing while its body is only `raise
    NotImplementedError("…")`.""",
)
def everything_is_written(subject: Subject) -> Iterator[RuleFinding]:
    """One list, in the order of the files: messages, request, response, stream."""
    if subject.unwritten:
        lines = [f"\n    {number}. {text}" for number, text in enumerate(subject.unwritten, 1)]
        yield RuleFinding(f"to write, in this order:{''.join(lines)}")


@rule(
    "C43",
    "A written request holds no secret: the key is added only by the signer, just before sending.",
    source="hook connection",
    fix="""Put the key only into the headers that `Connection.auth` or `Connection.sign` returns: not into the URL,
    the public headers, the path or the body. Read it from `settings.api_key`, else from `settings.environ` under a
    name listed in `env_vars`; another key must produce other headers.""",
)
def requests_hold_no_secret(subject: Subject) -> Iterator[RuleFinding]:
    """A made-up key by both ways, and every environment variable that is listed."""
    plain = subject.connection
    environ = dict.fromkeys(plain.env_vars, _KEY)
    for how, settings in (
        ("api_key", ConnectionSettings(api_key=_KEY)),
        ("environ", ConnectionSettings(environ={name: value for name, value in environ.items() if is_key(name)})),
    ):
        made = subject.provider.connection(settings)
        if _KEY in made.base_url or _KEY in repr(dict(made.headers)):
            yield RuleFinding(f"the key from {how} is in the base URL or the public headers", "connection")
        if _KEY in repr(dict(made.options)):
            yield RuleFinding(f"the key from {how} is in `Connection.options`, which requests may hold", "connection")
        for aim in subject.aims[:1]:
            secrets = dict.fromkeys(("api_key", "access_token", "token", "secret"), _KEY)
            asked = {"connection": {**aim.connection, **secrets}}
            request = subject.write(aim, [user("q")], offered_tools(aim), **asked)
            if _KEY in describe(request) or (made.url is not None and _KEY in made.url(request)):
                yield RuleFinding("the key is in the request or its URL", aim.name)
            given = how == "api_key" or any(map(is_key, plain.env_vars))
            other = attrs.evolve(
                settings,
                api_key=settings.api_key and _OTHER_KEY,
                environ=dict.fromkeys(settings.environ, _OTHER_KEY),
            )
            both = [
                secret_headers(one, request, read_credentials(one))
                for one in (made, subject.provider.connection(other))
            ]
            if given and not plain.has_key and None not in both and both[0] == both[1]:
                yield RuleFinding(
                    f"the signer ignores the key from {how}: another key produces the same headers", "connection"
                )


def is_key(name: str) -> bool:
    """Return True for the name of a variable that holds a key."""
    return not {"KEY", "TOKEN"}.isdisjoint(name.split("_"))  # a key may be a pair: AWS_ACCESS_KEY_ID and its secret


@rule(
    "C44",
    "The connection locates each API: an https or local base URL, and endpoints that match the written paths.",
    source="hook connection",
    fix="""Map each API in `endpoints` to a pattern that matches the end of the path that `to_wire` writes for it.
    `base_url` has no trailing slash, and `settings.base_url` overrides it.""",
)
def connection_is_complete(subject: Subject) -> Iterator[RuleFinding]:
    """Base URL, its override, endpoints, framing."""
    made = subject.connection
    url = urlsplit(made.base_url)
    if url.scheme != "https" and url.hostname not in ("localhost", "127.0.0.1", "::1"):
        yield RuleFinding(f"base URL {made.base_url!r} is neither https nor local", "connection")
    if made.base_url.endswith("/"):
        yield RuleFinding("base URL ends with a slash", "connection")
    other = subject.provider.connection(ConnectionSettings(base_url="https://proxy.example/v9"))
    if other.base_url != "https://proxy.example/v9":
        yield RuleFinding(f"settings.base_url is not used: {other.base_url!r}", "connection")
    if not made.endpoints:
        yield RuleFinding("no endpoints: recorded traffic cannot be recognised", "connection")
    for aim in subject.aims:
        request = subject.write(aim, [user("q")])
        found = made.find_endpoint(urlsplit(made.url(request) if made.url is not None else request.path).path)
        if not request.path.startswith("/") or found is None or found.api != aim.api or not found.read:
            pattern = made.endpoints.get(aim.api, "")
            yield RuleFinding(f"path {request.path!r} does not match the endpoint {pattern!r}", aim.name)
        elif found.model not in (None, aim.model):
            yield RuleFinding(
                f"the endpoint's group `model` reads {found.model!r} in the path of {aim.model!r}", aim.name
            )
        if request.method != "POST":
            yield RuleFinding(f"a conversation must be sent by POST, not {request.method}", aim.name)
        if request.api != aim.api:
            yield RuleFinding(f"the request has api {request.api!r}", aim.name)
        later = subject.provider.answers_later  # what follows may be the stream
        if not request.stream and not later and subject.write(aim, [user("q")], stream=True).stream is not True:
            yield RuleFinding("a request for a stream does not have `stream=True`", aim.name)


@rule(
    "C45",
    "The catalogue is consistent, and an unknown model gets the provider's defaults, marked assumed.",
    source="format.md, Pricing; hook models",
    fix="""Each model has one id, aliases that no other model has, limits above zero or None, and prices with a
    pricing_version and tiers in rising order. For an unknown model, return your default capabilities with
    `assumed=True`; never raise.""",
)
def catalogue_is_sound(subject: Subject) -> Iterator[RuleFinding]:
    """Ids, aliases, limits, prices, declarations."""
    names: dict[str, str] = {}
    ids = [info.id for info in subject.provider.models()]
    for name in {name for name in ids if ids.count(name) > 1}:
        yield RuleFinding(f"{name!r} is in the catalogue {ids.count(name)} times", "models")
    for info in subject.provider.models():
        for name in (info.id, *info.aliases):
            if names.setdefault(name, info.id) != info.id:
                yield RuleFinding(f"{name!r} is a name of both {names[name]} and {info.id}", "models")
        if info.prices and not info.pricing_version:
            yield RuleFinding("prices without a pricing_version", info.id)
        for price in info.prices:
            limits = [tier.above_input_tokens for tier in price.tiers]
            if limits != sorted(set(limits)):
                yield RuleFinding(f"tier limits must rise: {limits}", info.id)
        for limit in (info.max_context_tokens, info.max_output_tokens):
            if limit is not None and limit <= 0:
                yield RuleFinding(f"a limit must be above zero, not {limit}", info.id)
    yield from _check_declarations(subject)


def _check_declarations(subject: Subject) -> Iterator[RuleFinding]:
    provider = subject.provider
    infos = {info.id: info for info in provider.models()}
    for name in (UNKNOWN_MODEL, UNKNOWN_OF_VENDOR):
        if not provider.capabilities(name).assumed:
            yield RuleFinding(f"the capabilities of the unknown model {name!r} are not marked assumed", "capabilities")
    for aim in subject.aims:
        declared = aim.capabilities
        again = provider.capabilities(aim.model, aim.options())
        if again is not declared:
            yield RuleFinding("capabilities() made a new object for the same model: keep one", aim.name)
        known = infos[aim.model].max_context_tokens if aim.model in infos else None
        if known and declared.max_context_tokens != known:
            why = f"declares {declared.max_context_tokens} tokens of context, the catalogue has {known}"
            yield RuleFinding(why, aim.name)
        if declared.api != aim.api:
            yield RuleFinding(f"declares api {declared.api!r}", aim.name)
        if declared.supports_parallel_tool_calls and not declared.supports_tools:
            yield RuleFinding("declares parallel calls, but no tools", aim.name)
        try:
            re.compile(declared.tool_id_pattern)
            re.compile(declared.tool_name_pattern)
        except re.error as error:
            yield RuleFinding(f"a pattern does not compile: {error}", aim.name)


FORBIDDEN_IMPORTS = (
    "httpx",
    "requests",
    "aiohttp",
    "sqlite3",
    "pytest",
    "interlingua._http.client",
    "interlingua._http.httpx_transport",
)

_IMPORT_PROBE = """
import json, socket, sys, time
def refuse(*_, **__):
    print(json.dumps({"network": True})); sys.exit()
socket.socket.connect = socket.getaddrinfo = refuse
import interlingua._plugins.hookspecs, interlingua._plugins.registry, importlib.resources
before, started = set(sys.modules), time.process_time()
import importlib
module, _, name = sys.argv[1].partition(":")
sys.path += json.loads(sys.argv[2])
plugin = importlib.import_module(module)
for part in name.split("."):
    plugin = getattr(plugin, part)
spent = (time.process_time() - started) * 1000
print(json.dumps({"modules": sorted(set(sys.modules) - before), "ms": spent}))
"""


def find_entry_point(subject: Subject) -> importlib.metadata.EntryPoint:
    """Return the entry point the provider came from.

    Raises:
        NotApplicable: the provider is registered in code or configured, not installed.
    """
    found = subject.registry.found().get(subject.key)  # not loaded: what cannot be is one of the findings
    for group in (PROVIDERS, PRESETS):
        for entry in subject.entries(group):
            if found is not None and entry.dist is not None and entry.dist.name == found.distribution.name:
                return entry
    raise NotApplicable("no installed distribution contains this provider: it was registered in code or configured")


@rule(
    "C48",
    "The entry point refers to an object with hooks, under the provider's key, and supports this contract version.",
    source="hooks.md",
    fix="""In pyproject.toml write `[project.entry-points."interlingua.providers"]` and `acme =
    "interlingua_acme.plugin:plugin"`; the value is an object, not a module. `contract_version`, if set, must be a
    version that this interlingua supports.""",
)
def entry_point_is_an_object(subject: Subject) -> Iterator[RuleFinding]:
    """Load it as the registry does."""
    entry = find_entry_point(subject)
    plugin = entry.load()
    if isinstance(plugin, (types.ModuleType, type)):
        yield RuleFinding(f"{entry.value} is a {type(plugin).__name__}; refer to an object in it", entry.name)
    elif not any(hasattr(getattr(plugin, name, None), f"{PROJECT}_impl") for name in dir(plugin)):
        yield RuleFinding(f"{entry.value} has no hook; mark its methods with @hookimpl", entry.name)
    wanted = getattr(plugin, "contract_version", CONTRACT_VERSION)
    if wanted != CONTRACT_VERSION:
        yield RuleFinding(f"written for contract version {wanted}, this is {CONTRACT_VERSION}", entry.name)


@rule(
    "C49",
    "The distribution declares version, licence, Python and summary, depends on interlingua, and ships types.",
    source="docs/plugins/how-to/publish.md",
    fix="""Set `version`, `description`, `requires-python` and `license` in pyproject.toml's [project], depend on
    `interlingua`, and add an empty `py.typed` beside `__init__.py`.""",
)
def metadata_is_complete(subject: Subject) -> Iterator[RuleFinding]:
    """The installed metadata and the package folder."""
    entry = find_entry_point(subject)
    assert entry.dist is not None  # noqa: S101  entry_point() looked
    metadata = dict(entry.dist.metadata.items())  # type: ignore[attr-defined]
    missing = [field for field in ("Version", "Summary", "Requires-Python") if not metadata.get(field)]
    if not (metadata.get("License-Expression") or metadata.get("License")):
        missing.append("License")
    if missing:
        yield RuleFinding(f"the metadata lacks {', '.join(missing)}", entry.dist.name)
    needs = [need.partition(";")[0] for need in entry.dist.requires or ()]
    if not any(need.replace("_", "-").lower().startswith("interlingua") for need in needs):
        yield RuleFinding("it does not depend on interlingua", entry.dist.name)
    package = entry.module.partition(".")[0]
    if not files(package).joinpath("py.typed").is_file():
        yield RuleFinding(f"{package} has no py.typed", entry.dist.name)


@rule(
    "C50",
    "Importing the plugin is cheap, uses no network, and loads no HTTP library, database or client.",
    source="docs/plugins/how-to/publish.md",
    fix="""Import from `interlingua.types`, `.errors` and `.plugins` only, and read `models.json` when it is first
    needed. A plugin is a translator: core does the I/O.""",
)
def import_is_cheap(subject: Subject) -> Iterator[RuleFinding]:
    """Import it in a separate interpreter that has already loaded core."""
    entry = find_entry_point(subject)
    best = float("inf")
    found: dict[str, object] = {}
    for _ in range(3):  # processor time of a busy machine varies; the least is the cost
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _IMPORT_PROBE, entry.value, json.dumps(sys.path)],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if done.returncode or not done.stdout.strip():
            yield RuleFinding(f"it cannot be imported: {done.stderr.strip()[-300:]}", entry.value)
            return
        found = json.loads(done.stdout)
        if "network" in found:
            yield RuleFinding("importing it uses the network", entry.value)
            return
        best = min(best, float(str(found["ms"])))
        if best <= subject.quirks.import_ms:
            break
    if loaded := [name for name in FORBIDDEN_IMPORTS if name in list(found["modules"])]:  # type: ignore[call-overload]
        yield RuleFinding(f"importing it loads {', '.join(loaded)}", entry.value)
    if best > subject.quirks.import_ms:
        yield RuleFinding(f"importing takes {best:.0f} ms; {subject.quirks.import_ms} are allowed", entry.value)
