"""The loop of the fleet: follows the traffic, and repeatedly scales the fleet to the need."""

import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from functools import partial

from downburst.bus.port import Bus
from downburst.domain.events import Event, TrafficSeen
from downburst.fleet.port import Fleet, Standing
from downburst.fleet.sizing import Sizing
from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import FleetAway
from downburst.settings.fleet import FleetSettings
from downburst.supervision import keep, side_by_side

Say = Callable[[str, str], Awaitable[None]]


class FleetLoop:
    """Sizes one fleet; level-triggered, so that the next look corrects anything missed."""

    def __init__(
        self, bus: Bus, fleet: Fleet, settings: FleetSettings, *, say: Say, clock: Clock | None = None
    ) -> None:
        self._bus = bus
        self._fleet = fleet
        self._settings = settings
        self._say = say
        self._clock = clock or SystemClock()
        self._sizing = Sizing(settings)
        self._told: Standing | None = None
        self._away_since_s: float | None = None

    async def run(self) -> None:
        """Works until cancelled."""
        with self._bus.subscribe(TrafficSeen) as events:
            await side_by_side(
                keep("fleet.count", partial(self._count, events)),
                keep("fleet.look", self.look, every_s=self._settings.step_s),
            )

    async def look(self) -> None:
        """One look: determines the number needed, and applies it."""
        try:
            if self._told is None or not self._told.mine:
                # The present number was needed when it was chosen, and the load is not known yet.
                self._sizing.resume((await self._fleet.standing()).wanted)
            standing = await self._fleet.bring_to(self._sizing.look(self._clock.monotonic_s()))
        except FleetAway as error:
            if self._away_since_s is None:
                self._away_since_s = self._clock.monotonic_s()
                await self._say(error.sentence, "running senders are not affected; the fleet retries by itself")
            return
        if self._away_since_s is not None:
            away_s, self._away_since_s = self._clock.monotonic_s() - self._away_since_s, None
            await self._say(f"the fleet is managed again, after {away_s:.0f} s", "")
        self._tell(standing)

    def count(self, event: TrafficSeen) -> None:
        """Counts the traffic of a node."""
        self._sizing.sent(sum(leg.egress_bytes for leg in event.legs), now_s=self._clock.monotonic_s())

    def _tell(self, standing: Standing) -> None:
        if standing != self._told:
            self._told = standing
            whose = "" if standing.mine else "; another process is in charge"
            _LOG.info("%d senders are wanted, %d are ready%s", standing.wanted, standing.ready, whose)

    async def _count(self, events: AsyncIterable[Event]) -> None:
        async for event in events:
            if isinstance(event, TrafficSeen):
                self.count(event)


_LOG = logging.getLogger("downburst.fleet")
