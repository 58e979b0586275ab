"""The bus: every subscriber has its own bounded queue; a slow one loses the oldest events and is notified.

Publishing never waits, so a slow reader (a browser on a train) does not hold up the hub. Subscribers that must not
miss a change treat a loss as "read again": an event only reports that something changed, the ledger holds the data.
`LocalBus` serves one process; `downburst.kafka.bus` serves several. `tests/contract/test_bus.py` holds for both.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from downburst.domain.events import Event, EventsMissed, PlanMade


class LocalBus:
    """The bus of one process."""

    def __init__(self) -> None:
        self._subscribers: list[BusSubscription] = []
        self._plans: dict[str, PlanMade] = {}

    def publish(self, event: Event) -> None:
        """Puts the event into the queue of every subscriber that wants its type."""
        if isinstance(event, PlanMade):
            self.remember(event)
        for subscriber in self._subscribers:
            subscriber.offer(event)

    def remember(self, plan: PlanMade) -> None:
        """Keeps a plan unless a newer one of its feed is known."""
        known = self._plans.get(plan.plan.feed)
        if known is None or known.plan.version <= plan.plan.version:
            self._plans[plan.plan.feed] = plan

    def plans(self) -> list[PlanMade]:
        """The newest plan of every feed that was ever published, by feed."""
        return [self._plans[feed] for feed in sorted(self._plans)]

    def miss(self, events: int) -> None:
        """Notifies every subscriber that it missed so many events."""
        for subscriber in self._subscribers:
            subscriber.miss(events)

    def subscribe(self, *kinds: type[Event], limit: int = 1024) -> "BusSubscription":
        """A queue of the given event types (all if none is given), of at most `limit` waiting events."""
        subscription = BusSubscription(self, kinds, limit=limit)
        self._subscribers.append(subscription)
        return subscription

    def close(self) -> None:
        """Ends every subscription; events published later are not delivered."""
        for subscription in list(self._subscribers):
            subscription.close()

    def forget(self, subscription: "BusSubscription") -> None:
        """Stops handing events to the subscription."""
        if subscription in self._subscribers:
            self._subscribers.remove(subscription)


class BusSubscription:
    """One subscriber's queue: iterate over it, close it (or use it as a context) when done."""

    def __init__(self, bus: LocalBus, kinds: tuple[type[Event], ...], *, limit: int) -> None:
        self._bus = bus
        self._kinds = kinds
        self._limit = limit
        self._waiting: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._closed = False
        self._dropped = 0

    @property
    def closed(self) -> bool:
        """True if no more events will arrive."""
        return self._closed

    def offer(self, event: Event) -> None:
        """Queues the event if it is wanted; drops the oldest if there is no room."""
        if self._kinds and not isinstance(event, (*self._kinds, EventsMissed)):
            return
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(event)
        self._wake.set()

    def miss(self, events: int) -> None:
        """Counts events that never arrived here, and reports the loss by an event that every subscriber gets."""
        self.offer(EventsMissed())
        self._dropped += events

    def take_dropped(self) -> int:
        """Returns the number of events lost since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    async def next(self) -> Event | None:
        """The next event; None once closed and empty."""
        while not self._waiting:
            if self._closed:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._waiting.popleft()

    def close(self) -> None:
        """Ends the iteration once the queue is empty."""
        self._closed = True
        self._bus.forget(self)
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self.next()) is not None:
            yield event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
