"""The loop on a real ledger: from events to plans, over restarts and changes."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, CircuitState, Direction, Measured, Port
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import (
    Event,
    FaultSeen,
    FeedTraffic,
    LegChanged,
    LegTraffic,
    PinChanged,
    PlanMade,
    SessionTraffic,
    SiteProgress,
    SitesChanged,
    SubscriptionsChanged,
    TrafficSeen,
)
from downburst.domain.feeds import Feed
from downburst.domain.plans import Plan, Transport
from downburst.domain.receipts import Batch, Settled
from downburst.domain.senders import Assignment
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock, to_us
from downburst.foundation.errors import DiskFull
from downburst.host.absent_transports import AbsentTransport
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.settings.multicast import MulticastSettings
from downburst.settings.scheduler import FeedScheduling, SchedulerSettings
from downburst_scheduler.loop import SchedulerLoop
from factories import SOME_TIME, sketch_row
from unit.scheduler.feeds import ngrid_hour

SIZES = (100_000,) * 10
"""Eight megabits a second."""
ABSENT = (AbsentTransport("rdma", "this host has no RDMA device"),)


@dataclass
class Hub:
    """A hub's parts around the scheduler, with a clock that is moved by hand."""

    ledger: Ledger
    settings: Settings
    clock: FakeClock
    bus: LocalBus = field(default_factory=LocalBus)
    heard: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listening = self.bus.subscribe(PlanMade, FaultSeen)
        self.loop = SchedulerLoop(self.bus, self.ledger, self.settings, self.clock, absent=ABSENT)

    async def restart(self) -> None:
        self.loop = SchedulerLoop(self.bus, self.ledger, self.settings, self.clock, absent=ABSENT)
        await self.loop.start()

    def add(self, feed: str, *sites: str, pattern: str = ".*") -> None:
        with self.ledger.transaction() as tx:
            if tx.feeds.find(feed) is None:
                tx.feeds.add(Feed(feed))
            for site in sites:
                if tx.sites.find(site) is None:
                    tx.sites.add(Site(site))
                tx.subscriptions.add(Subscription(0, site, feed, pattern))

    async def seconds(
        self, count: int, *, sizes: tuple[int, ...] = SIZES, feed: str = "NGRID", **legs: object
    ) -> None:
        for _ in range(count):
            self.clock.advance(1)
            await self.loop.handle(self.traffic(sizes, feed, **legs))

    def traffic(self, sizes: tuple[int, ...], feed: str, **other: object) -> TrafficSeen:
        now_us = to_us(self.clock.now())
        feeds = (FeedTraffic(feed, len(sizes), sum(sizes), sizes, head=1),) if sizes else ()
        given_ = {"legs": (), "sessions": (), "control_bytes": 0} | other
        return TrafficSeen(now_us - 1_000_000, now_us, feeds, **given_)  # type: ignore[arg-type]

    def plan(self, feed: str = "NGRID") -> Plan:
        with self.ledger.transaction(writes=False) as tx:
            found = tx.planning.plans.current(feed)
        assert found is not None
        return found

    def history(self, feed: str = "NGRID") -> list[Plan]:
        with self.ledger.transaction(writes=False) as tx:
            return tx.planning.plans.history(feed)[::-1]

    async def published(self) -> list[Event]:
        self._listening.close()
        return [event async for event in self._listening]


