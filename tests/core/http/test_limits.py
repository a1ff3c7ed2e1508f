"""Limits of a target on media: told before sending with place and limit, or the images made smaller on request.

Pictures are made and measured by Pillow, PDF page trees written by hand after the PDF specification (7.7.3).
"""

from __future__ import annotations

import base64
import io
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from PIL import Image

from interlingua._http.client import Client
from interlingua._plugins.provider import ProjectionTarget
from interlingua._request.media import MessageMedia, find_media
from interlingua._request.media_limits import enforce_media_limits
from interlingua.errors import CapabilityError
from interlingua.plugins import Loss
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ToolUseBlock
from interlingua.types.factories import (
    assistant,
    document_block,
    image_block,
    media_bytes,
    to_pil_image,
    tool_result,
    user,
)
from interlingua.types.messages import Message
from interlingua.types.options import ModelCapabilities

ABLE = ModelCapabilities(supports_images=True, supports_documents=True, supports_tools=True)
CALL = ToolUseBlock(id="tu_1", name="look", input={})


def picture(side: int = 4, form: str = "PNG", noise: bool = False) -> bytes:
    made = io.BytesIO()
    image = Image.new("RGB", (side, 2))
    if noise:  # does not compress
        image = Image.frombytes("RGB", (side, side), random.Random(7).randbytes(side * side * 3))
    image.save(made, format=form)
    return made.getvalue()


def pdf(pages: int) -> bytes:
    tree = b"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count %d >>\nendobj\n" % pages
    return b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n" + tree + b"%%EOF\n"


def check(
    messages: Sequence[Message],
    media: dict[int, MessageMedia] | None = None,
    *,
    downscale: bool = False,
    **limits: Any,
) -> tuple[Sequence[Message], tuple[Loss, ...]]:
    target = ProjectionTarget(provider="p", model="m", capabilities=attrs.evolve(ABLE, **limits))
    if media is None:
        media = {at: found for at, message in enumerate(messages) if (found := find_media(message)) is not None}
    return enforce_media_limits(messages, media, target, downscale=downscale)


def test_case_21_too_many_images_name_the_first_that_does_not_fit() -> None:
    messages = [user("two", images=[picture(), picture()]), user("one", images=[picture()])]

    assert check(messages, max_images=3) == (messages, ())
    with pytest.raises(CapabilityError, match=r"image 3 of 2 that p:m takes \(max_images\)") as raised:
        check(messages, max_images=2)
    assert raised.value.path == "messages[1].content[1]"


def test_case_21_an_image_too_heavy_or_too_long_is_told_before_sending() -> None:
    data = picture(300)
    messages = [user("hi"), user("see", images=[data])]

    with pytest.raises(CapabilityError, match=rf"{len(data):,} bytes of {len(data) - 1:,}.*max_image_bytes") as heavy:
        check(messages, max_image_bytes=len(data) - 1)
    assert heavy.value.path == "messages[1].content[1]"
    assert check(messages, max_image_bytes=len(data)) == (messages, ())
    with pytest.raises(CapabilityError, match=r"300 pixels long on a side of 299.*max_image_side"):
        check(messages, max_image_side=299)
    assert check(messages, max_image_side=300) == (messages, ())


def test_case_21_many_images_have_a_stricter_side() -> None:
    few, many = [user(images=[picture(300)] * 2)], [user(images=[picture(300)] * 3)]

    assert check(few, max_image_side=400, many_images=2, many_images_side=200) == (few, ())
    with pytest.raises(CapabilityError, match="many_images_side"):
        check(many, max_image_side=400, many_images=2, many_images_side=200)


def test_images_inside_results_count_with_their_place() -> None:
    messages = [user("go"), assistant([CALL]), tool_result(CALL, [TextBlock(text="seen"), image_block(picture(50))])]

    with pytest.raises(CapabilityError) as raised:
        check(messages, max_image_side=40)
    assert raised.value.path == "messages[2].content[0].content[1]"


