"""Reports of a process to operators: faults go into the ledger, and pages refresh."""

import logging
from contextlib import suppress

from downburst.bus.port import Bus
from downburst.domain.events import FaultSeen
from downburst.domain.faults import Fault
from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import Failure
from downburst.ledger import Ledger
from downburst.supervision import start


class FaultReports:
    """The faults of one process."""

    def __init__(
        self, ledger: Ledger, bus: Bus, log: logging.Logger, *, clock: Clock | None = None, prefix: str = ""
    ) -> None:
        self._ledger = ledger
        self._bus = bus
        self._log = log
        self._clock = clock or SystemClock()
        self._prefix = prefix
        """Names the process in the sentences that operators read; its own log needs no name."""

    async def say(self, sentence: str, next_step: str = "") -> None:
        """Logs and stores a fault; without the ledger it is only logged and shown."""
        fault = Fault(self._clock.now(), self._prefix + sentence, next_step=next_step)
        self._log.warning("%s", sentence)
        with suppress(Failure):
            await self._ledger.write(lambda tx: tx.measured.faults.add(fault), patience_s=0)
        self._bus.publish(FaultSeen(fault.at, fault.sentence, next_step=next_step))

    async def show(self, sentence: str, next_step: str) -> None:
        """Notifies pages of a condition that they show while it lasts: they refresh, and nothing is stored."""
        self._log.warning("%s", sentence)
        self._bus.publish(FaultSeen(self._clock.now(), sentence, next_step=next_step))

    def say_later(self, sentence: str) -> None:
        """Reports a fault from code that can't wait."""
        start("hub.say", self.say(sentence))
