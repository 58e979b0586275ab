"""The port to the circuit service, in this process or another one."""

from typing import Protocol

from downburst.domain.circuits import Circuit, CircuitAnswer, CircuitChange


class CircuitOrders(Protocol):
    """Requests for circuits. A refusal is raised as a sentence; a `Failure` says that the result is unknown."""

    async def request(self, wanted: Circuit, *, dry_run: bool = False) -> CircuitAnswer:
        """Reserves a circuit; the same request again gets the first circuit."""

    async def modify(self, number: int, change: CircuitChange, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Changes a circuit, all or nothing."""

    async def cancel(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Releases a circuit."""
