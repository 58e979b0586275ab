"""Which reports of sessions measure a path, and when there is a forecast."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from downburst.domain.events import LegTraffic, SessionTraffic, SiteProgress, TrafficSeen
from downburst.domain.plans import Transport
from downburst.domain.sites import Site
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.transfers import Transfer
from downburst.forecasts.path_rates import BETWEEN_REPORTS, FEWEST, KEPT, LONGEST_PAUSE, PathForecast, PathRates
from downburst.foundation.clock import to_us

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
UNL = Site("unl.edu")
EVERY = timedelta(seconds=5)


@dataclass
class Told:
    """A node that reports the session of a site every five seconds, and ends with a report of nothing."""

    rates: PathRates = field(default_factory=PathRates)
    at: datetime = NOON
    segments: int = 0
    sender: str = ""

    def report(
        self,
        *rates_bps: float,
        others: tuple[SessionTraffic, ...] = (),
        transport: Transport = Transport.UNICAST,
        legs: tuple[LegTraffic, ...] = (),
        **tcp: Any,
    ) -> None:
        for rate_bps in rates_bps:
            self.at += EVERY
            self.segments += 1_000
            plain = TcpPath(20_000, self.segments, 0, int(rate_bps), is_lower_bound=False, congestion="cubic")
            progress = SiteProgress("NGRID", 1, 0, transport, 1)
            session = SessionTraffic("unl.edu", None, None, None, (progress,), path=replace(plain, **tcp))
            self.rates.traffic(self.event((session, *others), legs))

    def event(self, sessions: tuple[SessionTraffic, ...] = (), legs: tuple[LegTraffic, ...] = ()) -> TrafficSeen:
        now_us = to_us(self.at)
        return TrafficSeen(now_us - 1_000_000, now_us, (), legs, sessions, 0, sender=self.sender)

    def found(self, site: Site = UNL, after: timedelta = timedelta(0)) -> PathForecast | None:
        self.at += BETWEEN_REPORTS
        self.rates.traffic(self.event())
        self.at += after
        return self.rates.of(site, self.at)

    def transfers(self, *sizes_and_rates: tuple[int, float], beside: tuple[SessionTraffic, ...] = ()) -> None:
        """Reports single transfers of a session that has nothing more to send."""
        for size_bytes, rate_bps in sizes_and_rates:
            self.at += EVERY
            path = TcpPath(20_000, self.segments, 0, int(rate_bps), is_lower_bound=True, congestion="cubic")
            progress = SiteProgress("NGRID", 1, 0, Transport.UNICAST, 1)
            one = Transfer(size_bytes, max(round(size_bytes * 8e6 / rate_bps), 1))
            session = SessionTraffic("unl.edu", None, None, None, (progress,), path=path, transfers=(one,))
            self.rates.traffic(self.event((session, *beside)))


def other(segments: int, *, lower_bound: bool = False) -> SessionTraffic:
    path = TcpPath(20_000, segments, 0, 90_000_000, is_lower_bound=lower_bound, congestion="cubic")
    return SessionTraffic("psu.edu", None, None, None, (), path=path)


def test_ten_measured_rates_make_a_forecast_with_its_error() -> None:
    told = Told()
    told.report(*[20e6] * FEWEST)
    assert told.found() is None, "a session's first report has nothing to compare with"
    told.report(20e6)
    found = told.found()
    assert found is not None
    assert found.rate.rate_bps == pytest.approx(20e6)
    assert (round(found.rate.error_bps), found.rate.samples) == (0, FEWEST)
    assert found.limit_bps == pytest.approx(20e6)


def test_the_limit_is_the_forecast_plus_its_error() -> None:
    told = Told()
    told.report(*[20e6, 24e6] * 10)
    found = told.found()
    assert found is not None
    assert found.rate.error_bps > 0
    assert found.limit_bps == max(found.rate.rate_bps + found.rate.error_bps, 24e6)


def test_a_rate_that_the_path_carried_lifts_the_limit_for_some_minutes_though_it_is_no_measurement() -> None:
    told = Told()
    told.report(*[20e6] * 12)
    told.report(50e6, is_lower_bound=True)
    found = told.found()
    assert found is not None
    assert (found.limit_bps, found.rate.samples) == (50e6, 11)
    assert found.rate.rate_bps == pytest.approx(20e6)
    found = told.found(after=timedelta(minutes=11))
    assert found is not None
    assert found.limit_bps == pytest.approx(20e6)


@pytest.mark.parametrize(
    "changed",
    [
        {"is_lower_bound": True},
        {"sent_segments": 5_000},
        {"transport": Transport.STATIC_CIRCUIT},
        {"transport": Transport.MULTICAST},
        {"legs": (LegTraffic(8, "NGRID", 5_000_000, 0, 1, 1, 3, 0, Transport.MULTICAST),)},
    ],
    ids=["nothing more to send", "hardly anything sent", "on a circuit", "by a group", "beside a group's 40 Mb/s"],
)
def test_a_report_that_something_else_explains_is_no_measurement(changed: dict[str, Any]) -> None:
    told = Told()
    told.report(*[20e6] * 30, **changed)
    assert told.found() is None


def test_copies_of_other_feeds_and_a_small_group_explain_nothing() -> None:
    told = Told()
    legs = (
        LegTraffic(7, "NGRID", 90_000_000, 0, 1, 1, 9, 0, Transport.UNICAST),
        LegTraffic(8, "NEXRAD3", 100_000, 0, 1, 1, 3, 0, Transport.MULTICAST),
    )
    told.report(*[20e6] * 12, legs=legs)
    assert told.found() is not None


def test_sessions_at_their_limit_within_seconds_of_each_other_measure_nothing() -> None:
    """They may share the hub's port; their reports come seconds apart."""
    told = Told()
    for step in range(30):
        told.report(20e6)
        told.at += timedelta(seconds=2)
        told.rates.traffic(told.event((other(1_000 * step),)))
        told.at -= timedelta(seconds=2)
    assert told.found() is None
    assert told.rates.of(Site("psu.edu"), told.at) is None


