"""The connections that a hub's senders recorded."""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from downburst.bus.port import Bus
from downburst.domain.tcp.tracing import TracerAsked, TracerTold
from downburst.foundation.errors import DownburstError
from downburst.live.traced import TracedSite, TracerQuestion
from downburst_worker.messages.tracer_lines import traced_site, tracer_job
from downburst_worker.remote.deliveries import Ask


class RemoteTracer:
    """Queries the senders: a site may have been served by several of them in a period."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def add(self, found: TracedSite, wanted: TracerQuestion, *, senders: Collection[str]) -> TracedSite:
        """This node's recording and those of senders; incomplete, with the reason, if one does not answer in time."""
        if not senders:
            return found
        variables = tuple(wanted.variables)
        asked = TracerAsked(uuid.uuid4().hex, wanted.site, wanted.since, wanted.until, wanted.points, variables)
        heard: dict[str, dict[int, TracerTold]] = {sender: {} for sender in senders}
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                await self._hear(asked, heard)
        # Parsing four megabytes takes a tenth of a second.
        answers = await asyncio.to_thread(lambda: [_answer(sender, heard[sender]) for sender in sorted(heard)])
        return _merged([found, *answers])

    async def _hear(self, asked: TracerAsked, heard: dict[str, dict[int, TracerTold]]) -> None:
        with self._bus.subscribe(TracerTold, limit=ANSWERS) as answers:
            self._bus.publish(asked)
            async for one in answers:
                if isinstance(one, TracerTold) and one.ask == asked.ask and one.sender in heard:
                    heard[one.sender][one.piece] = one
                    if all(map(_whole, heard.values())):
                        return


async def told_connections(name: str, ask_node: Ask, asked: TracerAsked) -> AsyncIterator[TracerTold]:
    """The answer of the sender with this name, in pieces."""
    wanted = TracerQuestion(asked.site, asked.since, asked.until, asked.points, asked.variables)
    try:
        line = await ask_node("tracer", **tracer_job(wanted))
    except DownburstError as error:
        _LOG.info("the hub's question for the connections of %s: %s", asked.site, error.sentence)
        yield TracerTold(asked.ask, name, error.sentence, 0, 1, refused=True)
        return
    text = await asyncio.to_thread(json.dumps, line, separators=(",", ":"))
    pieces = [text[begin : begin + PIECE] for begin in range(0, len(text), PIECE)]
    for number, content in enumerate(pieces):
        yield TracerTold(asked.ask, name, content, number, len(pieces))


def _whole(pieces: dict[int, TracerTold]) -> bool:
    return bool(pieces) and len(pieces) == next(iter(pieces.values())).pieces


def _answer(sender: str, pieces: dict[int, TracerTold]) -> TracedSite:
    if not _whole(pieces):
        reason = f"the sender {sender} did not answer in {ANSWER_S:.0f} s; ask again, or look at its log"
        return TracedSite((), (), unable=reason, complete=False)
    text = "".join(pieces[number].content for number in sorted(pieces))
    if any(piece.refused for piece in pieces.values()):
        return TracedSite((), (), unable=f"the sender {sender}: {text}", complete=False)
    found = traced_site(json.loads(text))
    return replace(found, unable=f"the sender {sender}: {found.unable}") if found.unable else found


def _merged(answers: Iterable[TracedSite]) -> TracedSite:
    """All connections; their own ends tell which node serves them."""
    found = list(answers)
    moments = [one.recorded for one in found if one.recorded is not None]
    return TracedSite(
        variables=next((one.variables for one in found if one.variables), ()),
        connections=tuple(connection for one in found for connection in one.connections),
        unable="; ".join(_reasons(found)) or None,
        missed_ticks=sum(one.missed_ticks for one in found),
        damaged=sum(one.damaged for one in found),
        recorded=_span(moments) if moments else None,
        complete=all(one.complete for one in found),
    )


def _reasons(found: Iterable[TracedSite]) -> Iterator[str]:
    yield from (one.unable for one in found if one.unable)


def _span(moments: Collection[tuple[datetime, datetime]]) -> tuple[datetime, datetime]:
    return min(since for since, _ in moments), max(until for _, until in moments)


_LOG = logging.getLogger("downburst.agent")
ANSWER_S = 3.0
"""The longest wait for a sender, which reads 64 MiB."""
PIECE = 200_000
"""Characters; quoted once more as JSON they stay below the megabyte that brokers accept by default."""
ANSWERS = 4_096
