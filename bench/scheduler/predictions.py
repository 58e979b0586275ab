"""Latencies that the models predict beside those of the product, for a recorded stretch on links of stated rates.

The source, hub, sites and their logs are the product's; latency runs from the hub's log to that of a site. The
model gets the figures that an operator states: rates of the links in Ethernet frames, and a round trip.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench.harness.delivery import HUB
from bench.harness.recorded import busiest
from bench.harness.schedules import Planned
from bench.harness.stamps import percentile
from bench.product.fleet import FEED, Fleet
from bench.product.multicast_leg import on_leg
from downburst.domain.plans import Transport
from downburst.recordings.traces import Arrival
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models import transports, wire
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.transports import Outcome
from kit.namespaces import Lab
from kit.patience import wait_for

COMPARED = (Transport.UNICAST, Transport.STATIC_CIRCUIT, Transport.MULTICAST)
SHARES = {"p50": 0.5, "p99": 0.99}


@dataclass(frozen=True)
class Compared:
    """Latencies of one transport in milliseconds, over all products and sites."""

    transport: Transport
    predicted_ms: Mapping[str, float]
    measured_ms: Mapping[str, float]
    source_late_ms: float
    """The worst lateness of the source of load; in the model, products come in time."""

    def ratio(self, name: str) -> float:
        """Predicted over measured."""
        return self.predicted_ms[name] / self.measured_ms[name]

    def __str__(self) -> str:
        said = (
            f"{name} {self.predicted_ms[name]:.1f} ms predicted, {self.measured_ms[name]:.1f} ms measured "
            f"({self.ratio(name):.2f})"
            for name in SHARES
        )
        return f"{self.transport}: {', '.join(said)}; the source was at most {self.source_late_ms:.1f} ms late"


def stretch(arrivals: Sequence[Arrival], seconds: float, *, speed: float = 1.0) -> list[Arrival]:
    """The busiest stretch of this length, played faster by this factor."""
    found = busiest(arrivals, seconds)
    return [Arrival(one.size_bytes, round((one.at_us - found[0].at_us) / speed)) for one in found]


def link_bps(transport: Transport, arrivals: Sequence[Arrival], *, sites: int) -> int:
    """A rate at which products wait for each other much longer than for the machine, and that clears the backlog."""
    wanted_bps = ROOM * Arrivals.of_trace(arrivals).mean_bps
    factor = {Transport.UNICAST: sites, Transport.STATIC_CIRCUIT: 1 / SHAPED_SHARE}.get(transport, 1.0)
    return round(wanted_bps * factor)


def compared(
    transport: Transport, arrivals: Sequence[Arrival], directory: Path, *, sites: int, rate_bps: int
) -> Compared:
    """Plays the arrivals by a transport and sets the prediction beside the measurement.

    The rate is that of the hub's link for unicast, of each site's circuit, and of the group's pace.
    """
    hosts = [f"site-{number}" for number in range(1, sites + 1)]
    with Lab([HUB, *hosts]) as lab:
        measured_s, late_ms = _measured(lab, directory, arrivals, ROUTES[transport](lab, rate_bps))
    outcome = predicted(transport, arrivals, sites=sites, rate_bps=rate_bps)
    return Compared(
        transport,
        {name: 1e3 * outcome.latencies.quantile_s(share) for name, share in SHARES.items()},
        {name: 1e3 * percentile(measured_s, 100 * share) for name, share in SHARES.items()},
        late_ms,
    )


def predicted(transport: Transport, arrivals: Sequence[Arrival], *, sites: int, rate_bps: int) -> Outcome:
    """The outcome of the models for stated links."""
    recorded, paths = Arrivals.of_trace(arrivals), [PathFacts(ROUND_TRIP_S)] * sites
    match transport:
        case Transport.UNICAST:
            sent = wire.framed(recorded, wire.UNICAST)
            return transports.unicast(sent, paths, egress_bps=rate_bps, order=Order.FIRST_COME)
        case Transport.STATIC_CIRCUIT:
            sent = wire.framed(recorded, wire.TUNNEL)
            return transports.static_circuit(sent, paths, rate_bps=SHAPED_SHARE * rate_bps)
        case _:
            return transports.multicast(wire.framed(recorded, wire.GROUP), paths, rate_bps=rate_bps)


class _Unicast:
    """Copies over the hub's link, of which each site has a fair share, as in the model.

    If connections competed for one queue, one or another would be ahead for seconds by chance, and the median over
    all would be above that of fair shares: up to a quarter on a busy machine.
    """

    arguments = ()

    def __init__(self, lab: Lab, rate_bps: int) -> None:
        lab.share(HUB, [host for host in lab.hosts if host != HUB], up_bps=rate_bps)

    def take(self, fleet: Fleet) -> None:
        """Do nothing: a feed begins with unicast."""


class _Circuits:
    """A circuit of the product's own to each site, shaped by the kernel."""

    arguments = ("--circuits", "eth0")

    def __init__(self, lab: Lab, rate_bps: int) -> None:
        self._lab, self._rate_bps = lab, rate_bps

    def take(self, fleet: Fleet) -> None:
        """Creates all of them, and moves the feed onto them."""
        leases = {site: FIRST_LEASE + number for number, site in enumerate(fleet.sites)}
        for site, lease in leases.items():
            standing = fleet.hub.do("circuit-up", circuit=self._lease(site, lease))
            if standing["state"] != "up":
                raise RuntimeError(f"the circuit to {site} does not stand: {standing}")
        circuits = [{"site": site, "lease": lease} for site, lease in leases.items()]
        leg = {"leg": 7, "transport": "static-circuit", "sites": [*leases], "circuits": circuits}
        fleet.hub.do("plan", feed=FEED, version=2, legs=[leg])
        for lease in leases.values():
            wait_for(f"a connection on circuit {lease}", partial(self._ridden, lease))
        time.sleep(SETTLE_S)

    def _ridden(self, lease: int) -> bool:
        return bool(self._lab.output(HUB, ["ss", "-Htn", "state", "established", "src", f"10.9.{lease}.0"]))

    def _lease(self, site: str, lease: int) -> dict[str, object]:
        ends = [
            {"end": f"{at}-eth0", "site": name, "interface": "eth0", "underlay": self._lab.address(at), "vlan": None}
            | {"address": f"10.9.{lease}.{number}/31"}
            for number, (at, name) in enumerate(((HUB, None), (site, site)))
        ]
        shape = {"driver": "linux", "shape": "point-to-point", "replication": "head-end", "group": None}
        rates = {"rate_out_bps": self._rate_bps, "rate_in_bps": self._rate_bps, "burst_bytes": None}
        limits = {"shaped_share": SHAPED_SHARE, "cap": "hard", "until_us": None}
        return {"lease": lease, "vni": 700 + lease, "ends": ends} | shape | rates | limits


