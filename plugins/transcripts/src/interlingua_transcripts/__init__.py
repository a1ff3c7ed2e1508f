"""Session files of other agents, read, written back, converted and continued.

Names load when first used (PEP 562).
"""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "entries": "from_messages with_entries",
    "fidelity": "Fidelity measure_fidelity",
    "files": "detect_format read_transcript",
    "formats.attocode": "ChatResponse",
    "opened": "OpenTranscript open_transcript",
    "system": "DocumentFormat SessionFormat installed_formats session_format",
    "transcript": "Conversation HeldSession MessageGroup Note ReadPlan Transcript TranscriptError Written",
    "writing": "transcript_of write_pieces write_transcript",
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua_transcripts.entries import from_messages as from_messages, with_entries as with_entries
    from interlingua_transcripts.fidelity import Fidelity as Fidelity, measure_fidelity as measure_fidelity
    from interlingua_transcripts.files import detect_format as detect_format, read_transcript as read_transcript
    from interlingua_transcripts.formats.attocode import ChatResponse as ChatResponse
    from interlingua_transcripts.opened import OpenTranscript as OpenTranscript, open_transcript as open_transcript
    from interlingua_transcripts.system import (
        DocumentFormat as DocumentFormat, SessionFormat as SessionFormat, installed_formats as installed_formats,
        session_format as session_format
    )
    from interlingua_transcripts.transcript import (
        Conversation as Conversation, HeldSession as HeldSession, MessageGroup as MessageGroup, Note as Note,
        ReadPlan as ReadPlan, Transcript as Transcript, TranscriptError as TranscriptError, Written as Written
    )
    from interlingua_transcripts.writing import (
        transcript_of as transcript_of, write_pieces as write_pieces, write_transcript as write_transcript
    )
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
