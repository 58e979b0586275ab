"""The scheduler's facts about sites: round trips, ceilings, groups that were not heard, shares of a feed."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from downburst.domain.events import LegChanged, SessionTraffic, SiteProgress, Streams, TrafficSeen
from downburst.domain.plans import Transport
from downburst.domain.receipts import Settled
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.rates import CongestionControl
from downburst.foundation.clock import to_us
from downburst_scheduler.models.rates import connection_bps
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.paths import MINUTE_US, Backlogs, MatchShares, SitePaths

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PART = [Subscription(1, "unl.edu", "NGRID", "^YHWB")]
KEY = ("unl.edu", "NGRID")


def known(
    paths: SitePaths, site: Site | None = None, wishes: list[Subscription] | None = None, *, at: datetime = NOON
) -> SiteFacts:
    return paths.site(site or Site("unl.edu"), "NGRID", PART if wishes is None else wishes, now=at, in_group=False)


def leg(
    state: Literal["joined", "left", "never-heard", "too-slow"], site: str = "unl.edu", reason: str | None = None
) -> LegChanged:
    return LegChanged("NGRID", 7, site, state, NOON, reason=reason)


def stored(size_bytes: int, epoch: str = "a1") -> Settled:
    return Settled("NGRID", epoch, "unl.edu", settled_to=1, stored=1, stored_bytes=size_bytes)


def test_nothing_is_assumed_of_an_unknown_site() -> None:
    site = known(SitePaths(timedelta(minutes=30)))
    assert (site.round_trip_s, site.access_bps, site.share, site.no_multicast) == (
        0.0,
        None,
        1.0,
        None,
    )


def test_the_newest_round_trip_counts_and_a_missing_one_changes_nothing() -> None:
    paths = SitePaths(timedelta(minutes=30))
    for round_trip_us in (80_000, 70_000, None):
        paths.sessions_seen([SessionTraffic("unl.edu", None, None, round_trip_us, ())])
    assert known(paths).round_trip_s == 0.07


def test_loss_counts_only_as_far_as_it_is_sure_and_with_the_congestion_control() -> None:
    paths = SitePaths(timedelta(minutes=30))
    tcp = TcpPath(70_000, 100_000, 3, 10_000_000, is_lower_bound=True, congestion="bbr3")
    paths.sessions_seen([SessionTraffic("unl.edu", None, None, 90_000, (), path=tcp)])
    seen = known(paths)
    assert (seen.round_trip_s, seen.loss, seen.congestion) == (0.07, 0.0, CongestionControl.BBR)
    lossy = replace(tcp, resent_segments=403, sent_segments=200_000, congestion="westwood")
    streams = Streams(open=4, planned=4, reason="they help")
    paths.sessions_seen([SessionTraffic("unl.edu", None, None, 90_000, (), streams, path=lossy)])
    seen = known(paths)
    assert seen.loss == pytest.approx(0.003, rel=0.1), "of late it was 0.4 %, before next to nothing"
    assert (seen.congestion, seen.connections) == (CongestionControl.CUBIC, 4)
    paths.keep([])
    assert known(paths).loss == 0


def test_the_lower_of_access_rate_and_the_hours_ceiling_holds() -> None:
    by_hour = tuple([100.0] * 12 + [20.0] + [0.0] * 11)
    site = Site("unl.edu", access_rate_bps=50e6, ceiling_mbps_by_hour=by_hour)
    paths = SitePaths(timedelta(minutes=30))
    assert known(paths, site).access_bps == 20e6
    assert known(paths, site, at=NOON - timedelta(hours=1)).access_bps == 50e6


def test_a_site_that_heard_no_group_is_tried_again_after_the_retry_time() -> None:
    paths = SitePaths(timedelta(minutes=30))
    paths.leg_changed(leg("joined"))
    assert known(paths).no_multicast is None
    paths.leg_changed(leg("never-heard"))
    assert known(paths).no_multicast == "unl.edu received no multicast and is tested again at 12:30 UTC"
    assert known(paths, Site("psu.edu")).no_multicast is None
    assert known(paths, at=NOON + timedelta(minutes=31)).no_multicast is None


def test_that_a_site_hears_groups_is_known_by_its_joining_one() -> None:
    paths = SitePaths(timedelta(minutes=30))
    assert known(paths).unheard
    for state in ("joined", "left"):
        paths.leg_changed(leg(state))
        assert not known(paths).unheard
    paths.leg_changed(leg("never-heard"))
    assert known(paths).unheard


def test_a_site_that_could_not_keep_up_or_knows_why_it_hears_nothing_is_quoted() -> None:
    paths = SitePaths(timedelta(minutes=30))
    paths.leg_changed(leg("too-slow", reason="it lost 48 % of the leg"))
    sentence = "unl.edu could not keep up with its group (it lost 48 % of the leg) and is tested again at 12:30 UTC"
    assert known(paths).no_multicast == sentence
    paths.leg_changed(leg("never-heard", "psu.edu", "a firewall is likely"))
    sentence = "psu.edu received no multicast (a firewall is likely) and is tested again at 12:30 UTC"
    assert known(paths, Site("psu.edu")).no_multicast == sentence
    assert known(paths, at=NOON + timedelta(minutes=31)).no_multicast is None


def test_a_site_may_be_kept_from_multicast() -> None:
    site = Site("unl.edu", multicast=False)
    assert (
        known(SitePaths(timedelta(minutes=30)), site).no_multicast == "unl.edu is set to be served without multicast"
    )


@pytest.mark.parametrize(
    ("pattern", "not_pattern", "share"), [(".*", None, 1.0), (".*", "^Y", 0.25), ("^YHWB", None, 0.25)]
)
def test_a_pattern_for_everything_needs_no_measurement(pattern: str, not_pattern: str | None, share: float) -> None:
    paths = SitePaths(timedelta(minutes=30))
    wishes = [Subscription(1, "unl.edu", "NGRID", pattern, not_pattern)]
    paths.settled([stored(0)], caught_up=frozenset([KEY]))
    paths.arrived("NGRID", 4_000_000)
    paths.settled([stored(1_000_000)], caught_up=frozenset([KEY]))
    assert known(paths, wishes=wishes).share == share
    paths.keep([])
    assert known(paths, wishes=wishes).share == 1.0


def test_a_share_is_measured_only_while_the_site_keeps_up() -> None:
    shares = MatchShares()
    shares.settled([stored(0)], caught_up=frozenset([KEY]))
    shares.arrived("NGRID", 5_000_000)
    shares.settled([stored(0)], caught_up=frozenset())
    shares.settled([stored(0)], caught_up=frozenset([KEY]))
    assert shares.share(*KEY) == 1.0, "what was stored while the site was away says nothing"
    shares.arrived("NGRID", 2_000_000)
    shares.settled([stored(1_500_000), stored(500_000, epoch="b2")], caught_up=frozenset([KEY]))
    assert shares.share(*KEY) == 1.0, "epochs add up"


def test_little_traffic_says_nothing_and_backfill_does_not_exceed_everything() -> None:
    shares = MatchShares()
    shares.settled([stored(0)], caught_up=frozenset([KEY]))
    shares.arrived("NGRID", 999_999)
    shares.settled([stored(0)], caught_up=frozenset([KEY]))
    assert shares.share(*KEY) == 1.0
    shares.arrived("NGRID", 1_000_000)
    shares.settled([stored(200_000)], caught_up=frozenset([KEY]))
    assert shares.share(*KEY) == pytest.approx(0.1, rel=0.01)
    shares.arrived("NGRID", 1_000_000)
    shares.settled([stored(9_000_000)], caught_up=frozenset([KEY]))
    assert shares.share(*KEY) == 1.0


def test_one_burst_of_what_a_site_does_not_want_moves_its_share_little() -> None:
    shares = MatchShares()
    shares.settled([stored(0)], caught_up=frozenset([KEY]))
    taken = 0
    for burst in range(40):
        taken += 1_000_000 if burst % 4 == 0 else 0
        shares.arrived("NGRID", 2_000_000 if burst % 2 == 0 else 1_500_000)
        shares.settled([stored(taken)], caught_up=frozenset([KEY]))
    before = shares.share(*KEY)
    assert before == pytest.approx(10 / 70, rel=0.25)
    shares.arrived("NGRID", 3_000_000)
    shares.settled([stored(taken + 3_000_000)], caught_up=frozenset([KEY]))
    assert shares.share(*KEY) < 0.25, "a burst of nothing but wanted products is one burst"


@pytest.mark.parametrize(
    ("pending", "products_per_s", "behind"), [(8, 0.0, False), (9, 0.0, True), (20, 10.0, False), (21, 10.0, True)]
)
def test_a_site_that_is_behind_was_so_this_minute_and_the_one_before(
    pending: int, products_per_s: float, behind: bool
) -> None:
    backlogs, now_us = Backlogs(), 100 * MINUTE_US + 5
    progress = SiteProgress("NGRID", settled_to=1, pending=pending, transport=Transport.UNICAST, leg=1)
    session = SessionTraffic("unl.edu", None, None, None, (progress,))
    backlogs.seen(TrafficSeen(now_us - 5, now_us, (), (), (session,), 0), lambda _: products_per_s)
    assert [backlogs.was_behind("unl.edu", minute) for minute in (98, 99, 100, 101)] == [False, behind, behind, False]
    assert not backlogs.was_behind("ucar.edu", 100)
    backlogs.forget_before(100)
    assert [backlogs.was_behind("unl.edu", minute) for minute in (99, 100)] == [False, behind]


def measured(paths: SitePaths, *rates_bps: float, begin: datetime = NOON, lower_bound: bool = False) -> datetime:
    """Reports of a session every five seconds, and the node's next one; the time of the last."""
    for step, rate_bps in enumerate(rates_bps):
        tcp = TcpPath(70_000, 1_000 * (step + 1), 0, int(rate_bps), is_lower_bound=lower_bound, congestion="bbr")
        session = SessionTraffic("unl.edu", None, None, 70_000, (), path=tcp)
        paths.traffic_seen(traffic(begin + timedelta(seconds=5 * step), session))
    last = begin + timedelta(seconds=5 * len(rates_bps) + 5)
    paths.traffic_seen(traffic(last))
    return last


