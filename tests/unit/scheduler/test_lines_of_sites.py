"""Groups by rate from the losses that legs report: they form, a slow site moves, and comes back once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import pytest

from downburst.domain.events import FeedsChanged, LegChanged, LegTraffic, SessionTraffic, SiteProgress, TrafficSeen
from downburst.domain.feeds import Feed
from downburst.domain.plans import Leg, LegTrial, Plan, Transport, leg_figure
from downburst.domain.readings import HostReading, LineReading
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.settings.multicast import MulticastSettings
from downburst.settings.scheduler import SchedulerSettings
from downburst_scheduler.lines import LineWatch
from downburst_scheduler.models.lines.trials import TrialRules
from downburst_scheduler.states import Pace
from unit.scheduler.test_loop import Hub

RATE_BPS, FAST_BPS, SLOW_BPS = 40_000_000, 20_000_000, 4_000_000
SIZES = (300_000,)
"""2.4 Mb/s: a product takes 0.13 s at the fast sites' rate, and 0.63 s at that of the slow ones."""
OBJECTIVE_MS = 400
LEFT_ABOVE, LEFT_AFTER_S = 0.4, 2
"""A receiver that loses more for so long leaves by itself."""
PACKET_BITS = 12_000


@dataclass
class Network:
    """The lines of sites, and what the node reports of legs that are sent over them."""

    hub: Hub
    lines_bps: dict[str, float]
    out: set[tuple[int, str]] = field(default_factory=set)
    """Legs with the sites that left them as too fast, until another plan."""
    flooded_s: Counter[tuple[int, str]] = field(default_factory=Counter)
    """By leg and site, the seconds of great loss."""
    windows: Counter[str] = field(default_factory=Counter)
    """By site, the seconds that its host has measured."""
    late: set[str] = field(default_factory=set)
    """Sites that leave their first group before their hosts have measured anything."""
    sizes: tuple[int, ...] = SIZES
    measures_every_s: int = 1
    """A host measures its line once in so many seconds: most products are too short for it."""
    second: int = 0
    version: int = 0

    async def seconds(self, count: int) -> None:
        for _ in range(count):
            self.second += 1
            plan = self.hub.plan()
            if plan.version != self.version:
                self.version, self.out = plan.version, set()
            legs = [leg for leg in plan.legs if leg.transport is Transport.MULTICAST]
            await self.hub.seconds(
                1, sizes=self.sizes, legs=tuple(map(self._traffic, legs)), sessions=tuple(self._sessions(plan))
            )
            for leg in legs:
                for site in self._hearing(leg):
                    flooded = self._loss(leg, site) > LEFT_ABOVE
                    self.flooded_s[leg.leg, site] = self.flooded_s[leg.leg, site] + 1 if flooded else 0
                    if self.flooded_s[leg.leg, site] >= LEFT_AFTER_S:
                        self.out.add((leg.leg, site))
                        self.late.discard(site)
                        gone = LegChanged("NGRID", leg.leg, site, "too-slow", self.hub.clock.now())
                        await self.hub.loop.handle(gone)

    def _traffic(self, leg: Leg) -> LegTraffic:
        assert leg.rate_bps
        packets = leg.rate_bps // PACKET_BITS
        lost = {site: round(packets * self._loss(leg, site)) for site in self._hearing(leg)}
        trial = LegTrial(leg.rate_bps, packets, tuple((site, count) for site, count in lost.items() if count))
        size, multicast = self.sizes[0], Transport.MULTICAST
        loss = max((self._loss(leg, site) for site in self._hearing(leg)), default=0.0)
        # Repairs are lost as products are.
        again = round(size * loss / (1 - loss))
        return LegTraffic(
            leg.leg,
            "NGRID",
            size + again,
            again,
            1,
            size,
            len(leg.sites),
            0,
            multicast,
            leg.rate_bps,
            trials=(trial,),
        )

    def _sessions(self, plan: Plan) -> list[SessionTraffic]:
        on = {site: leg for leg in plan.legs for site in leg.sites if (leg.leg, site) not in self.out}
        return [
            SessionTraffic(
                site, 0, 0, 20_000, (replace(progress(leg.leg), transport=leg.transport, reading=reading),)
            )
            for site, leg in on.items()
            for reading in [self._reading(leg, site)]
        ]

    def _reading(self, leg: Leg, site: str) -> HostReading | None:
        if leg.transport is not Transport.MULTICAST or not leg.rate_bps:
            return None
        if site in self.late:
            return READING
        loss, packets = self._loss(leg, site), leg.rate_bps // PACKET_BITS
        self.windows[site] += loss > 0.03 and self.second % self.measures_every_s == 0
        line = LineReading(
            round(self.lines_bps[site]), leg.rate_bps, packets, round(packets * loss), self.windows[site]
        )
        return replace(READING, leg=leg.leg, line=line if self.windows[site] else None)

    def _hearing(self, leg: Leg) -> list[str]:
        return [site for site in leg.sites if (leg.leg, site) not in self.out]

    def _loss(self, leg: Leg, site: str) -> float:
        return max(1 - self.lines_bps[site] / (leg.rate_bps or 1), 0.0)


