"""Reports of an agent to the rest of its hub: events over the bus, faults through the ledger as well."""

import logging
from contextlib import suppress
from datetime import datetime

from downburst.domain.events import Event, FaultSeen
from downburst.domain.faults import Fault
from downburst.foundation.errors import Failure
from downburst_worker.roles import Role
from downburst_worker.shared import Shared


class Reporter:
    """Sends the reports of one node's agent."""

    def __init__(self, shared: Shared, role: Role) -> None:
        self._shared = shared
        self.role = role

    def say(self, event: Event) -> None:
        """Publishes an event in this process, and to the others if the node's role publishes it."""
        self._shared.live.apply(event)
        if self.role.publishes(event):
            self._shared.bus.publish(event)

    async def fault(
        self,
        sentence: str,
        *,
        feed: str | None = None,
        site: str | None = None,
        next_step: str = "",
        at: datetime | None = None,
    ) -> None:
        """Reports a fault to operators."""
        fault = Fault(at or self._shared.clock.now(), sentence, feed=feed, site=site, next_step=next_step)
        _LOG.warning("%s%s", f"feed {feed}: " if feed is not None and feed not in sentence else "", sentence)
        with suppress(Failure):
            await self._shared.ledger.write(lambda tx: tx.measured.faults.add(fault), patience_s=0)
        self.say(FaultSeen(fault.at, sentence, feed=feed, site=site, next_step=next_step))


_LOG = logging.getLogger("downburst.agent")
