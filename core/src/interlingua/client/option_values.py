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


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Sequence) and all(map(_text, value)))


def _object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _headers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_text, (*value, *value.values())))


def _effort(value: Any) -> bool:
    return value in _EFFORTS


def _choice(value: Any) -> bool:
    return isinstance(value, ToolNamed) or value in _CHOICES


def _facts(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() <= attrs.fields_dict(AdapterCapabilities).keys()


_KINDS: dict[Callable[[Any], bool], tuple[str, tuple[str, ...]]] = {
    _whole: ("a whole number", ("max_tokens", "top_k", "seed", "thinking_budget")),
    _number: ("a number", ("temperature", "top_p")),
    _flag: ("True or False", ("parallel_tool_calls", "thinking", "demote_thinking", "downscale_images")),
    _text: ("a text", ("api", "response_name")),
    _texts: ("a text, or several", ("stop",)),
    _object: ("a dict", ("response_schema", "provider_options")),
    _headers: ("a dict of texts", ("headers",)),
    _effort: (f"one of {', '.join(_EFFORTS)}", ("effort",)),
    _choice: (f"one of {', '.join(_CHOICES)}, or ToolNamed(name)", ("tool_choice",)),
    _facts: ("a dict by field names of AdapterCapabilities", ("capabilities",)),
}
_CHECKS = {name: (check, wanted) for check, (wanted, names) in _KINDS.items() for name in names}


def check_values(given: Mapping[str, Any]) -> None:
    """Look at the values of options by name; None, the provider's default, is one of any.

    Raises:
        CallerError: a value is of another kind; the message says which kind is wanted.
    """
    for name, value in given.items():
        check, wanted = _CHECKS[name]
        if value is not None and not check(value):
            raise CallerError(f"option {name!r} is {wanted}, not {value!r:.80}")
