"""Rows of admission: the calendar alone, and a whole request, among ten thousand reservations."""

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import numpy as np

from bench.harness.report import Goal, Row, median
from downburst.bus.local import LocalBus
from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, CircuitState, Direction, Port
from downburst.domain.sites import Site
from downburst.foundation.clock import SystemClock, from_us, to_us
from downburst.ledger import Ledger
from downburst.settings.circuits import CircuitSettings
from downburst_circuits.calendar import Calendar, Claim, NoRoom, Reservation
from downburst_circuits.controller import CircuitController
from downburst_circuits.near_nodes import NearNodes
from downburst_circuits.providers.agents import Agents
from downburst_circuits.providers.makers import makers
from downburst_circuits.register import Register
from downburst_circuits.service import CircuitService
from kit.circuits import NodeInMemory

RESERVATIONS = 10_000
ASKED = 1_000
"""Of them, so many are asked for while all the others stand."""
REQUESTS = 200
PORT_BPS = 10_000_000_000
RATES_BPS = (100_000_000, 200_000_000, 500_000_000, 500_000_000, 1_000_000_000)
HOUR_US = 3_600_000_000
YEAR_US = 365 * 24 * HOUR_US


def calendar_rows(seed: int, runs: int) -> list[Row]:
    """Admission by the calendar alone, spread over ports and all on one."""
    spread = [f"port-{number}" for number in range(100)]
    cases = (
        ("1", "10,000 reservations over a year on 100 ports", spread),
        ("2", "all of them on one port, where most are refused with who is in the way", spread[:1]),
    )
    return [
        Row(
            id=name,
            case=f"{case}: admission, 99th percentile",
            unit="ms",
            ours=median(admission_ms(year(seed + run, ports), ports) for run in range(runs)),
            against="sum at every edge",
            theirs=median(brute_force_ms(year(seed + run, ports)) for run in range(runs)),
            runs=runs,
            goal=Goal("ours", "<=", 5.0),
        )
        for name, case, ports in cases
    ]


def desk_row(seed: int, runs: int) -> Row:
    """A whole request among ten thousand: checks, calendar, ledger with its event, and the number given back.

    By processor time of all threads: the time of the disk differs by machine and is not the product's.
    """
    return Row(
        id="3",
        case="10,000 reservations on 100 ports: request to answer with SQLite, 99th percentile of CPU time",
        unit="ms",
        ours=median(asyncio.run(desk_ms(seed + run)) for run in range(runs)),
        against="",
        theirs=None,
        runs=runs,
        goal=Goal("ours", "<=", 5.0),
    )


def year(seed: int, ports: Sequence[str], count: int = RESERVATIONS) -> list[Reservation]:
    """Reservations of hours to days between two ports, which a port can nearly hold."""
    drawn = random.Random(seed)
    return [_drawn(drawn, number, ports) for number in range(1, count + 1)]


def admission_ms(wanted: Sequence[Reservation], ports: Sequence[str]) -> float:
    """The time of the last thousand admissions, after all others."""
    calendar = Calendar(dict.fromkeys(ports, PORT_BPS))
    for reservation in wanted[:-ASKED]:
        calendar.put(reservation)
    return _percentile(_timed(partial(_ask, calendar, one)) for one in wanted[-ASKED:])


