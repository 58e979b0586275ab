"""Questions for the tracer's recordings at the senders of a hub, and their answers."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TracerAsked:
    """The hub queries its senders for the connections of a site in a period."""

    ask: str
    """The id of the query; answers carry it."""
    site: str
    since: datetime
    until: datetime
    points: int
    """The most samples of each connection in an answer."""
    variables: tuple[str, ...] = ()
    """Names as the kernel's; none: all."""


@dataclass(frozen=True, slots=True)
class TracerTold:
    """A piece of a sender's answer: it may be longer than a record of the brokers."""

    ask: str
    sender: str
    content: str
    """Part of the node's answer to `tracer`, as JSON (docs/node-lines.md), or of the reason for none."""
    piece: int
    """The number of this piece, from 0 on."""
    pieces: int
    refused: bool = False
    """True: it is the reason for none, a sentence."""
