"""Signs of life of parts in processes of their own: published every few seconds, and missed when they end."""

import time
from collections.abc import Awaitable, Callable, Iterable

from downburst.bus.port import Bus
from downburst.domain.events import PartSeen
from downburst.foundation.errors import DownburstError, Failure
from downburst.parts.names import Part
from downburst.supervision import keep
from downburst.supervision.probes import Probe


class Presence:
    """The last sign of life of each part, by this process's clock; silence is counted from the start."""

    def __init__(self, parts: Iterable[Part], now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._heard_s = dict.fromkeys(parts, now_s())
        self._faults: dict[Part, str | None] = {}
        self._follows = False

    def seen(self, event: PartSeen) -> None:
        """Records a sign of life; those of parts in this process are ignored."""
        for part in self._heard_s:
            if part == event.part:
                self._heard_s[part] = self._now_s()
                self._faults[part] = event.fault

    def silent_s(self, part: Part) -> float:
        """Seconds since the last sign of life, if that is too long; else 0."""
        silent_s = self._now_s() - self._heard_s[part]
        return silent_s if silent_s > SILENT_S else 0.0

    def silent(self) -> dict[Part, float]:
        """The silent parts, and the seconds of their silence."""
        return {part: silent_s for part in self._heard_s if (silent_s := self.silent_s(part))}

    def probes(self) -> dict[str, Probe]:
        """A probe for each part, by its command."""
        return {part.command: self._probe(part) for part in self._heard_s}

    async def follow(self, bus: Bus) -> None:
        """Records signs of life until cancelled."""
        if not self._follows:
            # The start of a hub takes longer than the permitted silence of a part.
            self._heard_s = dict.fromkeys(self._heard_s, self._now_s())
        self._follows = True
        with bus.subscribe(PartSeen, limit=QUEUE) as events:
            async for event in events:
                if isinstance(event, PartSeen):
                    self.seen(event)

    def _probe(self, part: Part) -> Probe:
        async def prove() -> None:
            if silent_s := self.silent_s(part):
                raise Failure(f"no sign of life from the {part} for {silent_s:.0f} s")
            if fault := self._faults.get(part):
                raise Failure(fault)

        return prove


async def show_life(bus: Bus, part: Part, process: str, prove: Callable[[], Awaitable[None]]) -> None:
    """Publishes signs of life of a part until cancelled, with the result of its own proof."""

    async def show() -> None:
        fault = None
        try:
            await prove()
        except DownburstError as error:
            fault = error.sentence
        bus.publish(PartSeen(part, process, fault))

    await keep("parts.show-life", show, every_s=EVERY_S)


async def at_work() -> None:
    """The proof of a part that has none of its own: its event loop runs."""


QUEUE = 256
EVERY_S = 2.0
SILENT_S = 15.0
"""Longer than an immediate restart of a part, also with Python's seconds to start on a busy machine."""
