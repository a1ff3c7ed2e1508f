"""Fixtures of the tests of wheels: the wheels, built once, and all certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheels.clean import build_wheels


@pytest.fixture(scope="session", autouse=True)
def few_certificates() -> None:
    """Trust all certificates: environments are made of packages from an index."""


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))
