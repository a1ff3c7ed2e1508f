"""The cassettes of uploads are the requests that the plugins write, and the SDKs' types read their answers."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from anthropic.types import FileMetadata
from google.genai.types import File
from openai.types import FileDeleted, FileObject

from interlingua.plugins import Registry, WireRequest, WireResponse
from interlingua.types import DocumentBlock, MediaSource
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from tests.support import tree
from tests.uploads.file_service import read_parts

PDF = b"%PDF-1.4\n1 0 obj\n<< /Type /Pages /Count 1 >>\nendobj\n%%EOF\n"
APIS = {"anthropic": "messages", "openai": "responses", "google": "generate_content", "mistral": "chat"}
KEPT_UNTIL = datetime(2026, 11, 30, 2, 0, 0, 123456, tzinfo=UTC)


def exchanges(key: str) -> list[RecordedExchange]:
    return read_cassette(tree.ROOT / "cassettes" / key / "uploads.yaml")


@pytest.mark.parametrize("key", list(APIS))
def test_a_cassette_is_what_the_plugin_writes_and_reads(key: str) -> None:
    provider = Registry().provider(key)
    uploaded, deleted = exchanges(key)
    source = MediaSource(kind="base64", data=base64.b64encode(PDF).decode())
    block = DocumentBlock(source=source, media_type="application/pdf", title="contract.pdf")
    given = {"api": APIS[key], "block": block, "data": PDF, "name": "contract.pdf", "in_result": False}
    request = provider.auxiliary_request("upload", given)

    assert (request.method, request.body) == (uploaded.method, uploaded.request_body)
    assert uploaded.uri.endswith(request.path)
    parts = read_parts(request.headers["content-type"], request.body)
    assert (parts[-1].data, parts[-1].media_type) == (PDF, "application/pdf")
    read = provider.from_wire_auxiliary("upload", response(uploaded))
    assert read["expires_at"] == (KEPT_UNTIL if key == "google" else None)
    again: WireRequest = provider.auxiliary_request("delete_file", {"file": read["id"]})
    assert (again.method, deleted.method) == ("DELETE", "DELETE")
    assert deleted.uri.endswith(again.path)
    assert provider.from_wire_auxiliary("delete_file", response(deleted)) is None


def response(exchange: RecordedExchange) -> WireResponse:
    return WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)


def answer(key: str, at: int) -> Any:
    return json.loads(exchanges(key)[at].body)


def test_the_sdks_read_the_answers() -> None:
    anthropic = FileMetadata.model_validate(answer("anthropic", 0), strict=False)
    openai = FileObject.model_validate(answer("openai", 0))
    google = File.model_validate(answer("google", 0)["file"])

    assert (anthropic.id, anthropic.mime_type, anthropic.size_bytes) == ("file_authored1", "application/pdf", len(PDF))
    assert (openai.id, openai.purpose, openai.bytes) == ("file-authored1", "user_data", len(PDF))
    assert FileDeleted.model_validate(answer("openai", 1)).deleted
    assert google.uri is not None
    assert google.uri.endswith(str(google.name))
    assert (google.state, google.expiration_time) == ("ACTIVE", KEPT_UNTIL)


def test_a_file_that_google_could_not_read_is_an_error_and_one_in_work_is_not_ready() -> None:
    provider = Registry().provider("google")
    file = answer("google", 0)["file"]
    working = WireResponse(status=200, body=json.dumps(file | {"state": "PROCESSING"}).encode())
    failed = WireResponse(
        status=200, body=json.dumps(file | {"state": "FAILED", "error": {"message": "no PDF"}}).encode()
    )

    assert provider.from_wire_auxiliary("file_status", working)["ready"] is False
    with pytest.raises(Exception, match="could not read the file: no PDF"):
        provider.from_wire_auxiliary("file_status", failed)
