"""The provider agent: requests of clients with a certificate in, answers out; replies follow by `delivery`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from downburst.foundation.clock import to_us
from downburst.foundation.errors import DownburstError
from downburst.ledger.repositories.ordering.connections import StoredReply
from downburst.settings.circuits import NsiProviderSettings
from downburst_circuits.nsi.soap import telling
from downburst_circuits.nsi.soap.asked import read_request
from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.words import Asked, Header, Listed, Operation, Question, Sent
from downburst_circuits.provider_agent import machine, wishes
from downburst_circuits.provider_agent.book import Book, Changed
from downburst_circuits.provider_agent.carrying import Carrier, Circuits
from downburst_circuits.provider_agent.delivery import Delivery, Parcel, Post
from downburst_circuits.provider_agent.record import Connection, Requester
from downburst_circuits.provider_agent.refusals import ErrorId, NsiRefusal, refusal_of
from downburst_circuits.provider_agent.sent import sent_of


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request over HTTP."""

    is_fault: bool
    body: bytes


class ProviderAgent:
    """Connections of all requesters, over the calendar of one hub."""

    def __init__(self, circuits: Circuits, settings: NsiProviderSettings, post: Post) -> None:
        self._register = circuits.register
        self._clock = circuits.clock
        self._nsa = settings.nsa
        self._opened = asyncio.Event()
        self.book = Book(circuits.ledger, circuits.clock)
        self.delivery = Delivery(circuits.ledger, circuits.clock, post)
        self.carrier = Carrier(self.book, circuits, nsa=settings.nsa, hold_s=settings.hold_s, told=self._told)

    async def open(self) -> None:
        """Reads the connections, and continues what the last process left."""
        for stored in await self.book.load():
            self._deliver(stored)
        self.carrier.begin()
        self._opened.set()

    async def run(self) -> None:
        """Carries out requests until cancelled."""
        await self.open()
        await self.carrier.run()

    async def answer(self, body: bytes, subject: str) -> Answer:
        """The answer to a request by the holder of a certificate."""
        try:
            asked = read_request(body)
        except Unreadable as error:
            return self._fault(None, NsiRefusal(ErrorId.PAYLOAD, error.sentence), None)
        # The first requests after a start may come before the connections are read, and a fault is a refusal.
        with suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                await self._opened.wait()
        try:
            self._check_names(asked)
            return Answer(is_fault=False, body=await self._answers[type(asked.operation)](asked, subject))
        except DownburstError as error:
            return self._fault(asked.header, refusal_of(error), next(iter(asked.connection_ids), None))

    @property
    def _answers(self) -> Mapping[type, Callable[[Asked, str], Awaitable[bytes]]]:
        return {Operation: self._request, Question: self._query}

    async def _request(self, asked: Asked, subject: str) -> bytes:
        """Stores a request, and acknowledges it; it is carried out afterwards."""
        if asked.operation is Operation.RESERVE and not asked.connection_ids:
            return await self._reserve(asked, subject)
        one = self.book.own(asked.connection_ids[0], subject)
        is_change = asked.operation is Operation.RESERVE
        await self.book.change(
            one.connection_id,
            lambda now: (machine.change_requested if is_change else machine.requested)(now, asked),
            correlation_id=asked.header.correlation_id,
        )
        self.carrier.soon(one.connection_id)
        return telling.taken(asked.header, one.connection_id if is_change else None)

    async def _reserve(self, asked: Asked, subject: str) -> bytes:
        one = Connection(
            str(uuid4()),
            Requester(subject, asked.header.requester_nsa, asked.reply_to),
            wishes.service_of(asked),
            wishes.terms_of(asked, to_us(self._clock.now())),
            pending=(machine.pending_of(asked),),
        )
        self._check(one)
        await self.book.add(one, asked.header.correlation_id)
        self.carrier.soon(one.connection_id)
        return telling.taken(asked.header, one.connection_id)

    def _check(self, one: Connection) -> None:
        """Refuses at once what no calendar could ever have."""
        if one.asked is not None:
            circuit = wishes.circuit_of(one, one.asked, self._register.ports)
            wishes.check(circuit, self._register.ports, self._clock.now())

    async def _query(self, asked: Asked, subject: str) -> bytes:
        header, question = asked.header, asked.operation
        if question is Question.SUMMARY_SYNC:
            return telling.summary(header, self._listed(asked, subject), name=f"{question}Confirmed")
        if question in (Question.SUMMARY, Question.RECURSIVE):
            return self._query_later(asked, subject)
        are_notices = question is Question.NOTIFICATIONS_SYNC
        one = self.book.own(asked.connection_ids[0], subject)
        found = _within(await self.book.sent(one.connection_id, are_notices=are_notices), asked)
        return (telling.notifications if are_notices else telling.results)(header, found)

    def _query_later(self, asked: Asked, subject: str) -> bytes:
        """The answer by callback. No other network is behind this one, so a recursive query finds the same."""
        if asked.reply_to is None:
            raise NsiRefusal(ErrorId.MISSING, f"{asked.operation} is answered at replyTo; name one, or ask in sync")
        name = f"{asked.operation}Confirmed"
        header = asked.header
        body = telling.summary(header, self._listed(asked, subject), name=name, to_requester=True)
        self.delivery.add(Parcel(asked.reply_to, name, body))
        return telling.taken(header)

    def _listed(self, asked: Asked, subject: str) -> list[Listed]:
        wanted, wanted_globals = set(asked.connection_ids), set(asked.global_ids)
        return [
            Listed(
                one.connection_id,
                one.service.global_id,
                one.requester.nsa,
                one.states,
                one.told,
                one.service.description,
            )
            for one in self.book.of(subject)
            if not (wanted or wanted_globals)
            or one.connection_id in wanted
            or one.service.global_id in wanted_globals
        ]

    def _told(self, changed: Changed) -> None:
        for stored in changed.told:
            self._deliver(stored)

    def _deliver(self, stored: StoredReply) -> None:
        one = self.book.get(stored.connection_id)
        if stored.reply_to is None or one is None:
            return
        name, body = telling.callback(sent_of(stored), one.requester.nsa, self._nsa)
        self.delivery.add(Parcel(stored.reply_to, name, body, stored.number, stored.tries))

    def _check_names(self, asked: Asked) -> None:
        if not self._opened.is_set():
            raise NsiRefusal(ErrorId.INTERNAL, "the hub is starting; ask again in some seconds")
        if asked.header.provider_nsa != self._nsa:
            raise NsiRefusal(
                ErrorId.UNSUPPORTED,
                f"the request is for provider {asked.header.provider_nsa[:80]}, and this one is {self._nsa}",
            )

    def _fault(self, header: Header | None, refusal: NsiRefusal, connection_id: str | None) -> Answer:
        return Answer(is_fault=True, body=telling.fault(header, refusal.exception(self._nsa, connection_id)))


def _within(found: Iterable[Sent], asked: Asked) -> list[Sent]:
    first = 0 if asked.first_number is None else asked.first_number
    last = 2**63 if asked.last_number is None else asked.last_number
    return [one for one in found if first <= one.number <= last]


START_S = 5.0
"""A hub reads its connections within some hundredths of a second; requesters wait for an answer for half a minute."""
