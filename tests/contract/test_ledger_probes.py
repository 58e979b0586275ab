"""Probes in the ledger: outcomes, seconds, schedules, ceilings."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.probes import ProbeGap, ProbeKind, ProbeSchedule, ProbeState, ProbeTransport
from downburst.domain.probes.ceilings import CeilingSide, ProbeCeiling
from downburst.domain.probes.results import (
    DelaySpread,
    Excess,
    ProbeResult,
    ProbeSecond,
    StepResult,
    plain,
    result_of,
)
from downburst.domain.probes.trials import FlowResult, RoundTrip, TrialResult
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories.probes.probes import ProbeFilter
from factories import probe_request, stacks_request

STEP = StepResult(10**8, 9.9e7, 9.8e7, 100, 98, 2, 1, 0, 1_000_000, DelaySpread(-1, 2, 3, 4), 0.5)
RESULT = ProbeResult((STEP,), 120, 9.8e7, "the lowest rate lost already", 1, (Excess(5, 1, 40_000, None),), 0.01)
ALL = ProbeFilter()


def second(number: int, received: int = 10) -> ProbeSecond:
    return ProbeSecond(number, 10, received, 10 - received, 0, 0, 12_000, DelaySpread(1, 2, 3, 4), 0.5, 900)


@pytest.fixture(autouse=True)
def _sites(tx: Transaction) -> None:
    for name in ("unl.edu", "isu.edu"):
        tx.sites.add(Site(name))


def test_a_probe_comes_back_whole(tx: Transaction, clock: FakeClock) -> None:
    probe = tx.measured.probing.probes.add(probe_request(kind=ProbeKind.KNEE), schedule=7)
    assert (probe.state, probe.requested_at, probe.schedule) == (ProbeState.WAITING, clock.now(), 7)
    assert probe.request == probe_request(kind=ProbeKind.KNEE)
    ended = replace(
        probe,
        state=ProbeState.DONE,
        reason="because",
        started_at=clock.now(),
        ended_at=clock.now() + timedelta(seconds=10),
        attempts=2,
        circumstances={"load_bps": 5, "plans": ["NGRID"]},
        gaps=(ProbeGap(clock.now(), None, "the hub restarted"),),
        result=RESULT,
    )
    tx.measured.probing.probes.save(ended, sent_bytes=1_000)
    assert tx.measured.probing.probes.one(probe.id) == ended
    assert tx.measured.probing.probes.unfinished() == []
    with pytest.raises(NotFound, match="probe list"):
        tx.measured.probing.probes.one(77)


def test_a_comparison_of_stacks_comes_back_whole(tx: Transaction) -> None:
    probe = tx.measured.probing.probes.add(stacks_request())
    assert probe.request == stacks_request()
    flow = FlowResult("bbr", True, 4e7, 3, RoundTrip(40_000, 50_000))
    trials = (
        TrialResult(2_000, None, 0.9, True, (flow, replace(flow, retransmits=None, round_trip_us=RoundTrip()))),
        TrialResult(2_000, "bbr is not available", None, False, ()),
    )
    tx.measured.probing.probes.save(replace(probe, result=ProbeResult((), trials=trials)))
    assert tx.measured.probing.probes.one(probe.id).result == ProbeResult((), trials=trials)


def test_a_probe_over_tcp_comes_back_whole(tx: Transaction) -> None:
    wanted = replace(probe_request(), transport=ProbeTransport.TCP, congestion="cubic")
    schedule = tx.measured.probing.schedules.add(ProbeSchedule(0, wanted, 24, tx.clock.now()))
    assert schedule.request == wanted
    probe = tx.measured.probing.probes.add(wanted)
    excess = Excess(5, 1, 40_000, 150_000, 9.7e7, 480_000, None)
    result = ProbeResult((STEP,), excess=(excess,), congestion="cubic", retransmits=5)
    tx.measured.probing.probes.save(replace(probe, result=result))
    assert tx.measured.probing.probes.one(probe.id).result == result


def test_a_result_of_before_tcp_is_still_read() -> None:
    values = plain(RESULT)
    for name in ("congestion", "retransmits", "trials"):
        del values[name]
    for excess in values["excess"]:
        for name in ("peak_bps", "backlog_bytes", "predicted_us"):
            del excess[name]
    assert result_of(values) == RESULT


def test_probes_are_listed_newest_first_by_filters(tx: Transaction, clock: FakeClock) -> None:
    probes = tx.measured.probing.probes
    first, second_, third = (
        probes.add(probe_request("unl.edu")),
        probes.add(probe_request("isu.edu", ProbeKind.KNEE)),
        probes.add(probe_request("unl.edu", ProbeKind.SOAK)),
    )
    assert probes.newest(ALL) == [third, second_, first]
    assert probes.newest(ALL, limit=1) == [third]
    assert probes.newest(ALL, before=third.id) == [second_, first]
    assert probes.newest(ProbeFilter(site="unl.edu")) == [third, first]
    assert probes.newest(ProbeFilter(kind=ProbeKind.KNEE)) == [second_]
    assert probes.newest(ProbeFilter(state=ProbeState.DONE)) == []
    assert probes.newest(ProbeFilter(since=clock.now() + timedelta(seconds=1))) == []
    assert probes.unfinished() == [first, second_, third]


def test_the_bytes_of_a_day_count_the_probes_that_started_in_it(tx: Transaction, clock: FakeClock) -> None:
    probe = tx.measured.probing.probes.add(probe_request())
    running = replace(probe, state=ProbeState.RUNNING, started_at=clock.now())
    tx.measured.probing.probes.save(running, sent_bytes=1_000)
    tx.measured.probing.probes.save(running, sent_bytes=-400)
    assert tx.measured.probing.probes.used_bytes("unl.edu", clock.now()) == 600
    assert tx.measured.probing.probes.used_bytes("unl.edu", clock.now() + timedelta(seconds=1)) == 0
    assert tx.measured.probing.probes.used_bytes("isu.edu", clock.now()) == 0


def test_a_request_to_stop_survives_the_reports_of_the_running_probe(tx: Transaction) -> None:
    probe = tx.measured.probing.probes.add(probe_request())
    assert tx.measured.probing.probes.ask_to_stop(probe.id, "eve").stop_by == "eve"
    tx.measured.probing.probes.save(replace(probe, state=ProbeState.RUNNING))
    assert tx.measured.probing.probes.ask_to_stop(probe.id, "adam").stop_by == "eve", "the first one counts"
    tx.measured.probing.probes.save(replace(probe, state=ProbeState.STOPPED))
    assert tx.measured.probing.probes.one(probe.id).stop_by == "eve"


def test_seconds_come_back_in_order_and_go_with_the_probe(tx: Transaction) -> None:
    probe = tx.measured.probing.probes.add(probe_request())
    tx.measured.probing.probes.add_seconds(probe.id, [second(0), second(1)])
    tx.measured.probing.probes.add_seconds(probe.id, [second(2), second(59), second(60), second(600, received=3)])
    seconds = tx.measured.probing.probes.seconds(probe.id)
    assert [one.second for one in seconds] == [0, 1, 2, 59, 60, 600]
    assert seconds[-1] == second(600, received=3)
    assert [one.second for one in tx.measured.probing.probes.seconds(probe.id, first=2, limit=3)] == [2, 59, 60]
    tx.sites.remove("unl.edu")
    assert tx.measured.probing.probes.newest(ALL) == []
    assert tx.measured.probing.probes.seconds(probe.id) == []


KNEE = ProbeResult((STEP,), knee_bps=9.8e7)
AT_LEAST = replace(KNEE, knee_reason="the sender reached 98000000 of the 100000000 b/s")
LOSSY = ProbeResult((replace(STEP, lost=40),), knee_reason="the lowest rate lost packets")
FREE = ProbeResult((replace(STEP, lost=0),), knee_reason="no rate lost packets")


def swept(tx: Transaction, site: str, result: ProbeResult | None, state: ProbeState = ProbeState.DONE) -> int:
    probe = tx.measured.probing.probes.add(probe_request(site, ProbeKind.KNEE))
    done = replace(probe, state=state, ended_at=tx.clock.now(), result=result)
    tx.measured.probing.probes.save(done)
    return probe.id


def test_the_newest_complete_sweep_of_each_site_and_direction_counts(tx: Transaction, clock: FakeClock) -> None:
    probes = tx.measured.probing.probes
    swept(tx, "unl.edu", KNEE)
    last, other = swept(tx, "unl.edu", KNEE), swept(tx, "isu.edu", LOSSY)
    swept(tx, "unl.edu", KNEE, ProbeState.FAILED)
    assert [one.id for one in probes.last_knees(clock.now())] == [other, last]
    assert probes.last_knees(clock.now() + timedelta(seconds=1)) == []


@pytest.mark.parametrize("newer", [AT_LEAST, FREE, None, ProbeResult(())])
def test_a_newer_sweep_without_a_limit_hides_no_conclusive_one(tx: Transaction, newer: ProbeResult | None) -> None:
    conclusive = swept(tx, "unl.edu", KNEE)
    swept(tx, "unl.edu", newer)
    found = tx.measured.probing.probes.last_knees(tx.clock.now())
    assert [one.id for one in found] == [conclusive]


def test_a_schedule_comes_back_whole(tx: Transaction, clock: FakeClock) -> None:
    wanted = ProbeSchedule(0, probe_request(), 24, clock.now(), 2, 5)
    kept = tx.measured.probing.schedules.add(wanted)
    assert kept == replace(wanted, id=kept.id, created_at=clock.now())
    later = clock.now() + timedelta(hours=24)
    tx.measured.probing.schedules.due_again(kept.id, later)
    assert (
        tx.measured.probing.schedules.all()
        == [replace(kept, next_at=later)]
        == tx.measured.probing.schedules.all(site="unl.edu")
    )
    assert tx.measured.probing.schedules.all(site="isu.edu") == []
    tx.measured.probing.schedules.remove(kept.id)
    with pytest.raises(NotFound, match="probe schedule list"):
        tx.measured.probing.schedules.remove(kept.id)


def test_both_sides_set_a_ceiling(tx: Transaction, clock: FakeClock) -> None:
    ceilings = tx.measured.probing.ceilings
    own = ceilings.put(ProbeCeiling("unl.edu", CeilingSide.SITE, 10**8, None, "adam"))
    assert own.set_at == clock.now()
    ours = ceilings.put(ProbeCeiling("unl.edu", CeilingSide.OPERATOR, None, 10**12, "eve"))
    assert ceilings.of("unl.edu") == [ours, own]
    lower = ceilings.put(replace(own, rate_bps=0))
    assert ceilings.of("unl.edu") == [ours, lower]
    ceilings.put(ProbeCeiling("unl.edu", CeilingSide.SITE))
    assert ceilings.of("unl.edu") == [ours]
    assert ceilings.of("isu.edu") == []