def traffic(at: datetime, *sessions: SessionTraffic) -> TrafficSeen:
    return TrafficSeen(to_us(at) - 1_000_000, to_us(at), (), (), sessions, 0)


def test_enough_measured_rates_limit_the_rate_that_is_assumed_of_a_site() -> None:
    paths = SitePaths(timedelta(minutes=30))
    last = measured(paths, *[3e6] * 10)
    assert known(paths, at=last).forecast_bps is None, "nine measured rates are too few"
    last = measured(paths, *[3e6] * 12, begin=last)
    site = known(paths, at=last)
    assert site.forecast_bps == pytest.approx(3e6)
    assert connection_bps(site) == pytest.approx(3e6)
    assert connection_bps(replace(site, forecast_bps=None)) > 1e9
    assert known(paths, at=last + timedelta(minutes=61)).forecast_bps is None, "the measurements are old"
    paths.keep([])
    assert known(paths, at=last).forecast_bps is None


def test_rates_without_more_to_send_limit_nothing() -> None:
    paths = SitePaths(timedelta(minutes=30))
    last = measured(paths, *[3e6] * 40, lower_bound=True)
    assert known(paths, at=last).forecast_bps is None


def test_a_forecast_that_is_off_by_half_limits_nothing() -> None:
    paths, chance = SitePaths(timedelta(minutes=30)), random.Random(7)
    last = measured(paths, *[10 ** chance.uniform(5, 8) for _ in range(40)])
    assert known(paths, at=last).forecast_bps is None


