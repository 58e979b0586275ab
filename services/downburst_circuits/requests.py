"""Checks of requests for circuits, with one clear sentence for each refusal, and the reservations they need."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_interface

from downburst.domain.circuits import Circuit, CircuitDriver, CircuitEnd, CircuitShape, Direction, Port, Replication
from downburst.domain.ordering.providers import Provider
from downburst.domain.sites import Site
from downburst.domain.topology.bookings import BookedTest, WantedTest
from downburst.foundation.clock import from_us, to_us
from downburst.foundation.errors import BadInput, CircuitConflict, NotFound, TagsTaken
from downburst.foundation.rates import rate_text
from downburst_circuits.calendar import FOREVER_US, Claim, Clash, Reservation
from downburst_circuits.nsi.circuit import check_ends
from downburst_circuits.nsi.provider import check_provider


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that a request is checked against."""

    ports: Mapping[str, Port]
    sites: Mapping[str, Site]
    now: datetime
    provider: Provider | None = None
    """The record of the provider that the request names."""
    foreign: frozenset[str] = frozenset()
    """The ports on machines of other networks."""


@dataclass(frozen=True, slots=True)
class Conflicting:
    """The reservations in the way of another one."""

    circuits: Sequence[Circuit]
    tests: Sequence[BookedTest]


@dataclass(frozen=True, slots=True)
class Holders:
    """All circuits and running tests that may have a place in the calendar, by number."""

    circuits: Mapping[int, Circuit]
    tests: dict[int, BookedTest]

    def named(self, clash: Clash) -> Conflicting:
        """Those that a clash is with; tests have negative numbers in the calendar."""
        circuits = [self.circuits[number] for number in clash.with_numbers if number in self.circuits]
        tests = [self.tests[-number] for number in clash.with_numbers if -number in self.tests]
        return Conflicting(circuits, tests)


def checked(wanted: Circuit, known: Known) -> Circuit:
    """The request with its ends resolved and its begin not in the past; raises one sentence if it is invalid."""
    circuit = replace(wanted, ends=resolved(wanted.ends, known), begin=_begin(wanted, known.now))
    check_window(circuit, known.now)
    _check_whole(circuit, known)
    return circuit


def check_leaf(circuit: Circuit, known: Known) -> None:
    """Refuses a circuit that has got an end too many, or one that can't be used."""
    if len(circuit.far_sites) > MOST_SITES:
        raise BadInput(f"circuit {circuit.number} has {MOST_SITES} sites, the most that one can have")
    _check_whole(circuit, known)


def check_window(circuit: Circuit, now: datetime) -> None:
    """Refuses an end in the past or not after the begin, and a begin years ahead."""
    if circuit.end is not None and circuit.end <= circuit.begin:
        raise BadInput(
            f"the window ends at {moment_text(circuit.end)}, not after its begin at {moment_text(circuit.begin)}; "
            "give a later end"
        )
    if circuit.over_at(now):
        raise BadInput(
            f"the window ended at {moment_text(circuit.end)} and it is {moment_text(now)}; give an end in the future"
        )
    if circuit.begin > now + FARTHEST:
        raise BadInput(
            f"the window begins at {moment_text(circuit.begin)}, more than {FARTHEST.days // 365} years ahead; "
            "is the year right?"
        )


def check_rates(circuit: Circuit, ports: Mapping[str, Port]) -> None:
    """Refuses a missing rate, and one beyond any port."""
    if circuit.rate_out_bps < SMALLEST_BPS:
        raise BadInput(
            f"the rate out of the near end is {rate_text(circuit.rate_out_bps)}; "
            f"give at least {rate_text(SMALLEST_BPS)}"
        )
    if circuit.rate_in_bps < 0:
        raise BadInput("the rate back to the near end is below zero; give 0 or more")
    for claim in claims_of(circuit, ports):
        for direction in Direction:
            _check_rate(circuit, claim, direction, ports[claim.resource])


