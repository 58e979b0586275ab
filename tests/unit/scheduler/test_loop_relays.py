"""The scheduler's loop with relays: groups behind them, their end, and predictions for sites that are on one."""

from dataclasses import replace

import pytest

from downburst.domain.events import LegChanged, RelaySeen, SessionChanged, SessionTraffic, SitesChanged
from downburst.domain.plans import Leg, Transport
from downburst.domain.relays import FanOut, Relay, RelayReport, Segment, Tunnel
from downburst.domain.senders import Assignment
from downburst.domain.tcp.path import TcpPath
from downburst.ledger import Ledger
from downburst.settings.multicast import MulticastSettings
from unit.scheduler.test_loop import FIVE, Hub, hub

__all__ = ["hub"]
BEHIND = ("a", "b", "c", "d")


@pytest.fixture
def campus(hub: Hub) -> Hub:
    """Four of five sites are behind a relay, and the hub's own multicast is off."""
    hub.settings = hub.settings.model_copy(update={"multicast": MulticastSettings(enabled=False)})
    hub.add("NGRID", *FIVE)
    _relay(hub)
    return hub


def _relay(hub: Hub, *, feeds: tuple[str, ...] = ("*",), fan_out: FanOut = FanOut.GROUP) -> None:
    with hub.ledger.transaction() as tx:
        tx.fleet.relays.put(Relay("campus", "campus.example.edu:7379", fan_out, BEHIND, feeds))


