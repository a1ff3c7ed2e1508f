"""Of which kind the value of an option is: a number, a word of a few, an object.

Never judges what a value says: each adapter knows what its wire can say. `asked` comes in.
A value of another kind would fail deep in an adapter, or be refused by the service in its own words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import attrs

from interlingua.capabilities import AdapterCapabilities
from interlingua.errors import CallerError
from interlingua.options import Effort, ToolNamed

_EFFORTS = get_args(Effort)
_CHOICES = ("auto", "none", "required")


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Sequence) and all(isinstance(text, str) for text in value))


def _headers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in (*value, *value.values()))


def _choice(value: Any) -> bool:
    return isinstance(value, ToolNamed) or value in _CHOICES


def _facts(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() <= attrs.fields_dict(AdapterCapabilities).keys()


_KINDS: tuple[tuple[str, Callable[[Any], bool], tuple[str, ...]], ...] = (
    ("a whole number", _is(int), ("max_tokens", "top_k", "seed", "thinking_budget")),
    ("a number", _is(int, float), ("temperature", "top_p")),
    ("True or False", _is(bool), ("parallel_tool_calls", "thinking", "demote_thinking", "downscale_images")),
    ("a text", _is(str), ("api", "response_name")),
    ("a text, or several", _texts, ("stop",)),
    ("a dict", _is(Mapping), ("response_schema", "provider_options")),
    ("a dict of texts", _headers, ("headers",)),
    (f"one of {', '.join(_EFFORTS)}", _EFFORTS.__contains__, ("effort",)),
    (f"one of {', '.join(_CHOICES)}, or ToolNamed(name)", _choice, ("tool_choice",)),
    ("a dict by field names of AdapterCapabilities", _facts, ("capabilities",)),
)
_CHECKS = {name: (check, wanted) for wanted, check, names in _KINDS for name in names}


def check_values(given: Mapping[str, Any]) -> None:
    """Look at the values of options by name; None, the provider's default, is one of any.

    Raises:
        CallerError: a value is of another kind; the message says which kind is wanted.
    """
    for name, value in given.items():
        check, wanted = _CHECKS[name]
        if value is not None and not check(value):
            raise CallerError(f"option {name!r} is {wanted}, not {value!r:.80}")
