"""Media factories: every form of images and audio, documents and video, and back to bytes.

Expected media types are IANA's; image bytes are made by Pillow.
"""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from interlingua import CallerError
from interlingua.types.blocks import AudioBlock, DocumentBlock, ImageBlock, MediaSource, VideoBlock
from interlingua.types.factories import (
    audio_block,
    document_block,
    image_block,
    media_bytes,
    to_pil_image,
    user,
    video_block,
)

PDF = b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
MP4 = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + bytes(300)
WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm" + bytes(
    99
)


def picture(form: str, mode: str = "RGB") -> bytes:
    made = io.BytesIO()
    Image.new(mode, (3, 2)).save(made, format=form)
    return made.getvalue()


@pytest.mark.parametrize(
    ("form", "media_type"),
    [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("GIF", "image/gif"), ("WEBP", "image/webp")],
)
def test_every_form_of_an_image_is_the_same_block(form: str, media_type: str, tmp_path: Path) -> None:
    data = picture(form)
    encoded = base64.b64encode(data).decode()
    path = tmp_path / "picture"
    path.write_bytes(data)
    expected = ImageBlock(source=MediaSource(kind="base64", data=encoded), media_type=media_type)

    for value in (
        data,
        bytearray(data),
        encoded,
        f"data:{media_type};base64,{encoded}",
        f"file:{path}",
        path,
        expected,
    ):
        assert image_block(value) == expected


def test_a_pil_image_keeps_its_own_format_and_one_without_becomes_png() -> None:
    opened = Image.open(io.BytesIO(picture("JPEG")))
    made = image_block(opened)
    assert made.media_type == "image/jpeg"
    assert Image.open(io.BytesIO(media_bytes(made))).size == (3, 2)

    assert image_block(Image.new("RGBA", (1, 1))).media_type == "image/png"


def test_audio_by_prefix_base64_and_the_default(tmp_path: Path) -> None:
    path = tmp_path / "clip"
    path.write_bytes(b"fLaC" + bytes(60))
    assert audio_block(f"file:{path}").media_type == "audio/flac"
    assert audio_block(base64.b64encode(b"OggS" + bytes(60)).decode()).media_type == "audio/ogg"
    assert audio_block(b"nothing anybody knows").media_type == "audio/mpeg"
    assert audio_block(b"RIFF\x10\0\0\0WAVEfmt ") == AudioBlock(
        source=MediaSource(kind="base64", data=base64.b64encode(b"RIFF\x10\0\0\0WAVEfmt ").decode()),
        media_type="audio/wav",
    )
    with pytest.raises(CallerError, match="base64"):
        audio_block("https://example.com/clip.mp3")


@pytest.mark.parametrize(("data", "media_type"), [(MP4, "video/mp4"), (WEBM, "video/webm")])
def test_video_by_its_bytes_and_by_address(data: bytes, media_type: str) -> None:
    assert video_block(data).media_type == media_type
    url = "https://example.com/film"
    assert video_block(url) == VideoBlock(source=MediaSource(kind="url", data=url))
    with pytest.raises(CallerError, match="not a video"):
        video_block(PDF)


def test_documents_are_pdf_or_text_and_paths_give_their_name(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(PDF)
    assert document_block(path) == DocumentBlock(
        source=MediaSource(kind="base64", data=base64.b64encode(PDF).decode()),
        media_type="application/pdf",
        title="report.pdf",
    )
    assert document_block(f"file:{path}", title="Report").title == "Report"
    assert document_block("é is UTF-8".encode()).media_type == "text/plain"
    assert document_block("https://example.com/a.pdf").source.kind == "url"
    for bad in (b"\xff\xfe\x00 neither", picture("PNG"), b"", 3):
        with pytest.raises(CallerError):
            document_block(bad)


def test_a_user_message_holds_them_in_order() -> None:
    message = user("look", images=[picture("PNG")], audio=[b"ID3" + bytes(60)], video=[MP4], documents=[PDF])
    assert [block.type for block in message.content] == ["text", "image", "audio", "video", "document"]


def test_images_come_out_as_bytes_and_as_pil_images() -> None:
    data = picture("PNG")
    assert media_bytes(image_block(data)) == data
    assert to_pil_image(image_block(data)).size == (3, 2)
    with pytest.raises(CallerError, match="url reference"):
        media_bytes(image_block("https://example.com/a.png"))
    with pytest.raises(CallerError, match="not base64"):
        media_bytes(ImageBlock(source=MediaSource(kind="base64", data="?"), media_type="image/png"))


@pytest.mark.parametrize(("name", "code"), [("PIL", "image_block(data)"), ("filetype", "user('text')")])
def test_pil_and_filetype_are_imported_only_when_used(name: str, code: str) -> None:
    whole = f"import sys; from interlingua import *; data = {picture('PNG')!r}; {code}; print({name!r} in sys.modules)"
    found: Any = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    block = image_block(picture("PNG"))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(CallerError, match=r"interlingua\[images\]"):
        to_pil_image(block)