def _check_whole(circuit: Circuit, known: Known) -> None:
    _check_ends(circuit, known)
    check_rates(circuit, known.ports)
    _check_driver(circuit, known)


def check_port(port: Port) -> None:
    """Refuses a port of two hosts, and one with more reserved than it carries."""
    if port.site is not None and port.sender is not None:
        raise BadInput(
            f"port {port.name} belongs to the site {port.site}, so it can't be at the sender {port.sender}; "
            "leave one of the two out"
        )
    if port.port_rate_bps is not None and port.rate_bps > port.port_rate_bps:
        raise BadInput(
            f"port {port.name} is one of {rate_text(port.port_rate_bps)} and circuits can't reserve "
            f"{rate_text(port.rate_bps)} of it; reduce it, or correct the port's own rate"
        )


def reservation_of(circuit: Circuit, ports: Mapping[str, Port]) -> Reservation:
    """A circuit's reservation in the calendar."""
    end_us = FOREVER_US if circuit.end is None else to_us(circuit.end)
    return Reservation(circuit.number, to_us(circuit.begin), end_us, claims_of(circuit, ports))


def claims_of(circuit: Circuit, ports: Mapping[str, Port]) -> tuple[Claim, ...]:
    """Each end's claim on its port; the near one sends one copy for each far end."""
    near, *others = circuit.ends
    copies = 1 if circuit.carriage.replication is Replication.UNDERLAY else len(others)
    back = len(others)
    claims = (
        _claim(near, ports, out_bps=copies * circuit.rate_out_bps, in_bps=back * circuit.rate_in_bps),
        *(_claim(end, ports, out_bps=circuit.rate_in_bps, in_bps=circuit.rate_out_bps) for end in others),
    )
    if circuit.carriage.driver is CircuitDriver.NSI:
        # The provider chooses the tags, not the calendar.
        return tuple(replace(claim, first_tag=None, last_tag=None) for claim in claims)
    return claims


def with_tags(circuit: Circuit, reservation: Reservation) -> Circuit:
    """The circuit with the tags assigned by the calendar."""
    tags = {claim.resource: claim.tag for claim in reservation.claims}
    return replace(circuit, ends=tuple(replace(end, vlan=tags.get(end.port)) for end in circuit.ends))


def conflict(
    circuit: Circuit,
    clash: Clash,
    others: Holders,
    *,
    instead_of: Circuit | None = None,
    nearest: Circuit | None = None,
) -> CircuitConflict:
    """The refusal with the conflicting reservations and the nearest window that would do; for a change also the
    unchanged state."""
    holders = others.named(clash)
    listed = {"circuits": [_circuit_out(one) for one in holders.circuits]}
    listed |= {"tests": [_test_out(one) for one in holders.tests]} if holders.tests else {}
    sentence = _conflict_sentence(circuit, clash, holders) + _held(holders)
    if instead_of is not None:
        sentence += f"; circuit {instead_of.number} stays {instead_of.state} as it was, with {_rates(instead_of)}"
    kind = TagsTaken if clash.direction is None and clash.closure is None else CircuitConflict
    if nearest is None:
        return kind(sentence, port=clash.resource, **listed)
    sentence += f"; the nearest window with room begins at {moment_text(nearest.begin)}"
    window = {"begin": nearest.begin.isoformat(), "end": nearest.end.isoformat() if nearest.end else None}
    return kind(sentence, port=clash.resource, nearest=window, **listed)


def moment_text(instant: datetime | None) -> str:
    """Formats an instant for people."""
    return "no end" if instant is None else f"{instant:%Y-%m-%d %H:%M:%S} UTC"


def _begin(wanted: Circuit, now: datetime) -> datetime:
    """Now, if the begin has just passed: a request takes some time, and clocks differ a little."""
    if wanted.begin >= now:
        return wanted.begin
    if now - wanted.begin <= JUST_NOW:
        return now
    raise BadInput(
        f"the window begins at {moment_text(wanted.begin)} and it is {moment_text(now)}; "
        "give a begin in the future, or leave it out to begin now"
    )