async def run(
    hub: Hub, seconds: int, *, reports: bool = True, tunnels: tuple[Tunnel, ...] = (), **other: object
) -> None:
    """Seconds of traffic; the relay reports every ten."""
    for _ in range(seconds // 10):
        if reports:
            await hub.loop.handle(RelaySeen(hub.clock.now(), RelayReport("campus", tunnels)))
        await hub.seconds(10, **other)  # type: ignore[arg-type]


def group(hub: Hub) -> Leg:
    (found,) = (leg for leg in hub.plan().legs if leg.transport is Transport.MULTICAST)
    return found


def core(round_trip_us: int, sent: int, again: int) -> SessionTraffic:
    """The relay's own session."""
    tcp = TcpPath(round_trip_us, sent, again, 10**7, is_lower_bound=True, congestion="reno")
    return SessionTraffic("campus", 0, 500, round_trip_us, (), path=tcp)


async def test_sites_behind_a_relay_get_one_copy_and_the_other_site_its_own(campus: Hub) -> None:
    await campus.restart()
    await run(campus, 60)
    plan = campus.plan()
    assert (group(campus).relay, group(campus).sites) == ("campus", BEHIND)
    assert [leg.sites for leg in plan.legs if leg.transport is Transport.UNICAST] == [("e",)]
    assert "one copy at up to 400 Mb/s for the 4 sites behind relay campus, 1 site by unicast" in plan.reason
    chosen = next(one for one in plan.candidates if one.transport is Transport.MULTICAST)
    assert "behind relay campus" in chosen.reason
    unicast = next(one for one in plan.candidates if one.transport is Transport.UNICAST)
    assert chosen.egress_bps is not None
    assert unicast.egress_bps is not None
    assert chosen.egress_bps == pytest.approx(unicast.egress_bps * 2 / 5, rel=0.02)


async def test_a_relay_that_never_reported_gets_no_group(campus: Hub) -> None:
    await campus.restart()
    await run(campus, 60, reports=False)
    assert campus.plan().transport is Transport.UNICAST
    assert "multicast is switched off" in campus.plan().reason


async def test_only_a_granted_feed_goes_to_a_relay(campus: Hub) -> None:
    campus.add("IDS")
    _relay(campus, feeds=("IDS",))
    await campus.restart()
    await run(campus, 60)
    assert campus.plan().transport is Transport.UNICAST
    _relay(campus, feeds=("IDS", "NGRID"))
    await campus.loop.handle(SitesChanged())
    await run(campus, 60)
    assert (group(campus).relay, group(campus).fan_out) == ("campus", FanOut.GROUP)


async def test_another_fan_out_of_a_relay_is_another_leg(campus: Hub) -> None:
    await campus.restart()
    await run(campus, 60)
    before = group(campus)
    _relay(campus, fan_out=FanOut.UNICAST)
    await campus.loop.handle(SitesChanged())
    await run(campus, 60)
    assert (group(campus).relay, group(campus).fan_out) == ("campus", FanOut.UNICAST)
    assert group(campus).leg != before.leg


async def test_sites_of_a_relay_that_falls_silent_or_ends_get_copies(campus: Hub) -> None:
    await campus.restart()
    await run(campus, 60)
    leg = group(campus).leg
    await run(campus, 20, reports=False)
    assert group(campus).leg == leg, "two reports were missed"
    await run(campus, 30, reports=False)
    assert campus.plan().transport is Transport.UNICAST
    assert "multicast is not possible" in campus.plan().reason
    await run(campus, 120)
    assert group(campus).relay == "campus"
    await campus.loop.handle(SessionChanged("campus", "closed", campus.clock.now(), "192.0.2.1:9"))
    await campus.seconds(10)
    assert campus.plan().transport is Transport.UNICAST


async def test_a_restart_leaves_the_group_while_the_relay_has_not_reported_yet(campus: Hub) -> None:
    await campus.restart()
    await run(campus, 60)
    await campus.restart()
    assert group(campus).relay == "campus"
    await run(campus, 60)
    assert group(campus).relay == "campus"


async def test_the_pace_is_that_of_the_core_and_stays_while_it_is_measured_a_little_different(campus: Hub) -> None:
    await campus.restart()
    await run(campus, 10, sessions=(core(50_000, 100_000, 100),))
    await run(campus, 60)
    rate_bps = group(campus).rate_bps
    assert rate_bps is not None
    assert 9e6 < rate_bps < 12e6, "Mathis at 50 ms and less than 0.1 % of loss"
    await run(campus, 20, sessions=(core(52_000, 200_000, 200),))
    assert group(campus).rate_bps == rate_bps


async def test_a_site_that_does_not_receive_the_relays_group_may_be_in_one_of_the_network(
    hub: Hub,
) -> None:
    hub.add("NGRID", *FIVE)
    _relay(hub)
    await hub.restart()
    await run(hub, 60)
    assert group(hub).relay is None, "a group of the network reaches all"
    number = group(hub).leg
    for site in FIVE:
        await hub.loop.handle(LegChanged("NGRID", number, site, "never-heard", hub.clock.now()))
    await run(hub, 400)
    assert group(hub).relay == "campus", "behind the relay there is another network"
    out = LegChanged("NGRID", group(hub).leg, "a", "never-heard", hub.clock.now())
    await hub.loop.handle(out)
    await run(hub, 20)
    assert group(hub).sites == ("b", "c", "d")


async def test_sites_that_a_sender_serves_are_in_no_group_of_a_relay(campus: Hub) -> None:
    with campus.ledger.transaction() as tx:
        tx.fleet.assignments.replace([Assignment("NGRID", site, "s1") for site in BEHIND])
    await campus.restart()
    await run(campus, 60)
    assert campus.plan().transport is Transport.UNICAST


async def test_a_site_on_a_relay_is_predicted_over_both_segments(ledger: Ledger, campus: Hub) -> None:
    """The hub's kernel sees 10 ms to the relay; behind it are 300 ms more."""
    with ledger.transaction() as tx:
        tx.fleet.relays.put(Relay("campus", "campus.example.edu:7379", None, FIVE, ("*",)))
    await campus.restart()
    near = Segment(300_000, 0, "cubic", 10**8)
    tunnel = Tunnel("a", "192.0.2.1:9", "192.0.2.2:9", "hub:7370", 9.0, 10**7, 1, 1, near, replace(near))
    path = TcpPath(10_000, 50_000, 0, 10**7, is_lower_bound=True, congestion="cubic")
    seen = tuple(SessionTraffic(site, 0, 500, 10_000, (), path=path) for site in FIVE)
    await run(campus, 60, sessions=seen)
    campus.add("TEXT", *FIVE)
    await campus.loop.handle(SitesChanged())
    await run(campus, 60, tunnels=(tunnel,), sessions=seen, feed="TEXT")
    before, after = (campus.plan(feed).figures["predicted_max_ms"] for feed in ("NGRID", "TEXT"))
    assert isinstance(before, float)
    assert isinstance(after, float)
    assert after > before + 100
