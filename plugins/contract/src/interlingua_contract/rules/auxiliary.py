"""Rules on auxiliary requests: tokens are counted of the request that is asked about, batch answers keep their ids."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types import DocumentBlock, ImageBlock, MediaSource, TextBlock, assistant, system, user
from interlingua_contract.follow_ups import read_exchanges
from interlingua_contract.json_paths import texts, words_beside
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.scenes import READ, offered_tools
from interlingua_contract.subject import Aim, Subject


@rule(
    "C82",
    "The request that counts tokens is about the request given: its model, messages, system prompt and tools.",
    source="hook auxiliary_request",
    fix="""Build the request for `count_tokens` from `arguments["request"]`: the same body, without the fields that the
    endpoint refuses (a limit, streaming), and with its own path and model. A part that is left out is not counted.""",
)
def counting_asks_about_the_request(subject: Subject) -> Iterator[RuleFinding]:
    """Two different requests for each aim."""
    for aim in subject.aims:
        tools = offered_tools(aim)
        history = [user("mkt1q a question of some length"), assistant("mkt4q"), user("mkt2q")]
        if aim.capabilities.supports_system_prompt:
            history.insert(0, system("mkt0q Be brief."))
        first = subject.write(aim, history, tools, max_tokens=77)
        second = subject.write(aim, [*history, user("mkt3q")], tools, max_tokens=77)
        try:
            asked = [subject.provider.auxiliary_request("count_tokens", {"request": one}) for one in (first, second)]
        except CapabilityError:
            continue
        yield from _check_counting(first, asked[0], aim.name, aim.model)
        if asked[0].body == asked[1].body:
            yield RuleFinding("two requests are counted as one: the body does not depend on the request", aim.name)


def _check_counting(request: WireRequest, asked: WireRequest, where: str, model: str) -> Iterator[RuleFinding]:
    given, counted = texts(json.loads(request.body)), texts(json.loads(asked.body))
    decoded = "\n".join([*counted, *_unpacked(counted)])
    wanted = [leaf for leaf in given if "mkt" in leaf or leaf in (READ.name, READ.description)]
    missing = [leaf for leaf in wanted if leaf not in decoded]
    if missing:
        yield RuleFinding(f"{missing[0][:60]!r} is in the request, and is not counted", where)
    if model in given and model not in decoded and model not in asked.path:
        yield RuleFinding(f"the model {model!r} is not in the counting request", where)
    if asked.api != request.api:
        yield RuleFinding(f"it has the api {asked.api!r}, the request {request.api!r}", where)


def _unpacked(leaves: list[str]) -> Iterator[str]:
    """Yield what a leaf in base64 holds: a service may want the whole request in one field."""
    import binascii  # noqa: PLC0415  for few services

    for leaf in leaves:
        try:
            yield from texts(json.loads(base64.b64decode(leaf, validate=True)))
        except (ValueError, binascii.Error):
            continue


@rule(
    "C83",
    "Each request of a batch is in it once, under its own id, whatever the order.",
    source="hook auxiliary_request",
    fix="""Write every pair of `requests` with that pair's id and body, in the order received. Answers return in any
    order: only the id tells which question they answer.""",
)
def batches_keep_their_ids(subject: Subject) -> Iterator[RuleFinding]:
    """Three different requests of one model, in two orders."""
    aims = {aim.api: aim for aim in reversed(subject.aims)}
    for aim in aims.values() if subject.connection.batch_limits is not None else ():
        pairs = [(f"row-{at}", subject.write(aim, [user(f"mkt{at}q")], max_tokens=77)) for at in (1, 2, 3)]
        for order in (pairs, [pairs[2], pairs[0], pairs[1]]):
            body = _batch_body(subject, order)
            for name, _ in order if body is not None else ():
                found = words_beside(body, name, ["mkt1q", "mkt2q", "mkt3q"])
                if found != {own := f"mkt{name[-1]}q"}:
                    yield RuleFinding(f"under the id {name!r} of {own!r} is {sorted(found) or 'nothing'}", aim.api)
                    return


def _batch_body(subject: Subject, pairs: list[tuple[str, WireRequest]]) -> Any:
    """Return the JSON that holds the requests, of the upload or else of the creation; None if neither is offered."""
    arguments: dict[str, Any] = {"requests": pairs, "name": "contract", "file": "file-1"}
    for kind in ("batch_upload", "batch_create"):
        try:
            text = subject.provider.auxiliary_request(kind, arguments).body.decode(errors="replace")
        except CapabilityError:
            continue
        lines = [line for line in text.splitlines() if line.startswith("{") and "row-" in line]  # a file's, in a form
        if lines:
            return [json.loads(line) for line in lines]
    return None


_PDF = b"%PDF-1.7\r\n--mkt1\r\n\x00\xff mkt2 \n"
_FILE_ID = "file-mkt7q"


@rule(
    "C108",
    "A medium is uploaded whole, with its media type and name, and a request refers to the file without its bytes.",
    source="hook auxiliary_request; how-to/upload-media.md",
    fix="""For `upload`, write `data` unchanged into the body, with the media type of `block` and the file's `name`, and
    read the id from the answer; return None for media to which a request cannot refer. `to_wire` writes a block whose
    source is a `file_id` as this reference, and `delete_file` is about this file. With no files, leave
    `Connection.upload_above` None.""",
)
def media_are_uploaded_whole(subject: Subject) -> Iterator[RuleFinding]:
    """An image and a document for each API, recorded answers to uploads, and requests that refer to a file."""
    if subject.connection.upload_above is None:
        raise NotApplicable("the connection uploads nothing")
    found = 0
    for aim in {aim.api: aim for aim in reversed(subject.aims)}.values():
        for block in _media_of(aim):
            arguments = {"api": aim.api, "block": block, "data": _PDF, "name": 'a"\r\nb.pdf', "in_result": False}
            try:
                request = subject.provider.auxiliary_request("upload", arguments)
            except CapabilityError:
                continue
            found += 1
            yield from _check_upload(request, block.media_type, f"{aim.name}, {block.type}")
            yield from _check_reference(subject, aim, block)
    if not found:
        yield RuleFinding("`Connection.upload_above` is set, and no medium is uploaded: `upload` is never offered")
    removed = subject.provider.auxiliary_request("delete_file", {"file": _FILE_ID})
    if removed.method != "DELETE" and _FILE_ID not in removed.body.decode(errors="replace"):
        yield RuleFinding(f"{removed.method} {removed.path} deletes nothing", "delete_file")
    if _FILE_ID not in removed.path + removed.body.decode(errors="replace"):
        yield RuleFinding(f"{removed.path} is not about the file {_FILE_ID!r}", "delete_file")
    yield from _check_recorded_uploads(subject)


def _media_of(aim: Aim) -> Iterator[ImageBlock | DocumentBlock]:
    source = MediaSource(kind="base64", data=base64.b64encode(_PDF).decode())
    if aim.capabilities.supports_documents:
        yield DocumentBlock(source=source, media_type="application/pdf")
    if aim.capabilities.supports_images:
        yield ImageBlock(source=source, media_type="image/png")


def _check_upload(request: WireRequest, media_type: str, where: str) -> Iterator[RuleFinding]:
    if request.body.count(_PDF) != 1:
        yield RuleFinding("the body does not have the bytes of the file, once and unchanged", where)
    if media_type.encode() not in request.body and media_type not in request.headers.values():
        yield RuleFinding(f"the upload does not say {media_type}", where)
    if b"b.pdf" not in request.body:
        yield RuleFinding("the upload does not have the name of the file", where)
    if b"\r\nb.pdf" in request.body:
        yield RuleFinding("a line end in the name of a file begins another header", where)
    kind = request.headers.get("content-type", "")
    boundary = kind.partition("boundary=")[2].strip('"')
    if kind.startswith("multipart/") and request.body.count(f"--{boundary}--".encode()) != 1:
        yield RuleFinding("the body is not one multipart body with the boundary of its header", where)


def _check_reference(subject: Subject, aim: Aim, block: ImageBlock | DocumentBlock) -> Iterator[RuleFinding]:
    where = f"{aim.name}, {block.type}"
    referring = attrs.evolve(block, source=MediaSource(kind="file_id", data=_FILE_ID))
    request = subject.write(aim, [user([TextBlock(text="q"), referring])])
    if texts(json.loads(request.body)).count(_FILE_ID) != 1 or any(
        loss.block_type == block.type for loss in request.losses
    ):
        yield RuleFinding(f"a request does not refer to the file {_FILE_ID!r} once", where)
    if block.source.data.encode() in request.body:
        yield RuleFinding("a request that refers to a file holds its bytes", where)


def _check_recorded_uploads(subject: Subject) -> Iterator[RuleFinding]:
    """Read recorded answers to uploads: the id must be in the answer."""
    arguments = {"data": _PDF, "name": "a.pdf", "in_result": False}
    aim = next(iter(subject.aims))
    for block in _media_of(aim):
        try:
            given = {**arguments, "api": aim.api, "block": block}
            path = urlsplit(subject.provider.auxiliary_request("upload", given).path).path
        except CapabilityError:
            continue
        for exchange in read_exchanges(subject):
            if exchange.method != "POST" or exchange.status >= 300 or not urlsplit(exchange.uri).path.endswith(path):
                continue
            response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
            read = subject.provider.from_wire_auxiliary("upload", response)
            if not isinstance(read, dict) or read.get("id") not in texts(json.loads(exchange.body)):
                yield RuleFinding(
                    f"the answer to an upload is read as {read!r}, which has no id of it", exchange.cassette
                )
            elif (expires := read.get("expires_at")) is not None and expires.tzinfo is None:
                yield RuleFinding("`expires_at` has no time zone", exchange.cassette)