def test_the_limit_stays_while_forecasts_differ_by_less_than_a_quarter() -> None:
    paths = SitePaths(timedelta(minutes=30))
    limits = set()
    last = measured(paths, *[20e6] * 12)
    for step in range(20):
        last = measured(paths, *[20e6 + 1e6 * (step % 4)] * 12, begin=last + timedelta(seconds=5))
        limits.add(known(paths, at=last).forecast_bps)
    assert len(limits) == 1
    last = measured(paths, *[9e6] * 20, begin=last + timedelta(minutes=12))
    assert known(paths, at=last).forecast_bps == pytest.approx(9e6, rel=0.1)


def test_the_pace_of_the_hub_is_not_taken_for_the_limit_of_the_path() -> None:
    """A ceiling of an hour must not outlast the hour."""
    paths = SitePaths(timedelta(minutes=30))
    site = Site("unl.edu", ceiling_mbps_by_hour=tuple([100.0] * 12 + [20.0] + [100.0] * 11))
    last = measured(paths, *[19e6] * 40, begin=NOON + timedelta(minutes=56))
    for at in (last, last + timedelta(minutes=5)):
        facts = known(paths, site, at=at)
        assert (facts.forecast_bps, facts.access_bps) == (None, 20e6 if at.hour == 12 else 100e6)
