"""Adapters whose bytes depend on the interpreter's hash seed: the same in one process, others in the next.

Nothing here is shipped. The shelf comes in.
They can be pickled, so that the rule can ask for them in other processes.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from tests.contract.broken.machine import Handed, Mutant, real, subject_of


class _Unsteady(Handed):
    def __init__(self) -> None:
        super().__init__(real("anthropic"), to_wire=self.write)

    def __reduce__(self) -> Any:
        return type(self), ()

    def write(self, inner: Any, **_: Any) -> Any:
        request = inner()
        return attrs.evolve(request, body=json.dumps(self.changed(json.loads(request.body))).encode())

    def changed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Write the fields of the body as a set gives them."""
        return {name: body[name] for name in set(body)}


class _Hashed(_Unsteady):
    def changed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Name the request by the hash of its text."""
        return {**body, "metadata": {"user_id": str(hash(json.dumps(body)))}}


@attrs.frozen
class _Process(Mutant):
    made: Any = None

    def subject(self, seed: int = 0, examples: int = 40) -> Any:
        return subject_of(self.key, self.made(), "", seed, examples)


HASH_ORDER = (
    _Process("fields in the order of a set", "C58", {}, made=_Unsteady),
    _Process("a hash of the text in the body", "C58", {}, made=_Hashed),
)
