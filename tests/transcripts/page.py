"""docs/reference/transcripts.md, made from the installed systems: `python -m tests.transcripts.page`."""

from __future__ import annotations

from collections.abc import Iterator

from interlingua_transcripts import SessionFormat, installed_formats, measure_fidelity, read_transcript
from tests.support import tree
from tests.transcripts.histories import own_file, writable_systems

PAGE = tree.ROOT / "docs" / "reference" / "transcripts.md"
_SHOWN = 8  # places of one crossing

_HEAD = """# Session files of other agents

Written by `python -m tests.transcripts.page`; a test holds it current. How to use them:
[Bring your sessions](../how-to/bring-your-sessions.md).

## Systems

Every system's files are read, and written back with each entry unchanged. New messages and sessions of other systems
are written for those marked so.

"""

_CROSSING = """
## From one system to another

A small conversation is written as a file of the first system, read, and written for the second; the values of the
first file are then searched in the second, anywhere in it. The history has a system prompt, signed thinking, two
parallel calls and their results (one an error), an image, usage and cost, an answer that was stopped and one that
failed. Leaves (strings, numbers and so on) of the first file:

- *exact*: the value is in the second file; *other form*: a rule turns it into values that are, such as a time in UTC;
- *kept*: of the first system alone (its own ids); kept beside the messages while they are interlingua's, so that the
  same file is written again, and not in the second system's file;
- *lost*: the messages hold it and the second file does not.

`interlingua transcript fidelity FILE --to SYSTEM` says the same of a file of yours.

| from | to | exact | other form | kept | lost | what is lost |
|---|---|---|---|---|---|---|
"""


def text() -> str:
    """Return the page as it should be."""
    systems = ["| system | name | written | version | found in |", "|---|---|---|---|---|", *_systems()]
    return _HEAD + "\n".join(systems) + "\n" + _CROSSING + "\n".join(_crossings()) + "\n"


def _systems() -> Iterator[str]:
    for system in installed_formats().values():
        version = read_transcript(own_file(system)).version if system.writable else ""
        found = "its own folder" if type(system).find is not SessionFormat.find else "wherever you name it"
        yield f"| `{system.name}` | {system.title} | {'yes' if system.writable else 'no'} | {version} | {found} |"


def _crossings() -> Iterator[str]:
    for source in writable_systems():
        read = read_transcript(own_file(source))
        for target in writable_systems():
            if target is source:
                continue
            report = measure_fidelity(read, target.name)
            total = report.total
            places = [f"`{place}`" + (f" {count}x" if count > 1 else "") for place, count in report.lost.most_common()]
            more = f" and {len(places) - _SHOWN} places more" if len(places) > _SHOWN else ""
            lost = ", ".join(places[:_SHOWN]) + more
            counts = f"{total.exact} | {total.other} | {total.kept} | {total.lost}"
            yield f"| {source.name} | {target.name} | {counts} | {lost} |".replace("|  |", "| |")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
