"""interlingua-transcripts: session files of other agents, read, written back, converted and continued."""

from __future__ import annotations

from interlingua_transcripts.entries import from_messages, with_entries
from interlingua_transcripts.fidelity import Fidelity, measure_fidelity
from interlingua_transcripts.files import detect_format, read_transcript
from interlingua_transcripts.formats.attocode import ChatResponse
from interlingua_transcripts.opened import OpenTranscript, open_transcript
from interlingua_transcripts.system import DocumentFormat, SessionFormat, installed_formats, session_format
from interlingua_transcripts.transcript import (
    Conversation,
    HeldSession,
    MessageGroup,
    Note,
    ReadPlan,
    Transcript,
    TranscriptError,
    Written,
)
from interlingua_transcripts.writing import transcript_of, write_pieces, write_transcript

__all__ = [
    "ChatResponse",
    "Conversation",
    "DocumentFormat",
    "Fidelity",
    "HeldSession",
    "MessageGroup",
    "Note",
    "OpenTranscript",
    "ReadPlan",
    "SessionFormat",
    "Transcript",
    "TranscriptError",
    "Written",
    "detect_format",
    "from_messages",
    "installed_formats",
    "measure_fidelity",
    "open_transcript",
    "read_transcript",
    "session_format",
    "transcript_of",
    "with_entries",
    "write_pieces",
    "write_transcript",
]