def resolved(ends: Sequence[CircuitEnd], known: Known) -> tuple[CircuitEnd, ...]:
    """The ends with their ports and sites, the hub's first; refuses one that names no single port."""
    if len(ends) < 2:
        raise BadInput("a circuit has the hub's end and at least one site's, or two sites'; name a site with --to")
    near, *far = (_named(end, known, is_near=position == 0) for position, end in enumerate(ends))
    if near.site is not None and len(far) > 1:
        raise BadInput(
            f"a circuit to {len(far)} sites begins at the hub, and {near.site} was named as its near end; leave that "
            "out, or reserve a circuit for each pair of sites"
        )
    return near, *far


def _named(end: CircuitEnd, known: Known, *, is_near: bool) -> CircuitEnd:
    """Finds an end by its port, or by its site if that has one port; a near end without either is the hub's."""
    if end.port:
        port = known.ports.get(end.port)
        if port is None:
            raise unknown_port(end.port, known.ports)
        if port.site is None and not is_near and port.name not in known.foreign:
            raise BadInput(f"port {end.port} is the hub's, and every far end must be a site's; swap the ends")
        if end.site is not None and end.site != port.site:
            raise BadInput(f"port {end.port} belongs to {port.host}, not to {end.site}; name one of the two")
        return replace(end, site=port.site)
    if end.site is not None and end.site not in known.sites:
        raise NotFound(f"there is no site {end.site!r}; `downburst sites list` shows all")
    if end.site is None and not is_near:
        raise BadInput("a far end has neither a site nor a port; name one with --to")
    return replace(end, port=_only_port(end.site, known).name)


def _only_port(site: str | None, known: Known) -> Port:
    own = [port for port in known.ports.values() if port.site == site and port.name not in known.foreign]
    attachment = known.sites[site].circuit_attachment if site else None
    named = [port for port in own if attachment and attachment.port in (port.name, port.stp)]
    found = named or own
    if len(found) == 1:
        return found[0]
    who = f"site {site}" if site else "the hub"
    if not found:
        option = f" --site {site}" if site else ""
        raise BadInput(f"{who} has no port for circuits; create one: downburst ports add NAME{option} --rate 1G")
    raise BadInput(f"{who} has the ports {', '.join(port.name for port in found)}; name one")


def unknown_port(name: str, ports: Iterable[str]) -> NotFound:
    """The refusal of a port that does not exist."""
    listed = ", ".join(sorted(ports)[:10]) or "none"
    return NotFound(f"there is no port {name!r}; known are: {listed}; create one with `downburst ports add {name}`")


def _check_ends(circuit: Circuit, known: Known) -> None:
    for names, what in (([end.port for end in circuit.ends], "port"), (list(circuit.sites), "site")):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"{what} {twice} is named twice; a circuit has one end there")
    for end in circuit.ends:
        _check_tags(end, known.ports[end.port])
        if end.site is not None and end.site not in known.sites:
            raise NotFound(
                f"port {end.port} belongs to the site {end.site!r}, which was removed; remove the port too"
            )


def _check_tags(end: CircuitEnd, port: Port) -> None:
    if end.first_vlan is None or end.last_vlan is None:
        return
    if port.first_vlan is None or port.last_vlan is None:
        raise BadInput(f"port {port.name} has no tags; leave the tag out, or give the port some with --vlan")
    if not port.first_vlan <= end.first_vlan <= end.last_vlan <= port.last_vlan:
        asked = str(end.first_vlan) if end.first_vlan == end.last_vlan else f"{end.first_vlan}-{end.last_vlan}"
        raise BadInput(
            f"the tag {asked} lies outside those of port {port.name}, which has {port.first_vlan}-{port.last_vlan}; "
            "ask for one of them, or for any"
        )