def test_sessions_that_have_nothing_more_to_send_do_not_disturb() -> None:
    told = Told()
    for step in range(12):
        told.report(20e6, others=(other(1_000 * step, lower_bound=True),))
    assert told.found() is not None


def test_sessions_of_another_node_do_not_disturb() -> None:
    rates = PathRates()
    here, there = Told(rates), Told(rates, sender="sender-2")
    for step in range(12):
        here.report(20e6)
        there.at = here.at
        rates.traffic(there.event((other(1_000 * step),)))
    assert here.found() is not None


def test_counts_of_two_senders_or_of_two_sessions_are_not_compared() -> None:
    rates = PathRates()
    here, there = Told(rates), Told(rates, sender="sender-2", segments=500_000)
    for _ in range(15):
        here.report(20e6)
        there.at = here.at
        there.report(30e6)
    assert here.found() is None
    told = Told()
    for _ in range(15):
        told.report(20e6)
        told.rates.traffic(replace(told.event(), gone=frozenset({"unl.edu"})))
    assert told.found() is None


def test_a_forecast_near_the_rate_of_the_hubs_pacing_is_withheld() -> None:
    told = Told()
    told.report(*[20e6] * 12)
    assert told.found(replace(UNL, access_rate_bps=100e6)) is not None
    assert told.found(replace(UNL, access_rate_bps=25e6)) is None
    ceilings = [100.0] * 24
    ceilings[NOON.hour] = 22.0
    evening = timedelta(minutes=50)
    assert told.found(replace(UNL, ceiling_mbps_by_hour=tuple(ceilings)), after=evening) is None
    told.report(20e6)
    told.found()
    told.at = NOON + timedelta(minutes=65)
    found = told.rates.of(replace(UNL, ceiling_mbps_by_hour=tuple(ceilings)), told.at)
    assert found is None, "the oldest samples are of the hour with the ceiling"
    assert told.rates.of(UNL, told.at) is not None


def test_old_samples_and_those_before_a_long_pause_say_nothing() -> None:
    told = Told()
    told.report(*[20e6] * 12)
    assert told.found(after=LONGEST_PAUSE - timedelta(minutes=1)) is not None
    assert told.found(after=timedelta(minutes=2)) is None
    told.report(*[5e6] * 5)
    assert told.found() is None
    told.report(*[5e6] * 6)
    found = told.found()
    assert found is not None
    assert found.rate.rate_bps == pytest.approx(5e6)
    slowly = Told()
    for _ in range(30):
        slowly.report(20e6)
        slowly.found(after=timedelta(minutes=20))
    found = slowly.found()
    assert found is None or found.rate.samples <= KEPT / timedelta(minutes=20) + 1


def test_a_removed_site_is_dropped() -> None:
    for told in (Told(), Told()):
        told.report(*[20e6] * 12)
        assert told.found() is not None
        told.rates.forget("unl.edu")
        assert told.found() is None
        told.report(*[20e6] * 12)
        told.rates.keep({"psu.edu"})
        assert told.found() is None


def test_transfers_alone_on_a_path_make_a_forecast_for_their_median_size() -> None:
    told = Told()
    told.transfers(*[(200_000, 8e6), (2_000_000, 20e6), (2_100_000, 20e6)] * 5)
    found = told.found()
    assert found is not None
    assert found.rate.samples == 15
    assert found.rate.best == "nearest"
    assert found.rate.rate_bps == pytest.approx(20e6, rel=0.1), "not the mean of all sizes"


def test_reports_of_seconds_do_not_take_a_size_from_a_few_transfers() -> None:
    told = Told()
    told.report(*[20e6] * 12)
    told.transfers(*[(200_000, 8e6)] * 3)
    assert told.found() is not None
    fused = told.rates._sites["unl.edu"].fused
    assert (fused.typical_bytes, len(fused)) == (None, 14)
    told.transfers(*[(200_000, 8e6)] * 12)
    assert told.found() is not None
    assert (fused.typical_bytes, len(fused)) == (200_000, 26)


def test_a_transfer_of_many_seconds_is_no_sample() -> None:
    told = Told()
    told.transfers(*[(30_000_000, 20e6)] * 15)
    assert told.found() is None


def test_transfers_beside_sessions_at_their_limit_measure_nothing() -> None:
    told = Told()
    for step in range(15):
        told.transfers((2_000_000, 20e6), beside=(other(1_000 * step),))
    assert told.found() is None


def test_a_transfer_with_impossible_figures_is_no_sample() -> None:
    told = Told()
    told.transfers(*[(2**63 - 1, 1e30)] * 20)
    assert told.found() is None
    told.transfers(*[(2_000_000, 20e6)] * 12)
    found = told.found()
    assert found is not None
    assert found.limit_bps == pytest.approx(20e6, rel=0.01)
