"""The figures of `tests/tools/house.py` keep to `allow/house.toml`, whose lists may only shrink."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.tools import house


@pytest.mark.parametrize("figure", list(house.LISTS))
def test_the_tree_has_no_more_than_is_allowed(figure: str) -> None:
    found, entries = house.LISTS[figure](house.ROOT), house.allowed()[figure]
    new = house.unexpected(figure, found, entries)
    done = house.needless(figure, found, entries)

    assert not new, f"{figure}: " + "\n".join(f"{one}  {', '.join(found[one])}" for one in new)
    assert not done, f"no longer needed, `python tests/tools/house.py --write-allow` drops them: {done}"


def test_every_list_has_its_allowance() -> None:
    assert set(house.allowed()) == set(house.LISTS)


def test_a_circle_is_every_set_of_modules_that_reach_each_other() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e", "f"}, "e": {"d"}, "f": set(), "g": {"a"}}

    assert house.strongly_connected(graph) == [["a", "b", "c"], ["d", "e"]]
    assert not house.strongly_connected({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_an_allowed_circle_covers_a_smaller_one_only() -> None:
    assert house.unexpected("circles", ["a b"], ["a b c"]) == []
    assert house.unexpected("circles", ["a b d"], ["a b c"]) == ["a b d"]
    assert house.needless("circles", ["a b"], ["a b c", "d e"]) == ["d e"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two distributions that break each rule."""
    files = {
        "core/pyproject.toml": '[project]\nname = "interlingua"\ndependencies = ["attrs>=23"]\n'
        "[project.entry-points.pytest11]\nmade = 'interlingua._fixtures'\n",
        "core/src/interlingua/_fixtures.py": "import httpx, pytest\n",
        "core/src/interlingua/__init__.py": "class Answer: ...\nimport attrs, httpx, json\n",
        "core/src/interlingua/_deep.py": """
            # for a plan of interlingua-output, see interlingua_output.plan
            HINT = "pip install interlingua-output"
            """,
        "plugins/output/pyproject.toml": """
            [project]
            name = "interlingua-output"
            dependencies = []
            [project.optional-dependencies]
            fast = ["interlingua[x] >= 1; python_version > '3'"]
            """,
        "plugins/output/src/interlingua_output/__init__.py": "",
        "plugins/output/src/interlingua_output/plan.py": """
            class Answer: ...
            class _Mine: ...
            def f():
                import interlingua, pytest
            """,
    }
    for name, source in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
    return tmp_path


def test_what_breaks_a_rule_is_found(small: Path) -> None:
    assert list(house.shared_class_names(small)) == ["Answer"]
    assert house.named_by_core(small) == {"interlingua_output": ["core/src/interlingua/_deep.py:2"] * 2}
    assert list(house.undeclared_imports(small)) == ["interlingua -> httpx", "interlingua_output -> pytest"]
    assert house.code_lines(small, "interlingua_output") == 4
    assert house.public_names(small) == {"interlingua": 1, "interlingua_output": 0}