def progress(leg: int, reading: HostReading | None = None) -> SiteProgress:
    return SiteProgress("NGRID", 1, 0, Transport.MULTICAST, leg, reading=reading)


def seen(*legs: LegTraffic, on: Mapping[str, int], readings: Mapping[str, HostReading] = {}) -> TrafficSeen:
    """A node's second with these sites on these legs."""
    sessions = tuple(
        SessionTraffic(site, 0, 0, 20_000, (progress(leg, readings.get(site)),)) for site, leg in on.items()
    )
    return TrafficSeen(0, 1_000_000, (), legs, sessions, 0)


def tried(lost: int, packets: int = 1_000) -> LegTraffic:
    """A leg of 40 Mb/s of which the site `a` lost so many packets in a second."""
    trial = LegTrial(RATE_BPS, packets, (("a", lost),) if lost else ())
    return LegTraffic(1, "NGRID", 0, 0, 1, 0, 2, 0, Transport.MULTICAST, RATE_BPS, trials=(trial,))


def read(windows: int, *, arrived_bps: int = 4_000_000, dropped: int = 0) -> HostReading:
    """A host's reading after so many stretches in which it lost nine tenths of a leg of 40 Mb/s."""
    line = LineReading(arrived_bps, RATE_BPS, 3_300, 2_970, windows) if windows else None
    return replace(READING, dropped=dropped, line=line)


READING = HostReading(1, 0, 16 << 20, 32 << 20, 2_000_000)


def network(_feed: str, _leg: int) -> bool:
    return True


@pytest.mark.parametrize("lost", [1_000, 1_200, 40_000])
def test_losses_of_all_packets_and_more_are_no_measurement(lost: int) -> None:
    lines = LineWatch(TrialRules())
    for second in range(100, 110):
        assert lines.traffic(seen(tried(lost), on={"a": 1, "b": 1}), second, network) == {}
    assert lines.line("NGRID", "a").usable_bps is None


def test_a_site_that_has_just_joined_is_not_proven_by_packets_of_before() -> None:
    lines = LineWatch(TrialRules())
    carried = []
    for second in range(5):
        lines.traffic(seen(tried(0), on={"a": 1, "b": 1}), second, network)
        carried.append(lines.line("NGRID", "a").carried_bps)
    assert carried == [0, 0, 0, RATE_BPS, RATE_BPS]


def test_losses_set_no_limits_unless_the_setting_asks_for_it() -> None:
    off = Settings(scheduler=SchedulerSettings(groups_by_losses=False))
    assert Pace.of(Settings()).trials.enabled
    assert not Pace.of(off).trials.enabled
    found = {}
    for enabled in (False, True):
        lines = LineWatch(TrialRules(enabled=enabled))
        for windows in range(5):
            lines.traffic(seen(on={"a": 1, "b": 1}, readings={"a": read(windows)}), 100 + windows, network)
        gone = LegChanged("NGRID", 1, "a", "too-slow", FakeClock().now())
        found[enabled] = lines.leg_changed(gone, 105), lines.line("NGRID", "a").usable_bps
    assert found == {False: (False, None), True: (True, pytest.approx(3.8e6))}


def test_losses_that_are_not_judged_yet_are_named_for_a_minute() -> None:
    """With a measurement in 13 s that agrees with none before, no limit comes about."""
    lines, rates = LineWatch(TrialRules()), [4_000_000, 8_000_000, 2_000_000, 12_000_000] * 3
    found = []
    lines.traffic(seen(on={"a": 1, "b": 1}, readings={"a": read(0)}), 100, network)
    for number, rate in enumerate(rates):
        now_s = 110 + 13 * number
        lines.traffic(seen(on={"a": 1}, readings={"a": read(1 + number, arrived_bps=rate)}), now_s, network)
        assert lines.judging(now_s + 1) == []
        found.append(lines.judging(now_s))
    assert found == [["NGRID"]] * 5 + [[]] * 7
    lines.keep({"NGRID"}, {"b"})
    assert lines.judging(110 + 13 * 11) == []


