"""Rows of the reservation desk: paths, windows and rates over a topology, among ten thousand reservations."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from bench.circuits.admission import HOUR_US, RATES_BPS, RESERVATIONS, YEAR_US
from bench.harness.report import Goal, Row, median
from downburst.domain.circuits import PathOrder, Port
from downburst.domain.topology import Domain, Link, Switch, TagKind, TagRange, Topology
from downburst_circuits.calendar import Calendar, Claim, NoRoom
from downburst_circuits.desk.booking import Desk, Wanted
from downburst_circuits.desk.network import Network
from downburst_circuits.desk.paths import Wish

SIDE = 5
"""Switches along an edge of the mesh, each joined to its neighbours, and each with a site."""
LINK_BPS = 40_000_000_000
PORT_BPS = 1_000_000_000_000
ASKED = 300
TAGS = (100, 4094)
MS = 1e3


def desk_rows(seed: int, runs: int) -> list[Row]:
    """The three questions of the desk, by CPU time."""
    found = [_measured(seed + run) for run in range(runs)]
    cases = (
        ("14", "a path, its links, ports and tags in one reservation", "booked_ms", 5.0),
        ("15", "the first window of 45 min for a rate that few links have", "window_ms", 100.0),
        ("16", "the rate that is free on the widest path for two days", "rate_ms", 100.0),
    )
    return [
        Row(
            id=name,
            case=f"10,000 reservations over a year on {SIDE * SIDE} switches: {case}, 99th percentile of CPU time",
            unit="ms",
            ours=median(getattr(one, figure) for one in found),
            against="",
            theirs=None,
            runs=runs,
            goal=Goal("ours", "<=", goal_ms),
        )
        for name, case, figure, goal_ms in cases
    ]


@dataclass(frozen=True, slots=True)
class Measured:
    """99th percentiles of one run."""

    booked_ms: float
    window_ms: float
    rate_ms: float


def mesh(side: int = SIDE) -> tuple[Topology, dict[str, Port]]:
    """A mesh of switches, the hub at one corner and a site at each switch."""
    names = [f"s{row}-{column}" for row, column in product(range(side), repeat=2)]
    links, switch_ports = [], {name: [f"{name}-site"] for name in names}
    sites = {name: f"site-{name}" for name in names}
    for one, other in _neighbours(side):
        ends = f"{one}-to-{other}", f"{other}-to-{one}"
        switch_ports[one].append(ends[0])
        switch_ports[other].append(ends[1])
        links.append(_link(f"{one}..{other}", *ends))
    switch_ports[names[0]].append("s-hub")
    links.append(replace(_link("hub-line", "hub", "s-hub"), az_bps=PORT_BPS, za_bps=PORT_BPS))
    links += [_link(f"{name}..site", f"{name}-site", sites[name]) for name in names]
    switches = tuple(Switch(name, "mesh", tuple(switch_ports[name]), translates=True) for name in names)
    ports = {"hub": Port("hub", PORT_BPS)} | {port: Port(port, PORT_BPS, name) for name, port in sites.items()}
    return Topology((Domain("mesh"),), switches, tuple(links)), ports


def full_desk(seed: int, count: int = RESERVATIONS) -> tuple[Calendar, Desk, random.Random]:
    """A desk with reservations of hours to days; those that found no room are left out."""
    topology, ports = mesh()
    calendar, network = Calendar({name: port.rate_bps for name, port in ports.items()}), Network(topology, ports)
    network.put_into(calendar)
    desk, drawn = Desk(calendar, network), random.Random(seed)
    sites = sorted(set(ports) - {"hub"})
    for number in range(1, count + 1):
        begin_us = drawn.randrange(YEAR_US)
        end_us = begin_us + drawn.randrange(HOUR_US, 72 * HOUR_US)
        with suppress(NoRoom):
            calendar.put(desk.book(_wanted(drawn, number, sites), begin_us, end_us).reservation)
    return calendar, desk, drawn


def _measured(seed: int) -> Measured:
    calendar, desk, drawn = full_desk(seed)
    sites = [name for name in calendar.resources() if name.startswith("site-")]
    begins = [drawn.randrange(YEAR_US) for _ in range(ASKED)]
    wanted = [_wanted(drawn, RESERVATIONS + number, sites) for number in range(1, ASKED + 1)]
    large = [replace(one, out_bps=LINK_BPS - RATES_BPS[0], ends=()) for one in wanted]

    def book(number: int) -> None:
        with suppress(NoRoom):
            calendar.put(desk.book(wanted[number], begins[number], begins[number] + 5 * HOUR_US).reservation)

    def window(number: int) -> None:
        desk.opening(large[number], 3 * HOUR_US // 4, begins[number], begins[number] + 30 * 24 * HOUR_US)

    def rate(number: int) -> None:
        wish = wanted[number].wish
        assert wish is not None
        widest = replace(wish, order=PathOrder.WIDEST)
        desk.available(wish.a, wish.z, widest, begins[number], begins[number] + 48 * HOUR_US)

    return Measured(*(_percentile(_timed(work, ASKED)) for work in (book, window, rate)))


def _wanted(drawn: random.Random, number: int, sites: list[str]) -> Wanted:
    site, out_bps, in_bps = drawn.choice(sites), drawn.choice(RATES_BPS), drawn.choice(RATES_BPS)
    ends = (Claim("hub", out_bps, in_bps, *TAGS), Claim(site, in_bps, out_bps, *TAGS))
    return Wanted(number, ends, out_bps, in_bps, Wish("hub", site))


def _neighbours(side: int) -> Iterator[tuple[str, str]]:
    for row, column in product(range(side), repeat=2):
        if column + 1 < side:
            yield f"s{row}-{column}", f"s{row}-{column + 1}"
        if row + 1 < side:
            yield f"s{row}-{column}", f"s{row + 1}-{column}"


def _link(name: str, a: str, z: str) -> Link:
    return Link(name, a, z, LINK_BPS, LINK_BPS, TagRange(TagKind.VLAN, *TAGS))


def _timed(work: Callable[[int], None], times: int) -> Iterator[float]:
    """Milliseconds of this process's own time, so that a busy machine doesn't count."""
    for number in range(times):
        started = time.process_time()
        work(number)
        yield (time.process_time() - started) * MS


def _percentile(took_ms: Iterable[float]) -> float:
    return float(np.percentile(list(took_ms), 99))
