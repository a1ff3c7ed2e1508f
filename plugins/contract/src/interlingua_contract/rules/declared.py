"""Rules on declared facts: prices that can be true, and environment variables that have an effect."""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.plugins import Connection, ConnectionSettings, HttpRequest, WireRequest
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.rules.installation import is_key
from interlingua_contract.signing import CLOCK
from interlingua_contract.subject import Subject

_RATES = ("input_per_mtok_usd", "output_per_mtok_usd", "cached_read_per_mtok_usd", "cache_write_per_mtok_usd")
_MOST_USD = 2000
"""No list price of a million tokens is above this; a price per token, times a million twice, is."""

_FILES = ("_FILE", "_PROFILE", "_PATH", "_HOME", "_CREDENTIALS")


@rule(
    "C75",
    "Prices can be true: a cached read costs no more than input, and input no more than output, per million tokens.",
    source="format.md, Pricing; hook models",
    fix="""Prices are USD per million tokens. Usual causes: input and output exchanged, a price per thousand tokens, the
    cached price in the field of the cache write, the rates of one tier in another.""",
)
def prices_can_be_true(subject: Subject) -> Iterator[RuleFinding]:
    """Each price and tier of the catalogue."""
    for info in subject.provider.models():
        for rates in [each for price in info.prices for each in (price, *price.tiers)]:
            given, made, cached, written = (getattr(rates, name) for name in _RATES)
            if cached is not None and given is not None and cached > given:
                yield RuleFinding(f"a cached read costs {cached} USD, other input {given}", info.id)
            if given is not None and made is not None and given > made > 0:
                yield RuleFinding(f"input costs {given} USD, output {made}", info.id)
            hour = rates.cache_write_1h_per_mtok_usd
            if hour is not None and written is not None and hour < written:
                yield RuleFinding(f"a cache write for an hour costs {hour} USD, a shorter one {written}", info.id)
            if (most := max((one for one in (given, made) if one is not None), default=0)) > _MOST_USD:
                yield RuleFinding(f"a million tokens cost {most} USD", info.id)


@rule(
    "C76",
    "Each environment variable that the connection names has an effect on the connection.",
    source="hook connection",
    fix="""List in `env_vars` the variables that the hook reads from `settings.environ`, and use the value of each: an
    address, a region or an organisation that is set in the environment must be in the connection.""",
)
def variables_have_an_effect(subject: Subject) -> Iterator[RuleFinding]:
    """Each variable set by itself, and together with the others; names of files and profiles are left out."""
    names = subject.connection.env_vars
    for name in names:
        if not name.endswith(_FILES) and not _has_effect(subject, name, names):
            yield RuleFinding(f"{name} is in env_vars, and setting it changes nothing", "connection")


def _has_effect(subject: Subject, name: str, names: tuple[str, ...]) -> bool:
    others = {each: _value_of(each) for each in names if each != name}
    keys = {each: value for each, value in others.items() if is_key(each)}
    fewer = [{each: value for each, value in keys.items() if each != left} for left in keys]  # one key outranks another
    for given in ({}, others, keys, *fewer):
        for settings in ({"api_key": "k"}, {}):
            before = _describe(subject, given, **settings)
            if _describe(subject, {**given, name: _value_of(name)}, **settings) != before:
                return True
            if _describe(subject, {**given, name: "true"}, **settings) != before:
                return True
    return False


def _value_of(name: str) -> str:
    if "URL" in name or "ENDPOINT" in name or "HOST" in name:
        return f"https://{name.lower().replace('_', '-')}.example"
    return "contract-key" if is_key(name) else "eu-west-7"


def _describe(subject: Subject, environ: dict[str, str], **settings: str) -> str:
    """Return what a connection shows: addresses, headers and secrets, or the words with which it is refused."""
    try:
        made = subject.provider.connection(ConnectionSettings(environ=environ, **settings))  # type: ignore[arg-type]
        request = WireRequest(path="/contract", body=b"{}", api=subject.apis[0])
        shown = [
            made.base_url,
            dict(made.headers),
            dict(made.options),
            made.has_key,
            made.framing,
            dict(made.auth(request)),
        ]
        shown.append(made.url(request) if made.url is not None else "")
        return repr([*shown, _signed(made, request.body)])
    except Exception as error:  # a half of a pair of keys is refused
        return repr(error)


def _signed(made: Connection, body: bytes) -> object:
    if made.sign is None:
        return ""
    if made.key_exchange is not None:
        return tuple(made.key_exchange.request(CLOCK))
    secret = made.credentials(None) if made.credentials is not None else None
    return dict(made.sign(HttpRequest("POST", made.base_url, {}, body, CLOCK), secret))
