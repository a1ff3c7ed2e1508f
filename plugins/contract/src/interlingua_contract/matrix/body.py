"""A request's body under questions: is this text in it, in what form, and where.

Never knows a wire: it looks for what a leaf holds.
The accounting and the written request come in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from functools import cached_property
from typing import Any

from interlingua.json import dumps, loads, replace_lone_surrogates, thaw
from interlingua_contract import json_paths as trees

_SHORT = 3


"""Strings up to this length are everywhere and tell nothing."""


class Body:
    """A JSON body."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.tree = loads(raw)

    @cached_property
    def strings(self) -> list[tuple[trees.Path, str]]:
        """Every string leaf with its path."""
        return [(path, leaf) for path, leaf in trees.leaves(self.tree) if isinstance(leaf, str)]

    @cached_property
    def texts(self) -> Counter[str]:
        """Every string, those inside strings that hold JSON included."""
        return Counter(trees.texts(self.tree))

    @cached_property
    def _all(self) -> str:
        return "\0\0".join(self.texts)

    @cached_property
    def _objects(self) -> set[bytes]:
        """Every object, and every one inside a string, written compactly."""
        made = {dumps(node) for _, node in trees.nodes(self.tree) if isinstance(node, dict)}
        for _, text in self.strings:
            if text[:1] == "{":
                try:
                    made.add(dumps(loads(text)))
                except ValueError:
                    continue
        return made

    def has_text(self, text: str) -> bool:
        """Tell whether a text stands in the body, whole; a blank one only as a string of its own."""
        text = replace_lone_surrogates(text)
        return text in self._all if text.strip() else text in self.texts

    def has_object(self, text: str) -> bool:
        """Tell whether a JSON object is there as it is, key order included; or the text itself, where it is no JSON."""
        try:
            value = loads(text)
        except ValueError:
            return self.has_text(text)
        return dumps(value) in self._objects

    def has_content(self, value: Any) -> bool:
        """Tell whether every string of a JSON value is there."""
        found = [leaf for _, leaf in trees.leaves(thaw(value)) if isinstance(leaf, str) and len(leaf) > _SHORT]
        return all(map(self.has_text, found))

    def wraps(self, text: str) -> bool:
        """Tell whether a text stands only as the one member of an object that was put around it."""
        bare = [path for path, leaf in self.strings if leaf == replace_lone_surrogates(text)]
        return not any(len(trees.at(self.tree, path[:-1])) > 1 for path in bare)

    def tags(self, text: str) -> bool:
        """Tell whether a system message stands in tags, as a user's words."""
        return self.has_text(f"<system>\n{text}")

    def holds_together(self, texts: Sequence[str], links: Set[str], data: str) -> bool:
        """Tell whether data stands in the smallest object that holds these texts and one of these links."""
        for _, node in sorted(trees.nodes(self.tree), key=lambda pair: -len(pair[0])):
            if isinstance(node, dict):
                inside = [leaf for _, leaf in trees.leaves(node) if isinstance(leaf, str)]
                if links & set(inside) and all(any(text in leaf for leaf in inside) for text in texts):
                    return any(data in leaf for leaf in inside)
        return False
