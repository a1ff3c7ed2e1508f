"""Quirks: all that is different about one provider, on one screen, each deviation with its reason.

Never switches a rule off in silence: what deviates is still run, and must still deviate.
Authors of contract tests come in through `interlingua_contract`, and the rules.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import attrs

from interlingua.errors import CallerError

FILE = "quirks.toml"


"""Name of the file beside the cassettes that `interlingua check` reads, fields and meaning as of the class."""


@attrs.frozen(kw_only=True)
class Quirks:
    """Facts and declared deviations of one provider.

    Attributes:
        models: api -> model names to try; by default one per distinct declaration in the catalogue, and one unknown.
        elements: api -> path of the array in the request body that grows with the conversation (`messages`); by
            default the array that grows is found by comparing requests.
        ids_on_wire: False for a wire that matches results to calls by order and carries no ids.
        estimate_band: lowest and highest allowed estimate / recorded input tokens.
        deviations: rule number -> reason why this provider breaks it; the rule must then be broken.
        unevidenced: capability -> reason why there can be no cassette that shows it.
        unpaired: cassette -> reason why its answer is not the one that its streamed sibling gives.
        dropped_kinds: block kind -> reason why the adapter may leave it out though core sends it (with a ledger line).
        thinking_scope: why reasoning may go back to another model (the section that says so), where that is declared.
        errors: cassette of a failure -> the error class that the documentation asks for.
        headers: lower-case names of headers that cassettes may hold beyond the usual ones.
        import_ms: milliseconds of processor time that importing the plugin may take beyond core.
    """

    models: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    elements: Mapping[str, str] = attrs.field(factory=dict)
    ids_on_wire: bool = True
    estimate_band: tuple[float, float] = (0.4, 2.5)
    deviations: Mapping[str, str] = attrs.field(factory=dict)
    unevidenced: Mapping[str, str] = attrs.field(factory=dict)
    unpaired: Mapping[str, str] = attrs.field(factory=dict)
    dropped_kinds: Mapping[str, str] = attrs.field(factory=dict)
    thinking_scope: str = ""
    errors: Mapping[str, str] = attrs.field(factory=dict)
    headers: frozenset[str] = frozenset()
    import_ms: int = 300

    def __attrs_post_init__(self) -> None:
        """Refuse a deviation without a reason."""
        for kind in ("deviations", "unevidenced", "unpaired", "dropped_kinds"):
            if bare := [name for name, reason in getattr(self, kind).items() if not reason.strip()]:
                raise ValueError(f"quirks.{kind} needs a reason for {', '.join(bare)}")


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


def quirks_beside(cassettes: Path | None) -> Quirks:
    """Return the quirks that stand beside cassettes, or none."""
    path = cassettes / FILE if cassettes is not None else None
    return read_quirks(path) if path is not None and path.is_file() else Quirks()