def learnt(*readings: HostReading | None) -> float | None:
    """The usable rate after a second with each of these readings, and losses by requests in each."""
    lines = LineWatch(TrialRules())
    for second, reading in enumerate(readings):
        found = {} if reading is None else {"a": reading}
        lines.traffic(seen(tried(900), on={"a": 1, "b": 1}, readings=found), 100 + second, network)
    return lines.line("NGRID", "a").usable_bps


def test_losses_that_no_host_measured_say_nothing_of_its_line() -> None:
    assert learnt(*[None] * 9) is None
    assert learnt(*[read(0)] * 9) is None


def test_each_measurement_counts_once_and_that_of_before_the_first_look_not_at_all() -> None:
    assert learnt(read(3), *[read(3)] * 9) is None
    assert learnt(read(0), read(1), *[read(2)] * 9) is None
    assert learnt(read(0), read(1), read(2), read(3)) == pytest.approx(3.8e6)


def test_a_host_that_drops_datagrams_does_not_measure_its_line() -> None:
    assert learnt(*(read(second, dropped=second) for second in range(9))) is None
    assert learnt(read(0), read(1, dropped=5), *(read(second, dropped=5) for second in range(2, 5))) is not None


def test_measurements_that_do_not_agree_set_no_limit() -> None:
    rates = [4_000_000, 8_000_000, 2_000_000, 12_000_000]
    assert learnt(read(0), *(read(1 + n, arrived_bps=rate) for n, rate in enumerate(rates))) is None


STEADY = SchedulerSettings(step_s=10, window_s=120, dwell_s=60), RATE_BPS
QUICK = SchedulerSettings(step_s=2, window_s=22, dwell_s=4, agreeing_windows=2), 30_000_000


@pytest.fixture
def hub(tmp_path: Path, ledger: Ledger, clock: FakeClock, request: pytest.FixtureRequest) -> Hub:
    scheduler, rate_bps = getattr(request, "param", STEADY)
    settings = Settings(data_dir=tmp_path, scheduler=scheduler, multicast=MulticastSettings(rate_bps=rate_bps))
    return Hub(ledger, settings, clock)


async def started(hub: Hub, lines_bps: Mapping[str, float], *, objective_ms: float = OBJECTIVE_MS) -> Network:
    with hub.ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID", objective_ms=objective_ms))
    hub.add("NGRID", *lines_bps)
    await hub.loop.start()
    return Network(hub, dict(lines_bps))


def groups(plan: Plan) -> dict[tuple[str, ...], float]:
    """The pace of each group, in Mb/s."""
    found = [leg for leg in plan.legs if leg.transport is Transport.MULTICAST]
    return {leg.sites: round((leg.rate_bps or 0) / 1e6, 1) for leg in found}


def paces_of(site: str, plans: list[Plan]) -> list[float]:
    """The paces of a site's legs one after the other, in Mb/s; 0: it got copies."""
    legs = (leg for plan in plans for leg in plan.legs if site in leg.sites)
    return [pace for pace, _ in groupby(round((leg.rate_bps or 0) / 1e6) for leg in legs)]


TWO_AND_TWO = {"a": FAST_BPS, "b": FAST_BPS, "s": SLOW_BPS, "t": SLOW_BPS}


async def test_two_groups_form_by_their_losses_and_the_plan_says_so(hub: Hub) -> None:
    network = await started(hub, TWO_AND_TWO)
    await network.seconds(60)
    plan = hub.plan()
    assert groups(plan) == {("a", "b"): 19.0, ("s", "t"): 3.8}
    assert "groups of 2 sites at 3.80 Mb/s, 2 sites at 19.0 Mb/s" in plan.reason
    assert "the pace of 2 sites is 3.80 Mb/s, as the line of s carried 4.00 Mb/s of a group of" in plan.reason
    fast = next(leg for leg in plan.legs if leg.sites == ("a", "b"))
    assert plan.figures[leg_figure(fast.leg, "line_bps")] == pytest.approx(19e6, rel=0.01)
    predicted = plan.figures[leg_figure(fast.leg, "predicted_p99_ms")]
    assert isinstance(predicted, float)
    assert 100 < predicted < 300
    await network.seconds(60)
    assert hub.plan().version == plan.version, "nothing more to change"
    assert hub.plan().figures[leg_figure(fast.leg, "paced_bps")] == fast.rate_bps


