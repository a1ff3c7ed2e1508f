"""The memory of uploaded files, and what is uploaded when."""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import attrs

from interlingua import AsyncClient, Client
from interlingua.errors import (
    APITimeoutError,
    CallerError,
    CapabilityError,
    InterlinguaError,
    MalformedResponseError,
    ProviderError,
)
from interlingua.plugins import Connection, WireRequest
from interlingua.transport import TimeLimits, Timeout
from interlingua.types import MediaSource

_log = logging.getLogger("interlingua")
_MARGIN = timedelta(minutes=10)  # a file that expires within this time is uploaded again
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GONE = frozenset({400, 403, 404, 410, 422})  # statuses with which services refuse a file that they do not have
_POLLS, _POLL_SECONDS = 60, 2.0
_LAST_SECONDS = 5.0  # for the deletion of a file that was uploaded in vain
_MOST_FILES = 10_000  # that are remembered; the oldest are forgotten


@attrs.frozen(kw_only=True)
class UploadedFile:
    """A file at a service.

    Attributes:
        provider: provider key.
        account: digest of the address and the key; a file belongs to one account.
        digest: SHA-256 of the bytes and their media type.
        id: id by which a request refers to the file.
        size: bytes.
        media_type: IANA media type.
        uploaded_at: time of the upload.
        expires_at: when the service deletes it, or None if it keeps the file.
    """

    provider: str
    account: str
    digest: str
    id: str
    size: int
    media_type: str
    uploaded_at: datetime
    expires_at: datetime | None = None


