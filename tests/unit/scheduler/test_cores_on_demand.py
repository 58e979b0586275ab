"""Circuits on demand for the segment between two relays: candidates of plans, rates, prices, and refusals."""

import math
from dataclasses import replace

import pytest

from downburst.domain.circuits import Port
from downburst.domain.events import PinChanged, RelaySeen, SessionTraffic
from downburst.domain.ordering import Offer
from downburst.domain.plans import Transport
from downburst.domain.relays import Core, CoreCircuit, Relay, RelayReport, Segment, SiteWay, Tunnel
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.rates import reno_bps
from downburst_scheduler.demand.written import terms_of
from downburst_scheduler.models.candidates import Evaluated, evaluate
from downburst_scheduler.models.demand.choosing import circuit_bps
from downburst_scheduler.models.offers import DemandOffer
from downburst_scheduler.models.parts import asked_of
from downburst_scheduler.models.rates import PathFacts, connection_bps, segments_of, whole
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.relays import RelayWatch
from unit.scheduler.feeds import live
from unit.scheduler.test_loop import Hub, hub
from unit.scheduler.test_terms_of_orders import trains

__all__ = ["hub"]
M = 1_000_000
CORE = Core("campus", "depot")
WAY = SiteWay("oslo", ("campus", "depot"), "faster")
OFFER = DemandOffer("core", (10 * M, 20 * M, 50 * M), price=0.3, setup_s=1.0, core=CORE)
EDGE_US, CORE_US = 2_000, 68_000


def on_chain(offer: DemandOffer, *, core_loss: float = 0.02) -> SiteFacts:
    """A site behind two relays; the segment between them is long and loses much."""
    core = PathFacts(0.068, core_loss, edge=PathFacts(0.002, 0.001))
    return SiteFacts(name="oslo", round_trip_s=0.002, loss=0.001, edge=core, demand=offer)


def dynamic(offer: DemandOffer) -> Evaluated:
    asked = asked_of(trains(), live(on_chain(offer), egress_bps=100e6, objective=Objective(0.99, 3.0)))
    return next(one for one in evaluate(asked) if one.transport is Transport.DYNAMIC_CIRCUIT)


def test_a_way_of_three_segments_has_the_rate_of_the_slowest_and_the_round_trip_of_all() -> None:
    site = on_chain(OFFER)
    rates = [connection_bps(one) for one in segments_of(site)]
    assert len(rates) == 3
    assert connection_bps(site) == pytest.approx(0.85 * min(rates))
    assert min(rates) == rates[1]
    assert whole(site).round_trip_s == pytest.approx(0.072)
    assert whole(site).loss == pytest.approx(1 - 0.999 * 0.98 * 0.999)


def test_a_circuit_takes_the_place_of_the_core_and_copies_still_leave_the_hub() -> None:
    found = dynamic(OFFER)
    assert found.feasible, found.reason
    (terms,) = found.demand
    # Trains of 10 Mb/s: 15 % less than 10 Mb/s would be too narrow.
    assert (terms.site, terms.offer, terms.rate_bps) == ("oslo", "core", 20 * M)
    assert found.outcome is not None
    assert found.price_bps == pytest.approx(found.outcome.reserved_bps * 0.3 + found.outcome.egress_bps)
    assert "between relays campus and depot" in found.reason
    assert found.quantile_ms(0.99) < 3_000


@pytest.mark.parametrize(("beside_bps", "rate_bps"), [(math.inf, 17e6), (1e9, 17e6)])
def test_the_slowest_segment_counts_less_fifteen_percent(beside_bps: float, rate_bps: float) -> None:
    asked = asked_of(trains(), live(on_chain(OFFER)))
    assert circuit_bps(asked, replace(OFFER, beside_bps=beside_bps), 20e6) == pytest.approx(rate_bps)
    narrow = circuit_bps(asked, replace(OFFER, beside_bps=10e6), 20e6)
    assert 0.85 * 10e6 < narrow < 0.95 * 10e6, "payload in the frames of a circuit"
    assert circuit_bps(asked, replace(OFFER, core=None), 20e6) == 20e6


def test_a_circuit_between_slow_segments_is_refused_with_their_rate() -> None:
    found = dynamic(replace(OFFER, beside_bps=1e6))
    assert not found.feasible
    assert "a way by relays campus and depot carries" in found.reason
    assert "the slowest other segment 1.00 Mb/s" in found.reason


def session(name: str, round_trip_us: int, again: int = 0) -> SessionTraffic:
    tcp = TcpPath(round_trip_us, 100_000, again, 10**7, is_lower_bound=True, congestion="reno")
    return SessionTraffic(name, 0, 500, round_trip_us, (), path=tcp)


def tunnel(round_trip_us: int, loss_ppm: int, site: str | None = "oslo") -> Tunnel:
    near, onward = (Segment(us, loss_ppm, "reno", 10**7) for us in (round_trip_us, EDGE_US))
    return Tunnel(site, "192.0.2.1:9", "192.0.2.2:9", "hub:7370", 10.0, 10**7, 10**4, 10**6, near, onward)