@pytest.fixture
def hub(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> Hub:
    settings = Settings(data_dir=tmp_path, scheduler=SchedulerSettings(step_s=10, window_s=120, dwell_s=60))
    return Hub(ledger, settings, clock)


FIVE = ("a", "b", "c", "d", "e")


async def test_a_feed_starts_on_unicast_and_goes_to_multicast_when_three_looks_agree(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    first = hub.plan()
    assert (first.version, first.transport) == (1, Transport.UNICAST)
    assert first.reason.startswith("unicast: no traffic measured yet")
    assert first.figures["not_considered_rdma"] == "this host has no RDMA device"
    await hub.seconds(29)
    assert hub.plan().version == 1
    await hub.seconds(1)
    second = hub.plan()
    assert (second.version, second.transport) == (2, Transport.MULTICAST)
    assert "5 sites would cost 42.0 Mb/s by unicast" in second.reason
    (leg,) = second.legs
    assert (leg.sites, leg.rate_bps) == (FIVE, 400_000_000)
    assert leg.group is not None
    assert leg.group.startswith("239.77.0.")


async def test_what_is_stored_is_said_and_nothing_else(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(200)
    said = [event.plan for event in await hub.published() if isinstance(event, PlanMade)]
    assert [(plan.version, plan.transport.value) for plan in said] == [(1, "unicast"), (2, "multicast")]


async def test_a_feed_with_one_site_stays_on_unicast_and_says_why_once_measured(hub: Hub) -> None:
    hub.add("TEXT", "a")
    await hub.loop.start()
    await hub.seconds(100, feed="TEXT")
    plan = hub.plan("TEXT")
    assert (plan.version, plan.transport) == (2, Transport.UNICAST)
    assert "1 site costs" in plan.reason
    assert "multicast is not possible: a group needs at least 2 sites" in plan.reason
    assert [candidate.feasible for candidate in plan.candidates] == [True, False, False, False]


async def test_windows_and_dwell_shrink_with_the_time_scale(tmp_path: Path, hub: Hub) -> None:
    hub.settings = hub.settings.model_copy(update={"time_scale": 10.0})
    hub.add("NGRID", *FIVE)
    await hub.restart()
    await hub.seconds(3)
    assert hub.plan().transport is Transport.MULTICAST


async def test_a_new_site_joins_the_existing_leg_at_once(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    before = hub.plan()
    hub.add("NGRID", "f")
    await hub.loop.handle(SubscriptionsChanged())
    after = hub.plan()
    assert (after.version, after.legs[0].leg) == (before.version + 1, before.legs[0].leg)
    assert "f" in after.legs[0].sites


async def test_a_site_that_never_heard_the_group_gets_copies_until_the_retry_time_is_over(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    leg = hub.plan().legs[0].leg
    await hub.loop.handle(LegChanged("NGRID", leg, "c", "never-heard", hub.clock.now()))
    mixed = hub.plan()
    assert [(one.transport.value, one.sites) for one in mixed.legs] == [
        ("unicast", ("c",)),
        ("multicast", ("a", "b", "d", "e")),
    ]
    assert "c received no multicast" in mixed.reason
    hub.clock.advance(30 * 60)
    await hub.seconds(20)
    (group,) = hub.plan().legs
    assert (group.leg, group.sites) == (leg, FIVE)


async def test_sites_that_left_or_may_not_take_the_feed_are_in_no_leg(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    with hub.ledger.transaction() as tx:
        tx.sites.remove("a")
        tx.sites.change(Site("b", allow=("TEXT",)))
        tx.sites.change(Site("c", active=False))
        tx.sites.change(Site("d", multicast=False))
    await hub.loop.handle(SitesChanged())
    assert [(leg.transport.value, leg.sites) for leg in hub.plan().legs] == [("unicast", ("d", "e"))]


async def test_a_pin_is_followed_at_once_and_its_end_leaves_it_to_the_figures(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    with hub.ledger.transaction() as tx:
        tx.planning.pins.set("NGRID", Transport.MULTICAST, by="alice")
    await hub.loop.handle(PinChanged("NGRID"))
    pinned = hub.plan()
    assert (pinned.transport, pinned.pinned) == (Transport.MULTICAST, True)
    assert "pinned by alice" in pinned.reason
    with hub.ledger.transaction() as tx:
        tx.planning.pins.set("NGRID", Transport.UNICAST, by="bob")
    await hub.loop.handle(PinChanged("NGRID"))
    assert hub.plan().transport is Transport.UNICAST
    with hub.ledger.transaction() as tx:
        tx.planning.pins.remove("NGRID")
    await hub.loop.handle(PinChanged("NGRID"))
    await hub.seconds(100)
    assert (hub.plan().transport, hub.plan().pinned) == (Transport.MULTICAST, False)


async def test_a_feed_rides_on_circuits_while_they_carry_and_leaves_them_at_once(hub: Hub) -> None:
    hub.add("NGRID", "a", "b")
    ends = (CircuitEnd("hub-eth0"), CircuitEnd("a-eth1", "a"))
    wish = Circuit(0, CircuitRequest("r"), ends, 500_000_000, 0, SOME_TIME, None, state=CircuitState.ACTIVE)
    with hub.ledger.transaction() as tx:
        circuit = tx.circuits.add(wish)
        row = Measured(circuit.number, "a", Direction.OUT, SOME_TIME, 450_000_000, 500_000_000)
        tx.circuits.measured([row])
        tx.planning.pins.set("NGRID", Transport.STATIC_CIRCUIT, by="op")
    await hub.loop.start()
    unicast, riding = hub.plan().legs
    assert (unicast.transport, unicast.sites) == (Transport.UNICAST, ("b",))
    assert (riding.transport, riding.circuits) == (Transport.STATIC_CIRCUIT, (("a", circuit.number),))

    await hub.restart()
    assert len(hub.history()) == 1, "a restart goes on with the same leg"

    with hub.ledger.transaction() as tx:
        tx.circuits.save(replace(circuit, state=CircuitState.DOWN, reason="cut"))
    await hub.loop.handle(CircuitsChanged(circuit.number))
    (left,) = hub.plan().legs
    assert (left.transport, left.sites) == (Transport.UNICAST, ("a", "b"))
    assert "a: circuit 1 is down: cut" in hub.plan().reason

    with hub.ledger.transaction() as tx:
        tx.circuits.save(circuit)
    await hub.loop.handle(CircuitsChanged(circuit.number))
    assert hub.plan().legs[-1].transport is Transport.STATIC_CIRCUIT

    with hub.ledger.transaction() as tx:
        tx.fleet.senders.register("one", address="one:1", public_key="04")
        tx.fleet.assignments.replace([Assignment("NGRID", "a", "one")])
    await hub.seconds(100)
    (left,) = hub.plan().legs
    assert (left.transport, left.sites) == (Transport.UNICAST, ("a", "b"))
    assert "a: the sender one serves it, and circuit 1 begins at the hub's own node" in hub.plan().reason

    with hub.ledger.transaction() as tx:
        tx.ports.add(Port(circuit.ends[0].port, circuit.rate_out_bps, sender="one"))
    await hub.loop.handle(CircuitsChanged())
    assert hub.plan().legs[-1].circuits == (("a", circuit.number),)

    with hub.ledger.transaction() as tx:
        tx.fleet.assignments.replace([Assignment("NGRID", "a", "two")])
    await hub.seconds(100)
    assert "a: the sender two serves it, and circuit 1 begins at the sender one" in hub.plan().reason


async def test_every_group_has_a_leg_of_its_own(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    numbers = []
    for transport in (Transport.MULTICAST, Transport.UNICAST) * 3:
        with hub.ledger.transaction() as tx:
            tx.planning.pins.set("NGRID", transport, by="alice")
        await hub.loop.handle(PinChanged("NGRID"))
        numbers += [leg.leg for leg in hub.plan().legs if leg.transport is Transport.MULTICAST]
    assert len(set(numbers)) == 3


async def test_after_a_restart_versions_go_on_and_the_group_is_another_one(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    before = hub.plan()
    await hub.restart()
    after = hub.plan()
    assert (after.version, after.transport) == (before.version + 1, Transport.MULTICAST)
    assert after.legs[0].leg > before.legs[0].leg
    assert "no product came since the hub started" in after.reason
    await hub.seconds(10)
    assert "5 sites would cost" in hub.plan().reason


async def test_a_restart_without_a_group_changes_nothing(hub: Hub) -> None:
    hub.add("TEXT", "a")
    await hub.loop.start()
    await hub.seconds(60, feed="TEXT")
    before = hub.history("TEXT")
    await hub.restart()
    assert hub.history("TEXT") == before


async def test_quiet_spells_make_no_plans(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    await hub.seconds(400, sizes=())
    await hub.seconds(40)
    assert [plan.transport.value for plan in hub.history()] == ["unicast", "multicast"]


async def test_what_other_feeds_send_is_not_free(hub: Hub) -> None:
    hub.settings = hub.settings.model_copy(
        update={"egress_capacity_bps": 10e6, "multicast": MulticastSettings(enabled=False)}
    )
    hub.add("NGRID", "a")
    hub.add("TEXT", "a")
    await hub.restart()
    for _ in range(40):
        hub.clock.advance(1)
        event = hub.traffic(SIZES, "NGRID")
        text = FeedTraffic("TEXT", 1, 1_000, (1_000,), 1)
        await hub.loop.handle(TrafficSeen(event.from_us, event.to_us, (*event.feeds, text), (), (), 0))
    assert hub.plan("TEXT").figures["free_egress_bps"] == pytest.approx(10e6 - 8e6 * 1.049, rel=0.02), "frames count"
    assert "multicast is switched off in this hub's settings" in hub.plan("TEXT").reason


async def test_measured_latency_is_set_beside_the_prediction(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    minute = to_us(hub.clock.now()) // 60_000_000
    row = sketch_row([40.0] * 100, site="a", minute=minute, transport=Transport.MULTICAST)
    with hub.ledger.transaction() as tx:
        tx.measured.batches.load(Batch("b1", sketches=(row,)))
    version = hub.plan().version
    await hub.seconds(60)
    plan = hub.plan()
    predicted = plan.figures["predicted_p99_ms"]
    assert isinstance(predicted, float)
    assert plan.version == version
    assert plan.figures["measured_over_predicted_p99"] == pytest.approx(40 / predicted, rel=0.02)


async def test_measured_repair_enters_the_price_of_a_group(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    leg = LegTraffic(hub.plan().legs[0].leg, "NGRID", 1_150_000, 100_000, 10, 1_000_000, 5, 0, Transport.MULTICAST)
    await hub.seconds(20, legs=(leg,))
    hub.add("NGRID", "f")
    await hub.loop.handle(SubscriptionsChanged())
    assert hub.plan().figures["repair_share"] == pytest.approx(0.1)


@pytest.mark.parametrize("stays", [True, False])
async def test_a_site_whose_pattern_takes_little_is_found_out_and_stays_on_unicast(hub: Hub, *, stays: bool) -> None:
    """Its session is reported once, as long as nothing changes; a site that left stores little for another reason."""
    hub.add("NGRID", "a", "b", "c")
    hub.add("NGRID", "little", pattern="^YHWB")
    await hub.loop.start()
    progress = SiteProgress("NGRID", settled_to=1, pending=0, transport=Transport.UNICAST, leg=1)
    await hub.seconds(1, sessions=(SessionTraffic("little", 0, 500, 20_000, (progress,)),))
    await hub.seconds(1, gone=frozenset() if stays else frozenset({"little"}))
    for number in range(4):
        with hub.ledger.transaction() as tx:
            tx.measured.batches.load(Batch(f"b{number}", settled=(Settled("NGRID", "e", "little", 1, 1, 6_000_000),)))
        await hub.seconds(60)
    legs = {leg.transport.value: leg.sites for leg in hub.plan().legs}
    if not stays:
        assert "wants" not in hub.plan().reason
        return
    assert legs == {"multicast": ("a", "b", "c"), "unicast": ("little",)}
    assert "little wants 10% of the feed and would discard the rest" in hub.plan().reason


@pytest.mark.parametrize(
    ("speed", "minutes", "sites", "latest_s"), [(10, 10, 8, 6), pytest.param(1, 60, 5, 60, marks=pytest.mark.all)]
)
async def test_the_recorded_feed_changes_once_and_soon(
    hub: Hub, speed: int, minutes: int, sites: int, latest_s: float
) -> None:
    """Uses the default settings: the demo's ten minutes at tenfold speed, and the whole hour in real time."""
    hub.settings = Settings(data_dir=hub.settings.data_dir, time_scale=speed)
    hub.add("NGRID", *(f"site-{number}" for number in range(sites)))
    await hub.restart()
    started = hub.clock.now()
    for sizes in played_seconds(speed, minutes):
        await hub.seconds(1, sizes=sizes)
    first, second = hub.history()
    assert (first.transport, second.transport) == (Transport.UNICAST, Transport.MULTICAST)
    assert (second.made_at - started).total_seconds() <= latest_s


def played_seconds(speed: int, minutes: int) -> list[tuple[int, ...]]:
    """The sizes of the products that arrive in each real second of a play."""
    recorded = ngrid_hour()
    seconds: list[list[int]] = [[] for _ in range(minutes * 60 // speed)]
    for at_s, size in zip(recorded.at_s, recorded.size_bytes, strict=True):
        if int(at_s / speed) < len(seconds):
            seconds[int(at_s / speed)].append(int(size))
    return [tuple(sizes) for sizes in seconds]


async def test_run_follows_the_bus_until_cancelled(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    plans = hub.bus.subscribe(PlanMade)
    running = asyncio.create_task(hub.loop.run())
    first = await asyncio.wait_for(plans.next(), 10)
    assert isinstance(first, PlanMade)
    assert first.plan.transport is Transport.UNICAST
    second = asyncio.create_task(plans.next())
    async with asyncio.timeout(10):
        while not second.done():
            hub.clock.advance(10)
            hub.bus.publish(hub.traffic(SIZES, "NGRID"))
            await asyncio.sleep(0.001)
    made = second.result()
    assert isinstance(made, PlanMade)
    assert made.plan.transport is Transport.MULTICAST
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_fault_of_the_ledger_is_said_and_made_good_at_the_next_look(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()

    async def full(_: object) -> None:
        raise DiskFull("the disk that holds the ledger is full; free some space and try again")

    with monkeypatch.context() as broken:
        broken.setattr(hub.ledger, "write", full)
        await hub.seconds(30)
    assert hub.plan().version == 1
    await hub.seconds(10)
    assert hub.plan().transport is Transport.MULTICAST
    faults = [event.sentence for event in await hub.published() if isinstance(event, FaultSeen)]
    assert faults == [
        "the scheduler could not finish a review: the disk that holds the ledger is full; free some space and "
        "try again"
    ]


async def test_a_dry_run_stores_what_it_would_do_and_changes_nothing(hub: Hub) -> None:
    scheduling = hub.settings.scheduler.model_copy(update={"feeds": {"NGRID": FeedScheduling(dry_run=True)}})
    hub.settings = hub.settings.model_copy(update={"scheduler": scheduling})
    hub.add("NGRID", *FIVE)
    await hub.restart()
    await hub.seconds(60)
    plan = hub.plan()
    assert [(leg.transport, leg.sites) for leg in plan.legs] == [(Transport.UNICAST, FIVE)]
    assert (plan.figures["would_be"], plan.figures["dry_run"]) == ("multicast", True)
    assert "dry run: it would change to multicast" in plan.reason
    versions = len(hub.history())
    await hub.seconds(60)
    assert len(hub.history()) == versions, "it is said once"


async def test_a_plan_names_what_would_flip_it_a_second_later(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    assert hub.plan().figures["flip"] == "it would be unicast at 1 site instead of 5 sites"


async def test_predictions_that_are_far_off_are_named_until_somebody_acts(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    for number in range(8):
        minute = to_us(hub.clock.now()) // 60_000_000 + 1
        row = sketch_row([9_000.0] * 200, site="a", minute=minute, transport=Transport.MULTICAST)
        with hub.ledger.transaction() as tx:
            tx.measured.batches.load(Batch(f"late{number}", sketches=(row,)))
        await hub.seconds(60)
    doubted = hub.plan()
    assert doubted.figures["mistrusted"] is True
    assert "the p99 measured by multicast is" in doubted.reason
    assert doubted.figures["calibration_multicast_p99"] == 2.0
    await hub.loop.handle(PinChanged("NGRID"))
    assert hub.plan().figures["mistrusted"] is False


async def test_the_changes_of_the_day_survive_a_restart(hub: Hub) -> None:
    hub.settings = hub.settings.model_copy(
        update={"scheduler": hub.settings.scheduler.model_copy(update={"changes_per_day": 0})}
    )
    hub.add("NGRID", *FIVE)
    await hub.restart()
    await hub.seconds(40)
    assert hub.plan().transport is Transport.MULTICAST, "the first choice is no change"
    await hub.restart()
    await hub.seconds(40)
    assert hub.plan().transport is Transport.MULTICAST
    assert hub.plan().figures["changes_today"] == 0


SMALL = (2_000,) * 10
"""A hundred and sixty kilobits a second."""


def measured(hub: Hub, name: str, ms: float) -> None:
    row = sketch_row([ms] * 200, feed="IDS", site="a", minute=to_us(hub.clock.now()) // 60_000_000)
    with hub.ledger.transaction() as tx:
        tx.measured.batches.load(Batch(name, sketches=(row,)))


async def test_the_floor_that_sites_measure_is_in_the_plan_a_review_later_and_after_a_restart(hub: Hub) -> None:
    hub.add("IDS", "a")
    await hub.loop.start()
    await hub.seconds(40, sizes=SMALL, feed="IDS")
    bare = hub.plan("IDS").figures
    assert (bare["floor_p50_ms"], bare["floor_deliveries"]) == (None, 0)
    assert isinstance(bare["predicted_p99_ms"], float)
    assert bare["predicted_p99_ms"] < 0.1
    measured(hub, "busy", 71.0)
    await hub.seconds(60, sizes=SMALL, feed="IDS")
    plan = hub.plan("IDS")
    assert plan.version == 2, "a floor is no other plan"
    assert plan.figures["floor_deliveries"] == 200
    assert plan.figures["predicted_p99_ms"] == pytest.approx(71.0, rel=0.03)
    assert plan.figures["measured_over_predicted_p99"] == pytest.approx(1.0, rel=0.05)
    assert plan.candidates[0].predicted_p99_ms == pytest.approx(71.0, rel=0.03)
    await hub.restart()
    await hub.seconds(12, sizes=SMALL, feed="IDS")
    assert hub.loop._feeds["IDS"].floor.p50_ms == pytest.approx(71.0, rel=0.03)
    assert hub.plan("IDS").candidates[0].predicted_p99_ms == pytest.approx(71.0, rel=0.03)


async def test_a_site_that_is_behind_tells_nothing_of_machines(hub: Hub) -> None:
    hub.add("IDS", "a")
    await hub.loop.start()
    await hub.seconds(40, sizes=SMALL, feed="IDS")
    measured(hub, "queued", 900.0)
    progress = SiteProgress("IDS", settled_to=1, pending=500, transport=Transport.UNICAST, leg=1)
    await hub.seconds(60, sizes=SMALL, feed="IDS", sessions=(SessionTraffic("a", 0, 1, 100, (progress,)),))
    assert hub.plan("IDS").figures["floor_deliveries"] == 0


async def test_a_machine_that_becomes_quiet_is_noticed_when_the_window_has_passed(hub: Hub) -> None:
    hub.add("IDS", "a")
    await hub.loop.start()
    await hub.seconds(40, sizes=SMALL, feed="IDS")
    measured(hub, "busy", 71.0)
    await hub.seconds(60, sizes=SMALL, feed="IDS")
    for number in range(4):
        measured(hub, f"quiet{number}", 0.5)
        await hub.seconds(60, sizes=SMALL, feed="IDS")
    assert hub.plan("IDS").figures["predicted_p99_ms"] == pytest.approx(0.5, rel=0.1)


async def test_the_seconds_of_senders_are_none_without_products(hub: Hub) -> None:
    hub.add("NGRID", "a")
    await hub.loop.start()
    for _ in range(20):
        await hub.seconds(1)
        await hub.loop.handle(hub.traffic((), "NGRID", sender="one"))
    window = hub.loop._feeds["NGRID"].window
    assert (window.seconds, window.products) == (20.0, 20 * len(SIZES))
