"""Files and URLs of a question: media (`--attach`), and text before the prompt (`--fragment`)."""

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
_DOCUMENTS = {  # that some model reads and whose first bytes tell them
    "application/pdf", "application/rtf", "application/epub+zip", "application/msword", "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint", "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip
_FACTORIES: dict[str, Callable[[Any], ContentBlock]] = {
    "image": image_block,
    "audio": audio_block,
    "video": video_block,
}


def _is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def is_place(place: str) -> bool:
    """Tell whether something can be read from a place: a file, a URL, or `-` for standard input."""
    return place == STANDARD or _is_address(place) or Path(place).is_file()


def describe_missing(place: str) -> str:
    """Return why nothing can be read from a place."""
    if Path(place).is_dir():
        return f"{place} is a folder: attach its files one by one"
    return f"{place} is not a file" if Path(place).exists() else f"no such file: {place}"


def read_place(place: str) -> bytes:
    """Return the bytes of a path, an http(s) URL, or standard input.

    Raises:
        CallerError: it is empty.
        APIConnectionError: the URL cannot be fetched.
        OSError: the file cannot be read.
    """
    if place == STANDARD:
        data = sys.stdin.buffer.read()
    elif _is_address(place):
        from urllib.error import HTTPError, URLError  # noqa: PLC0415  slow to import; few questions attach a URL
        from urllib.request import Request, urlopen  # noqa: PLC0415

        request = Request(place, headers={"user-agent": "interlingua"})  # noqa: S310  http and https only
        try:
            with urlopen(request, timeout=_FETCH_SECONDS) as response:  # noqa: S310
                data = response.read(_FETCH_LIMIT + 1)
        except (URLError, TimeoutError, ValueError) as error:
            if isinstance(error, HTTPError):  # it holds the answer
                error.close()
            raise APIConnectionError(f"cannot fetch {place}: {error}") from error
        if len(data) > _FETCH_LIMIT:
            raise CallerError(f"{place} is larger than {_FETCH_LIMIT:,} bytes")
    else:
        data = Path(place).read_bytes()
    if not data:
        raise CallerError(f"{_named(place)} is empty: nothing to attach")
    return data


def _named(place: str) -> str:
    return "standard input" if place == STANDARD else place


def _title(place: str) -> str | None:
    return None if place == STANDARD else Path(place.partition("?")[0]).name or None


def attach(place: str) -> ContentBlock:
    """Return a file as an image, audio, a video, a document, or text under its name; the bytes decide.

    Args:
        place: a path, an http(s) URL, or `-` for standard input.

    Raises:
        CallerError: the file has another type, or is empty.
        APIConnectionError: the URL cannot be fetched.
        OSError: the file cannot be read.
    """
    data = read_place(place)
    found = media_type_of(data) or ""
    kind = found.partition("/")[0]
    if kind in _FACTORIES:
        return _FACTORIES[kind](data)
    if found in _DOCUMENTS:
        return document_block(data, title=_title(place))
    if kind == "application":
        raise CallerError(f"{_named(place)} is {found}, which no model reads; --at {place} TYPE sends it as TYPE")
    return _text_block(place, data, "neither an image, audio, a video, a document nor UTF-8 text")


def attach_as(place: str, media_type: str) -> ContentBlock:
    """Return a file as media of the given type; a URL is not fetched here but by the service, if it can.

    Raises:
        click.BadParameter: no block has this media type.
        CallerError, OSError: as `attach`.
    """
    kind = media_type.partition("/")[0]
    factory = _FACTORIES.get(kind, document_block if kind in ("application", "text") else None)
    if factory is None or "/" not in media_type:
        raise click.BadParameter(f"{media_type!r} is not a media type of a message: pass one such as image/png")
    block: Any = factory(place if _is_address(place) and kind != "audio" else read_place(place))
    return attrs.evolve(block, media_type=media_type)  # type: ignore[no-any-return]


def read_fragment(place: str) -> TextBlock:
    """Return text that precedes the prompt, under its name.

    Args:
        place: a path, an http(s) URL, `-` for standard input, or the name of a stored fragment.

    Raises:
        CallerError: the file is not UTF-8 text, or is empty.
        APIConnectionError: the URL cannot be fetched.
        OSError: the file cannot be read.
    """
    return TextBlock(text=f"{_heading(place)}{read_fragment_text(place)}")


def read_fragment_text(place: str) -> str:
    """Return the text of a fragment alone; as `read_fragment`."""
    if not is_place(place):
        return require_fragment(place, os.environ)
    return _decode(place, read_place(place), "not UTF-8 text; -a attaches images, audio and documents")


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
    """Files and URLs of a question, as on the command line; `blocks` reads them.

    Attributes:
        fragments: text that precedes the prompt.
        media: paths and URLs of media.
        typed: paths and URLs with their media type.
    """

    fragments: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    typed: tuple[tuple[str, str], ...] = ()

    @property
    def takes_standard_input(self) -> bool:
        """True if one of them is standard input, which then holds no part of the prompt."""
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
        if not is_place(place):
            raise click.BadParameter(describe_missing(place), ctx, parameter)
    return places


def _collect_fragments(ctx: click.Context, parameter: click.Parameter, places: Sequence[str]) -> Sequence[str]:
    for place in places:
        if not is_place(place) and stored_fragment(place, os.environ) is None:
            raise click.BadParameter(f"no file and no stored fragment is called {place}", ctx, parameter)
    return places


fragment_option = click.option(
    "-f", "--fragment", "fragments", metavar="PLACE", multiple=True, callback=_collect_fragments,
    shell_complete=complete_fragments,
    help="Put this text before the prompt: a file, an http(s) URL, - for standard input, or the name of a stored"
    " fragment (`interlingua fragments set`); may be repeated.",
)  # fmt: skip
attach_option = click.option(
    "-a", "--attach", "media", metavar="PLACE", multiple=True, callback=_collect,
    shell_complete=complete_files,
    help="Attach an image, audio, a video, a PDF or plain text: a file, a URL, or -; may be repeated.",
)  # fmt: skip
attach_type_option = click.option(
    "--at", "--attachment-type", "typed", metavar="PLACE TYPE", type=(str, str), multiple=True, callback=_collect,
    shell_complete=complete_files,
    help="Attach this with an explicit media type, such as image/webp; may be repeated.",
)  # fmt: skip
