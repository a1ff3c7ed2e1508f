"""How the service is reached: hosts, plans, keys, the language of errors, attribution (WIRE.md, Connection)."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import InterlinguaError
from interlingua.plugins import Connection, ConnectionSettings
from interlingua.types.factories import user
from tests.oracle import zai_sdk
from tests.plugins.zai.asking import ZAI, asked


def reached(**options: Any) -> Connection:
    environ = {"ZAI_API_KEY": "k", "ZHIPUAI_API_KEY": "c"}
    return ZAI.connection(ConnectionSettings(environ=environ, options=options))


def key_of(connection: Connection) -> str:
    return connection.auth(asked([user("x")]))["authorization"]


def test_the_international_host_is_asked_for_english_as_the_sdk_does() -> None:
    seen: list[Any] = []
    sdk = zai_sdk.client(b"{}", status=500, seen=seen.append)
    with pytest.raises(Exception, match="500"):
        sdk.chat.completions.create(**zai_sdk.ASKED)
    found = reached()

    assert found.base_url == "https://api.z.ai/api/paas/v4"
    assert found.headers == {"accept-language": seen[0].headers["accept-language"]}
    assert key_of(found) == "Bearer k"
    assert not ZAI.connection(ConnectionSettings()).has_key


def test_the_china_host_and_the_coding_plan() -> None:
    assert reached(region="china").base_url == "https://open.bigmodel.cn/api/paas/v4"
    assert reached(region="china").headers == {}
    assert key_of(reached(region="china")) == "Bearer c"
    assert reached(plan="coding").base_url == "https://api.z.ai/api/coding/paas/v4"
    with pytest.raises(InterlinguaError, match="international, china"):
        reached(region="mars")


def test_attribution_is_off_and_then_as_the_seed_shows() -> None:
    said = {
        "user_agent": "opencode/1.0.0 (Linux x86_64)", "project": "my-project", "session": "session_123",
        "request": "user", "client": "cli",
    }  # fmt: skip
    assert reached(attribution=said).headers == {
        "accept-language": "en-US,en",
        "user-agent": "opencode/1.0.0 (Linux x86_64)",
        "x-opencode-project": "my-project",
        "x-opencode-session": "session_123",
        "x-opencode-request": "user",
        "x-opencode-client": "cli",
    }
    own = reached(attribution={"agent": "Mine", "client": "cli"}).headers
    assert own == {"accept-language": "en-US,en", "x-mine-client": "cli"}