class Uploads:
    """Uploads large media of requests once, for `Client(uploads=…)`; safe for several clients, threads and tasks.

    A medium of more bytes than the plugin names (`Connection.upload_above`) is uploaded when a request with it is
    sent, and the request refers to it. Services without files get the bytes. A file that expires soon, or that the
    service no longer has, is uploaded again.

    Args:
        path: file that keeps the memory, a JSON object a line, without keys and contents; None keeps it in this object.
            It is written whole after each upload: of two processes, the last one's files are remembered.
        above: bytes above which media are uploaded; None leaves that to the plugins, 0 uploads all.

    Raises:
        CallerError: the file cannot be read.
    """

    def __init__(self, path: str | Path | None = None, *, above: int | None = None) -> None:
        if above is not None and above < 0:
            raise CallerError(f"above must not be negative: {above}")
        self._path = None if path is None else Path(path)
        self._above = above
        self._lock = Lock()
        self._files: dict[tuple[str, str, str], UploadedFile] = {}
        if self._path is not None and self._path.exists():
            for found in _read(self._path):
                self._files[found.account, found.provider, found.digest] = found

    @property
    def files(self) -> tuple[UploadedFile, ...]:
        """The files that services are known to have, in the order of their upload."""
        with self._lock:
            return tuple(self._files.values())

    def delete(self, client: Client, *files: UploadedFile) -> None:
        """Delete files at their services and forget them: those given, else all of this client's accounts.

        Raises:
            ProviderError: a service refused; the file is still known.
        """
        for found in self.own_files(client, *files):
            try:
                client.auxiliary(found.provider, "delete_file", file=found.id)
            except ProviderError as error:
                _pass_if_gone(error)
            self._drop(found)

    async def delete_async(self, client: AsyncClient, *files: UploadedFile) -> None:
        """Delete files as `delete` does."""
        for found in self.own_files(client, *files):
            try:
                await client.auxiliary(found.provider, "delete_file", file=found.id)
            except ProviderError as error:
                _pass_if_gone(error)
            self._drop(found)

    def own_files(self, client: Client | AsyncClient, *files: UploadedFile) -> list[UploadedFile]:
        """Return the files of a client's accounts: of those given, else of all that are known.

        Raises:
            CallerError: one of those given belongs to another account.
            UnknownProviderError: the provider of a file is not installed.
        """
        state = client._shared
        accounts = {
            provider: _account(state.connection(state.resolve_provider(provider), None))
            for provider in {each.provider for each in files or self.files}
        }
        found = [each for each in files or self.files if accounts[each.provider] == each.account]
        if files and len(found) < len(files):
            raise CallerError("a file belongs to another account than this client's; nothing was deleted")
        return found

    # -- called by core for each request

    async def upload(self, exchange: Any, io: Any) -> Mapping[MediaSource, MediaSource]:
        """Return what a request refers to instead of its large media."""
        connection: Connection = exchange.connection
        above = connection.upload_above if self._above is None else self._above
        if above is None or connection.upload_above is None:
            return {}
        found: dict[MediaSource, MediaSource] = {}
        account, provider = _account(connection), exchange.request.provider.key
        for place, block in exchange.media():
            source = block.source
            size = len(source.data) * 3 // 4 - source.data[-2:].count("=")
            if source.kind != "base64" or size <= above or source in found or _is_shrunk(exchange, block):
                continue
            digest = await io.load(_digest, source.data, block.media_type)
            async with io.lock(f"upload {digest[0]}"):
                known = self._files.get((account, provider, digest))
                if known is None or _expires(known):
                    known = await self._upload(exchange, io, block, place, UploadedFile(
                        provider=provider, account=account, digest=digest, id="", size=size,
                        media_type=block.media_type, uploaded_at=datetime.now(UTC),
                    ))  # fmt: skip
            if known is not None:
                found[source] = MediaSource(kind="file_id", data=known.id)
        return found

    def forget(self, exchange: Any, error: InterlinguaError) -> bool:
        """Forget the files of a request that an error says are gone; return True if there are any."""
        sent = [source.data for source in exchange.request.uploaded.values()]
        if not sent or not isinstance(error, ProviderError) or error.status not in _GONE:
            return False
        text = f"{error.message} {error.code or ''} {(error.body or b'').decode(errors='replace')}"
        gone = [name for name in sent if name.rpartition("/")[2] in text]
        if not gone and "file" in text.lower() and error.status in (404, 410):
            gone = sent
        account = _account(exchange.connection)
        for found in self.files:
            if found.id in gone and found.account == account:
                self._drop(found)
        return bool(gone)

    async def _upload(self, exchange: Any, io: Any, block: Any, place: str, file: UploadedFile) -> UploadedFile | None:
        """Upload one medium; return None if the service takes no files of this kind here."""
        try:
            data = await io.load(_decode, block.source.data)
        except binascii.Error as error:
            raise CallerError(f"{place}: the data of the {block.type} is not base64: {error}") from error
        arguments = {
            "api": exchange.request.options.api or exchange.request.target.capabilities.api,
            "block": block,
            "data": data,
            "in_result": ".content[" in place.partition("].content[")[2],
            "name": _name(block, file.digest),
        }
        made: dict[str, Any] = {}
        try:
            made = await _ask(exchange, io, "upload", arguments)
            await self._wait_until_ready(exchange, io, made)
        except CapabilityError:  # this service, or this API, has no such files
            return None
        except BaseException as error:
            if made:  # no memory has it
                with suppress(Exception):
                    last = TimeLimits(Timeout(total=_LAST_SECONDS))
                    await io.finish(exchange.ask(io, "delete_file", {"file": made["id"]}, last))
            if isinstance(error, InterlinguaError):
                error.message = f"{place}: the {block.type} could not be uploaded: {error.message}"
            raise
        file = attrs.evolve(file, id=made["id"], expires_at=made.get("expires_at"))
        _log.info("uploaded %d bytes of %s to %s as %s", file.size, file.media_type, file.provider, file.id)
        with self._lock:
            self._files.pop(key := (file.account, file.provider, file.digest), None)
            self._files[key] = file
            while len(self._files) > _MOST_FILES:
                del self._files[next(iter(self._files))]
            self._save()
        return file

    async def _wait_until_ready(self, exchange: Any, io: Any, made: dict[str, Any]) -> None:
        """Ask for a file until the service has read it; `made` becomes its newest state."""
        for _ in range(_POLLS):
            if made.get("ready", True):
                return
            text = f"the service has not read the file {made['id']}, and the call's time ends before it is asked again"
            await _sleep(exchange, io, _POLL_SECONDS, APITimeoutError(text, retryable=False))
            made |= await _ask(exchange, io, "file_status", {"file": made["id"]})
        raise MalformedResponseError(f"the service has not finished reading the file {made['id']}")

    def _drop(self, file: UploadedFile) -> None:
        with self._lock:
            known = self._files.get(key := (file.account, file.provider, file.digest))
            if known is not None and known.id == file.id:
                del self._files[key]
                self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        lines = "".join(
            json.dumps(attrs.asdict(each), default=datetime.isoformat) + "\n" for each in self._files.values()
        )
        waiting = self._path.with_name(f"{self._path.name}.new")
        waiting.write_text(lines, encoding="utf-8")
        waiting.replace(self._path)


