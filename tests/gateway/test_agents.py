"""Claude Code, Codex, Gemini CLI and pi work through the gateway with a model of another API.

They run in a network namespace with loopback only. Skipped where INTERLINGUA_AGENTS names no folder they are installed
in: `npm install --prefix FOLDER` with `tests.gateway.agents.PACKAGES`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.gateway.agents import AGENTS, SAID, SECRETS, SIGNATURE, UPSTREAMS
from tests.support import tree

VARIABLE = "INTERLINGUA_AGENTS"
pytestmark = [
    pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no folder with the agents"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare: agents could reach the network"),
]


def _results(body: dict[str, Any]) -> str:
    """Return what tools gave since the last answer, as one text."""
    found = []
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        found.append(json.dumps(message["content"]))
    return " ".join(found)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agents_turns(name: str) -> None:
    inside = f"ip link set lo up && exec {sys.executable} -m tests.gateway.agents {name}"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", inside], cwd=tree.ROOT, capture_output=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    runs = json.loads(done.stdout)
    assert runs
    for run in runs:
        assert run["exit"] == 0, run
        assert SAID in run["output"], run["output"]
        assert [body["stream"] for body in run["requests"]] == [True, True], (
            "repeated, or fallen back to a whole answer"
        )
        results = _results(run["requests"][1])
        assert all(text in results for text in SECRETS.values()), results
        if UPSTREAMS.get(name, "anthropic") == "anthropic":
            answers = [message for message in run["requests"][1]["messages"] if message["role"] == "assistant"]
            signed = [part["signature"] for part in answers[-1]["content"] if part["type"] == "thinking"]
            assert signed == [SIGNATURE]
