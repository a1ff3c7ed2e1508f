"""Run other libraries' suites through a gateway over a scripted service, and print what fails beside the control.

    python -m tests.tools.peers --python VENV/bin/python [--suite langchain] [-k EXPRESSION]

VENV has what `requirements.txt` here lists; it needs nothing of this project.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

from interlingua_gateway import config_of, create_app
from tests.gateway.conftest import serving
from tests.tools.peers.service import scripted_service

UPSTREAMS = {
    "anthropic": "anthropic:claude-sonnet-4-5",
    "google": "google:gemini-3-flash-preview",
    "chat": "vllm:chat-1",
    "responses": "openai:gpt-5.1",
    "ollama": "ollama:chat-1",
}
SUITES = {"langchain": "langchain_cases.py", "frameworks": "framework_cases.py"}
_HERE = Path(__file__).parent


def main() -> int:
    """Run the suites; return 1 if a case fails through the gateway and not in the control."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="the Python of an environment with the libraries")
    parser.add_argument("--suite", choices=SUITES, action="append", help="one of the suites; by default all")
    parser.add_argument("-k", default="", help="pytest's expression that chooses cases")
    given = parser.parse_args()
    routes = [{"match": f"{name}-model", "to": [model], "retries": 0} for name, model in UPSTREAMS.items()]
    with serving(scripted_service()) as service, tempfile.TemporaryDirectory() as folder:
        bases = {"anthropic": "", "google": "/v1beta", "vllm": "/v1", "openai": "/v1", "ollama": ""}
        settings = {key: {"base_url": service + path, "api_key": "any"} for key, path in bases.items()}
        app = create_app(config_of({"routes": routes}), settings=settings, environ={"XDG_DATA_HOME": folder})
        with serving(app) as gateway:
            peers = {"control": (service, "scripted")} | {name: (gateway, f"{name}-model") for name in UPSTREAMS}
            worse = [_run(given.python, suite, given.k, peers, Path(folder)) for suite in given.suite or SUITES]
    return 1 if any(worse) else 0


def _run(python: str, suite: str, chosen: str, peers: dict[str, tuple[str, str]], folder: Path) -> int:
    """Run a suite, print its table, and return how many cases fail though their control passes."""
    report = folder / f"{suite}.xml"
    command = [python, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull]
    command += [
        "--rootdir",
        str(_HERE),
        "--junitxml",
        str(report),
        "--tb=line",
        "-o",
        "junit_family=xunit2",
        "-o",
        "asyncio_mode=auto",
    ]
    command += [str(_HERE / SUITES[suite])] + (["-k", chosen] if chosen else [])
    environ = {**os.environ, "PEERS": json.dumps(peers), "OPENAI_AGENTS_DISABLE_TRACING": "1", "NO_PROXY": "*"}
    subprocess.run(command, env=environ, check=False, stdout=subprocess.DEVNULL)
    outcomes: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  it is pytest's own
        client, _, place = case.get("classname", "").rpartition(".")[2].removeprefix("Test_").rpartition("_at_")
        failed = next((each for each in case if each.tag in ("failure", "error")), None)
        outcome = "skip" if case.find("skipped") is not None else "ok" if failed is None else failed.get("message", "")
        outcomes[client][place][case.get("name", "")] = outcome
    print(f"\n{suite}: passed / failed; through the gateway: failed though the control passes\n")
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
                continue
            new = [name for name in bad if control.get(name) == "ok"]
            worse += [f"{client} at {place}: {name}: {found[name][:300]}" for name in new]
            cells.append(f"{passed} / {len(new)}")
        print(f"| {client} | {' | '.join(cells)} |")
    print(*worse, sep="\n", file=sys.stderr)
    return len(worse)


if __name__ == "__main__":
    sys.exit(main())
