"""Compares a node's clock with the ledger server's, so that a sender knows its offset from the hub's clock."""

import time
from collections.abc import Awaitable, Callable

from downburst.domain.senders import HUB_CLOCK, ClockStanding
from downburst.ledger import Ledger, Transaction
from downburst_worker.messages.lines import Line

Ask = Callable[..., Awaitable[Line]]
"""Sends the node a job."""


class ReferenceClock:
    """The hub's own node stores its clock's offset; a sender's node gets the difference of the two."""

    def __init__(self, ledger: Ledger, *, sender: str | None) -> None:
        self._ledger = ledger
        self._sender = sender
        self._next_s = 0.0

    def again(self) -> None:
        """Starts again for a node that has restarted and has no offset."""
        self._next_s = 0.0

    async def tend(self, ask: Ask) -> None:
        """Compares if that is due; raises errors of the ledger or the node."""
        if time.monotonic() < self._next_s:
            return
        own = await self._ledger.read(lambda tx: tx.measured.clocks.compare(), patience_s=0)
        if own is None:
            return
        name = HUB_CLOCK if self._sender is None else self._sender
        hub = await self._ledger.write(lambda tx: _kept(tx, name, own), patience_s=0)
        self._next_s = time.monotonic() + EVERY_S
        if self._sender is not None and hub is not None:
            standing = own.to(hub)
            await ask("clock", ahead_us=standing.ahead_us, bound_us=standing.bound_us)


def _kept(tx: Transaction, name: str, own: ClockStanding) -> ClockStanding | None:
    tx.measured.clocks.keep(name, own)
    return tx.measured.clocks.of(HUB_CLOCK)


EVERY_S = 10.0
