"""The calendar as clients see it: resources by place, and the circuits on them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from pydantic_core import to_json

from downburst.domain.circuits import Port
from downburst.domain.topology import Topology
from downburst.domain.topology.bookings import BookedTest
from downburst.domain.topology.occupancy import Occupancy, View
from downburst.domain.topology.places import Places, host_key, link_key
from downburst.foundation.errors import BadInput
from downburst.ledger import Transaction
from downburst_contract.desk import calendar as shapes
from downburst_contract.desk.calendar import ResourceKind


def calendar_of(
    tx: Transaction, now: datetime, begin: datetime, end: datetime, tests: Sequence[BookedTest] | None = ()
) -> bytes:
    """The calendar of a window as `shapes.Calendar` in JSON; objects of ten thousand circuits would cost the most.

    `tests`: all bookings that are known; None: they are not known at the moment.
    """
    topology, ports = tx.planning.topology.get(), {port.name: port for port in tx.ports.all()}
    view = tx.planning.occupancies.within(begin, end, most=MOST)
    resources = list(_resources(topology, ports))
    index = {resource.key: place for place, resource in enumerate(resources)}
    rest = {
        "now": now,
        "begin": begin,
        "end": end,
        "resources": resources,
        "maintenance": list(_maintenance(topology, ports, index, begin, end)),
        "tests": None if tests is None else list(_tests(tests, topology, index, begin, end)),
        "left_out": view.left_out,
    }
    reservations = b",".join(_in_pieces(_reservations(view, topology, index)))
    return b'%b,"reservations":[%b]}' % (to_json(rest)[:-1], reservations)


def check_window(begin: datetime, end: datetime) -> None:
    """Refuses a window without length, or one that no screen shows."""
    if end <= begin:
        raise BadInput("the calendar's window ends not after its begin; give a later end")
    if end - begin > LONGEST:
        raise BadInput(f"the calendar's window is longer than {LONGEST.days} days; give a shorter one")


def _resources(topology: Topology, ports: Mapping[str, Port]) -> Iterator[shapes.CalendarResource]:
    places = Places(topology, ports)
    networks = {port: domain.name for domain in topology.domains for port in domain.ports}
    for link in topology.links:
        yield shapes.CalendarResource(
            key=link_key(link.name),
            kind=ResourceKind.LINK,
            name=link.name,
            a=places.vertex(link.a),
            z=places.vertex(link.z),
            owner=None,
            sender=None,
            rate_out_bps=link.az_bps,
            rate_in_bps=link.za_bps,
        )
    for host in topology.hosts:
        port = ports[host.ports[0]]
        owner = port.site or networks.get(port.name)
        yield _end(ResourceKind.HOST, host.name, port, owner=owner, rate_bps=host.nic_bps)
    hosts = {port: host.name for host in topology.hosts for port in host.ports}
    for port in ports.values():
        host_name, owner = hosts.get(port.name, ""), port.site or networks.get(port.name)
        yield _end(ResourceKind.PORT, port.name, port, host=host_name, owner=owner, rate_bps=port.rate_bps)


def _end(
    kind: ResourceKind, name: str, port: Port, *, owner: str | None, rate_bps: int, host: str = ""
) -> shapes.CalendarResource:
    return shapes.CalendarResource(
        key=host_key(name) if kind is ResourceKind.HOST else name,
        kind=kind,
        name=name,
        a=host,
        z="",
        owner=owner,
        sender=port.sender,
        rate_out_bps=rate_bps,
        rate_in_bps=rate_bps,
    )


def _in_pieces(reservations: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """JSON of some reservations at a time, so that the collector of garbage never walks over all of them."""
    while piece := list(islice(reservations, AT_ONCE)):
        yield to_json(piece)[1:-1]


def _reservations(view: View, topology: Topology, index: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Ports and links that were removed since are left out."""
    ends, links = _places(topology, index)
    return (_reservation(one, ends, links) for one in view.circuits)


def _places(topology: Topology, index: Mapping[str, int]) -> tuple[dict[str, list[int]], dict[str, int]]:
    """The places of each port with its host, and of each link by its name."""
    hosts = {port: index[host_key(host.name)] for host in topology.hosts for port in host.ports}
    ends = {key: [place, hosts[key]] if key in hosts else [place] for key, place in index.items()}
    return ends, {link.name: index[link_key(link.name)] for link in topology.links}


def _reservation(one: Occupancy, ends: Mapping[str, list[int]], links: Mapping[str, int]) -> dict[str, Any]:
    """The members of `shapes.CalendarReservation`."""
    far = [place for port in one.far_ports for place in ends.get(port, ())]
    return {
        "circuit": one.circuit,
        "state": one.state,
        "held_until": one.held_until,
        "begin": one.begin,
        "end": one.end,
        "rate_out_bps": one.rate_out_bps,
        "rate_in_bps": one.rate_in_bps,
        "near_out_bps": one.copies * one.rate_out_bps,
        "near_in_bps": max(len(one.far_ports), 1) * one.rate_in_bps,
        "description": one.description,
        "sites": one.sites,
        "along": ends.get(one.near_port, []) + [links[name] for name in one.forward if name in links],
        # Two ports of a circuit may be of one host.
        "against": list(dict.fromkeys(far)) + [links[name] for name in one.back if name in links],
    }


def _tests(
    tests: Sequence[BookedTest], topology: Topology, index: Mapping[str, int], begin: datetime, end: datetime
) -> Iterator[shapes.CalendarTest]:
    ends, links = _places(topology, index)
    for one in tests:
        if not (one.begin < end and begin < one.end):
            continue
        wanted, hops = one.wanted, [hop for hop in one.path if hop.link in links]
        yield shapes.CalendarTest(
            number=one.number,
            test=wanted.kind,
            begin=one.begin,
            end=one.end,
            rate_out_bps=wanted.rate_out_bps,
            rate_in_bps=wanted.rate_in_bps,
            by=wanted.by,
            circuit=wanted.circuit,
            along=ends.get(wanted.near.port, []) + [links[hop.link] for hop in hops if hop.forward],
            against=ends.get(wanted.far.port, []) + [links[hop.link] for hop in hops if not hop.forward],
        )


def _maintenance(
    topology: Topology, ports: Mapping[str, Port], index: Mapping[str, int], begin: datetime, end: datetime
) -> Iterator[shapes.CalendarMaintenance]:
    places = Places(topology, ports)
    for window in topology.maintenance:
        if window.begin < end and begin < window.end:
            keys = {key for name in window.of for key in places.closed_with(name)}
            yield shapes.CalendarMaintenance(
                name=window.name,
                reason=window.reason,
                begin=window.begin,
                end=window.end,
                resources=sorted(index[key] for key in keys),
            )


MOST = 10_000
AT_ONCE = 100
LONGEST = timedelta(days=400)
