"""Stored words for requesters: replies and notifications as JSON, and back."""

from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from downburst.foundation.clock import to_us
from downburst.ledger.repositories.ordering.connections import StoredReply
from downburst_circuits.nsi.words import (
    Confirmed,
    DataPlaneChanged,
    ErrorEvent,
    ErrorReply,
    Failed,
    HoldExpired,
    Notice,
    Reply,
    Reserved,
    Sent,
    States,
)


def sent_as_json(body: Reply | Notice, correlation_id: str, states: States) -> dict[str, Any]:
    """The record of one; the states are told after a failed operation alone."""
    return {
        "word": type(body).__name__,
        "body": asdict(body),
        "correlation_id": correlation_id,
        "states": asdict(states) if isinstance(body, Failed) else None,
    }


def sent_of(stored: StoredReply) -> Sent:
    """One as it is told."""
    record = stored.record
    return Sent(
        stored.number,
        to_us(stored.at),
        record["correlation_id"],
        _ADAPTERS[record["word"]].validate_python(record["body"]),
        _STATES.validate_python(record["states"]),
    )


_WORDS: tuple[type[Any], ...] = (
    Reserved,
    Confirmed,
    Failed,
    ErrorReply,
    HoldExpired,
    DataPlaneChanged,
    ErrorEvent,
)
_ADAPTERS: dict[str, TypeAdapter[Any]] = {word.__name__: TypeAdapter(word) for word in _WORDS}
_STATES: TypeAdapter[States | None] = TypeAdapter(States | None)
