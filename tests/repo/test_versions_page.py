"""Deprecated names: marked by a decorator, listed by a program, removed after two minor versions and not before."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from interlingua import __version__
from interlingua._lazy import DEPRECATIONS, Deprecation, deprecated
from tests.repo.versions_page import PAGE, deprecations, page, table


@pytest.fixture
def no_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kept = dict(DEPRECATIONS)
    DEPRECATIONS.clear()
    yield
    DEPRECATIONS.clear()
    DEPRECATIONS.update(kept)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def test_the_page_lists_the_deprecated_names() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(deprecations()), "run python -m tests.repo.versions_page"


def test_a_deprecated_name_does_not_outlive_its_release() -> None:
    late = [one.name for one in deprecations() if numbers(__version__) >= numbers(one.removal)]
    assert not late, f"remove {late}"


def test_a_marked_function_warns_its_caller_and_works(no_others: None) -> None:
    @deprecated("0.4", "interlingua.plugins.build_request")
    def old(number: int, *, more: int = 0) -> int:
        """Return the sum."""
        return number + more

    with pytest.warns(DeprecationWarning, match="is deprecated since") as warned:
        assert old(1, more=2) == 3
    (found,) = DEPRECATIONS.values()

    assert str(warned[0].message) == (
        f"{found.name} is deprecated since 0.4 and will be removed in 0.6: use interlingua.plugins.build_request"
    )
    assert warned[0].filename == __file__
    assert old.__doc__ == "Return the sum."
    assert table([found]).splitlines()[2] == f"| `{found.name}` | 0.4 | 0.6 | `interlingua.plugins.build_request` |"


def test_marking_alone_does_not_warn(no_others: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deprecated("1.9", "x.y")(lambda: None)

    assert [one.removal for one in DEPRECATIONS.values()] == ["1.11"]


def test_a_name_lives_for_two_minor_versions() -> None:
    assert Deprecation("a", "0.1", "b").removal == "0.3"
    assert table([]) == "Today no name is deprecated.\n"
