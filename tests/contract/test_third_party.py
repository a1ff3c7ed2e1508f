"""The suite in a folder that holds nothing but the class: plain pytest, network blocked, a cassette replayed by vcr."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import tree

CLASS = """
import socket
from pathlib import Path

import pytest

from interlingua._http.client import Client
from interlingua_contract.suite import ProviderContract


class TestAcme(ProviderContract):
    provider = "llamacpp"
    cassettes = Path(__file__).parent / "cassettes"
    examples = 3

    @pytest.mark.vcr
    @pytest.mark.default_cassette("recorded_text")
    def test_hello(self):
        asked = ASKED
        with Client(settings={"llamacpp": {"base_url": "http://recorded/v1", "api_key": "k"}}, retry=0) as client:
            answer = client.send(asked["messages"][-1]["content"], model="llamacpp:" + asked["model"],
                                 provider_options={n: v for n, v in asked.items() if n not in ("messages", "model")})
        assert answer.text

    def test_nothing_is_reached(self):
        with pytest.raises(Exception, match="[Nn]etwork is disabled"):
            socket.create_connection(("192.0.2.1", 80), timeout=1)
"""


def test_a_folder_with_just_the_class(tmp_path: Path) -> None:
    from interlingua_cli.cassettes import read_cassette

    shutil.copytree(tree.ROOT / "cassettes" / "llamacpp", tmp_path / "cassettes")
    asked = read_cassette(tmp_path / "cassettes" / "recorded_text.yaml")[0].request
    (tmp_path / "test_acme.py").write_text(CLASS.replace("ASKED", repr(asked)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
