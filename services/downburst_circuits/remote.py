"""Circuits in a separate process: the api sends requests to the service there."""

from collections.abc import Mapping
from datetime import datetime

from downburst.bus.port import Bus
from downburst.domain.circuits import Circuit, CircuitAnswer, CircuitChange, CircuitEnd, CircuitState, Port
from downburst.domain.topology import Topology
from downburst.domain.topology.bookings import BookedTest, BookingAnswer, WantedTest
from downburst.domain.topology.questions import (
    RateAnswer,
    RateQuestion,
    TopologyAnswer,
    WindowAnswer,
    WindowQuestion,
)
from downburst.parts.names import Part
from downburst.parts.questions import Answer, Remote, answers_of
from downburst_circuits.bookings import BookingDesk
from downburst_circuits.leaves import LeafService
from downburst_circuits.questions import DeskService
from downburst_circuits.service import CircuitService


class RemoteCircuits:
    """`CircuitService` for the api of a hub that leaves circuits to another process."""

    def __init__(self, bus: Bus) -> None:
        self._service = Remote(bus, Part.CIRCUITS)
        self.desk = RemoteDesk(self._service)
        self.leaves = RemoteLeaves(self._service)
        self.tests = RemoteTests(self._service)

    async def request(self, wanted: Circuit, hold_s: float | None = None, *, dry_run: bool = False) -> CircuitAnswer:
        """Reserves a circuit, or holds it until a commit; the same request again gets the first circuit."""
        return await self._service.ask(CircuitService.request, wanted=wanted, hold_s=hold_s, dry_run=dry_run)

    async def commit(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Makes a held circuit a reservation."""
        return await self._service.ask(CircuitService.commit, number=number, by=by, dry_run=dry_run)

    async def create_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Has the path of a waiting circuit set up."""
        return await self._service.ask(CircuitService.create_path, number=number, by=by, dry_run=dry_run)

    async def tear_down_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Removes the path of a circuit, which waits afterwards."""
        return await self._service.ask(CircuitService.tear_down_path, number=number, by=by, dry_run=dry_run)

    async def override(
        self, number: int, state: CircuitState | None, reason: str = "", *, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Shows a circuit as active or down whatever its probes say; None gives it back to them."""
        return await self._service.ask(
            CircuitService.override, number=number, state=state, reason=reason, by=by, dry_run=dry_run
        )

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


class RemoteLeaves:
    """`LeafService` for the same api."""

    def __init__(self, service: Remote) -> None:
        self._service = service

    async def add_leaf(self, number: int, leaf: CircuitEnd, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Adds a site's end, all or nothing."""
        return await self._service.ask(LeafService.add_leaf, number=number, leaf=leaf, by=by, dry_run=dry_run)

    async def remove_leaf(self, number: int, site: str, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Removes a site's end."""
        return await self._service.ask(LeafService.remove_leaf, number=number, site=site, by=by, dry_run=dry_run)


class RemoteTests:
    """`BookingDesk` for the same api."""

    def __init__(self, service: Remote) -> None:
        self._service = service

    async def book(self, wanted: WantedTest) -> BookingAnswer:
        """Grants a test its rate, or says when to ask again."""
        return await self._service.ask(BookingDesk.book, wanted=wanted)

    async def release(self, number: int) -> None:
        """Ends a booking before its time."""
        await self._service.ask(BookingDesk.release, number=number)

    async def booked(self) -> list[BookedTest]:
        """The running tests and the last of those that are over."""
        return await self._service.ask(BookingDesk.booked)


def answers_of_service(service: CircuitService) -> Mapping[str, Answer]:
    """The service's answers to the api."""
    desk = answers_of(service.desk, DeskService.put_topology, DeskService.find_window, DeskService.find_rate)
    leaves = answers_of(service.leaves, LeafService.add_leaf, LeafService.remove_leaf)
    tests = answers_of(service.tests, BookingDesk.book, BookingDesk.release, BookingDesk.booked)
    circuits = answers_of(
        service,
        CircuitService.request,
        CircuitService.commit,
        CircuitService.create_path,
        CircuitService.tear_down_path,
        CircuitService.override,
        CircuitService.modify,
        CircuitService.cancel,
        CircuitService.clone,
        CircuitService.measure,
        CircuitService.add_port,
        CircuitService.change_port,
        CircuitService.remove_port,
    )
    return desk | leaves | tests | circuits