def reports(hub: Hub) -> list[RelaySeen]:
    """Both carry the site, which only the relay next to the hub can name."""
    found = {"campus": tunnel(EDGE_US, 1_000, None), "depot": tunnel(CORE_US, 20_000)}
    return [RelaySeen(hub.clock.now(), RelayReport(name, (one,))) for name, one in found.items()]


def test_a_circuit_teaches_nothing_about_the_routed_core(hub: Hub) -> None:
    watch, led = RelayWatch(), replace(WAY, over=CoreCircuit(7, "depot", "10.9.0.1"))
    now_s = hub.clock.monotonic_s()
    watch.keep(["campus", "depot"], ["oslo"], {"oslo": WAY})
    for event in reports(hub):
        watch.reported(event.report, now_s)
    routed = watch.edge("oslo", now_s)
    assert routed is not None
    assert (routed[1].round_trip_s, routed[1].loss) == (0.068, 0.02)
    assert routed[1].edge is not None
    assert (routed[1].edge.round_trip_s, routed[1].edge.loss) == (0.002, 0.001)
    on_circuit = RelayReport("depot", (tunnel(9_000, 0),))
    for ways in ({"oslo": led}, {"oslo": WAY}):
        # The report after the circuit may still have its tunnel.
        watch.keep(["campus", "depot"], ["oslo"], ways)
        watch.reported(on_circuit, now_s)
        assert watch.edge("oslo", now_s) == routed
    watch.reported(RelayReport("depot", (tunnel(70_000, 10_000),)), now_s)
    again = watch.edge("oslo", now_s)
    assert again is not None
    assert again[1].round_trip_s == 0.07


def chained(hub: Hub, way: SiteWay | None) -> None:
    """A site behind the relay `campus`, which is behind the relay `depot`, and an offer between them."""
    hub.add("NGRID", "oslo")
    with hub.ledger.transaction() as tx:
        for name, behind in (("campus", "oslo"), ("depot", "campus")):
            tx.fleet.relays.put(Relay(name, f"{name}.example.edu:7379", sites=(behind,)))
            tx.ports.add(Port(f"{name}-eth1", 100 * M, site=name))
        tx.planning.offers.put(Offer("core", "depot-eth1", ("campus-eth1",), (20 * M, 50 * M), setup_s=1.0))
        if way is not None:
            tx.fleet.ways.put(way)


async def run(hub: Hub, seconds: int, *sessions: SessionTraffic) -> str:
    """Trains of ten seconds, three each minute; returns the sentence of the plan about circuits on demand."""
    for second in range(seconds):
        if second % 10 == 0 and sessions:
            for event in reports(hub):
                await hub.loop.handle(event)
        await hub.seconds(1, sizes=(100_000,) * 10 if second % 20 < 10 else (), sessions=sessions)
    options = {one.transport: one for one in hub.plan().candidates}
    return options[Transport.DYNAMIC_CIRCUIT].reason


async def test_an_offer_between_relays_is_weighed_for_the_sites_whose_way_has_that_core(hub: Hub) -> None:
    chained(hub, WAY)
    await hub.restart()
    assert "other segments of a way over relays campus and depot have no known rate" in await run(hub, 20)
    await run(hub, 120, session("depot", EDGE_US), session("oslo", EDGE_US))
    with hub.ledger.transaction() as tx:
        tx.planning.pins.set("NGRID", Transport.DYNAMIC_CIRCUIT, by="test")
    await hub.loop.handle(PinChanged("NGRID"))
    said = await run(hub, 20, session("depot", EDGE_US), session("oslo", EDGE_US))
    assert "between relays campus and depot" in said
    assert "(offer core, set-up 1 s, hold" in said
    terms = terms_of(hub.plan().figures)
    assert [(leg.transport, leg.sites) for leg in hub.plan().legs] == [(Transport.UNICAST, ("oslo",))]
    assert [(one.site, one.offer) for one in terms] == [("oslo", "core")]


async def test_a_site_that_goes_otherwise_is_refused_the_circuits_of_the_core(hub: Hub) -> None:
    chained(hub, SiteWay("oslo", (), "direct"))
    await hub.restart()
    said = await run(hub, 20)
    assert said == "a site's way does not go over relays campus and depot, which circuits of the offer core join"


async def test_the_rate_beside_a_core_is_that_of_the_slowest_other_segment(hub: Hub) -> None:
    watch, now_s = RelayWatch(), hub.clock.monotonic_s()
    watch.keep(["campus", "depot"], ["oslo"], {"oslo": WAY})
    assert watch.beside_bps(WAY, CORE) is None
    hub.add("NGRID", "oslo")
    for event in reports(hub):
        watch.reported(event.report, now_s)
    watch.traffic(hub.traffic((), "NGRID", sessions=(session("depot", EDGE_US, 0),)), now_s)
    watch.traffic(hub.traffic((), "NGRID", sessions=(session("depot", EDGE_US, 0),)), now_s)
    # Two milliseconds with a loss of 0.1 % at the campus; the hub's own segment is clean.
    assert watch.beside_bps(WAY, CORE) == pytest.approx(reno_bps(0.002, 0.001))
