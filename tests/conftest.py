"""What every test may use and every run obeys: the corpus fixture, and the rules about skips and whole runs.

Helpers of one area stand in that area's own conftest or in `tests/support/`.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import HealthCheck, settings

from tests.support import corpus as corpus_files
from tests.support import installed, interrupt, run_record
from tests.support.corpus import Corpus
from tests.support.counts import FULL
from tests.support.quiet import quiet_ledger

run_record.start()
installed.remember()
# `make test` draws the same examples each time, for everybody; CI draws new ones (.ci/run prints the seed). The first
# test of a fresh clone builds Hypothesis' tables of characters, which may take longer than it allows a test.
settings.register_profile(
    "suite", derandomize=not FULL, database=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

# The files that take a minute or more in full, the longest first: one that starts last runs alone.
LONG = (
    "tests/contract/matrix/test_pages.py",
    "tests/sessions/session/test_surviving.py",
    "tests/transcripts/test_resumed.py",
    "tests/serving/test_answers.py",
    "tests/gateway/test_kills.py",
    "tests/bulk/test_kill.py",
    "tests/gateway/test_isolation.py",
    "tests/serving/test_other_answers.py",
    "tests/gateway/test_agents.py",
    "tests/oracle/test_openai.py",
    "tests/contract/matrix/test_serving.py",
    "tests/sessions/store/test_two_processes.py",
    "tests/serving/test_chunks.py",
    "tests/transcripts/test_live.py",
    "tests/contract/test_shelf.py",
    "tests/contract/test_providers.py",
    "tests/bulk/test_live.py",
    "tests/contract/test_third_party.py",
)
JUDGING = ["tests/repo/test_cassettes.py", "tests/repo/test_hooks.py"]  # the files that hold tests marked whole_run


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers this file gives meaning to."""
    config.addinivalue_line("markers", "whole_run: judges the run itself: goes last, and only when all tests run")
    config.addinivalue_line("markers", "live: talks to a model on this machine; skipped where there is none")


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep every test, and what it starts, off the configuration and the conversations of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(folder / name))
        patch.delenv("INTERLINGUA_SESSIONS", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def few_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trust one certificate in place of all: loading all of them takes a client longer than most tests take."""
    first, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition("-----END CERTIFICATE-----")
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(f"{first[first.index('-----BEGIN') :]}{end}\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="module", autouse=True)
def leaks() -> Iterator[None]:
    """Collect garbage after each file, so that a socket left open is an error of the file that left it open.

    Later collections pass over all that is alive by then, mostly imports, which keeps them short.
    """
    yield
    gc.collect()
    gc.freeze()


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


def _is_whole(config: pytest.Config) -> bool:
    """Tell whether every test was asked for."""
    return (
        config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and not config.option.keyword
        and not config.option.markexpr
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long files first, and the tests that judge the run last; leave those out when only some tests were asked for.

    In a run on several processes no worker runs those: the first process does, when all have finished.
    """
    places = {name: at for at, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONG)))
    last = [item for item in items if item.get_closest_marker("whole_run")]
    here = _is_whole(config) and not hasattr(config, "workerinput")
    items[:] = [item for item in items if item not in last] + (last if here else [])
    if last and not here:
        config.hook.pytest_deselected(items=last)


def pytest_collection_finish() -> None:
    """Exempt what collecting tests made (imported SDKs, the tests themselves) from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    """After a whole run on several processes, run the tests that judge it here, where the records were added up."""
    done = yield
    if _distributes(session.config) and _is_whole(session.config) and not session.shouldstop:
        count = session.testscollected
        judging = [item for item in session.perform_collect(JUDGING) if item.get_closest_marker("whole_run")]
        session.testscollected = count + len(judging)
        for at, item in enumerate(judging):
            following = judging[at + 1] if at + 1 < len(judging) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return done


def _distributes(config: pytest.Config) -> bool:
    """Tell whether this process hands its tests to workers."""
    return bool(getattr(config.option, "tx", None)) and not hasattr(config, "workerinput")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add a worker's record to this process's."""
    run_record.RECORD.add(getattr(node, "workeroutput", {}).get("run_record", {"hooks": [], "cassettes": {}}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's record to the first process."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["run_record"] = run_record.RECORD.sent()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note in the record which test file is running."""
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
    """Do the same for a file that skips itself whole, and note in the record which file is being imported."""
    run_record.RECORD.running = collector.nodeid
    report = yield
    _refuse_corpus_skip(report)
    return report
