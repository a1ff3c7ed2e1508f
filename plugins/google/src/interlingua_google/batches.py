"""Batches: many requests in one body or file, answered in one at half the price (WIRE.md, Batches)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import BatchAnswer, BatchStatus, WireRequest, WireResponse, dumps, loads
from interlingua_google.files import upload_request
from interlingua_google.models import API

INLINE_SIZE = 18 * 1024 * 1024
"""Bytes of requests above which they are uploaded as a file; the service takes less than 20 MB in a body."""
_KEY = "key"  # of the request's id, in its metadata or its line
_JSONL = "application/jsonl"
# codes of google.rpc.Status: the HTTP statuses and the words they stand for
_CODES = {
    1: (499, "CANCELLED"), 2: (500, "UNKNOWN"), 3: (400, "INVALID_ARGUMENT"), 4: (504, "DEADLINE_EXCEEDED"),
    5: (404, "NOT_FOUND"), 7: (403, "PERMISSION_DENIED"), 8: (429, "RESOURCE_EXHAUSTED"),
    9: (400, "FAILED_PRECONDITION"), 11: (400, "OUT_OF_RANGE"), 13: (500, "INTERNAL"), 14: (503, "UNAVAILABLE"),
    16: (401, "UNAUTHENTICATED"),
}  # fmt: skip
_HTTP = 100  # codes from here on are HTTP's own
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")


def batch_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for a kind of batches (docs/reference/hooks.md); None for others.

    Requests that fit into the body of the creation are not uploaded.
    """
    if kind == "batch_upload":
        return _upload(arguments["requests"], arguments["name"])
    if kind == "batch_create":
        return _create(arguments["requests"], arguments["name"], arguments.get("file"))
    if kind == "batch_status":
        return _get(f"/{arguments['id']}")
    if kind == "batch_results":
        result = arguments["result"]
        is_file = result.startswith("files/")
        return _get(
            f"/{result}:download?alt=media" if is_file else f"/{result}",
            stream=is_file and arguments.get("lines", False),
        )
    if kind == "batch_cancel":
        return WireRequest(path=f"/{arguments['id']}:cancel", body=b"", api=API)
    return _get("/batches?pageSize=100") if kind == "batch_list" else None


def read_batch(kind: str, response: WireResponse) -> Any:
    """Read the answer to an auxiliary request of a batch."""
    if kind == "batch_results":
        return [_answer(item) for item in _items(response.body)]
    body = loads(response.body)
    if kind == "batch_upload":
        return body["file"]["name"]
    if kind == "batch_cancel":  # an empty object
        return BatchStatus(id="", state="running", raw_state="cancelling")
    return [_status(batch) for batch in body.get("operations") or ()] if kind == "batch_list" else _status(body)


def _get(path: str, *, stream: bool = False) -> WireRequest:
    return WireRequest(method="GET", path=path, body=b"", api=API, stream=stream)


def _upload(requests: Sequence[tuple[str, WireRequest]], name: str) -> WireRequest | None:
    if _fits_in_body(requests):
        return None
    _check_api(requests)
    lines = b"".join(
        b'{"%b":%b,"request":%b}\n' % (_KEY.encode(), dumps(row), request.body) for row, request in requests
    )
    return upload_request(lines, _JSONL, name)


def _create(requests: Sequence[tuple[str, WireRequest]], name: str, file: str | None) -> WireRequest:
    _check_api(requests)
    model = requests[0][1].path.rpartition(":")[0]
    if file is None or _fits_in_body(requests):
        rows = [b'{"request":%b,"metadata":{"%b":%b}}' % (request.body, _KEY.encode(), dumps(row))
                for row, request in requests]  # fmt: skip
        source = b'{"requests":{"requests":[%b]}}' % b",".join(rows)
    else:
        source = dumps({"fileName": file})
    body = b'{"batch":{"displayName":%b,"inputConfig":%b}}' % (dumps(name), source)
    headers = {"content-type": "application/json"}
    return WireRequest(path=f"{model}:batchGenerateContent", headers=headers, body=body, api=API)


def _fits_in_body(requests: Sequence[tuple[str, WireRequest]]) -> bool:
    return sum(len(request.body) for _, request in requests) <= INLINE_SIZE


def _check_api(requests: Sequence[tuple[str, WireRequest]]) -> None:
    if others := [row for row, request in requests if request.api != API]:
        text = f"batches hold requests of generateContent only; leave out api= in {', '.join(others[:3])}"
        raise CapabilityError(text, path="options.api")


def _status(operation: Mapping[str, Any]) -> BatchStatus:
    """Read an operation; its facts are in `metadata`, which some answers consist of."""
    facts = operation.get("metadata") or operation
    state, stats = str(facts.get("state", "")), facts.get("batchStats") or {}
    failure = operation.get("error") or {}
    ended = bool(operation.get("done")) or state.endswith(_ENDED)
    name = operation.get("name") or facts.get("name")
    return BatchStatus(
        id=str(name),
        state="ended" if ended else "running",
        raw_state=state,
        name=facts.get("displayName"),
        created_at=_seconds(facts.get("createTime")),
        total=_count(stats, "requestCount"),
        succeeded=_count(stats, "successfulRequestCount"),
        failed=_count(stats, "failedRequestCount"),
        results=_results(operation, str(name)) if ended else (),
        error=failure.get("message"),
    )


def _count(stats: Mapping[str, Any], name: str) -> int | None:
    """Read a count: a string; 0 if it is absent and others are present."""
    return int(stats.get(name, 0)) if stats else None


def _seconds(time: str | None) -> float | None:
    return None if time is None else datetime.fromisoformat(time).timestamp()


def _outputs(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    facts = body.get("metadata") or {}
    yield from (place for place in (body.get("response"), facts.get("output"), body.get("output")) if place)


def _results(operation: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the file with the answers, or the name of the operation that holds them."""
    for output in _outputs(operation):
        if file := output.get("responsesFile"):
            return (str(file),)
    return (name,) if _inlined(operation) else ()


def _inlined(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    for output in _outputs(body):
        if found := (output.get("inlinedResponses") or {}).get("inlinedResponses"):
            answers: Sequence[Mapping[str, Any]] = found
            return answers
    return ()


def _items(body: bytes) -> Sequence[Mapping[str, Any]]:
    """Return the answers of an operation, which has a name, or of the lines of a file, which have none."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    with suppress(ValueError):  # the first line of an operation may be a bracket
        if "name" not in loads(lines[0]):
            return [loads(line) for line in lines]
    return _inlined(loads(body))


def _answer(item: Mapping[str, Any]) -> BatchAnswer:
    name = str(item.get(_KEY) or (item.get("metadata") or {}).get(_KEY, ""))
    if (error := item.get("error")) is not None:
        code = int(error.get("code", 13))
        status, word = (code, error.get("status")) if code >= _HTTP else _CODES.get(code, (500, "UNKNOWN"))
        body = dumps({"error": {**error, "code": status, "status": word}})
        return BatchAnswer(name, WireResponse(status=status, body=body))
    if item.get("response") is None:
        return BatchAnswer(name, None, "no answer")
    return BatchAnswer(name, WireResponse(body=dumps(item["response"])))
