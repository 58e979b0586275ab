"""Figures by the quarter hour: arrivals grouped by the database, egress, and alarms that lasted into a time."""

from datetime import timedelta

from downburst.domain.alarms import AlarmKind, Condition
from downburst.domain.feeds import TrafficMinute
from downburst.domain.plans import EgressQuarter
from downburst.foundation.clock import FakeClock
from downburst.ledger import Transaction
from factories import sketch_row


def test_arrivals_of_the_named_feeds_are_summed_by_the_quarter_hour(tx: Transaction) -> None:
    tx.measured.traffic.add(
        [
            *(TrafficMinute("NGRID", minute, 2, 100, 10 + minute) for minute in (14, 15, 29, 30)),
            TrafficMinute("NGRID", 45, 0, 0, 0),
            TrafficMinute("HDS", 20, 1, 7, 7),
            TrafficMinute("OTHER", 20, 1, 9, 9),
        ]
    )
    found = tx.measured.traffic.quarters(["NGRID", "HDS"], since_minute=15, until_minute=60)
    assert sorted(found, key=lambda one: (one.feed, one.minute)) == [
        TrafficMinute("HDS", 15, 1, 7, 7),
        TrafficMinute("NGRID", 15, 4, 200, 39),
        TrafficMinute("NGRID", 30, 2, 100, 40),
    ]
    (cut,) = tx.measured.traffic.quarters(["NGRID"], since_minute=15, until_minute=29)
    assert cut == TrafficMinute("NGRID", 15, 2, 100, 25)
    assert tx.measured.traffic.quarters([], since_minute=0, until_minute=60) == []


def test_whole_hours_with_arrivals_are_named_by_their_first_minutes(tx: Transaction) -> None:
    arrived = [TrafficMinute("NGRID", minute, 1, 10, 10) for minute in (59, 61, 100, 240)]
    tx.measured.traffic.add([*arrived, TrafficMinute("HDS", 130, 1, 7, 7), TrafficMinute("NGRID", 185, 0, 0, 0)])
    hours = tx.measured.traffic.hours
    assert hours("NGRID", since_minute=0, until_minute=300) == [0, 60, 240]
    assert hours("NGRID", since_minute=1, until_minute=299) == [60]
    assert hours("OTHER", since_minute=0, until_minute=300) == []


def test_egress_adds_up_within_its_quarter_hour_and_is_forgotten(tx: Transaction) -> None:
    for minute in (15, 29, 30):
        tx.measured.egress.add(minute, egress_bytes=10, unicast_equivalent_bytes=30)
    assert tx.measured.egress.quarters(since_minute=0) == [EgressQuarter(15, 20, 60), EgressQuarter(30, 10, 30)]
    assert tx.measured.egress.quarters(since_minute=16) == [EgressQuarter(30, 10, 30)]
    tx.measured.egress.forget_before(30)
    assert tx.measured.egress.quarters(since_minute=0) == [EgressQuarter(30, 10, 30)]


def test_alarms_that_ended_before_are_left_out(tx: Transaction, clock: FakeClock) -> None:
    def raised(site: str, *, ended_s: float | None, kind: AlarmKind = AlarmKind.SITE_DOWN) -> None:
        number = tx.alerting.alarms.raise_(Condition(kind, "away", "call", site=site))
        if ended_s is not None:
            tx.alerting.alarms.end([number], clock.now() + timedelta(seconds=ended_s))

    raised("before.edu", ended_s=60)
    raised("into.edu", ended_s=3_601)
    raised("lasts.edu", ended_s=None)
    raised("clock.edu", ended_s=None, kind=AlarmKind.CLOCK)
    found = tx.alerting.alarms.lasting(AlarmKind.SITE_DOWN, since=clock.now() + timedelta(hours=1))
    assert [one.site for one in found] == ["into.edu", "lasts.edu"]


def test_quarter_hours_of_latencies_are_the_same_before_and_after_packing(tx: Transaction) -> None:
    latency = tx.measured.latency
    latency.add(
        *(sketch_row([minute, 1_000], minute=minute, site=site) for minute in range(60) for site in ("a", "b"))
    )

    def quarters() -> list[tuple[str, int, int]]:
        sheet = latency.sheet(step_minutes=1)
        paths, minutes, merged = sheet.by_site().by_path_and_step(15)
        names = (sheet.by_site().paths[at].site for at in paths.tolist())
        return sorted(zip(names, minutes.tolist(), merged.count.tolist(), strict=True))

    young = quarters()
    assert young == sorted((site, minute, 30) for site in ("a", "b") for minute in (0, 15, 30, 45))
    while latency.roll_up(before_minute=60):
        pass
    assert quarters() == young
