"""Every hook is documented with its exact signature, says when it is called, and is called in the test run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support import tree
from tests.support.run_record import RECORD

SPECS = (
    tree.ROOT / "core" / "src" / "interlingua" / "_plugins" / "hookspecs.py",
    tree.ROOT / "plugins" / "serving" / "src" / "interlingua_serving" / "hookspecs.py",
)
PAGE = tree.ROOT / "docs" / "reference" / "hooks.md"


def _names_marker(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "hookspec"


def _hooks() -> Iterator[ast.FunctionDef]:
    for node in [node for specs in SPECS for node in ast.walk(ast.parse(specs.read_text(encoding="utf-8")))]:
        if isinstance(node, ast.FunctionDef) and any(map(_names_marker, node.decorator_list)):
            yield node


def _signature(hook: ast.FunctionDef) -> str:
    hook.args.args = [arg for arg in hook.args.args if arg.arg != "self"]
    returns = f" -> {ast.unparse(hook.returns)}" if hook.returns else ""
    return f"{hook.name}({ast.unparse(hook.args)}){returns}"


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text).replace(",)", ")")


def test_there_are_hooks() -> None:
    assert list(_hooks()), "no function carries @hookspec"


def test_hooks_are_documented_with_their_exact_signature() -> None:
    page = PAGE.read_text(encoding="utf-8")
    squeezed = _squeezed(page)
    missing = [signature for hook in _hooks() if _squeezed(signature := _signature(hook)) not in squeezed]

    assert not missing, "docs/reference/hooks.md lacks these signatures of hookspecs.py:\n" + "\n".join(missing)


def test_hooks_have_a_heading_and_no_heading_outlives_its_hook() -> None:
    headings = set(re.findall(r"^#+ +`?(\w+)`?\s*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    hooks = {hook.name for hook in _hooks()}

    assert not hooks - headings, f"docs/reference/hooks.md needs a heading for {sorted(hooks - headings)}"
    stale = {heading for heading in headings - hooks if heading == heading.lower() and "_" in heading}
    assert not stale, f"docs/reference/hooks.md documents hooks that are gone: {sorted(stale)}"


def test_hooks_are_typed_and_say_when_they_are_called() -> None:
    untyped = [
        hook.name
        for hook in _hooks()
        if hook.returns is None or any(arg.annotation is None for arg in hook.args.args if arg.arg != "self")
    ]
    silent = [hook.name for hook in _hooks() if not ast.get_docstring(hook)]

    assert not untyped, f"hook specs are typed in full; these are not: {untyped}"
    assert not silent, f"a hook's docstring says when it is called and what it may raise; missing for {silent}"


@pytest.mark.whole_run
def test_every_hook_is_called_in_the_run() -> None:
    uncalled = sorted(hook.name for hook in _hooks() if hook.name not in RECORD.hooks)

    assert not uncalled, f"no test made pluggy call these hooks, so nothing shows they work: {uncalled}"
