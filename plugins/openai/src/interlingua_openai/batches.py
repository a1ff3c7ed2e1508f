"""Batches: a file of requests, answered in files within a day at half the price (WIRE.md, Batches)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import BatchAnswer, BatchStatus, WireRequest, WireResponse, dumps, loads
from interlingua_chat_completions.provider import upload_batch_request
from interlingua_openai.catalogue import RESPONSES

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_VERSION = "/v1"  # part of the base URL and of the endpoints of a batch
_NAME = "name"  # of the label, in the metadata


def batch_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for a kind of batches (docs/reference/hooks.md); None for another kind."""
    if kind == "batch_upload":
        return _upload(arguments["requests"], arguments["name"])
    if kind == "batch_create":
        first: WireRequest = arguments["requests"][0][1]
        body = {
            "input_file_id": arguments["file"],
            "endpoint": _VERSION + first.path,
            "completion_window": "24h",
            "metadata": {_NAME: arguments["name"]},
        }
        return _post("/batches", dumps(body))
    if kind == "batch_status":
        return _get(f"/batches/{arguments['id']}")
    if kind == "batch_cancel":
        return _post(f"/batches/{arguments['id']}/cancel", b"")
    if kind == "batch_list":
        return _get("/batches?limit=100")
    if kind == "batch_results":
        return _get(f"/files/{arguments['result']}/content", stream=arguments.get("lines", False))
    return None


def read_batch(kind: str, response: WireResponse) -> Any:
    """Read the answer to an auxiliary request of a batch."""
    if kind == "batch_results":
        return [_answer(loads(line)) for line in response.body.splitlines() if line.strip()]
    body = loads(response.body)
    if kind == "batch_upload":
        return body["id"]
    return [_status(batch) for batch in body["data"]] if kind == "batch_list" else _status(body)


def _get(path: str, *, stream: bool = False) -> WireRequest:
    return WireRequest(method="GET", path=path, body=b"", api=RESPONSES, stream=stream)


def _post(path: str, body: bytes) -> WireRequest:
    return WireRequest(path=path, headers={"content-type": "application/json"}, body=body, api=RESPONSES)


def _upload(requests: Sequence[tuple[str, WireRequest]], name: str) -> WireRequest:
    lines = b"".join(
        b'{"custom_id":%b,"method":"POST","url":%b,"body":%b}\n'
        % (dumps(row), dumps(_VERSION + request.path), request.body)
        for row, request in requests
    )
    return upload_batch_request(lines, name, RESPONSES)


def _status(batch: Mapping[str, Any]) -> BatchStatus:
    counts = batch.get("request_counts") or {}
    validated = bool(counts.get("total"))
    errors = (batch.get("errors") or {}).get("data") or ()
    files = (batch.get("output_file_id"), batch.get("error_file_id"))
    ended = batch["status"] in _ENDED
    return BatchStatus(
        id=batch["id"],
        state="ended" if ended else "running",
        raw_state=batch["status"],
        name=(batch.get("metadata") or {}).get(_NAME),
        created_at=batch.get("created_at"),
        total=counts["total"] if validated else None,
        succeeded=counts.get("completed") if validated else None,
        failed=counts.get("failed") if validated else None,
        results=tuple(file for file in files if file) if ended else (),  # an absent file may be an empty text
        error="; ".join(_fault(error) for error in errors) or None,
    )


def _fault(error: Mapping[str, Any]) -> str:
    place = f"line {error['line']}: " if error.get("line") else ""
    return f"{place}{error.get('message') or error.get('code')} ({error.get('code')})"


def _answer(line: Mapping[str, Any]) -> BatchAnswer:
    response, error = line.get("response"), line.get("error") or {}
    if not response:
        code = str(error.get("code") or "no answer")
        return BatchAnswer(line["custom_id"], None, code.removeprefix("batch_"))
    headers = {"x-request-id": response["request_id"]} if response.get("request_id") else {}
    body = WireResponse(status=response["status_code"], headers=headers, body=dumps(response["body"]))
    return BatchAnswer(line["custom_id"], body)
