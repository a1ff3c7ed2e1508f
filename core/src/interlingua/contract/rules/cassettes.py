"""Rules on the cassettes themselves: they can be read, they are this provider's, and we would ask the same way.

Never judges an answer.
The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.contract.reading import read
from interlingua.contract.rule import Finding, NotApplicable, rule
from interlingua.contract.subject import Subject
from interlingua.errors import CallerError, ProviderError
from interlingua.replay.cassettes import read_cassette


@rule(
    "C46",
    "Every cassette is readable, and every good answer in it becomes a message or the provider's own error.",
    source="DESIGN 11",
    fix="""Record with pytest-recording and `decode_compressed_response=True`. Traffic that belongs to no endpoint of
    the connection is not looked at; an answer that cannot be read is a mistake of the adapter.""",
)
def cassettes_are_readable(subject: Subject) -> Iterator[Finding]:
    """Each file of the folder."""
    if subject.folder is None or not subject.folder.is_dir():
        raise NotApplicable("no cassette folder was given")
    for path in sorted(subject.folder.rglob("*.yaml")):
        try:
            read_cassette(path)
        except CallerError as error:
            yield Finding(why=str(error), where=path.name)
            return
    if not subject.exchanges:
        yield Finding(why="no exchange in it belongs to an endpoint of this provider", where=subject.folder.name)
    for exchange in subject.exchanges:
        if exchange.good:
            found = read(subject, exchange)
            if found.escaped or (found.error is not None and not isinstance(found.error, ProviderError)):
                why = f"cannot be read: {found.error or repr(found.escaped)}"
                yield Finding(why=why, where=exchange.cassette)
