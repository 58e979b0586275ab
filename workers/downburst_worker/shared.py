"""Resources that the parts of an agent share with the rest of its process."""

from dataclasses import dataclass

from downburst.bus.port import Bus
from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst.live.state import LiveState


@dataclass(frozen=True, slots=True)
class Shared:
    """Ledger, bus, present state, and clock."""

    ledger: Ledger
    bus: Bus
    live: LiveState
    clock: Clock
