"""Circuits in a separate process: the api sends requests to the service there."""

from collections.abc import Mapping
from datetime import datetime

from downburst.bus.port import Bus
from downburst.domain.circuits import Circuit, CircuitAnswer, CircuitChange, Port
from downburst.domain.topology import Topology
from downburst.domain.topology.questions import (
    RateAnswer,
    RateQuestion,
    TopologyAnswer,
    WindowAnswer,
    WindowQuestion,
)
from downburst.parts.names import Part
from downburst.parts.questions import Answer, Remote, answers_of
from downburst_circuits.questions import DeskService
from downburst_circuits.service import CircuitService


class RemoteCircuits:
    """`CircuitService` for the api of a hub that leaves circuits to another process."""

    def __init__(self, bus: Bus) -> None:
        self._service = Remote(bus, Part.CIRCUITS)
        self.desk = RemoteDesk(self._service)

    async def request(self, wanted: Circuit, *, dry_run: bool = False) -> CircuitAnswer:
        """Reserves a circuit; the same request again gets the first circuit."""
        return await self._service.ask(CircuitService.request, wanted=wanted, dry_run=dry_run)

    async def modify(self, number: int, change: CircuitChange, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Changes a circuit, all or nothing."""
        return await self._service.ask(CircuitService.modify, number=number, change=change, by=by, dry_run=dry_run)

    async def cancel(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Releases a circuit."""
        return await self._service.ask(CircuitService.cancel, number=number, by=by, dry_run=dry_run)

    async def clone(
        self, number: int, *, request_id: str, begin: datetime | None, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Reserves another circuit with the same properties."""
        return await self._service.ask(
            CircuitService.clone, number=number, request_id=request_id, begin=begin, by=by, dry_run=dry_run
        )

    async def measure(self, number: int) -> Circuit:
        """Starts a measurement of a circuit."""
        return await self._service.ask(CircuitService.measure, number=number)

    async def add_port(self, port: Port) -> Port:
        """Creates a port."""
        return await self._service.ask(CircuitService.add_port, port=port)

    async def change_port(self, port: Port) -> Port:
        """Changes a port."""
        return await self._service.ask(CircuitService.change_port, port=port)

    async def remove_port(self, name: str) -> None:
        """Removes a port that no circuit uses."""
        await self._service.ask(CircuitService.remove_port, name=name)


class RemoteDesk:
    """`DeskService` for the same api."""

    def __init__(self, service: Remote) -> None:
        self._service = service

    async def put_topology(self, wanted: Topology, *, dry_run: bool = False) -> TopologyAnswer:
        """Replaces the topology."""
        return await self._service.ask(DeskService.put_topology, wanted=wanted, dry_run=dry_run)

    async def find_window(self, asked: WindowQuestion) -> WindowAnswer:
        """The first window with room for a circuit."""
        return await self._service.ask(DeskService.find_window, asked=asked)

    async def find_rate(self, asked: RateQuestion) -> RateAnswer:
        """The most that is free throughout a window."""
        return await self._service.ask(DeskService.find_rate, asked=asked)


def answers_of_service(service: CircuitService) -> Mapping[str, Answer]:
    """The service's answers to the api."""
    desk = answers_of(service.desk, DeskService.put_topology, DeskService.find_window, DeskService.find_rate)
    return desk | answers_of(
        service,
        CircuitService.request,
        CircuitService.modify,
        CircuitService.cancel,
        CircuitService.clone,
        CircuitService.measure,
        CircuitService.add_port,
        CircuitService.change_port,
        CircuitService.remove_port,
    )
