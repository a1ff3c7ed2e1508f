"""A WARNING of the log is about content or money that is lost: tests/repo/allow/warnings.toml lists each call."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from tests.support import tree

ALLOWED = tree.ROOT / "tests" / "repo" / "allow" / "warnings.toml"


def warnings_in(source: str) -> list[str]:
    """Return the text of each call of a logger's `warning`, and of each call of its `log`, of any level."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        logger = ast.unparse(node.func.value)
        if node.func.attr == "warning" and logger.endswith("log"):
            text = node.args[0]
        elif node.func.attr == "log" and logger.endswith("log"):
            text = node.args[1]
        else:
            continue
        found.append(text.value if isinstance(text, ast.Constant) else ast.unparse(text))
    return found


def _packages() -> list[Path]:
    return [path for path in tree.tracked() if path.suffix == ".py" and "src" in path.relative_to(tree.ROOT).parts]


def test_each_warning_is_a_loss_that_is_written_down() -> None:
    allowed = tomllib.loads(ALLOWED.read_text(encoding="utf-8"))
    found = {f"{path.stem}: {text}" for path in _packages() for text in warnings_in(path.read_text(encoding="utf-8"))}
    assert sorted(found) == sorted(allowed), "a warning without its loss, or a loss without its warning"
    assert all(len(loss.split()) >= 3 for loss in allowed.values())


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("_log.warning('a %s', b)", ["a %s"]),
        ("self._services.log.warning(text)", ["text"]),
        ("_log.log(logging.WARNING if lost else logging.DEBUG, 'a')", ["a"]),
        ("_log.info('a')", []),
    ],
)
def test_warnings_are_found(line: str, texts: list[str]) -> None:
    assert warnings_in(line) == texts
