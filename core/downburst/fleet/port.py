"""The manager of senders: child processes of this machine, or pods of a Kubernetes. Only the wiring knows which."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a fleet."""

    wanted: int
    """The desired number of senders."""
    ready: int
    """Those of them that accept sites."""
    mine: bool = True
    """True if this process decides; another one may hold the lease."""


class Fleet(Protocol):
    """Senders, numbered from 0. `tests/contract/test_fleet.py` holds for every implementation."""

    async def bring_to(self, senders: int) -> Standing:
        """Requests the senders 0 to `senders` - 1, and returns the state of the fleet; does not wait for them.

        It is called repeatedly with the desired number, and corrects deviations: a sender that died or was removed is
        started again, changes by others are reverted. Senders beyond the number are asked to drain, and end. Raises
        `FleetAway` if their manager can't be reached; the senders continue to run.
        """

    async def standing(self) -> Standing:
        """The state of the fleet, without a change; raises `FleetAway` likewise."""

    async def close(self) -> None:
        """Releases the fleet. Child processes end with it, pods do not."""
