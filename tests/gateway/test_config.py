"""A configuration is right, or refused by field and line before the port opens; a running gateway reads it again."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from interlingua.errors import CallerError, DecodeError
from interlingua_cli.root import cli
from interlingua_gateway import create_app
from interlingua_gateway.config import read_config
from tests.support.waiting import until

GOOD = 'auth = "none"\n\n[[routes]]\nmatch = "fast"\nto = ["anthropic:claude-haiku-4-5"]\n'


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('["anthropic:claude-haiku-4-5"]', '"openai:gpt-5"', 5, "routes[0].to must be a list of strings"),
        ('["anthropic:claude-haiku-4-5"]', "[]", 5, "routes[0].to must name at least one model"),
        ('["anthropic:claude-haiku-4-5"]', "[1]", 5, "routes[0].to must be a list of strings"),
        ('auth = "none"', 'auth = "key"', 1, "auth must be in"),
        ('auth = "none"', "body_limit = 0", 1, "body_limit must be > 0"),
        ('auth = "none"', 'drain = "5"', 1, "drain must be a number"),
        ('auth = "none"', "fetch_urls = 1", 1, "fetch_urls must be true or false"),
        ('match = "fast"', 'match = "fast"\nretries = -1', 5, "routes[0].retries must be >= 0"),
        ('match = "fast"', 'match = "fast"\nfirst_byte = -1', 5, "routes[0].first_byte must be > 0"),
        ('match = "fast"', 'match = "fast"\nmax_tokens = 0', 5, "routes[0].max_tokens must be > 0"),
        ('match = "fast"', "", 3, "routes[0].match is missing"),
        ('match = "fast"', 'match = ""', 4, "routes[0].match must not be empty"),
        ('auth = "none"', "drain = inf", 1, "drain must be a finite number"),
        ('auth = "none"', 'authh = "none"', 1, "has no setting authh"),
        ('auth = "none"', 'origins = ["http://localhost:3000/"]', 1, "origins[0] must be an origin"),
        ('auth = "none"', 'hosts = ["Gateway:80"]', 1, "hosts[0] must be a name in lower case"),
        ("[[routes]]", "[routes]", 3, "routes must be tables, [[routes]]"),
        (GOOD, "routes = 5\n", 1, "routes must be tables, [[routes]]"),
        ('match = "fast"', 'match = "fast"\nretry = 1', 3, "routes[0] has no setting retry"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(DecodeError) as refused:
        read_config(file)
    assert f"line {line}, {words}" in refused.value.message


def test_the_configuration_is_checked_and_explained(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    environ = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k"}

    def run(text: str, *more: str) -> Any:
        file.write_text(text)
        return CliRunner().invoke(cli, ["gateway", "check", "--config", str(file), *more], env=environ)

    good = run(GOOD, "--json")
    assert good.exit_code == 0, good.output
    report = json.loads(good.stdout)
    assert report["problems"] == []
    [route] = report["routes"]
    [model] = route["models"]
    assert (route["match"], model["model"]) == ("fast", "anthropic:claude-haiku-4-5")
    assert (model["input_per_mtok_usd"], model["output_per_mtok_usd"]) == ("1", "5")
    assert "1 USD per million input tokens" in run(GOOD).stdout
    wrong = run(GOOD.replace("anthropic:", "nobody:"))
    assert wrong.exit_code == 1
    assert "problem: " in wrong.stderr


@pytest.mark.parametrize(
    ("config", "line", "words"),
    [
        (GOOD.replace("anthropic:", "nobody:"), 5, "routes[0].to: no provider 'nobody' is installed"),
        (GOOD.replace("anthropic:claude-haiku-4-5", "anthropic:"), 5, "routes[0].to: "),
        (GOOD.replace("claude-haiku-4-5", "a/../b"), 5, "routes[0].to: not a model's name"),
        (GOOD.replace("claude-haiku-4-5", "{modell}"), 5, "routes[0].to: not a model's name"),
        (GOOD.replace("anthropic:claude-haiku-4-5", "nobody:{model}"), 5, "routes[0].to: no provider 'nobody'"),
        (GOOD + GOOD[GOOD.index("[[") :], 7, "routes[1].match: never used, because the route 'fast'"),
        (GOOD.replace('"fast"', '"f*"') + GOOD[GOOD.index("[[") :], 7, "routes[1].match: never used, because the rou"),
        ('apis = ["nobody"]\n', 1, "apis[0]: no installed plugin 'nobody' serves an API"),
    ],
    ids=range(8),
)
def test_a_route_that_cannot_be_used_is_refused_before_the_port_opens(
    tmp_path: Path, config: str, line: int, words: str
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(config)
    environ = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k"}
    for command in (["gateway"], ["gateway", "check"]):
        result = CliRunner().invoke(cli, [*command, "--config", str(file)], env=environ)
        assert result.exit_code != 0
        assert words in result.stderr
        assert "serving on" not in result.stderr
        assert len(command) > 1 or f"line {line}, {words}" in result.stderr
    services = create_app(environ=environ).state.services
    with pytest.raises(CallerError, match=re.escape(words)):
        services.change_config(read_config(file))


def test_routes_that_can_be_used_are_no_problem(tmp_path: Path) -> None:
    texts = ('"{model}"', '"anthropic:{model}"', '"openai:{model}"', '"claude-haiku-4-5"', '"llamacpp:any.gguf"')
    file = tmp_path / "gateway.toml"
    routes = [f'[[routes]]\nmatch = "{at}-*"\nto = [{text}]\n' for at, text in enumerate(texts)]
    file.write_text("".join(routes) + '[[routes]]\nmatch = "*"\nto = ["{model}"]\n')
    services = create_app(environ={}).state.services
    assert list(services.route_problems(read_config(file))) == []


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
def test_a_running_gateway_reads_the_configuration_again(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(GOOD)
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(file), "--port", "0"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = next(line for line in process.stderr if "serving on" in line).split()[2].rstrip(";")

        def names() -> list[str]:
            return [model["id"] for model in httpx.get(f"{url}/v1/models").json()["data"]]

        assert names() == ["fast"]
        for text in (GOOD.replace("fast", "quick"), GOOD.replace('["', '"'), GOOD.replace('"none"', '"keys"')):
            file.write_text(text)
            process.send_signal(signal.SIGHUP)
            said = next(process.stderr)
            assert ("read" in said) if "quick" in text else ("not read again" in said), said
            until(lambda: names() == ["quick"])
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize(("level", "logged"), [(None, True), ("warning", False)])
def test_the_command_logs_what_did_not_answer(tmp_path: Path, level: str | None, logged: bool) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    environ.pop("INTERLINGUA_LOG", None)
    environ |= {} if level is None else {"INTERLINGUA_LOG": level}
    command = [sys.executable, "-m", "interlingua", "gateway", "--port", "0"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = next(line for line in process.stderr if "serving on" in line).split()[2].rstrip(";")
        asked = {"model": "nobody:x", "messages": [{"role": "user", "content": "Hi"}]}
        status = httpx.post(f"{url}/v1/chat/completions", json=asked, timeout=60).status_code
        process.terminate()
        said = process.stderr.read()

    assert status == 404
    assert bool(re.search(r"^\d{4}-\d\d-\d\d .* INFO no model 'nobody:x'", said, re.MULTILINE)) is logged, said


def test_a_port_in_use_is_said_before_anything_is_served(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "interlingua", "gateway", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert "serving on" not in done.stderr
