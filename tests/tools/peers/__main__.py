"""Run other libraries' suites through a gateway over a scripted service, and print what fails beside the control.

    python -m tests.tools.peers --environments FOLDER [--suite langchain] [-k EXPRESSION]

Each suite runs in a virtual environment below FOLDER, which is made if it is missing: the libraries need different
versions of the services' SDKs. The environments need nothing of this project.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections import defaultdict
from contextlib import closing
from importlib.metadata import distributions
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs

from interlingua_gateway import config_of, create_app
from interlingua_gateway.store import GatewayStore
from tests.gateway.conftest import serving
from tests.tools.peers.service import scripted_service

UPSTREAMS = {
    "anthropic": "anthropic:claude-sonnet-4-5",
    "google": "google:gemini-3-flash-preview",
    "chat": "vllm:chat-1",
    "responses": "openai:gpt-5.1",
    "ollama": "ollama:chat-1",
}
_HERE = Path(__file__).parent


@attrs.frozen
class Suite:
    """Cases of some libraries.

    Attributes:
        cases: the file of the cases.
        packages: what its environment has, as pip's requirements.
        shown: the packages whose versions are printed.
        chosen: pytest's expression that chooses the cases of these libraries.
    """

    cases: str
    packages: tuple[str, ...]
    shown: str
    chosen: str = ""


_LANGCHAIN = ("langchain-openai", "langchain-anthropic", "langchain-google-genai", "langchain-ollama")
SUITES = {
    "langchain": Suite(
        "langchain_cases.py",
        ("langchain-tests==1.1.9", *_LANGCHAIN),
        "langchain",
        # they compare with a snapshot file, check parameters of the test itself, need a benchmark
        "not (test_serdes or test_standard_params or test_stream_time)",
    ),
    # pydantic-ai 2.38 reads no answer of anthropic 2
    "agents": Suite(
        "framework_cases.py",
        ("openai-agents", "pydantic-ai-slim[openai,anthropic,google]", "instructor", "anthropic<2"),
        "openai-agents pydantic-ai instructor anthropic",
        "agents or pydantic or instructor",
    ),
    "litellm": Suite("framework_cases.py", ("litellm", "dspy"), "litellm dspy", "litellm or dspy"),
    "llama-index": Suite("framework_cases.py", ("llama-index-llms-openai-like",), "llama-index", "llama_index"),
}


def main() -> int:
    """Run the suites; return 1 if a case fails through the gateway and not in the control."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", required=True, type=Path, help="the folder of the virtual environments")
    parser.add_argument("--suite", choices=SUITES, action="append", help="one of the suites; by default all")
    parser.add_argument("-k", default="", help="pytest's expression that chooses cases")
    given = parser.parse_args()
    routes = [{"match": f"{name}-model", "to": [model], "retries": 0} for name, model in UPSTREAMS.items()]
    with serving(scripted_service()) as service, tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/gateway.db"
        with closing(GatewayStore(database)) as store:
            _, key = store.add_key("peers")
        bases = {"anthropic": "", "google": "/v1beta", "vllm": "/v1", "openai": "/v1", "ollama": ""}
        settings = {name: {"base_url": service + path, "api_key": "any"} for name, path in bases.items()}
        config = config_of({"routes": routes, "auth": "keys", "store": database})
        app = create_app(config, settings=settings, environ={"XDG_DATA_HOME": folder})
        with serving(app) as gateway:
            peers = {"control": (service, "scripted")} | {name: (gateway, f"{name}-model") for name in UPSTREAMS}
            environ = {"PEERS": json.dumps(peers), "PEERS_KEY": key}
            worse = [
                _run(_python_of(given.environments / name, SUITES[name]), name, given.k, environ, Path(folder))
                for name in given.suite or SUITES
            ]
    return 1 if any(worse) else 0


def _python_of(folder: Path, suite: Suite) -> str:
    """Return the interpreter of a suite's environment, and print the versions in it."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", "pytest", "pytest-asyncio", *suite.packages]
        subprocess.run(install, check=True)
    [site] = folder.glob("lib/python*/site-packages")
    found = {one.name: one.version for one in distributions(path=[str(site)])}
    names = tuple(suite.shown.split())
    print(*[f"{name} {version}" for name, version in sorted(found.items()) if name.startswith(names)], sep=", ")
    return str(python)


def _run(python: str, suite: str, chosen: str, given: dict[str, str], folder: Path) -> int:
    """Run a suite, print its table, and return how many cases fail though their control passes."""
    report = folder / f"{suite}.xml"
    command = [python, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(_HERE), "--junitxml", str(report), "--tb=line"]
    scopes = [f"asyncio_default_{name}_loop_scope=session" for name in ("fixture", "test")]  # clients keep their loop
    command += [f"--override-ini={setting}" for setting in ("junit_family=xunit2", "asyncio_mode=auto", *scopes)]
    chosen = " and ".join([f"({one})" for one in (SUITES[suite].chosen, chosen) if one])
    command += [str(_HERE / SUITES[suite].cases), "-k", chosen]
    environ = {**os.environ, **given, "OPENAI_AGENTS_DISABLE_TRACING": "1", "NO_PROXY": "*"}
    subprocess.run(command, env=environ, check=False, stdout=subprocess.DEVNULL)
    outcomes: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  it is pytest's own
        client, _, place = case.get("classname", "").rpartition(".")[2].removeprefix("Test_").rpartition("_at_")
        failed = next((each for each in case if each.tag in ("failure", "error")), None)
        outcome = "skip" if case.find("skipped") is not None else "ok" if failed is None else failed.get("message", "")
        outcomes[client][place][case.get("name", "")] = outcome
    print(f"\n{suite}: passed / failed; through the gateway: failed though the control passes\n")
    peers = ("control", *UPSTREAMS)
    print(f"| client | {' | '.join(peers)} |\n|{'---|' * (len(peers) + 1)}")
    worse: list[str] = []
    for client, places in outcomes.items():
        cells = []
        control = places.get("control", {})
        for place in peers:
            found = places.get(place, {})
            bad = [name for name, outcome in found.items() if outcome not in ("ok", "skip")]
            passed = sum(outcome == "ok" for outcome in found.values())
            if place == "control":
                cells.append(f"{passed} / {len(bad)}")
                sys.stderr.writelines([f"control of {client}: {name}: {found[name][:300]}\n" for name in bad])
                continue
            new = [name for name in bad if control.get(name) == "ok"]
            worse += [f"{client} at {place}: {name}: {found[name][:300]}" for name in new]
            cells.append(f"{passed} / {len(new)}")
        print(f"| {client} | {' | '.join(cells)} |")
    sys.stderr.writelines([f"{line}\n" for line in worse])
    return len(worse)


if __name__ == "__main__":
    sys.exit(main())
