"""Rules on the connection and the catalogue: no secret in a request, sane declarations, an honest unknown model.

Never reaches the service.
The rules room comes in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from interlingua.plugins.wire import ConnectionSettings
from interlingua.types.factories import user
from interlingua.types.options import AdapterOptions
from interlingua_contract.rule import Finding, rule
from interlingua_contract.scenes import READ
from interlingua_contract.subject import UNKNOWN_MODEL, Subject

KEY = "contract-made-up-key-0123456789"


@rule(
    "C43",
    "A written request holds no secret: the key comes only from the signer, just before sending.",
    source="DESIGN 5; hook connection",
    fix="""Put the key into the answer of `Connection.auth` alone: not into the base URL, the public headers, the path
    or the body. The key comes from `settings.api_key`, else from `settings.environ` under a name listed in `env`.""",
)
def requests_hold_no_secret(subject: Subject) -> Iterator[Finding]:
    """A made-up key by both ways, and every environment variable that is listed."""
    plain = subject.connection
    environ = dict.fromkeys(plain.env, KEY)
    for how, settings in (
        ("api_key", ConnectionSettings(api_key=KEY)),
        ("environ", ConnectionSettings(environ={name: value for name, value in environ.items() if _is_key(name)})),
    ):
        made = subject.provider.connection(settings)
        if KEY in made.base_url or KEY in repr(dict(made.headers)):
            yield Finding(why=f"the key given by {how} is in the base URL or the public headers", where="connection")
        for aim in subject.aims[:1]:
            request = subject.written(aim, [user("q")], [READ] if aim.capabilities.supports_tools else [])
            if KEY in repr(request):
                yield Finding(why="the key is in the request", where=aim.name)
            signed = made.auth(request)
            given = how == "api_key" or any(map(_is_key, plain.env))
            if given and not plain.has_key and KEY not in repr(dict(signed)):
                yield Finding(why=f"the signer does not use the key given by {how}", where="connection")


def _is_key(name: str) -> bool:
    return name.endswith(("_KEY", "_TOKEN"))


@rule(
    "C44",
    "The connection says where each API is: an https or local base URL, and endpoints that match the paths written.",
    source="hook connection; DESIGN 4",
    fix="""`endpoints` maps each API to a pattern that matches the end of the path that `to_wire` writes for it;
    `base_url` has no slash at its end, and `settings.base_url` overrides it.""",
)
def connection_is_complete(subject: Subject) -> Iterator[Finding]:
    """Base URL, its override, endpoints, framing."""
    made = subject.connection
    url = urlsplit(made.base_url)
    if url.scheme != "https" and url.hostname not in ("localhost", "127.0.0.1", "::1"):
        yield Finding(why=f"base URL {made.base_url!r} is neither https nor local", where="connection")
    if made.base_url.endswith("/"):
        yield Finding(why="base URL ends with a slash", where="connection")
    other = subject.provider.connection(ConnectionSettings(base_url="https://proxy.example/v9"))
    if other.base_url != "https://proxy.example/v9":
        yield Finding(why=f"settings.base_url is not used: {other.base_url!r}", where="connection")
    if not made.endpoints:
        yield Finding(why="no endpoints: recorded traffic cannot be recognised", where="connection")
    for aim in subject.aims:
        request = subject.written(aim, [user("q")])
        pattern = made.endpoints.get(aim.api, "")
        if not request.path.startswith("/") or not re.search(pattern, urlsplit(request.path).path):
            yield Finding(why=f"path {request.path!r} does not match the endpoint {pattern!r}", where=aim.name)
        if request.method != "POST":
            yield Finding(why=f"a conversation is sent by {request.method}", where=aim.name)
        if request.api != aim.api:
            yield Finding(why=f"the request says api {request.api!r}", where=aim.name)
        if not request.stream and subject.written(aim, [user("q")], stream=True).stream is not True:
            yield Finding(why="a request for a stream does not say `stream=True`", where=aim.name)


@rule(
    "C45",
    "The catalogue is sound, and a model it does not know gets the provider's defaults, marked assumed.",
    source="DESIGN 9; seed 003 §6.1",
    fix="""Give each model one id, aliases that no other model has, limits above zero or None, and prices with a
    pricing_version. `capabilities` of an unknown model: your defaults with `assumed=True`, never an exception.""",
)
def catalogue_is_sound(subject: Subject) -> Iterator[Finding]:
    """Ids, aliases, limits, prices, declarations."""
    provider = subject.provider
    names: dict[str, str] = {}
    for info in provider.models():
        for name in (info.id, *info.aliases):
            if names.setdefault(name, info.id) != info.id:
                yield Finding(why=f"{name!r} names {names[name]} and {info.id}", where="models")
        if info.prices and not info.pricing_version:
            yield Finding(why="prices without a pricing_version", where=info.id)
        for limit in (info.max_context_tokens, info.max_output_tokens):
            if limit is not None and limit <= 0:
                yield Finding(why=f"a limit of {limit}", where=info.id)
    yield from _declarations(subject)


def _declarations(subject: Subject) -> Iterator[Finding]:
    provider = subject.provider
    infos = {info.id: info for info in provider.models()}
    if not provider.capabilities(UNKNOWN_MODEL).assumed:
        yield Finding(why="an unknown model's capabilities are not marked assumed", where="capabilities")
    for aim in subject.aims:
        declared = aim.capabilities
        again = provider.capabilities(aim.model, AdapterOptions(model=aim.model, api=aim.api))
        if again is not declared:
            yield Finding(why="a new object for the same question: keep one per model", where=aim.name)
        known = infos[aim.model].max_context_tokens if aim.model in infos else None
        if known and declared.max_context_tokens != known:
            why = f"declares {declared.max_context_tokens} tokens of context, the catalogue says {known}"
            yield Finding(why=why, where=aim.name)
        if declared.api != aim.api:
            yield Finding(why=f"declares api {declared.api!r}", where=aim.name)
        if declared.supports_parallel_tool_calls and not declared.supports_tools:
            yield Finding(why="parallel calls without tools", where=aim.name)
        try:
            re.compile(declared.tool_id_pattern)
            re.compile(declared.tool_name_pattern)
        except re.error as error:
            yield Finding(why=f"a pattern does not compile: {error}", where=aim.name)
