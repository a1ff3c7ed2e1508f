"""`ProviderContract`: subclass it, name your provider, and pytest has one test for each rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from interlingua.plugins import Registry
from interlingua.types import user
from interlingua_contract import recorder
from interlingua_contract.report import check
from interlingua_contract.rule import ContractRule
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Quirks, Subject


class ProviderContract:
    """The whole contract for one provider.

    Example::

        class TestAcme(ProviderContract):
            provider = "acme"
            cassettes = Path(__file__).parent / "cassettes"

    Further tests of the subclass that are marked `vcr` replay a cassette of the same folder through a client, with
    the network blocked; `--record-mode=once` records it in the readable form, with only the headers that are allowed.

    Attributes:
        provider: provider key.
        cassettes: folder of recorded traffic.
        quirks: facts and declared deviations, each with its reason; None reads `quirks.toml` beside the cassettes.
        examples: generated conversations per rule.
        seed: seed of their generation.
        registry: registry that has the provider; by default that of the installed plugins.
    """

    pytestmark = pytest.mark.block_network

    provider: ClassVar[str]
    cassettes: ClassVar[Path | None] = None
    quirks: ClassVar[Quirks | None] = None
    examples: ClassVar[int] = 40
    seed: ClassVar[int] = 0
    registry: ClassVar[Registry | None] = None
    _subject: ClassVar[Subject]

    def __init_subclass__(cls, **named: Any) -> None:
        """Check overrides and put the rule's own test under each of their marks.

        Raises:
            TypeError: a test is overridden without `@pytest.mark.xfail(strict=True, reason=…)`, or there is no rule
                of its name.
        """
        super().__init_subclass__(**named)
        for name, value in list(vars(cls).items()):
            if not name.startswith("test_c"):
                continue
            rule = next((rule for rule in ALL if rule.test_name == name), None)
            if rule is None:
                raise TypeError(f"{cls.__name__}.{name}: there is no such rule")
            marks = [mark for mark in getattr(value, "pytestmark", ()) if mark.name == "xfail"]
            if not any(mark.kwargs.get("strict") is True and mark.kwargs.get("reason") for mark in marks):
                raise TypeError(
                    f"{cls.__name__}.{name}: a rule can be overridden only with"
                    " @pytest.mark.xfail(strict=True, reason=...); what deviates by nature goes into quirks.deviations"
                )
            test = _make_test(rule)
            test.pytestmark = marks  # type: ignore[attr-defined]
            setattr(cls, name, test)

    @pytest.fixture
    def vcr_config(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        """Options of pytest-recording for tests of the subclass that are marked `vcr`."""
        if request.node.get_closest_marker("vcr") is None:  # the rules replay by themselves
            return recorder.vcr_config()
        if not request.config.pluginmanager.is_registered(recorder):
            request.config.pluginmanager.register(recorder)
        subject = self.subject()
        written = subject.write(subject.aims[0], [user("q")]).headers
        return recorder.vcr_config({*written, *subject.quirks.headers}, subject.provider)

    @pytest.fixture
    def vcr_cassette_dir(self) -> str:
        """The folder of cassettes."""
        return str(self.cassettes or "cassettes")

    @pytest.fixture
    def default_cassette_name(self, request: pytest.FixtureRequest) -> str:
        """The file of a test: that of its mark `default_cassette`, else the test's name without `test_`."""
        marker = request.node.get_closest_marker("default_cassette")
        return str(marker.args[0]) if marker else request.node.name.removeprefix("test_")

    @classmethod
    def subject(cls) -> Subject:
        """Return the provider under test, made once per class."""
        if "_subject" not in vars(cls):
            cls._subject = Subject(
                cls.provider, cls.cassettes, cls.quirks, registry=cls.registry, examples=cls.examples, seed=cls.seed
            )
        return cls._subject


def _make_test(rule: ContractRule) -> Callable[[ProviderContract], None]:
    def test(self: ProviderContract) -> None:
        result = check(self.subject(), rule)
        if result.outcome == "skip":
            pytest.skip(f"{rule.number}: {result.reason}")
        if result.outcome == "deviates":
            pytest.xfail(f"{rule.number}: {result.reason}")
        if result.outcome == "fail":
            lines = "\n".join("- " + "\n  ".join(finding.lines()) for finding in result.findings)
            pytest.fail(
                f"{rule.number} {rule.statement}\n{lines}\n\nHow to fix: {rule.fix}\n"
                f"Source: {rule.source}\nPage: {rule.page}",
                pytrace=False,
            )

    test.__name__ = rule.test_name
    test.__qualname__ = f"ProviderContract.{rule.test_name}"
    test.__doc__ = f"{rule.number}: {rule.statement}"
    return test


for _rule in ALL:
    setattr(ProviderContract, _rule.test_name, _make_test(_rule))
