"""The hub's side of separate parts: it follows their signs of life, and answers their questions."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

from downburst.bus.port import Bus
from downburst.domain.circuits import FINISHED
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.foundation.errors import NotFound
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst.parts.names import Part, parts_apart
from downburst.parts.presence import Presence
from downburst.parts.questions import Answer, answer_for_good
from downburst.settings.hub import Settings
from downburst.supervision import keep

Say = Callable[[str, str], Awaitable[None]]
Run = Callable[[], Awaitable[None]]


class Beside:
    """The parts that a hub leaves to other processes; without any it does nothing."""

    def __init__(self, settings: Settings, *, ledger: Ledger, bus: Bus, live: LiveState, say: Say) -> None:
        self._parts = parts_apart(settings)
        self._ledger = ledger
        self._bus = bus
        self._live = live
        self._say = say
        self._answers: dict[str, Answer] = {}
        self._missed: set[Part] = set()
        self.presence = Presence(self._parts)

    def answer(self, answers: Mapping[str, Answer]) -> None:
        """Adds answers to these questions."""
        self._answers.update(answers)

    def runs(self) -> Iterator[tuple[str, Run]]:
        """The tasks that the hub runs for them."""
        if self._parts:
            yield "beside.presence", partial(self.presence.follow, self._bus)
            yield "beside.silence", partial(keep, "beside.look", self.look, every_s=LOOK_S)
        if self._answers:
            yield "beside.questions", partial(answer_for_good, self._bus, Part.HUB, self._answers)
        if Part.CIRCUITS in self._parts:
            yield "beside.circuits", self._forget_finished_circuits

    async def look(self) -> None:
        """Reports each part to operators once when it falls silent, and once when it is back."""
        silent = self.presence.silent()
        for part in silent.keys() - self._missed:
            await self._say(f"the {part} gives no sign of life; {MEANWHILE[part]}", part.remedy)
            self._missed.add(part)
        for part in self._missed - silent.keys():
            self._missed.remove(part)
            await self._say(f"the {part} is at work again", "")

    async def _forget_finished_circuits(self) -> None:
        """Removes ended circuits from the hub's memory, which the service can't reach."""
        with self._bus.subscribe(CircuitsChanged, limit=QUEUE) as events:
            async for event in events:
                if isinstance(event, CircuitsChanged) and event.circuit is not None:
                    await self._forget_finished(event.circuit)

    async def _forget_finished(self, number: int) -> None:
        try:
            circuit = await self._ledger.read(lambda tx: tx.circuits.one(number))
        except NotFound:
            _LOG.info("circuit %d is gone from the ledger", number)
        else:
            if circuit.state not in FINISHED:
                return
        self._live.forget_circuit(number)


_LOG = logging.getLogger("downburst.hub")
MEANWHILE: Mapping[Part, str] = {
    Part.SCHEDULER: "feeds keep their transports until it is back",
    Part.LATENCY: "receipts wait on Kafka, and latencies stand still until it is back",
    Part.CIRCUITS: "circuits stay as they are, and requests for circuits are refused until it is back",
    Part.ALARMS: "no alarm begins or ends, and no receiver is notified until it is back",
}
LOOK_S = 2.0
QUEUE = 1024