def test_media_that_will_not_be_sent_count_for_nothing() -> None:
    url = ImageBlock(source=MediaSource(kind="url", data="https://example.com/a.png"))
    messages = [user("see", images=[url]), assistant([image_block(picture(300))])]

    assert check(messages, max_image_bytes=1, max_image_side=1) == (messages, ())  # a reference has no bytes here
    target = ProjectionTarget(provider="p", model="m", capabilities=ModelCapabilities(max_images=1))
    both = [user(images=[picture(), picture()])]
    assert enforce_media_limits(both, {0: MessageMedia(both[0], ())}, target, downscale=False) == (
        both,
        (),
    )  # projection drops them: no images here at all


def test_pages_of_pdf_documents_add_up() -> None:
    messages = [user("read", documents=[pdf(60), pdf(41)])]

    assert check(messages, max_document_pages=101) == (messages, ())
    with pytest.raises(CapabilityError, match=r"101 pages of 100.*max_document_pages") as raised:
        check(messages, max_document_pages=100)
    assert raised.value.path == "messages[0].content[2]"
    hidden = document_block(b"%PDF-1.7 a compressed object stream")
    assert check([user([hidden])], max_document_pages=1)[1] == ()  # what cannot be counted is not refused


def test_the_sum_of_all_media() -> None:
    data = picture(30)
    messages = [user(images=[data, data])]

    assert check(messages, max_media_bytes=2 * len(data)) == (messages, ())
    with pytest.raises(CapabilityError, match="max_media_bytes"):
        check(messages, max_media_bytes=2 * len(data) - 1)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_case_21_on_request_an_image_is_made_smaller_and_the_ledger_says_so(form: str) -> None:
    messages = [user("see", images=[picture(400, form, noise=True)])]

    made, losses = check(messages, downscale=True, max_image_side=300, max_image_bytes=60_000)
    small = made[0].content[1]
    assert isinstance(small, ImageBlock)
    assert max(to_pil_image(small).size) <= 300
    assert len(media_bytes(small)) <= 60_000
    assert (to_pil_image(small).format, small.media_type) == (form, f"image/{form.lower()}")
    (loss,) = losses
    assert (loss.path, loss.verdict, loss.block_type) == ("messages[0].content[1]", "rewritten", "image")
    assert "300 pixels a side and 60,000 bytes" in loss.reason
    assert made[0].content[0] is messages[0].content[0]
    assert made[0].id == messages[0].id == loss.message_id


def test_a_smaller_image_stays_the_very_same_message_so_that_the_prefix_stays() -> None:
    call = tool_result(CALL, [image_block(picture(90))])
    messages = [user("go"), assistant([CALL]), call]

    media = {2: MessageMedia(call, ())}  # a conversation keeps it
    first, _ = check(messages, media, downscale=True, max_image_side=40)
    second, _ = check([*messages, user("more")], media, downscale=True, max_image_side=40)
    assert first[2] is second[2]
    assert first[2] is not call
    (small,) = first[2].tool_results[0].content
    assert isinstance(small, ImageBlock)
    assert to_pil_image(small).size == (40, 1)


def test_an_image_that_lies_on_its_side_is_turned_before_that_is_forgotten() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: the 0th row is the right side (EXIF 2.3, 4.6.4)
    made = io.BytesIO()
    Image.new("RGB", (200, 100)).save(made, format="JPEG", exif=exif)

    messages, _ = check([user(images=[made.getvalue()])], downscale=True, max_image_side=100)
    (turned,) = messages[0].content
    assert isinstance(turned, ImageBlock)
    assert to_pil_image(turned).size == (50, 100)


def test_what_cannot_be_made_small_enough_is_an_error() -> None:
    with pytest.raises(CapabilityError, match="cannot be made smaller"):
        check([user(images=[picture(50)])], downscale=True, max_image_bytes=10)


