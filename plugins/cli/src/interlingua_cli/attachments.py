"""Files and addresses that go with a question: media (`--attach`), and texts before the prompt (`--fragment`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from interlingua.errors import APIConnectionError, CallerError
from interlingua.types import (
    ContentBlock,
    TextBlock,
    audio_block,
    document_block,
    image_block,
    media_type_of,
    video_block,
)
from interlingua_cli.completion import complete_files, complete_fragments
from interlingua_cli.fragments import require_fragment, stored_fragment
from interlingua_cli.input import STANDARD

_FETCH_SECONDS = 30.0
_FETCH_LIMIT = 50 * 1024 * 1024  # bytes
_FACTORIES: dict[str, Callable[[Any], ContentBlock]] = {
    "image": image_block,
    "audio": audio_block,
    "video": video_block,
}


def _is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _is_place(place: str) -> bool:
    return place == STANDARD or _is_address(place) or Path(place).is_file()


def _read(place: str) -> bytes:
    """Return what is at a path, an http(s) address, or on standard input.

    Raises:
        CallerError: it is empty.
        APIConnectionError: the address cannot be fetched.
        OSError: the file cannot be read.
    """
    if place == STANDARD:
        data = sys.stdin.buffer.read()
    elif _is_address(place):
        from urllib.error import URLError  # noqa: PLC0415  not free to import, and few attach an address
        from urllib.request import Request, urlopen  # noqa: PLC0415

        request = Request(place, headers={"user-agent": "interlingua"})  # noqa: S310  http and https only
        try:
            with urlopen(request, timeout=_FETCH_SECONDS) as response:  # noqa: S310
                data = response.read(_FETCH_LIMIT + 1)
        except (URLError, TimeoutError, ValueError) as error:
            raise APIConnectionError(f"{place} cannot be fetched: {error}") from error
        if len(data) > _FETCH_LIMIT:
            raise CallerError(f"{place} is larger than {_FETCH_LIMIT:,} bytes")
    else:
        data = Path(place).read_bytes()
    if not data:
        raise CallerError(f"{_named(place)} is empty: there is nothing to attach")
    return data


def _named(place: str) -> str:
    return "standard input" if place == STANDARD else place


def _title(place: str) -> str | None:
    return None if place == STANDARD else Path(place.partition("?")[0]).name or None


def attach(place: str) -> ContentBlock:
    """Return a file as an image, audio, a video, a document, or text under its name, by what its bytes are.

    Args:
        place: a path, an http(s) address, or `-` for standard input.

    Raises:
        CallerError: it is none of these, or empty.
        APIConnectionError: the address cannot be fetched.
        OSError: the file cannot be read.
    """
    data = _read(place)
    kind = (media_type_of(data) or "").partition("/")[0]
    if kind in _FACTORIES:
        return _FACTORIES[kind](data)
    if kind == "application":
        return document_block(data, title=_title(place))
    return _text_block(place, data, "neither an image, audio, a video, a document nor UTF-8 text")


def attach_as(place: str, media_type: str) -> ContentBlock:
    """Return a file as media of a type that is given; an address is not fetched, the model's service may do that.

    Raises:
        click.BadParameter: the type is none of a medium.
        CallerError, OSError: as `attach`.
    """
    kind = media_type.partition("/")[0]
    factory = _FACTORIES.get(kind, document_block if kind in ("application", "text") else None)
    if factory is None or "/" not in media_type:
        raise click.BadParameter(f"{media_type!r} is no media type that a message has, such as image/png")
    block: Any = factory(place if _is_address(place) and kind != "audio" else _read(place))
    return attrs.evolve(block, media_type=media_type)  # type: ignore[no-any-return]


def read_fragment(place: str) -> TextBlock:
    """Return a text that goes before the prompt, under its name.

    Args:
        place: a path, an http(s) address, `-` for standard input, or the name of a stored fragment.

    Raises:
        CallerError: it is no UTF-8 text, or empty.
        APIConnectionError: the address cannot be fetched.
        OSError: the file cannot be read.
    """
    return TextBlock(text=f"{_heading(place)}{read_fragment_text(place)}")


def read_fragment_text(place: str) -> str:
    """Return the text of a fragment alone; as `read_fragment`."""
    if not _is_place(place):
        return require_fragment(place, os.environ)
    return _decode(place, _read(place), "no UTF-8 text; -a attaches images, audio and documents")


def _text_block(place: str, data: bytes, otherwise: str) -> TextBlock:
    return TextBlock(text=f"{_heading(place)}{_decode(place, data, otherwise)}")


def _decode(place: str, data: bytes, otherwise: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CallerError(f"{_named(place)} is {otherwise}") from error


def _heading(place: str) -> str:
    title = _title(place)
    return f"{title}:\n" if title else ""


@attrs.frozen(kw_only=True)
class Attachments:
    """What goes with a question, as it is named on the command line; `blocks` reads it.

    Attributes:
        fragments: texts that go before the prompt.
        media: paths and addresses of media.
        typed: paths and addresses with the type they are given.
    """

    fragments: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    typed: tuple[tuple[str, str], ...] = ()

    @property
    def takes_standard_input(self) -> bool:
        """True when one of them is standard input, which then holds no part of the prompt."""
        return STANDARD in (*self.fragments, *self.media, *(place for place, _ in self.typed))

    def blocks(self) -> list[ContentBlock]:
        """Return the blocks, fragments first; raises as `attach`, `attach_as` and `read_fragment`."""
        return [
            *map(read_fragment, self.fragments),
            *map(attach, self.media),
            *(attach_as(place, media_type) for place, media_type in self.typed),
        ]

    def __bool__(self) -> bool:
        return bool(self.fragments or self.media or self.typed)


def _collect(ctx: click.Context, parameter: click.Parameter, places: Sequence[Any]) -> Sequence[Any]:
    for place in (place if isinstance(place, str) else place[0] for place in places):
        if not _is_place(place):
            raise click.BadParameter(f"there is no file {place}", ctx, parameter)
    return places


def _collect_fragments(ctx: click.Context, parameter: click.Parameter, places: Sequence[str]) -> Sequence[str]:
    for place in places:
        if not _is_place(place) and stored_fragment(place, os.environ) is None:
            raise click.BadParameter(f"there is no file and no stored fragment {place}", ctx, parameter)
    return places


fragment_option = click.option(
    "-f", "--fragment", "fragments", metavar="PLACE", multiple=True, callback=_collect_fragments,
    shell_complete=complete_fragments,
    help="Put this text before the prompt: a file, an http(s) address, - for standard input, or a name that"
    " `interlingua fragments set` gave; may be repeated.",
)  # fmt: skip
attach_option = click.option(
    "-a", "--attach", "media", metavar="PLACE", multiple=True, callback=_collect,
    shell_complete=complete_files,
    help="Attach an image, audio, a video, a PDF or a text: a file, an address, or -; may be repeated.",
)  # fmt: skip
attach_type_option = click.option(
    "--at", "--attachment-type", "typed", metavar="PLACE TYPE", type=(str, str), multiple=True, callback=_collect,
    shell_complete=complete_files,
    help="Attach this as the media type given, such as image/webp; may be repeated.",
)  # fmt: skip
