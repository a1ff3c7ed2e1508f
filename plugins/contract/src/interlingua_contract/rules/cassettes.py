"""Rules on the cassettes themselves: they can be read, they are this provider's, and we would ask the same way.

Never judges an answer.
The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.errors import CallerError, ProviderError
from interlingua.types.factories import user
from interlingua_cli.cassettes import read_cassette
from interlingua_contract.reading import read
from interlingua_contract.rule import Finding, NotApplicable, rule
from interlingua_contract.rules.secrets import REQUEST_HEADERS
from interlingua_contract.subject import Subject


@rule(
    "C46",
    "Every cassette is readable and asks as we ask; a good answer in it is a message or the provider's own error.",
    source="DESIGN 11; STYLE 1.9",
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
    yield from _headers(subject)
    for exchange in subject.exchanges:
        if exchange.good:
            found = read(subject, exchange)
            if found.escaped or (found.error is not None and not isinstance(found.error, ProviderError)):
                why = f"cannot be read: {found.error or repr(found.escaped)}"
                yield Finding(why=why, where=exchange.cassette)


def _headers(subject: Subject) -> Iterator[Finding]:
    """A header that every recorded request of a wire has is one that we send."""
    for aim in {aim.api: aim for aim in subject.aims}.values():
        recorded = [set(one.request_headers) for one in subject.exchanges if subject.api_of(one) == aim.api]
        sent = {name.lower() for name in (*subject.connection.headers, *subject.written(aim, [user("q")]).headers)}
        missing = set.intersection(*recorded) - sent - REQUEST_HEADERS if recorded else set()
        if missing:
            yield Finding(why=f"recorded requests have {', '.join(sorted(missing))}, ours have not", where=aim.api)
