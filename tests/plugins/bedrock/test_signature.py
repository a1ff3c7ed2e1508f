"""Our signatures are botocore's, for every model, character, query, token and header."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from interlingua.plugins import HttpRequest
from interlingua_bedrock.signature import AwsKey, region_of, sign

TIME = datetime(2026, 11, 22, 13, 37, 5, tzinfo=UTC)
MODELS = (
    "amazon.nova-lite-v1:0",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/1arbu5hu2sjr",
    "arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/amazon.nova-pro-v1:0",
    "arn:aws:sagemaker:us-east-1:123456789012:endpoint/my-endpoint",
    "odd name+with (brackets)*'~!",
    "ünïcode/模型 %41%2F",
)
QUERIES = ("", "?b=2&a=1", "?byOutputModality=TEXT&empty=&a=%20x%2Fy~", "?z&a=1&a=0")
HEADERS: tuple[dict[str, str], ...] = (
    {"content-type": "application/json"},
    {
        "content-type": "application/json",
        "accept": "application/vnd.amazon.eventstream",
        "x-amz-extra": "  spaced   out  ",
        "x-custom": "Größe, 1",
        "user-agent": "interlingua/1",
        "x-amzn-trace-id": "Root=1",
    },
)
TOKENS = (None, "FwoGZXIvYXdzE+/token==")
CASES = list(itertools.product(MODELS, QUERIES, HEADERS, TOKENS))


def _theirs(method: str, url: str, headers: dict[str, str], body: bytes, key: AwsKey, region: str) -> str:
    request = AWSRequest(method=method, url=url, headers=dict(headers), data=body)
    request.context["timestamp"] = TIME.strftime("%Y%m%dT%H%M%SZ")
    signer = SigV4Auth(Credentials(key.access_key_id, key.secret_access_key, key.session_token), "bedrock", region)
    signer._modify_request_before_signing(request)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(text, request))
    return str(request.headers["Authorization"])


def _ours(method: str, url: str, headers: dict[str, str], body: bytes, key: AwsKey, region: str) -> dict[str, str]:
    return sign(HttpRequest(method, url, dict(headers), body, TIME), key, region)


def test_there_are_as_many_cases_as_are_asked_for() -> None:
    assert len(CASES) >= 64


@pytest.mark.parametrize("model", MODELS)
def test_every_signature_is_botocores(model: str) -> None:
    for _, query, headers, token in (case for case in CASES if case[0] == model):
        key = AwsKey(access_key_id="AKIDEXAMPLE", secret_access_key="wJalr/XUtnFEMI+K7MDENG", session_token=token)
        for method, operation, body in (("POST", "converse", b'{"a":"\xc3\xa9"}'), ("GET", "converse-stream", b"")):
            url = f"https://bedrock-runtime.eu-west-1.amazonaws.com/model/{quote(model, safe='')}/{operation}{query}"
            made = _ours(method, url, headers, body, key, "eu-west-1")

            assert made["authorization"] == _theirs(method, url, headers, body, key, "eu-west-1"), url
            assert made["x-amz-date"] == "20261122T133705Z"
            assert made.get("x-amz-security-token") == token


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/model/m/converse",
        "https://127.0.0.1:443/model/m/converse",
        "http://localhost/proxy/model/m/converse",
        "http://[::1]:9/model/m/converse",
        "https://h.example",
        "https://h.example/",
        "https://h.example/a//b/./c/../d/",
        "https://h.example/model/m/converse?",
    ],
)
def test_hosts_ports_and_odd_paths_sign_as_botocore_does(url: str) -> None:
    key = AwsKey(access_key_id="AKID", secret_access_key="secret")
    assert _ours("POST", url, {}, b"x", key, "us-east-1")["authorization"] == _theirs(
        "POST", url, {}, b"x", key, "us-east-1"
    )


def test_a_key_shows_no_secret() -> None:
    key = AwsKey(access_key_id="AKID", secret_access_key="hidden-one", session_token="hidden-two")
    assert "hidden" not in repr(key)


REGIONS: list[Any] = [
    ("https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse", "eu-west-1"),
    ("https://bedrock.ap-south-1.amazonaws.com/foundation-models", "ap-south-1"),
    ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/x", "us-gov-west-1"),
    ("https://vpce-1-2.bedrock-runtime.us-east-2.vpce.amazonaws.com/x", "us-east-2"),
    ("https://proxy.example/x", "default-1"),
    ("http://127.0.0.1:1/x", "default-1"),
]


@pytest.mark.parametrize(("url", "region"), REGIONS)
def test_the_region_is_the_hosts(url: str, region: str) -> None:
    assert region_of(url, "default-1") == region
