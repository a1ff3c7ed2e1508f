"""The same conversation asked by botocore's client and by ours: same address, same body, same signature."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.awsrequest import AWSResponse

from interlingua.plugins import ConnectionSettings, HttpRequest
from interlingua.types import ImageBlock, MediaSource, TextBlock, ToolUseBlock, system, tool_result, user
from interlingua_bedrock.plugin import connection
from interlingua_bedrock.signature import AwsKey, sign
from tests.plugins.bedrock.wire import CLAUDE, answer, asked
from tests.support.adapter import READ

ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
PIXEL = "iVBORw0KGgo="


class Raw:
    """An empty body, as botocore reads one."""

    def stream(self, *_: Any, **__: Any) -> Any:
        yield b"{}"


def _sent_by_botocore(operation: str, **arguments: Any) -> Any:
    client = botocore.session.Session().create_client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="AKID",
        aws_secret_access_key="secret",
        aws_session_token="token",
    )
    sent: list[Any] = []

    def capture(request: Any, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 500, {}, Raw())

    client.meta.events.register("before-send.bedrock-runtime", capture)
    with pytest.raises(client.exceptions.ClientError):
        getattr(client, operation)(**arguments)
    return sent[0]


@pytest.mark.parametrize("model", [CLAUDE, ARN])
@pytest.mark.parametrize(("operation", "stream"), [("converse", False), ("converse_stream", True)])
def test_the_same_conversation_is_the_same_request(
    model: str, operation: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    image = {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n"}}
    call = {"toolUseId": "tooluse_1", "name": "read_file", "input": {"path": "ü"}}
    theirs = _sent_by_botocore(
        operation,
        modelId=model,
        system=[{"text": "Be kind."}],
        messages=[
            {"role": "user", "content": [{"text": "Look."}, {"image": image}]},
            {"role": "assistant", "content": [{"toolUse": call}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "r"}]}}]},
        ],
        inferenceConfig={"maxTokens": 9, "temperature": 0.5},
        toolConfig={
            "tools": [
                {
                    "toolSpec": {
                        "name": "read_file",
                        "description": "Read a file.",
                        "inputSchema": {"json": READ.input_schema},
                    }
                }
            ]
        },
    )  # fmt: skip
    own = ToolUseBlock(id="tu_1", name="read_file", input={"path": "ü"}, provider_id="tooluse_1")
    picture = ImageBlock(source=MediaSource(kind="base64", data=PIXEL), media_type="image/png")
    history = [system("Be kind."), user([TextBlock(text="Look."), picture]), answer(own), tool_result(own, "r")]
    ours = asked(history, [READ], model=model, max_tokens=9, temperature=0.5, stream=stream)
    made = connection(ConnectionSettings())
    assert made.url is not None

    assert made.url(ours) == theirs.url
    assert (ours.method, json.loads(ours.body)) == (theirs.method, json.loads(theirs.body))
    given = {
        name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in theirs.headers.items()
    }
    time = datetime.strptime(given["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    names = given["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: given[name] for name in names if name in given and not name.startswith("x-amz-")}
    key = AwsKey(access_key_id="AKID", secret_access_key="secret", session_token="token")
    signed = sign(HttpRequest(theirs.method, theirs.url, headers, theirs.body, time), key, "us-east-1")
    assert signed["authorization"] == given["authorization"]
