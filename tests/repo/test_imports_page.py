"""docs/plugins/imports.md lists the names that there are, and plugins import only those."""

from __future__ import annotations

import ast
from importlib import import_module

from tests.repo.imports_page import FACADES, PAGE, names, page, sentence
from tests.support import tree

EXAMPLES = sorted((tree.ROOT / "docs" / "plugins").glob("*/src/**/*.py"))


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.repo.imports_page"


def test_every_name_is_explained() -> None:
    bare = [name for facade in FACADES for name in names(facade) if not sentence(getattr(import_module(facade), name))]
    assert not bare


def test_the_examples_import_listed_names_only() -> None:
    listed = {facade: set(names(facade)) for facade in FACADES}
    found = [
        (node.module, alias.name)
        for path in EXAMPLES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "interlingua"
        for alias in node.names
    ]

    assert len(found) > 60
    assert not [each for each in found if each[1] not in listed.get(str(each[0]), ())]
