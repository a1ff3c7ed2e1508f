"""Histories made of recorded answers, with the provider's own ids, signatures and replay state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from interlingua.errors import InterlinguaError
from interlingua.plugins import RequestContext
from interlingua.types import Message, MessageStatus, StopReason
from interlingua_cli.cassettes import RecordedExchange, read_cassettes
from interlingua_cli.replay.exchange import decode_answer
from interlingua_cli.replay.source import Entry
from interlingua_contract.matrix.accounting import leaves_of
from interlingua_contract.matrix.histories import SESSION, THEN, TOOLS, Script
from interlingua_contract.matrix.sides import UNKNOWN_MODEL, Side, Speaker
from interlingua_contract.subject import model_of, with_streaming

_SHORTEST = 4


def recorded_histories(side: Side, folder: Path | None) -> Iterator[tuple[str, Script, Speaker]]:
    """Yield one history for each model that answered, with all its answers, each between two messages of the user.

    The folder has the cassettes of all providers, a folder each.
    """
    by_model: dict[str, list[RecordedExchange]] = {}
    own = folder / side.provider.key if folder is not None else None
    for exchange in read_cassettes(own) if own is not None and own.is_dir() else ():
        if exchange.method == "POST" and exchange.good and _is_for(side, exchange):
            exchange = with_streaming(exchange, side.provider, side.api)  # noqa: PLW2901
            by_model.setdefault(model_of(exchange, side.connection) or UNKNOWN_MODEL, []).append(exchange)
    for model, exchanges in sorted(by_model.items()):
        speaker = Speaker(side=side, model=model)
        script = _write_script(speaker, exchanges)
        if script.answered_at:
            yield f"recorded: {model}", script, speaker


def _is_for(side: Side, exchange: RecordedExchange) -> bool:
    found = side.connection.find_endpoint(urlsplit(exchange.uri).path)
    return found is not None and found.read and found.api == side.api


def _write_script(speaker: Speaker, exchanges: Iterable[RecordedExchange]) -> Script:
    script = Script()
    earlier: list[str] = []
    for exchange in exchanges:
        trial = script.fork()
        trial.user()
        message = _read_answer(trial, speaker, exchange)
        if message is None or _is_ambiguous(message, earlier):
            continue
        earlier += _distinct_texts(message)
        script = trial
        script.take(message)
        for call in message.tool_calls:
            script.result(call)
    script.user()
    return script


def _read_answer(script: Script, speaker: Speaker, exchange: RecordedExchange) -> Message | None:
    """Read a recorded answer as if it had been received now; None if it is not a whole message."""
    side, number = speaker.side, len(script.messages)
    entry = Entry(
        id=exchange.cassette,
        url=exchange.uri,
        status=exchange.status,
        headers=exchange.headers,
        body=exchange.body,
        kind="framed" if exchange.streamed else "json",
        model=speaker.model,
    )
    try:
        request = side.write(speaker.model, script.messages, TOOLS)
        context = RequestContext(
            origin=side.origin(speaker.model),
            message_id=script.next_id,
            session_id=SESSION,
            mint_tool_use_id=script.mint,
            clock=lambda: THEN + timedelta(seconds=number),
            tool_names=request.tool_names,
            echo=request.echo,
        )
        message = decode_answer(entry, side.provider, side.connection, context)
    except InterlinguaError:
        return None  # a recorded failure
    whole = message.metadata.status is MessageStatus.COMPLETE
    return message if whole and message.metadata.stop_reason is not StopReason.PAUSE_TURN else None


def _distinct_texts(message: Message) -> list[str]:
    found = [leaf.value for leaf in leaves_of([message]) if isinstance(leaf.value, str)]
    return [*found, *[call.provider_id for call in message.tool_calls if call.provider_id]]


def _is_ambiguous(message: Message, earlier: list[str]) -> bool:
    """True when a leaf could be mistaken for one of an earlier answer."""
    mine = [text for text in _distinct_texts(message) if len(text) >= _SHORTEST]
    return any(text in other or other in text for text in mine for other in earlier if len(other) >= _SHORTEST)
