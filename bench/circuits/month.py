"""Row of the page's calendar: a month of ten thousand reservations, as the API answers it."""

import asyncio
import gc
import random
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx

from bench.circuits.admission import RATES_BPS, RESERVATIONS
from bench.circuits.desk import mesh
from bench.harness.report import Goal, Row, median
from downburst.domain.circuits import Circuit, CircuitEnd, CircuitHop, CircuitRequest, CircuitState
from downburst.domain.sites import Site
from downburst.domain.topology import Topology
from downburst.foundation.clock import SystemClock
from downburst.ledger import Ledger
from downburst_api.app import create_app, prepare
from factories import AUTHORIZATION, runtime

DAYS = 30
HOPS = 5
ASKED = 10


def month_row(seed: int, runs: int) -> Row:
    """CPU time of the whole answer, with its JSON: the slowest of ten requests, the first after a start included."""
    return Row(
        id="17",
        case=f"a month of the calendar with {RESERVATIONS:,} reservations of {HOPS} links, answered: CPU time",
        unit="ms",
        ours=median(month_ms(seed + run) for run in range(runs)),
        against="",
        theirs=None,
        runs=runs,
        goal=Goal("ours", "<=", 200.0),
    )


def month_ms(seed: int, count: int = RESERVATIONS) -> float:
    """Milliseconds of this process for the slowest of the requests."""
    with tempfile.TemporaryDirectory() as directory:
        ledger = Ledger.open(f"sqlite:///{directory}/ledger.sqlite", SystemClock())
        try:
            _fill(ledger, random.Random(seed), count)
            return asyncio.run(_slowest_ms(ledger, Path(directory) / "hub", count))
        finally:
            ledger.close()


async def _slowest_ms(ledger: Ledger, directory: Path, count: int) -> float:
    made, _ = runtime(directory, ledger, SystemClock())
    transport = httpx.ASGITransport(prepare(create_app(made)))
    took_ms = []
    # As a hub does at its start.
    gc.collect()
    gc.freeze()
    async with httpx.AsyncClient(transport=transport, base_url="http://hub", headers=AUTHORIZATION) as client:
        for _ in range(ASKED):
            started = time.process_time()
            answer = await client.get("/v1/calendar", params={"end": f"+{DAYS}d"})
            took_ms.append((time.process_time() - started) * 1e3)
            assert len(answer.json()["reservations"]) == count, answer.text[:200]
    return max(took_ms)


def _fill(ledger: Ledger, drawn: random.Random, count: int) -> None:
    topology, ports = mesh()
    with ledger.transaction() as tx:
        for port in ports.values():
            if port.site is not None:
                tx.sites.add(Site(port.site))
            tx.ports.add(port)
        tx.planning.topology.put(topology)
        for number in range(count):
            tx.circuits.add(_circuit(drawn, number, topology))


def _circuit(drawn: random.Random, number: int, topology: Topology) -> Circuit:
    """Any links do, as nothing is admitted here."""
    site = drawn.choice(topology.switches).name
    begin = SystemClock().now() + timedelta(hours=drawn.uniform(1, 24 * DAYS - 1))
    end = begin + timedelta(hours=drawn.uniform(1, 72))
    rates = drawn.choice(RATES_BPS), drawn.choice(RATES_BPS)
    ends = CircuitEnd("hub"), CircuitEnd(f"site-{site}", site)
    path = tuple(CircuitHop(link.name, forward=drawn.random() < 0.5) for link in drawn.sample(topology.links, HOPS))
    circuit = Circuit(0, CircuitRequest(f"month-{number}"), ends, *rates, begin, end, path=path)
    return replace(circuit, state=CircuitState.ADMITTED)
