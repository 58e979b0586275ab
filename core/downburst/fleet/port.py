"""What runs senders: child processes of this machine, or pods of a Kubernetes. Only wiring knows which."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Standing:
    """How a fleet stands."""

    wanted: int
    """Senders that are meant to run."""
    ready: int
    """Those of them that take sites."""
    mine: bool = True
    """Whether this process decides; another one may have the lease."""


class Fleet(Protocol):
    """Senders, numbered from 0. `tests/contract/test_fleet.py` holds for every implementation."""

    async def bring_to(self, senders: int) -> Standing:
        """Wants the senders 0 to `senders` - 1, and says how it stands; does not wait for them.

        It is called again and again with what is wanted, and mends what is not so: what died or was removed is made
        again, what somebody changed is changed back. Senders beyond are asked to drain, and end. Raises `FleetAway`
        if whatever runs them can't be asked; senders go on meanwhile.
        """

    async def standing(self) -> Standing:
        """How it stands, without a change; raises `FleetAway` likewise."""

    async def close(self) -> None:
        """Lets go. Child processes end with their fleet, pods do not."""
