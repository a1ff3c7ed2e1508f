"""The recipes of the administrators' page: systemd, nginx and Caddy check them if they are installed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlingua_cli.root import cli
from tests.support import tree

PAGE = (tree.ROOT / "docs" / "how-to" / "administer-a-gateway.md").read_text(encoding="utf-8")


def _block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1, language
    return str(found[0])


def _options() -> set[str]:
    text = CliRunner().invoke(cli, ["gateway", "--help"]).output
    return set(re.findall(r"--[a-z-]+", text))


def _run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_commands_have_options_that_exist() -> None:
    unit, image = RawConfigParser(strict=False), _block("dockerfile")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(_block("ini"))
    start = shlex.split(unit["Service"]["ExecStart"])
    assert start[1] == "gateway"
    entry = re.search(r"^ENTRYPOINT (\[.*\])$", image, re.MULTILINE)
    assert entry is not None
    for options in (start, re.findall(r'"(.*?)"', entry[1])):
        assert {one for one in options if one.startswith("--")} <= _options()
    assert int(unit["Service"]["TimeoutStopSec"]) > 30  # the default of drain
    words = {line.split()[0] for line in image.replace("\\\n", " ").splitlines() if line and not line.startswith("#")}
    assert words <= {"FROM", "RUN", "COPY", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "interlingua-gateway.service"
    file.write_text(_block("ini").replace("/opt/interlingua/bin/interlingua", "/bin/true"))
    ended = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert file.name not in ended.stderr, ended.stderr


@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="no nginx or openssl")
def test_nginx_reads_its_recipe(tmp_path: Path) -> None:
    key, certificate = tmp_path / "k.pem", tmp_path / "c.pem"
    subject = ["-subj", "/CN=gateway.example.org", "-days", "1", "-nodes"]
    _run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-keyout", str(key), "-out", str(certificate), *subject)
    server = _block("nginx").replace("/etc/ssl/gateway.pem", str(certificate))
    server = server.replace("/etc/ssl/gateway.key", str(key))
    file = tmp_path / "nginx.conf"
    file.write_text(
        f"pid {tmp_path}/pid;\nerror_log {tmp_path}/log;\nevents {{}}\nhttp {{ access_log off;\n{server}}}\n"
    )
    command = ["nginx", "-t", "-c", str(file), "-p", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "syntax is ok" in ended.stderr, ended.stderr  # it also wants the folders of its package


@pytest.mark.skipif(not shutil.which("caddy"), reason="no caddy")
def test_caddy_reads_its_recipe(tmp_path: Path) -> None:
    file = tmp_path / "Caddyfile"
    file.write_text(_block("caddy"))
    _run("caddy", "validate", "--config", str(file), "--adapter", "caddyfile")
