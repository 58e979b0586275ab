"""The rates of groups follow sweeps of their sites' paths, within what the settings allow."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from downburst.domain.feeds import Feed, FeedClass
from downburst.domain.plans import Leg, Transport
from downburst.domain.probes import ProbeKind, ProbeState
from downburst.domain.probes.results import ProbeResult, StepResult
from downburst.domain.probes.signs import ProbesChanged
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.settings.multicast import MulticastSettings
from downburst.settings.scheduler import SchedulerSettings
from downburst_scheduler.figures.wording import megabits, sites_of
from downburst_scheduler.models.repair import Repair
from downburst_scheduler.models.sweeps import LossCurve, Sweep, usable_rate
from factories import probe_request
from kit.probes import step
from unit.scheduler.test_loop import FIVE, Hub

PUBLISHED = LossCurve((600e6, 800e6), (0.0026, 0.1104))
"""The loss at two rates on the virtual circuits of the study, without a rate free of loss."""


def lossy(words: str = "probe 1", curve: LossCurve = PUBLISHED) -> Sweep:
    return Sweep(curve, None, words)


@pytest.mark.parametrize(("receivers", "best"), [(1, 800e6), (3, 800e6), (4, 600e6), (7, 600e6)])
def test_the_published_losses_turn_the_choice_between_3_and_4_receivers(receivers: int, best: float) -> None:
    found = usable_rate([lossy()] * receivers, receivers, size_bytes=1e9, repair_bps=900e6, repair=Repair.UNICAST)
    assert found is not None
    assert found.rate_bps == best
    assert found.words.startswith(
        f"probe 1 found no rate without loss, and with repair for {sites_of(receivers)} the mean product takes "
    )
    assert f"at {megabits(best)}" in found.words.split(" and ")[1], "the best one is first"


def test_the_lowest_knee_limits_a_group_and_is_named() -> None:
    knees = [Sweep(PUBLISHED, 500e6, "probe 1"), Sweep(PUBLISHED, 300e6, "probe 2"), lossy("probe 3")]
    found = usable_rate(knees, 3, size_bytes=1e9, repair_bps=900e6, repair=Repair.CODED)
    assert found is not None
    assert (found.rate_bps, found.words) == (300e6, "probe 2 found the knee there")
    assert usable_rate([], 3, size_bytes=1e9, repair_bps=900e6, repair=Repair.CODED) is None


def test_two_curves_count_by_the_worse_one_at_each_rate_that_both_tried() -> None:
    other = lossy("probe 2", LossCurve((600e6,), (0.5,)))
    found = usable_rate([lossy(), other], 2, size_bytes=1e9, repair_bps=900e6, repair=Repair.UNICAST)
    assert found is not None
    assert found.rate_bps == 600e6
    assert found.words.startswith("probe 2")


def swept(hub: Hub, site: str, *steps: StepResult, knee_bps: float | None, knee_reason: str | None = None) -> int:
    with hub.ledger.transaction() as tx:
        probe = tx.measured.probing.probes.add(probe_request(site, ProbeKind.KNEE))
        done = replace(probe, state=ProbeState.DONE, ended_at=hub.clock.now())
        result = ProbeResult(steps, knee_bps=knee_bps, knee_reason=knee_reason)
        tx.measured.probing.probes.save(replace(done, result=result))
    return probe.id


def group(hub: Hub) -> Leg:
    found = hub.plan().legs
    return next(leg for leg in found if leg.transport is Transport.MULTICAST)


async def test_the_plan_follows_a_knee_in_the_next_round_names_it_and_forgets_it_with_age(
    tmp_path: Path, ledger: Ledger, clock: FakeClock
) -> None:
    settings = Settings(data_dir=tmp_path, scheduler=SchedulerSettings(step_s=10, window_s=120, dwell_s=60))
    hub = Hub(ledger, settings, clock)
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(30)
    before = group(hub)
    assert before.rate_bps is not None
    number = swept(hub, "a", step(60_000_000), step(80_000_000, lost=200), knee_bps=60e6)
    await hub.loop.handle(ProbesChanged())
    assert group(hub).rate_bps == 60_000_000
    assert group(hub).leg == before.leg
    assert f"the group's pace is 60.0 Mb/s, as probe {number} of a at 20" in hub.plan().reason
    swept(hub, "a", step(60_000_000), knee_bps=9e9)
    await hub.loop.handle(ProbesChanged())
    assert group(hub).rate_bps == before.rate_bps, "never above what the settings allow"
    swept(hub, "b", step(60_000_000), knee_bps=50e6)
    await hub.loop.handle(ProbesChanged())
    assert group(hub).rate_bps == 50_000_000
    clock.advance(timedelta(days=15).total_seconds())
    await hub.loop.handle(ProbesChanged())
    assert group(hub).rate_bps == before.rate_bps


@pytest.mark.parametrize("knee_bps", [None, 20e6])
async def test_a_sweep_that_saw_no_limit_of_the_path_limits_no_group(
    tmp_path: Path, ledger: Ledger, clock: FakeClock, knee_bps: float | None
) -> None:
    settings = Settings(data_dir=tmp_path, scheduler=SchedulerSettings(step_s=10, window_s=120, dwell_s=60))
    hub = Hub(ledger, settings, clock)
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(30)
    before = group(hub)
    steps = step(20_000_000), step(40_000_000)
    swept(hub, "a", *steps, knee_bps=knee_bps, knee_reason="the sender reached 20000000 of the 40000000 b/s")
    await hub.loop.handle(ProbesChanged())
    assert group(hub).rate_bps == before.rate_bps
    assert "probe" not in hub.plan().reason
    swept(hub, "a", step(30_000_000), step(40_000_000, lost=200), knee_bps=30e6)
    swept(hub, "a", *steps, knee_bps=knee_bps, knee_reason="the sender reached 20000000 of the 40000000 b/s")
    await hub.loop.handle(ProbesChanged())
    assert group(hub).rate_bps == 30_000_000, "the confirmed knee before it still counts"


@pytest.mark.parametrize(("sites", "best_bps"), [("abc", 800_000_000), ("abcd", 600_000_000)])
async def test_the_published_losses_turn_the_plan_of_a_live_feed_between_3_and_4_sites(
    tmp_path: Path, ledger: Ledger, clock: FakeClock, sites: str, best_bps: int
) -> None:
    """Products of 1 GB, 900 Mb/s of egress, and a feed that is repaired packet by packet."""
    settings = Settings(
        data_dir=tmp_path,
        egress_capacity_bps=900_000_000,
        scheduler=SchedulerSettings(step_s=10, window_s=120, dwell_s=60),
        multicast=MulticastSettings(rate_bps=800_000_000),
    )
    hub = Hub(ledger, settings, clock)
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("RADAR", feed_class=FeedClass.OBSERVATION, objective_ms=60_000))
        tx.planning.pins.set("RADAR", Transport.MULTICAST, by="anna")
    hub.add("RADAR", *sites)
    for site in sites:
        swept(
            hub,
            site,
            step(600_000_000, lost=26, sent=10_000),
            step(800_000_000, lost=1_104, sent=10_000),
            knee_bps=None,
        )
    await hub.loop.start()
    for _ in range(2):
        await hub.seconds(1, sizes=(1_000_000_000,), feed="RADAR")
        await hub.seconds(59, sizes=(), feed="RADAR")
    await hub.loop.handle(ProbesChanged())
    (leg,) = hub.plan("RADAR").legs
    assert (leg.transport, leg.rate_bps) == (Transport.MULTICAST, best_bps)
    assert f"with repair for {len(sites)} sites the mean product takes 1" in hub.plan("RADAR").reason
    assert "at 600 Mb/s with 0.26% lost" in hub.plan("RADAR").reason
    assert "at 800 Mb/s with 11.04% lost" in hub.plan("RADAR").reason