class _Group:
    """One copy at the leg's pace over a link that is just above it."""

    arguments = ()

    def __init__(self, lab: Lab, rate_bps: int) -> None:
        self._rate_bps = rate_bps
        lab.rate(HUB, up_bps=round(rate_bps * 1.01))

    def take(self, fleet: Fleet) -> None:
        """Moves the feed to the group."""
        on_leg(fleet, [*fleet.sites], self._rate_bps)


Route = _Unicast | _Circuits | _Group
ROUTES: Mapping[Transport, Callable[[Lab, int], Route]] = {
    Transport.UNICAST: _Unicast,
    Transport.STATIC_CIRCUIT: _Circuits,
    Transport.MULTICAST: _Group,
}


def _measured(
    lab: Lab, directory: Path, arrivals: Sequence[Arrival], route: Route
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    """Distribution latencies in seconds of every product at every site, and the source's worst lateness in ms."""
    planned = [Planned(one.at_us, FEED, one.size_bytes, f"recorded {n}") for n, one in enumerate(arrivals)]
    sites = [host for host in lab.hosts if host != HUB]
    with Fleet(
        lab, directory, sites, feeds={FEED: "grid"}, arguments=route.arguments, congestion=CONGESTION
    ) as fleet:
        route.take(fleet)
        account = fleet.play(planned)
        fleet.drained()
        found = fleet.finish()
    of_sites = [stamps.between(account["began_us"]).latency_us / 1e6 for stamps in found.at_sites.values()]
    if any(len(latencies_s) != len(planned) for latencies_s in of_sites):
        raise RuntimeError(f"sites have {[len(one) for one in of_sites]} products of {len(planned)}")
    return np.concatenate(of_sites), account["late_worst_us"] / 1000


ROOM = 1.6
ROUND_TRIP_S = 0.0005
"""Of the lab's bridge: a small part of the time that products wait."""
SHAPED_SHARE = 0.9
"""The share of a circuit's rate that the hub sends into it."""
FIRST_LEASE = 17
SETTLE_S = 0.5
CONGESTION = "cubic"
"""Stated, because the choice of the machine may be another."""