def brute_force_ms(wanted: Sequence[Reservation]) -> float:
    """The same requests to a list of reservations, a tenth of them."""
    kept = wanted[:-ASKED]
    return _percentile(_timed(partial(_fits, kept, one)) for one in wanted[-ASKED // 10 :])


async def desk_ms(seed: int) -> float:
    """Requests of one client, one after the other."""
    clock, bus, node = SystemClock(), LocalBus(), NodeInMemory()
    with tempfile.TemporaryDirectory(prefix="downburst-bench-") as directory:
        ledger = Ledger.open(f"sqlite:///{directory}/ledger.sqlite", clock)
        with ledger.transaction() as tx:
            ports = _make_ports(tx.sites.add, tx.ports.add)
            for reservation in year(seed, list(ports)):
                tx.circuits.add(_circuit(reservation, ports))
        register = Register(ledger, bus, clock)
        await register.load()
        settings = CircuitSettings()
        nodes = NearNodes(register, node, bus, clock)
        made_by = makers(register, nodes, Agents(register, ledger=ledger, bus=bus, clock=clock), settings)
        controller = CircuitController(register, nodes, made_by, bus=bus, clock=clock, settings=settings)
        service = CircuitService(register, controller, made_by, ledger=ledger, bus=bus, clock=clock)
        # As a hub does after it has loaded its ledger.
        gc.collect()
        gc.freeze()
        took = [await _requested(service, number) for number in range(REQUESTS)]
        ledger.close()
    gc.unfreeze()
    return float(np.percentile(took, 99))


async def _requested(service: CircuitService, number: int) -> float:
    begin = SystemClock().now() + timedelta(days=30, hours=number)
    ends = (CircuitEnd("hub-0"), CircuitEnd("", f"site-{number % 99}"))
    wish = Circuit(0, CircuitRequest(f"r{number}"), ends, 1_000_000, 64_000, begin, begin + timedelta(hours=1))
    started = time.process_time()
    await service.request(wish)
    return (time.process_time() - started) * 1e3


def _circuit(reservation: Reservation, ports: Mapping[str, Port]) -> Circuit:
    """A reserved circuit that takes the same place in the calendar."""
    near, far = sorted(reservation.claims, key=lambda claim: ports[claim.resource].site is not None)
    ends = tuple(CircuitEnd(claim.resource, ports[claim.resource].site) for claim in (near, far))
    window = from_us(reservation.begin_us), from_us(reservation.end_us)
    request = CircuitRequest(f"year-{reservation.number}")
    return replace(Circuit(0, request, ends, near.out_bps, near.in_bps, *window), state=CircuitState.ADMITTED)


def _make_ports(add_site: Callable[[Site], object], add_port: Callable[[Port], Port]) -> dict[str, Port]:
    hub = Port("hub-0", PORT_BPS, interface="eth0", underlay="192.0.2.1", first_vlan=100, last_vlan=4094)
    ports = [add_port(hub)]
    for number in range(99):
        site, name = f"site-{number}", f"far-{number}"
        add_site(Site(site))
        far = replace(hub, name=name, site=site, interface="eth1", underlay="192.0.2.2")
        ports.append(add_port(far))
    return {port.name: port for port in ports}


def _drawn(drawn: random.Random, number: int, ports: Sequence[str]) -> Reservation:
    begin_us = to_us(SystemClock().now()) + drawn.randrange(YEAR_US)
    end_us = begin_us + drawn.randrange(HOUR_US, 72 * HOUR_US)
    claims = tuple(
        Claim(port, drawn.choice(RATES_BPS), drawn.choice(RATES_BPS), 100, 4094)
        for port in drawn.sample(ports, min(2, len(ports)))
    )
    return Reservation(number, begin_us, end_us, claims)


def _ask(calendar: Calendar, wanted: Reservation) -> None:
    with suppress(NoRoom):
        calendar.admit(wanted)


def _fits(kept: Sequence[Reservation], wanted: Reservation) -> bool:
    near = [one for one in kept if one.begin_us < wanted.end_us and wanted.begin_us < one.end_us]
    edges = [wanted.begin_us, *(one.begin_us for one in near if one.begin_us > wanted.begin_us)]
    return all(
        claim.rate_bps(way) + sum(_taken(near, claim.resource, way, edge)) <= PORT_BPS
        for claim in wanted.claims
        for way in Direction
        for edge in edges
    )


def _taken(near: Sequence[Reservation], port: str, way: Direction, edge: int) -> Iterable[int]:
    return (
        claim.rate_bps(way)
        for one in near
        if one.begin_us <= edge < one.end_us
        for claim in one.claims
        if claim.resource == port
    )


def _timed(work: Callable[[], object]) -> float:
    """Milliseconds of this process's own time, so that a busy machine doesn't count."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


def _percentile(took_ms: Iterable[float]) -> float:
    return float(np.percentile(list(took_ms), 99))