@pytest.mark.parametrize("hub", [QUICK], indirect=True)
async def test_repair_of_a_group_that_is_too_fast_is_no_word_about_others_until_its_lines_are_measured(
    hub: Hub,
) -> None:
    network = await started(hub, TWO_AND_TWO, objective_ms=30_000)
    network.late = {"a", "b"}
    await network.seconds(18)
    assert groups(hub.plan()) == {("a", "b", "s", "t"): 3.8}
    settled = len(hub.history())
    network.late, network.measures_every_s = set(), 9
    network.sizes = (340_000,)
    with hub.ledger.transaction() as tx:
        tx.feeds.change(Feed("NGRID", objective_ms=OBJECTIVE_MS))
    await hub.loop.handle(FeedsChanged())
    await network.seconds(120)
    assert groups(hub.plan()) == {("a", "b"): 19.0, ("s", "t"): 3.8}
    assert all(map(groups, hub.history()[settled:])), [plan.reason for plan in hub.history()[settled:]]


async def test_one_group_at_the_slowest_pace_is_enough_where_it_meets_the_objective(hub: Hub) -> None:
    network = await started(hub, TWO_AND_TWO, objective_ms=30_000)
    await network.seconds(60)
    assert groups(hub.plan()) == {("a", "b", "s", "t"): 3.8}


async def test_a_site_whose_line_is_slow_for_a_minute_moves_and_comes_back_once(hub: Hub) -> None:
    network = await started(hub, TWO_AND_TWO | {"c": FAST_BPS})
    await network.seconds(60)
    settled = len(hub.history())
    assert groups(hub.plan()) == {("a", "b", "c"): 19.0, ("s", "t"): 3.8}
    network.lines_bps["c"] = SLOW_BPS
    await network.seconds(60)
    assert groups(hub.plan()) == {("a", "b"): 19.0, ("c", "s", "t"): 3.8}
    network.lines_bps["c"] = FAST_BPS
    await network.seconds(90)
    assert groups(hub.plan()) == {("a", "b", "c"): 19.0, ("s", "t"): 3.8}
    await network.seconds(240)
    moves = paces_of("c", hub.history()[settled - 1 :])
    assert [pace for pace in moves if pace] == [19, 4, 19], moves
    for site in "abst":
        assert len(paces_of(site, hub.history()[settled - 1 :])) == 1, site


async def test_a_site_that_leaves_before_its_line_is_measured_is_soon_in_the_slow_group(hub: Hub) -> None:
    network = await started(hub, TWO_AND_TWO)
    network.late = {"t"}
    await network.seconds(60)
    assert groups(hub.plan()) == {("a", "b"): 19.0, ("s", "t"): 3.8}
    settled = len(hub.history())
    await network.seconds(200)
    assert groups(hub.plan()) == {("a", "b"): 19.0, ("s", "t"): 3.8}
    moves = paces_of("t", hub.history()[settled - 1 :])
    assert [pace for pace in moves if pace] == [4, 19, 4], "one trial in the fast group measures it"


async def test_slow_sites_that_both_leave_unmeasured_are_measured_in_a_later_trial(hub: Hub) -> None:
    network = await started(hub, TWO_AND_TWO)
    network.late = {"s", "t"}
    await network.seconds(90)
    assert groups(hub.plan()) == {("a", "b"): 19.0, ("s", "t"): 3.8}


@pytest.mark.all
async def test_a_site_that_stays_slow_is_tried_ever_less_often(hub: Hub) -> None:
    network = await started(hub, TWO_AND_TWO | {"c": FAST_BPS})
    await network.seconds(60)
    network.lines_bps["c"] = SLOW_BPS
    await network.seconds(10)
    settled = len(hub.history())
    await network.seconds(600)
    tries = [pace for pace in paces_of("c", hub.history()[settled - 1 :]) if pace == 19]
    assert 1 <= len(tries) <= 3
    assert groups(hub.plan()) == {("a", "b"): 19.0, ("c", "s", "t"): 3.8}


async def test_limits_survive_a_restart_of_the_scheduler(hub: Hub) -> None:
    network = await started(hub, TWO_AND_TWO)
    await network.seconds(60)
    before = hub.plan()
    await hub.restart()
    await network.seconds(30)
    assert groups(hub.plan()) == groups(before)
    assert paces_of("s", hub.history()[before.version - 1 :]) == [4]


async def test_a_site_alone_with_a_slow_line_gets_copies_at_its_own_rate(hub: Hub) -> None:
    network = await started(hub, {"a": FAST_BPS, "b": FAST_BPS, "s": SLOW_BPS})
    await network.seconds(60)
    plan = hub.plan()
    assert groups(plan) == {("a", "b"): 19.0}
    assert [leg.sites for leg in plan.legs if leg.transport is Transport.UNICAST] == [("s",)]
