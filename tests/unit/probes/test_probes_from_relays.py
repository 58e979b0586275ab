"""Probes between a relay and its site: both are ends, and only packets of the session's own path are sent."""

from dataclasses import replace

import pytest

from downburst.domain.circuits import CircuitEnd, Port
from downburst.domain.events import RelaySeen, SessionChanged
from downburst.domain.probes import ProbeKind, ProbeState
from downburst.domain.probes.ceilings import CeilingSide, ProbeCeiling
from downburst.domain.relays import Relay, RelayReport, Segment, SiteWay, Tunnel
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from factories import probe_request, stacks_request
from unit.probes.stage import M, Stage

SITE, RELAY = "unl.edu", "omaha"
REQUEST = replace(probe_request(), relay=RELAY)
SEGMENT = Segment(1_000, None, "cubic", 0)


class RelayStage(Stage):
    """The session of unl.edu comes by the relay omaha, which has a port."""

    def __init__(self, ledger: Ledger, clock: FakeClock) -> None:
        super().__init__(ledger, clock)
        with ledger.transaction() as tx:
            tx.sites.add(Site(RELAY))
            tx.fleet.relays.put(Relay(RELAY, "192.0.2.7:7379", sites=(SITE,)))
            tx.ports.add(Port("omaha-eth0", 1_000 * M, RELAY))
        self.connects(RELAY)
        self.carries(RELAY, SITE)

    def connects(self, name: str) -> None:
        self.live.apply(SessionChanged(name, "connected", self.clock.now(), "192.0.2.7:9"))

    def carries(self, relay: str, *sites: str) -> None:
        tunnels = tuple(
            Tunnel(site, "192.0.2.1:9", "192.0.2.7:8", "hub:7370", 5, 0, 0, 0, SEGMENT, SEGMENT) for site in sites
        )
        self.live.apply(RelaySeen(self.clock.now(), RelayReport(relay, tunnels)))


@pytest.fixture
def stage(ledger: Ledger, clock: FakeClock) -> RelayStage:
    return RelayStage(ledger, clock)


async def test_a_probe_from_a_relay_books_its_port_and_names_it_to_the_node(stage: RelayStage) -> None:
    probe = await stage.started(REQUEST)
    assert probe.state is ProbeState.RUNNING, probe.reason
    assert [one.request.relay for one in stage.node.started] == [RELAY]
    (booking,) = stage.bookings.booked_ones
    assert booking.wanted.near == CircuitEnd("omaha-eth0", RELAY)


async def test_a_probe_from_the_hub_of_a_site_behind_a_relay_is_refused_and_names_the_option(
    stage: RelayStage,
) -> None:
    probe = await stage.started()
    assert (probe.state, probe.reason) == (
        ProbeState.REFUSED,
        "the session of unl.edu comes by a relay, and packets of the hub's node would not take that path; probe from "
        "the relay: --from omaha",
    )
    assert stage.node.started == []


async def test_a_probe_over_tcp_of_a_site_behind_a_relay_is_refused_and_names_one_over_udp(stage: RelayStage) -> None:
    probe = await stage.started(stacks_request())
    assert probe.state is ProbeState.REFUSED
    assert probe.reason.endswith("would not take that path; probe over UDP from the relay: --from omaha")


async def test_a_relay_itself_and_a_site_beside_it_are_probed_from_the_hub(stage: RelayStage) -> None:
    relay, other = stage.add(probe_request(RELAY)), stage.add(probe_request("isu.edu"))
    await stage.work()
    assert [stage.kept(one).state for one in (relay, other)] == [ProbeState.RUNNING] * 2


async def test_another_relay_than_that_of_the_session_is_refused(stage: RelayStage) -> None:
    stage.connects("ames")
    probe = await stage.started(replace(REQUEST, relay="ames"))
    assert (probe.state, probe.reason) == (
        ProbeState.REFUSED,
        "the session of unl.edu comes by relay omaha; probe from it: --from omaha",
    )


async def test_the_relay_nearest_to_the_site_probes_where_there_are_several(stage: RelayStage) -> None:
    with stage.ledger.transaction() as tx:
        tx.fleet.ways.put(SiteWay(SITE, ("lincoln", RELAY), "shorter"))
    probe = await stage.started(REQUEST)
    assert (probe.state, probe.reason) == (
        ProbeState.REFUSED,
        "lincoln is the relay nearest to unl.edu; probe from it: --from lincoln",
    )


async def test_a_site_at_a_sender_has_no_probe_from_a_relay(stage: RelayStage) -> None:
    stage.live.hear_sender(SessionChanged(SITE, "connected", stage.clock.now(), "192.0.2.1:9", sender="one"))
    probe = await stage.started(REQUEST)
    assert probe.state is ProbeState.REFUSED
    assert probe.reason.startswith("the sender one serves unl.edu, and relay omaha is connected to the hub's node")


async def test_a_relay_that_is_away_or_busy_is_waited_for(stage: RelayStage) -> None:
    busy = await stage.started(probe_request(RELAY))
    probe = await stage.started(REQUEST)
    assert (probe.state, probe.reason) == (
        ProbeState.WAITING,
        f"probe {busy.id} of omaha runs; one of a site runs at a time",
    )
    stage.live.apply(SessionChanged(RELAY, "closed", stage.clock.now(), "192.0.2.7:9"))
    await stage.ends(busy)
    await stage.work()
    assert stage.kept(probe).reason == "relay omaha is not connected"


async def test_the_ceiling_of_a_relay_holds_for_probes_from_it(stage: RelayStage) -> None:
    with stage.ledger.transaction() as tx:
        tx.measured.probing.ceilings.put(ProbeCeiling(RELAY, CeilingSide.SITE, 5 * M, None, "eve"))
    assert (await stage.started(REQUEST)).state is ProbeState.REFUSED


async def test_a_sweep_from_a_relay_is_no_knee_of_the_path_from_the_hub(stage: RelayStage) -> None:
    probe = await stage.started(replace(probe_request(kind=ProbeKind.KNEE), relay=RELAY))
    await stage.ends(probe, knee=9e6)
    with stage.ledger.transaction() as tx:
        assert tx.measured.probing.probes.last_knees(probe.requested_at) == []
        assert tx.measured.probing.probes.one(probe.id).request.relay == RELAY