def _check_rate(circuit: Circuit, claim: Claim, direction: Direction, port: Port) -> None:
    if claim.rate_bps(direction) <= port.rate_bps:
        return
    count = len(circuit.far_sites)
    copies = f" ({count} copies)" if claim.resource == circuit.ends[0].port and count > 1 else ""
    needed = f"the circuit would need {rate_text(claim.rate_bps(direction))}{copies} there; ask for less"
    if port.port_rate_bps is None or claim.rate_bps(direction) <= port.port_rate_bps:
        raise BadInput(
            f"circuits may reserve {rate_text(port.rate_bps)} of port {port.name} and {needed}, or allow them "
            "more of the port"
        )
    raise BadInput(f"port {port.name} is one of {rate_text(port.port_rate_bps)} and {needed}")


def _check_driver(circuit: Circuit, known: Known) -> None:
    share = circuit.carriage.shaped_share
    if not 0.85 <= share <= 1:
        raise BadInput(f"the shaped share is {share:g}; give 0.85 to 1 (0.9 leaves room for headers)")
    if circuit.carriage.replication is Replication.UNDERLAY:
        _check_group(circuit)
    _check_foreign(circuit, known)
    for end in circuit.ends:
        port = known.ports[end.port]
        if not port.interface and port.name not in known.foreign:
            raise BadInput(
                f"port {port.name} has no interface, so no node can use it; set one: downburst ports set "
                f"{port.name} --interface eth0"
            )
        _check_end(circuit, end, port)
    _check_provider(circuit, known)


def _check_end(circuit: Circuit, end: CircuitEnd, port: Port) -> None:
    driver = circuit.carriage.driver
    if driver is CircuitDriver.DECLARED or (driver is CircuitDriver.NSI and end.address is not None):
        _check_address(driver, end)
    if driver is CircuitDriver.LINUX and not port.underlay:
        raise BadInput(
            f"port {port.name} has no underlay address, for the ends of tunnels; set one: downburst ports "
            f"set {port.name} --underlay 192.0.2.1"
        )


def _check_foreign(circuit: Circuit, known: Known) -> None:
    """Both ends are ours, or both are other networks' and our nodes make the way between."""
    foreign = [end.port for end in circuit.ends if end.port in known.foreign]
    if not foreign:
        return
    if len(foreign) < len(circuit.ends):
        raise BadInput(
            f"port {foreign[0]} is on a machine of another network, which makes its own ends; order the circuit from "
            "that network with --driver nsi, between ports of this hub and its sites"
        )
    if circuit.carriage.driver is not CircuitDriver.LINUX:
        raise BadInput(
            f"a circuit from {foreign[0]} to {foreign[-1]} passes through this hub's nodes; give --driver linux"
        )


def _check_provider(circuit: Circuit, known: Known) -> None:
    driver, name = circuit.carriage.driver, circuit.carriage.provider
    if driver is not CircuitDriver.NSI:
        if name is not None:
            raise BadInput(f"the provider {name} is asked by NSI and the driver is {driver}; give --driver nsi")
        return
    if name is None:
        raise BadInput("driver nsi asks a provider and none was named; `downburst circuits providers list` shows all")
    if known.provider is None:
        raise NotFound(f"there is no provider {name!r}; `downburst circuits providers list` shows all")
    check_provider(known.provider)
    check_ends(circuit, known.ports)


def _check_group(circuit: Circuit) -> None:
    if circuit.shape is not CircuitShape.MULTIPOINT:
        raise BadInput("a circuit to one site needs no copies; leave the replication out")
    group = circuit.carriage.group
    if group is None or not _is_multicast(group):
        raise BadInput(f"the underlay replicates to a group and {group!r} is none; give one inside 239.0.0.0/8")


def _is_multicast(text: str) -> bool:
    try:
        return ip_address(text).is_multicast
    except ValueError:
        return False


def _check_address(driver: CircuitDriver, end: CircuitEnd) -> None:
    text = end.address or ""
    try:
        ip_interface(text if "/" in text else "")
    except ValueError:
        raise BadInput(
            f"a {driver} circuit is probed between its addresses and {end.address or 'none'!r} was given for port "
            f"{end.port}; give the one that it has there, such as 10.10.200.10/24"
        ) from None