async def _ask(exchange: Any, io: Any, kind: str, arguments: Mapping[str, Any]) -> Any:
    """Ask the service, and again as the client's `Retry` allows."""
    tries = 0
    while True:
        try:
            return await exchange.ask(io, kind, arguments)
        except InterlinguaError as error:
            tries += 1
            if (delay := exchange.retry.delay(error, tries)) is None:
                raise
            await _sleep(exchange, io, delay, error)


async def _sleep(exchange: Any, io: Any, seconds: float, error: InterlinguaError) -> None:
    """Wait, or raise an error if the time of the call would end before."""
    left = exchange.limits_before.left()
    if left is not None and seconds >= left:
        raise error
    await io.sleep(seconds)


def _read(path: Path) -> list[UploadedFile]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise CallerError(f"{path} cannot be read: {error}") from error
    found: list[UploadedFile] = []
    for number, line in enumerate(lines, 1):
        try:
            fields = json.loads(line)
            for name in ("uploaded_at", "expires_at"):
                fields[name] = fields[name] and datetime.fromisoformat(fields[name])
            found.append(UploadedFile(**fields))
        except (ValueError, TypeError, KeyError) as error:
            raise CallerError(f"{path}, line {number}: not an uploaded file: {error!r}") from error
    return found


def _account(connection: Connection) -> str:
    """Return a digest of whom a connection speaks for: address, headers, and the key, or its exchange."""
    request = WireRequest(method="GET", path="/", body=b"", api="")
    secrets: list[Any] = sorted({**connection.headers, **connection.auth(request)}.items())
    if connection.key_exchange is not None:
        exchange = connection.key_exchange.request(_EPOCH)
        secrets += [exchange.url, sorted(exchange.headers.items()), exchange.body]
    return sha256(f"interlingua-uploads {connection.base_url} {secrets}".encode()).hexdigest()[:32]


def _decode(data: str) -> bytes:
    return base64.b64decode(data, validate=True)


def _digest(data: str, media_type: str) -> str:
    return sha256(f"{media_type}\n{data}".encode()).hexdigest()


def _expires(file: UploadedFile) -> bool:
    return file.expires_at is not None and file.expires_at - datetime.now(UTC) < _MARGIN


def _is_shrunk(exchange: Any, block: Any) -> bool:
    """Return True for an image that is made smaller before it is sent: the bytes that are sent are others."""
    return block.type == "image" and bool(exchange.request.options.downscale_images)


_ENDINGS = {"application/pdf": "pdf", "text/plain": "txt", "image/jpeg": "jpg", "audio/mpeg": "mp3"}


def _name(block: Any, digest: str) -> str:
    title = getattr(block, "title", None)
    if title:
        return str(title)
    ending = _ENDINGS.get(block.media_type) or block.media_type.rpartition("/")[2] or "bin"
    return f"{block.type}-{digest[:12]}.{ending}"


def _pass_if_gone(error: ProviderError) -> None:
    """Raise an error, except the one for a file that is gone."""
    if error.status not in (404, 410):
        raise error
