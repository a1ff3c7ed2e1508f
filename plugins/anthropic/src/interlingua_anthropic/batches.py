"""Message Batches: many requests in one body, answered within a day at half the price (WIRE.md, Batches)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from interlingua.plugins import BatchAnswer, BatchStatus, WireRequest, WireResponse, dumps, loads
from interlingua_anthropic.models import API

_PATH = "/v1/messages/batches"
_BETAS = "anthropic-beta"
# the statuses with which the service answers a request alone (WIRE.md, Errors)
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def batch_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for a kind of batches (docs/reference/hooks.md); None for others and for `batch_upload`."""
    if kind == "batch_create":
        return _create(arguments["requests"])
    if kind == "batch_status":
        return _get(f"{_PATH}/{arguments['id']}")
    if kind == "batch_cancel":
        return WireRequest(path=f"{_PATH}/{arguments['id']}/cancel", body=b"", api=API)
    if kind == "batch_list":
        return _get(f"{_PATH}?limit=100")
    if kind == "batch_results":
        return _get(arguments["result"], stream=arguments.get("lines", False))
    return None


def read_batch(kind: str, response: WireResponse) -> Any:
    """Read the answer to an auxiliary request of a batch."""
    if kind == "batch_results":
        return [_answer(loads(line)) for line in response.body.splitlines() if line.strip()]
    body = loads(response.body)
    return [_status(batch) for batch in body["data"]] if kind == "batch_list" else _status(body)


def _get(path: str, *, stream: bool = False) -> WireRequest:
    return WireRequest(method="GET", path=path, body=b"", api=API, stream=stream)


def _create(requests: Sequence[tuple[str, WireRequest]]) -> WireRequest:
    rows = [b'{"custom_id":%b,"params":%b}' % (dumps(name), request.body) for name, request in requests]
    headers: dict[str, str] = {}
    betas: dict[str, None] = {}
    for _, request in requests:
        headers |= request.headers
        betas |= dict.fromkeys(filter(None, request.headers.get(_BETAS, "").split(",")))
    if betas:
        headers[_BETAS] = ",".join(betas)
    return WireRequest(path=_PATH, headers=headers, body=b'{"requests":[%b]}' % b",".join(rows), api=API)


def _status(batch: Mapping[str, Any]) -> BatchStatus:
    ended, counts = batch["processing_status"] == "ended", batch["request_counts"]
    failed = counts["errored"] + counts["canceled"] + counts["expired"]
    url = batch.get("results_url")
    parts = urlsplit(url or "")
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return BatchStatus(
        id=batch["id"],
        state="ended" if ended else "running",
        raw_state=batch["processing_status"],
        created_at=datetime.fromisoformat(batch["created_at"]).timestamp(),
        total=counts["processing"] + counts["succeeded"] + failed,
        succeeded=counts["succeeded"] if ended else None,
        failed=failed if ended else None,
        results=(path,) if ended and url else (),
    )


def _answer(line: Mapping[str, Any]) -> BatchAnswer:
    name, result = line["custom_id"], line["result"]
    if result["type"] == "succeeded":
        return BatchAnswer(name, WireResponse(body=dumps(result["message"])))
    if result["type"] != "errored":
        return BatchAnswer(name, None, result["type"])
    whole = result["error"]  # an error inside an error, as a request alone gets it
    status = _STATUSES.get(str((whole.get("error") or {}).get("type")), 500)
    headers = {"request-id": whole["request_id"]} if whole.get("request_id") else {}
    return BatchAnswer(name, WireResponse(status=status, headers=headers, body=dumps(whole)))