def _claim(end: CircuitEnd, ports: Mapping[str, Port], *, out_bps: int, in_bps: int) -> Claim:
    port = ports.get(end.port)
    offered = (port.first_vlan, port.last_vlan) if port else (None, None)
    first, last = (end.first_vlan, end.last_vlan) if end.first_vlan is not None else offered
    return Claim(end.port, out_bps, in_bps, first, last, end.vlan)


def _conflict_sentence(circuit: Circuit, clash: Clash, holders: Conflicting) -> str:
    # The keys of links and hosts say what they are.
    place = clash.resource if " " in clash.resource else f"port {clash.resource}"
    if clash.closure is not None:
        window = f"from {moment_text(from_us(clash.begin_us))} to {moment_text(from_us(clash.end_us))}"
        return f"{place} is closed {window} for maintenance {clash.closure}; ask for another window"
    if clash.direction is None and not holders.circuits:
        return f"{place} and the other ports and links have no tag that all accept; ask for other tags"
    if clash.direction is None:
        tags = f"tag {clash.tag}" if clash.tag is not None else "every acceptable tag"
        return (
            f"{tags} of {place} is taken during the window by {_numbers(holders)}; "
            "ask for another tag or another window"
        )
    way = "sent" if clash.direction is Direction.OUT else "received"
    until = "on" if clash.end_us >= FOREVER_US else f"to {moment_text(from_us(clash.end_us))}"
    return (
        f"{place} has {rate_text(clash.free_bps)} of {rate_text(clash.rate_bps)} free to be {way} from "
        f"{moment_text(from_us(clash.begin_us))} {until} because of {_numbers(holders)}, and {_asked(circuit)}; "
        "ask for less or another window"
    )


def _held(holders: Conflicting) -> str:
    """The holders' rates and ends, of the first three."""
    held = [(f"circuit {one.number}", _rates(one), one.end) for one in holders.circuits]
    held += [(f"test {one.number}", _rates(one.wanted), one.end) for one in holders.tests]
    return "".join(f"; {name} holds {rates} to {moment_text(end)}" for name, rates, end in held[:3])


def _asked(circuit: Circuit) -> str:
    times = f" for each of {len(circuit.far_sites)} sites" if len(circuit.far_sites) > 1 else ""
    return f"{_rates(circuit)}{times} were requested"


def _rates(held: Circuit | WantedTest) -> str:
    return f"{rate_text(held.rate_out_bps)} out and {rate_text(held.rate_in_bps)} in"


def _numbers(holders: Conflicting) -> str:
    circuits = _listed("circuit", [str(one.number) for one in holders.circuits])
    tests = _listed("test", [f"{one.number} ({one.wanted.kind} by {one.wanted.by})" for one in holders.tests])
    return " and ".join(filter(None, (circuits, tests))) or "other reservations"


def _listed(word: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{word}{'s' if len(names) != 1 else ''} {', '.join(names[:5])}{more}"


def _test_out(test: BookedTest) -> dict[str, object]:
    return {
        "test": test.number,
        "kind": test.wanted.kind,
        "begin": test.begin.isoformat(),
        "end": test.end.isoformat(),
        "rate_out_bps": test.wanted.rate_out_bps,
        "rate_in_bps": test.wanted.rate_in_bps,
        "requested_by": test.wanted.by,
    }


def _circuit_out(circuit: Circuit) -> dict[str, object]:
    return {
        "circuit": circuit.number,
        "begin": circuit.begin.isoformat(),
        "end": circuit.end.isoformat() if circuit.end else None,
        "rate_out_bps": circuit.rate_out_bps,
        "rate_in_bps": circuit.rate_in_bps,
        "description": circuit.request.description,
        "requested_by": circuit.request.requested_by,
    }


FARTHEST = timedelta(days=5 * 365)
JUST_NOW = timedelta(seconds=60)
SMALLEST_BPS = 64_000
MOST_SITES = 1000
