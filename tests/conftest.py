"""What every test may use and every run obeys: the corpus fixture, and the rules about skips and whole runs.

No helper of one area lives here; those stand in that area's own conftest or in `tests/support/`.
pytest comes in by itself; no test imports this file.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.support import corpus as corpus_files
from tests.support import interrupt, run_record
from tests.support.corpus import Corpus
from tests.support.quiet import quiet_ledger

run_record.start()


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers this file gives meaning to."""
    config.addinivalue_line("markers", "whole_run: judges the run itself: goes last, and only when all tests run")
    config.addinivalue_line("markers", "live: talks to a model on this machine; skipped where there is none")


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Return the recorded traffic; without it the test skips (or fails, where the corpus is required)."""
    found = corpus_files.find()
    if found is None:
        pytest.skip(corpus_files.SKIP_REASON)
    return found


@pytest.fixture(scope="module")
def quiet() -> Iterator[None]:
    """Silence the ledger's log lines for one file of tests: generated histories lose thousands of blocks on purpose."""
    with quiet_ledger():
        yield


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Hear Ctrl-C in this test, also where the run is deaf to it."""
    with interrupt.heard():
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests that judge the run at its end; leave them out when only some tests were asked for."""
    last = [item for item in items if item.get_closest_marker("whole_run")]
    whole = (
        config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and not config.option.keyword
        and not config.option.markexpr
    )
    items[:] = [item for item in items if item not in last] + (last if whole else [])
    if last and not whole:
        config.hook.pytest_deselected(items=last)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Tell the record which test file is running."""
    run_record.RECORD.running = item.nodeid.partition("::")[0]
    return (yield)


def _refuse_corpus_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    xfailed = hasattr(report, "wasxfail")
    if report.skipped and not xfailed and corpus_files.required() and corpus_files.is_corpus_skip(reason):
        report.outcome = "failed"
        report.longrepr = f"the corpus is required ({corpus_files.REQUIRE_VARIABLE}) and this was skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Turn a skip for want of the corpus into a failure where the corpus is required."""
    report = yield
    _refuse_corpus_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Do the same for a file that skips itself whole, and tell the record which file is being imported."""
    run_record.RECORD.running = collector.nodeid
    report = yield
    _refuse_corpus_skip(report)
    return report
