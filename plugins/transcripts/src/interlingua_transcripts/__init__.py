"""interlingua-transcripts: session files of other agents, read, written back, converted and continued."""

from __future__ import annotations

from interlingua_transcripts.entries import from_messages, with_entries
from interlingua_transcripts.fidelity import Fidelity, measure_fidelity
from interlingua_transcripts.files import detect_system, read_transcript
from interlingua_transcripts.opened import OpenTranscript, open_transcript
from interlingua_transcripts.system import DocumentSystem, System, installed_systems, system_of
from interlingua_transcripts.systems.attocode import ChatResponse
from interlingua_transcripts.transcript import (
    Conversation,
    Group,
    Note,
    Plan,
    Transcript,
    TranscriptError,
    Written,
)
from interlingua_transcripts.writing import transcript_of, write_pieces, write_transcript

__all__ = [
    "ChatResponse",
    "Conversation",
    "DocumentSystem",
    "Fidelity",
    "Group",
    "Note",
    "OpenTranscript",
    "Plan",
    "System",
    "Transcript",
    "TranscriptError",
    "Written",
    "detect_system",
    "from_messages",
    "installed_systems",
    "measure_fidelity",
    "open_transcript",
    "read_transcript",
    "system_of",
    "transcript_of",
    "with_entries",
    "write_pieces",
    "write_transcript",
]
