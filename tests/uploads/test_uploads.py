"""Media that are uploaded once and referred to, over loopback, at each service that keeps files."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua import AsyncClient, Client, Message, Retry, user
from interlingua.errors import BadRequestError, CallerError, InterlinguaError, OverloadedError, ServerError
from interlingua_uploads import UploadedFile, Uploads
from tests.uploads.file_service import KEY, Service, referred

PDF = b"%PDF-1.7\n" + b"0123456789 " * 200
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC")
MODELS = {
    "anthropic": "anthropic:claude-haiku-4-5",
    "openai": "openai:gpt-5.6-luna",
    "openai chat": "openai:gpt-5.6-luna",
    "google": "google:gemini-2.5-flash",
    "mistral": "mistral:mistral-large-latest",
}
SERVICES = pytest.mark.parametrize("kind", list(MODELS))


@pytest.fixture
def service(kind: str) -> Iterator[Service]:
    with Service(kind.partition(" ")[0]) as service:
        yield service


def settings(kind: str, service: Service, uploads: Uploads | None, **more: Any) -> dict[str, Any]:
    api = {"api": "chat"} if kind == "openai chat" else {}
    own = {service.kind: {"api_key": KEY, "base_url": service.base_url, **api}}
    retry = Retry(max_attempts=2, initial_delay=0.01)
    return {"settings": own, "environ": {}, "uploads": uploads, "retry": retry, **more}


def blocking(kind: str, service: Service, uploads: Uploads | None, *conversations: Any, stream: bool = False) -> Any:
    with Client(MODELS[kind], **settings(kind, service, uploads)) as client:
        answers = []
        for each in conversations:
            if stream:
                with client.stream(each) as events:
                    answers.append(events.message)
            else:
                answers.append(client.send(each))
        return answers


def asynchronous(
    kind: str, service: Service, uploads: Uploads | None, *conversations: Any, stream: bool = False
) -> Any:
    async def run() -> list[Message]:
        async with AsyncClient(MODELS[kind], **settings(kind, service, uploads)) as client:
            answers = []
            for each in conversations:
                if stream:
                    async with client.stream(each) as events:
                        answers.append(await events.message)
                else:
                    answers.append(await client.send(each))
            return answers

    return asyncio.run(run())


Run = Callable[..., Any]
BOTH = pytest.mark.parametrize("run", [blocking, asynchronous])
ROADS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def question(data: bytes = PDF) -> Message:
    return user("Who signed?", documents=[data])


@SERVICES
@BOTH
@ROADS
def test_a_document_is_uploaded_once_and_referred_to(kind: str, service: Service, run: Run, stream: bool) -> None:
    asked = question()
    first, again, other = run(kind, service, Uploads(above=1000), [asked], [asked], [question()], stream=stream)

    assert first.text == again.text == other.text == "Seen."
    assert len(service.uploads) == 1
    file = service.uploads[0][-1]
    assert (file.data, file.media_type) == (PDF, "application/pdf")
    assert [list(referred(body)) for body in service.asked] == [[service.name_of("file-1abc")]] * 3
    assert base64.b64encode(PDF).decode()[:40] not in json.dumps(service.asked)
    (row,) = [row for row in first.metadata.losses if row.block_type == "document"]
    assert (row.path, row.verdict, row.severity) == ("messages[0].content[1]", "rewritten", "form")
    assert service.name_of("file-1abc") in row.reason


def test_each_form_is_what_its_service_documents() -> None:
    for kind, fields in (("anthropic", {}), ("openai", {"purpose": "user_data"}), ("mistral", {"purpose": "ocr"})):
        with Service(kind) as service:
            blocking(kind, service, Uploads(above=1000), [question()])
        *texts, file = service.uploads[0]
        assert {part.name: part.data.decode() for part in texts} == fields
        assert (file.name, file.file_name[-4:]) == ("file", ".pdf")
    with Service("google") as service:
        blocking("google", service, Uploads(above=1000), [question()])
    about, _ = service.uploads[0]
    assert about.media_type == "application/json"
    assert json.loads(about.data)["file"]["mimeType"] == "application/pdf"


@SERVICES
def test_small_media_and_clients_without_uploads_send_bytes(kind: str, service: Service) -> None:
    blocking(kind, service, None, [question()])
    blocking(kind, service, Uploads(), [question()])
    blocking(kind, service, Uploads(above=len(PDF)), [question()])

    assert service.uploads == []
    assert [list(referred(body)) for body in service.asked] == [[], [], []]


@pytest.mark.parametrize("kind", ["openai chat", "mistral"])
def test_media_that_a_request_cannot_refer_to_are_bytes(kind: str, service: Service) -> None:
    blocking(kind, service, Uploads(above=0), [user("What is this?", images=[PNG])])

    assert service.uploads == []
    assert base64.b64encode(PNG).decode() in json.dumps(service.asked)


@pytest.mark.parametrize("kind", ["anthropic", "openai", "google"])
def test_pictures_are_uploaded_too(kind: str, service: Service) -> None:
    blocking(kind, service, Uploads(above=0), [user("What is this?", images=[PNG])])

    assert [parts[-1].media_type for parts in service.uploads] == ["image/png"]
    assert [*referred(service.asked[0])] == [service.name_of("file-1abc")]


@SERVICES
@BOTH
@ROADS
def test_a_file_that_is_gone_is_uploaded_again_once(kind: str, service: Service, run: Run, stream: bool) -> None:
    uploads, asked = Uploads(above=1000), question()
    run(kind, service, uploads, [asked], stream=stream)
    service.files.clear()
    (answer,) = run(kind, service, uploads, [asked], stream=stream)

    assert answer.text == "Seen."
    assert (len(service.uploads), len(service.asked)) == (2, 3)
    assert [file.id for file in uploads.files] == [service.name_of("file-2abc")]


@SERVICES
def test_a_file_that_stays_away_is_the_services_error(kind: str, service: Service) -> None:
    class Forgetful(dict[str, bytes]):
        def __setitem__(self, *_item: Any) -> None:
            pass

    service.files = Forgetful()
    with pytest.raises(InterlinguaError, match="file-2abc"):
        blocking(kind, service, Uploads(above=1000), [question()])

    assert len(service.uploads) == 2


def test_an_expired_file_is_uploaded_before_the_request(tmp_path: Path) -> None:
    with Service("google", expires="2026-11-01T00:00:00.123456789Z") as service:
        uploads, asked = Uploads(above=1000), question()
        blocking("google", service, uploads, [asked], [asked])

    assert len(service.uploads) == 2
    assert not any(each.get("error") for each in service.asked)


def test_a_file_that_is_read_by_the_service_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlingua_uploads.uploads._POLL_SECONDS", 0.01)
    with Service("google", processing=3) as service:
        blocking("google", service, Uploads(above=1000), [question()])

    assert service.processing == 0
    assert len(service.asked) == 1


@SERVICES
@BOTH
def test_a_refused_upload_names_the_block_and_sends_nothing(kind: str, service: Service, run: Run) -> None:
    service.refusals = [413]
    with pytest.raises(
        InterlinguaError, match=r"messages\[0\].content\[1\]: the document could not be uploaded"
    ) as got:
        run(kind, service, Uploads(above=1000), [question()])

    assert got.value.status == 413
    assert service.asked == []


@SERVICES
@BOTH
def test_an_upload_that_failed_is_tried_again(kind: str, service: Service, run: Run) -> None:
    service.refusals = [503]
    (answer,) = run(kind, service, Uploads(above=1000), [question()])

    assert answer.text == "Seen."
    service.refusals = [503, 503]
    with pytest.raises((OverloadedError, ServerError)):
        run(kind, service, Uploads(above=1000), [question(PDF + b"x")])


@SERVICES
def test_the_memory_lasts_in_a_file_without_key_and_contents(
    kind: str, service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "uploads.jsonl"
    blocking(kind, service, Uploads(path, above=1000), [question()])
    blocking(kind, service, Uploads(path, above=1000), [question()])

    assert len(service.uploads) == 1
    for text in (path.read_text(), caplog.text):
        assert KEY not in text
        assert "0123456789 0123456789" not in text
    assert "uploaded 2209 bytes of application/pdf" in caplog.text


def test_another_account_uploads_its_own() -> None:
    with Service("anthropic") as service:
        uploads, asked = Uploads(above=1000), question()
        blocking("anthropic", service, uploads, [asked])
        own = {"anthropic": {"api_key": f"{KEY}-other", "base_url": service.base_url}}
        with Client(MODELS["anthropic"], settings=own, environ={}, uploads=uploads) as client:
            client.send([asked])
            with pytest.raises(CallerError, match="another account"):
                uploads.delete(client, uploads.files[0])

    assert len(service.uploads) == 2


@SERVICES
def test_files_are_deleted_on_request(kind: str, service: Service) -> None:
    uploads, asked = Uploads(above=1000), question()
    with Client(MODELS[kind], **settings(kind, service, uploads)) as client:
        client.send([asked])
        uploads.delete(client)
        assert (service.deleted, uploads.files) == (["file-1abc"], ())
        client.send([asked])
        service.files.clear()
        uploads.delete(client)  # gone already

    async def later() -> None:
        async with AsyncClient(MODELS[kind], **settings(kind, service, uploads)) as other:
            await other.send([asked])
            await uploads.delete_async(other, *uploads.files)

    asyncio.run(later())
    assert service.deleted == ["file-1abc", "file-2abc", "file-3abc"]
    assert uploads.files == ()


def test_threads_share_an_upload() -> None:
    with Service("anthropic") as service:
        uploads = Uploads(above=1000)
        with Client(MODELS["anthropic"], **settings("anthropic", service, uploads)) as client:
            work = [threading.Thread(target=client.send, args=([question()],)) for _ in range(6)]
            for each in work:
                each.start()
            for each in work:
                each.join()

    assert (len(service.uploads), len(service.asked)) == (1, 6)


def test_other_errors_are_not_taken_for_a_lost_file() -> None:
    with Service("openai") as service:
        uploads, asked = Uploads(above=1000), question()
        blocking("openai", service, uploads, [asked])
        with pytest.raises(BadRequestError), Client(MODELS["openai"], **settings("openai", service, uploads)) as client:
            client.send([asked, user("x", documents=[]), user("y")], provider_options={"file_id": "unknown"})

    assert len(service.uploads) == 1


def test_a_service_without_files_gets_the_bytes() -> None:
    service = "xai:grok-4"
    with Service("openai") as files:
        own = {"xai": {"api_key": KEY, "base_url": files.base_url}}
        with Client(service, settings=own, environ={}, uploads=Uploads(above=0)) as client:
            client.send(user("What is this?", images=[PNG]))

    assert files.uploads == []
    assert base64.b64encode(PNG).decode() in json.dumps(files.asked)


def test_a_memory_that_cannot_be_read(tmp_path: Path) -> None:
    at = datetime(2026, 11, 28, tzinfo=UTC)
    whole = UploadedFile(
        provider="openai", account="a", digest="d", id="file-1", size=1, media_type="image/png", uploaded_at=at
    )
    line = json.dumps(attrs.asdict(whole), default=datetime.isoformat)
    path = tmp_path / "uploads.jsonl"
    for second in ("{}", "[]", "null", line[:-1], line.replace("2026", "year")):
        path.write_text(f"{line}\n{second}\n")
        with pytest.raises(CallerError, match="line 2: not an uploaded file"):
            Uploads(path)
    path.write_bytes(b"\xff\n")
    with pytest.raises(CallerError, match="cannot be read"):
        Uploads(path)
    with pytest.raises(CallerError, match="above"):
        Uploads(above=-1)