def test_without_limits_nothing_is_measured() -> None:
    broken = ImageBlock(source=MediaSource(kind="base64", data="???"), media_type="image/png")
    messages = [user([broken])]
    assert check(messages) == (messages, ())
    assert check(messages, max_image_side=5) == (messages, ())  # a header that does not tell is not refused


def test_bytes_are_told_without_decoding() -> None:
    from interlingua._request.media_limits import size_of

    for length in range(7):
        data = base64.b64encode(bytes(length)).decode()
        assert size_of(ImageBlock(source=MediaSource(kind="base64", data=data))) == length


# -- through a client, with the services' own limits ----------------------------------------------------------------


def written(messages: Sequence[Message], model: str, **options: Any) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    with Client(model, environ={"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}) as client:
        request = client.build_request(messages, **options)
    return json.loads(request.body), request.losses


def test_case_21_more_than_20_images_may_be_2000_pixels_long() -> None:
    twenty, more = [user(images=[picture(2100)] * 20)], [user(images=[picture(2100)] * 21)]

    assert len(written(twenty, "anthropic:claude-haiku-4-5")[0]["messages"][0]["content"]) == 20
    with pytest.raises(
        CapabilityError, match=r"2,100 pixels.*2,000.*many_images_side.*downscale_images=True"
    ) as raised:
        written(more, "anthropic:claude-haiku-4-5")
    assert raised.value.path == "messages[0].content[0]"
    body, losses = written(more, "anthropic:claude-haiku-4-5", downscale_images=True)
    sides = [to_pil_image(image_block(part["source"]["data"])).size[0] for part in body["messages"][0]["content"]]
    assert sides == [2000] * 21
    assert [loss.verdict for loss in losses] == ["rewritten"] * 21


def test_case_21_five_megabytes_an_image_and_a_hundred_images_a_request() -> None:
    with pytest.raises(CapabilityError, match=r"of 5,242,880.*max_image_bytes"):
        written([user(images=[picture(1400, noise=True)])], "anthropic:claude-haiku-4-5")
    with pytest.raises(CapabilityError, match=r"image 101 of 100"):
        written([user(images=[picture()] * 101)], "anthropic:claude-haiku-4-5")  # a window of 200k tokens
    assert written([user(images=[picture()] * 101)], "anthropic:claude-opus-5-5")  # one of a million
    with pytest.raises(CapabilityError, match=r"image 501 of 500"):
        written([user(images=[picture()] * 501)], "openai:gpt-5.2")


def test_a_caller_who_knows_better_says_so() -> None:
    asserted = {"max_images": 0, "many_images": 0}
    assert written([user(images=[picture()] * 101)], "anthropic:claude-haiku-4-5", capabilities=asserted)


def test_a_grown_conversation_still_counts_what_went_out_before() -> None:
    with Client("anthropic:claude-haiku-4-5", environ={"ANTHROPIC_API_KEY": "k"}) as client:
        messages = [user(images=[picture()] * 60)]
        client.build_request(messages)
        messages += [assistant("seen"), user("and these", images=[picture()] * 40)]
        client.build_request(messages)
        messages += [assistant("seen"), user("and this", images=[picture()])]
        with pytest.raises(CapabilityError, match="image 101 of 100") as raised:
            client.build_request(messages)
    assert raised.value.path == "messages[4].content[1]"


def test_a_ledger_row_of_a_smaller_image_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "interlingua"):
        written([user(images=[picture(8100)])], "anthropic:claude-haiku-4-5", downscale_images=True)
    assert [record.levelname for record in caplog.records if "was shrunk" in record.getMessage()] == ["DEBUG"]


def test_without_media_nothing_of_this_is_imported() -> None:
    code = (
        "import sys; from interlingua import Client, user;"
        "Client('anthropic:claude-haiku-4-5', environ={'ANTHROPIC_API_KEY': 'k'}).build_request([user('hi')]);"
        "print([n for n in ('imagesize', 'filetype', 'PIL', 'interlingua._request.media_limits') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
