"""All connections of requesters, in memory and in the ledger; every change passes through here."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from downburst.foundation.clock import Clock, to_us
from downburst.foundation.errors import AlreadyThere, LimitReached
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.ordering.connections import StoredReply
from downburst_circuits.nsi.words import (
    DataPlaneChanged,
    ErrorEvent,
    HoldExpired,
    Notice,
    Reply,
    Sent,
)
from downburst_circuits.provider_agent.machine import is_over
from downburst_circuits.provider_agent.record import Connection, as_json, from_json
from downburst_circuits.provider_agent.refusals import ErrorId, NsiRefusal
from downburst_circuits.provider_agent.sent import sent_as_json, sent_of


@dataclass(frozen=True, slots=True)
class Telling:
    """Words for a requester, to be stored with the change that they tell."""

    body: Reply | Notice
    correlation_id: str
    reply_to: str | None


@dataclass(frozen=True, slots=True)
class Changed:
    """A connection after a change, and its words for the requester."""

    connection: Connection
    told: tuple[StoredReply, ...]


Kept = TypeVar("Kept")
Tell = Callable[[Connection], Sequence[Telling]]


class Book:
    """Connections by their ids."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._writing = asyncio.Lock()
        self._all: dict[str, Connection] = {}
        self.of_circuit: dict[int, str] = {}

    async def load(self) -> list[StoredReply]:
        """Reads all from the ledger; the words that some requesters still have to get."""
        records, undelivered = await self._ledger.read(
            lambda tx: (tx.planning.connections.all(), tx.planning.connections.undelivered())
        )
        self._all.clear()
        self.of_circuit.clear()
        for record in records:
            self._remember(from_json(record))
        return undelivered

    def open(self) -> list[Connection]:
        """Connections that have not ended."""
        return [one for one in self._all.values() if not is_over(one)]

    def get(self, connection_id: str) -> Connection | None:
        """A connection by its id."""
        return self._all.get(connection_id)

    def of(self, subject: str) -> Iterable[Connection]:
        """The connections that belong to a certificate."""
        return [one for one in self._all.values() if one.requester.subject == subject]

    def own(self, connection_id: str, subject: str) -> Connection:
        """A connection that belongs to this certificate; that of another one is as unknown as none."""
        one = self._all.get(connection_id)
        if one is None or one.requester.subject != subject:
            raise NsiRefusal(
                ErrorId.UNKNOWN_CONNECTION,
                f"there is no connection {connection_id[:80]} of this certificate; query all to see which there are",
            )
        return one

    async def add(self, one: Connection, correlation_id: str) -> None:
        """Stores a new connection, with the id of its request."""
        one = replace(one, changed_us=self._now_us())

        def write(tx: Transaction) -> None:
            tx.planning.connections.seen(one.requester.subject, correlation_id)
            tx.planning.connections.add(one.connection_id, one.requester.subject, as_json(one))

        async with self._writing:
            await self._stored(write)
            self._remember(one)

    async def change(
        self,
        connection_id: str,
        update: Callable[[Connection], Connection],
        tell: Tell | None = None,
        *,
        correlation_id: str | None = None,
    ) -> Changed:
        """Changes a connection as it is now, with the words that tell it, and the id of the request that asks."""
        async with self._writing:
            before = self._all[connection_id]
            after = update(before)
            words = () if tell is None else tuple(tell(after))
            if after == before and not words and correlation_id is None:
                return Changed(before, ())
            after = replace(after, changed_us=self._now_us())
            told = await self._stored(partial(_write, after, words, correlation_id))
            self._remember(after)
            return Changed(after, told)

    async def sent(self, connection_id: str, *, are_notices: bool) -> list[Sent]:
        """The kept replies of a connection, or its notifications."""
        found = await self._ledger.read(
            lambda tx: tx.planning.connections.replies(connection_id, are_notices=are_notices)
        )
        return [sent_of(stored) for stored in found]

    async def _stored(self, write: Callable[[Transaction], Kept]) -> Kept:
        try:
            return await self._ledger.write(write)
        except AlreadyThere as error:
            raise NsiRefusal(ErrorId.MISSING, error.sentence) from None
        except LimitReached as error:
            raise NsiRefusal(ErrorId.UNAVAILABLE, error.sentence) from None

    def _remember(self, one: Connection) -> None:
        self._all[one.connection_id] = one
        if one.circuit is not None:
            self.of_circuit[one.circuit] = one.connection_id
        if is_over(one):
            self._forget_old(one.requester.subject)

    def _forget_old(self, subject: str) -> None:
        ended = [one for one in self.of(subject) if is_over(one)]
        ended.sort(key=lambda one: one.changed_us)
        for one in ended[: max(len(ended) - ENDED_KEPT, 0)]:
            del self._all[one.connection_id]
            self.of_circuit.pop(one.circuit or 0, None)

    def _now_us(self) -> int:
        return to_us(self._clock.now())


def _write(
    one: Connection, words: Sequence[Telling], correlation_id: str | None, tx: Transaction
) -> tuple[StoredReply, ...]:
    kept = tx.planning.connections
    if correlation_id is not None:
        kept.seen(one.requester.subject, correlation_id)
    if is_over(one):
        kept.end(one.connection_id, one.requester.subject, as_json(one))
    else:
        kept.save(one.connection_id, as_json(one))
    return tuple(
        kept.reply(
            one.connection_id,
            sent_as_json(word.body, word.correlation_id, one.states),
            is_notice=isinstance(word.body, HoldExpired | DataPlaneChanged | ErrorEvent),
            reply_to=word.reply_to,
        )
        for word in words
    )


ENDED_KEPT = 200
"""Of each certificate, as in the ledger."""
