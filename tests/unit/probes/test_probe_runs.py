"""Probes at work: their turn, the calendar, late products, ends, restarts."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.events import NodeChanged
from downburst.domain.probes import ProbeKind, ProbeSchedule, ProbeState, ProbeStep, ProbeTransport
from downburst.domain.probes.ceilings import CeilingSide, ProbeCeiling, day_of
from downburst.domain.probes.results import ProbeResult, ProbeSecond
from downburst.domain.probes.signs import ProbeOver, ProbeSecondReported
from downburst.domain.probes.trials import PAUSE_S, FlowResult, TrialResult
from downburst.domain.topology.bookings import BookingAnswer
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import CircuitConflict, Failure
from downburst.ledger import Ledger
from downburst.supervision import FAULTS
from factories import probe_request, stacks_request
from kit.probes import over, step
from unit.probes.stage import M, Stage


@pytest.fixture
def stage(ledger: Ledger, clock: FakeClock) -> Stage:
    return Stage(ledger, clock)


async def test_a_probe_reserves_its_rate_runs_and_is_kept_with_its_circumstances(stage: Stage) -> None:
    probe = await stage.started()
    assert (probe.state, probe.name) == (ProbeState.RUNNING, f"p{probe.id}-1")
    assert probe.circumstances["reserved"] == ["hub-eth0", "unl-eth1"]
    assert probe.circumstances["site_software"] == "9.9"
    (booking,) = stage.bookings.booked_ones
    assert (booking.wanted.rate_out_bps, booking.wanted.rate_in_bps, booking.wanted.seconds) == (10 * M, 0, 12)
    second = ProbeSecond(0, 10, 9, 1, 0, 0, 12_000)
    stage.runner.handle(ProbeSecondReported(probe.name, second))
    stage.runner.handle(ProbeSecondReported("p77-1", second))
    ended = await stage.ends(probe)
    assert (ended.state, ended.reason) == (ProbeState.DONE, "")
    assert ended.result is not None
    assert ended.result.steps[0].sent == 1_000
    assert stage.bookings.booked_ones[0].end == stage.clock.now(), "released"
    with stage.ledger.transaction() as tx:
        assert tx.measured.probing.probes.seconds(probe.id) == [second]
        assert tx.measured.probing.probes.used_bytes("unl.edu", stage.clock.now()) == 10 * M // 8, "as sent"
    assert stage.runner.running == []


async def test_a_sweep_has_time_and_rate_for_its_refining_steps(stage: Stage) -> None:
    probe = await stage.started(probe_request(kind=ProbeKind.KNEE))
    assert stage.bookings.booked_ones[0].wanted.seconds == 22, "ten steps, ten refining ones and a margin"
    await stage.work(seconds=49)
    assert stage.kept(probe).state is ProbeState.RUNNING


async def test_a_site_without_a_port_needs_no_calendar(stage: Stage) -> None:
    probe = await stage.started(probe_request("isu.edu"))
    assert (probe.state, probe.circumstances["reserved"]) == (ProbeState.RUNNING, None)
    assert stage.bookings.booked_ones == []


async def test_reverse_traffic_reserves_both_directions(stage: Stage) -> None:
    probe = await stage.started(stacks_request())
    assert probe.state is ProbeState.RUNNING
    (booking,) = stage.bookings.booked_ones
    assert (booking.wanted.rate_out_bps, booking.wanted.rate_in_bps) == (10 * M, 10 * M)
    assert booking.wanted.seconds > 20 + 10 * PAUSE_S, "ten trials of 2 s, and a pause for each"
    await stage.ends(probe)
    await stage.started(stacks_request(reverse_traffic=False))
    wanted = stage.bookings.booked_ones[-1].wanted
    assert (wanted.rate_out_bps, wanted.rate_in_bps) == (10 * M, 0)


async def test_stacks_count_the_bytes_that_their_flows_sent(stage: Stage) -> None:
    probe = await stage.started(stacks_request(rate_bps=80 * M))
    with stage.ledger.transaction(writes=False) as tx:
        assert tx.measured.probing.probes.used_bytes("unl.edu", day_of(stage.clock.now())) == 300 * M
    flow = FlowResult("cubic", False, 1_448 * 8_000.0, 10)
    trials = (TrialResult(2_000, None, None, False, (flow,)), TrialResult(2_000, "bbr is missing", None, False, ()))
    stage.runner.handle(ProbeOver(probe.name, "done", None, ProbeResult((), trials=trials)))
    await stage.work()
    ended = stage.kept(probe)
    assert ended.result is not None
    assert ended.result.trials == trials
    with stage.ledger.transaction(writes=False) as tx:
        used = tx.measured.probing.probes.used_bytes("unl.edu", day_of(stage.clock.now()))
    assert used == 1_538 * (1_000 * 2 + 10)


async def test_a_soak_over_tcp_adds_up_its_retransmissions(stage: Stage) -> None:
    soak = replace(probe_request(kind=ProbeKind.SOAK), transport=ProbeTransport.TCP, congestion="cubic")
    probe = await stage.started(replace(soak, steps=(ProbeStep(10 * M, 100_000),)))
    first = ProbeResult((step(10 * M),), congestion="cubic", retransmits=3)
    stage.runner.handle(ProbeOver(probe.name, "failed", "the session ended", first))
    await stage.work(seconds=10)
    await stage.work()
    again = stage.kept(probe)
    assert (again.state, again.attempts) == (ProbeState.RUNNING, 2)
    assert stage.node.started[-1].request.congestion == "cubic"
    stage.runner.handle(ProbeOver(again.name, "done", None, replace(first, retransmits=4)))
    await stage.work()
    result = stage.kept(probe).result
    assert result is not None
    assert (result.congestion, result.retransmits, result.sent) == ("cubic", 7, 2_000)


async def test_a_refusal_of_the_calendar_names_the_holder_of_the_rate(stage: Stage) -> None:
    stage.bookings.refusal = CircuitConflict("port hub-eth0 has 4 Mb/s free because of circuit 7")
    probe = await stage.started()
    assert (probe.state, probe.reason) == (ProbeState.REFUSED, "port hub-eth0 has 4 Mb/s free because of circuit 7")
    assert stage.node.started == []


async def test_a_probe_waits_for_free_rate_as_long_as_it_may(stage: Stage) -> None:
    later = stage.clock.now() + timedelta(hours=1)
    stage.bookings.answer = BookingAnswer("circuit 7 holds 1 Gb/s", begin=later)
    probe = await stage.started()
    assert (probe.state, probe.reason) == (ProbeState.WAITING, "circuit 7 holds 1 Gb/s")
    patient = stage.add(replace(probe_request(), patience_s=100))
    await stage.work(seconds=60)
    refused = stage.kept(probe)
    assert refused.state is ProbeState.REFUSED
    assert refused.reason == "it waited 60 s: circuit 7 holds 1 Gb/s"
    stage.bookings.answer = None
    await stage.work()
    assert stage.kept(patient).state is ProbeState.RUNNING


async def test_one_probe_of_a_site_runs_at_a_time_and_few_of_a_hub(stage: Stage) -> None:
    first = await stage.started()
    second = await stage.started()
    assert second.reason == f"probe {first.id} of unl.edu runs; one of a site runs at a time"
    assert (await stage.started(probe_request("isu.edu"))).state is ProbeState.RUNNING
    await stage.ends(first)
    assert stage.kept(second).state is ProbeState.RUNNING


async def test_a_probe_ends_when_products_become_late(stage: Stage) -> None:
    probe = await stage.started()
    stage.lacks("isu.edu", 1.9)
    await stage.work()
    assert stage.node.stopped == []
    stage.lacks("isu.edu", 2.1)
    await stage.runner.guard()
    await stage.runner.settle()
    ((name, reason),) = stage.node.stopped
    assert name == probe.name
    assert reason.startswith("products became late: products of NGRID for isu.edu are 2.1 s old")
    ended = await stage.ends(probe, outcome="stopped", reason=reason)
    assert (ended.state, ended.reason) == (ProbeState.STOPPED, reason)


async def test_products_that_were_late_before_end_no_probe_and_those_of_the_site_delay_it(stage: Stage) -> None:
    stage.lacks("isu.edu", 100)
    probe = await stage.started()
    await stage.work(seconds=1)
    assert stage.node.stopped == []
    delayed = await stage.started(probe_request("isu.edu"))
    assert delayed.reason.startswith("products are late: products of NGRID for isu.edu")
    stage.live.apply(NodeChanged(stage.clock.now(), running=False, restarts=1))
    assert stage.kept(probe).state is ProbeState.RUNNING


async def test_a_probe_gives_way_when_its_reservation_is_taken(stage: Stage) -> None:
    await stage.started()
    await stage.bookings.release(1)
    await stage.runner.guard()
    await stage.runner.settle()
    assert stage.node.stopped[0][1] == "a circuit was reserved that needs its rate"


@pytest.mark.parametrize("ran", [True, False])
async def test_a_person_stops_a_probe(stage: Stage, *, ran: bool) -> None:
    probe = stage.add()
    if ran:
        await stage.work()
    with stage.ledger.transaction() as tx:
        tx.measured.probing.probes.ask_to_stop(probe.id, "adam")
    await stage.work()
    if ran:
        assert stage.node.stopped == [(f"p{probe.id}-1", "stopped by adam")]
        await stage.work(seconds=2.1)
    ended = stage.kept(probe)
    assert (ended.state, ended.reason) == (ProbeState.STOPPED, "stopped by adam")


async def test_a_node_that_never_reports_the_end_is_not_waited_for(stage: Stage) -> None:
    probe = await stage.started()
    await stage.work(seconds=39)
    assert stage.kept(probe).state is ProbeState.RUNNING
    await stage.work(seconds=2)
    assert (stage.kept(probe).state, stage.kept(probe).reason) == (
        ProbeState.FAILED,
        "its node did not report its end in time",
    )


async def test_a_refusal_of_the_node_is_the_probes_end(stage: Stage) -> None:
    stage.node.refusal = Failure("unl.edu is too old for probes; upgrade it")
    probe = await stage.started()
    await stage.work()
    assert (stage.kept(probe).state, stage.kept(probe).reason) == (
        ProbeState.FAILED,
        "unl.edu is too old for probes; upgrade it",
    )
    assert stage.bookings.booked_ones[0].end == stage.clock.now()


@pytest.mark.parametrize(
    ("ceiling", "part"),
    [
        (ProbeCeiling("unl.edu", CeilingSide.SITE, 9 * M, None, "adam"), "the site's ceiling for probes of unl.edu"),
        (ProbeCeiling("unl.edu", CeilingSide.OPERATOR, None, 1_000), "1,000 bytes a day"),
    ],
)
async def test_a_ceiling_refuses(stage: Stage, ceiling: ProbeCeiling, part: str) -> None:
    with stage.ledger.transaction() as tx:
        tx.measured.probing.ceilings.put(ceiling)
    probe = await stage.started()
    assert probe.state is ProbeState.REFUSED
    assert part in probe.reason


async def test_a_probe_beyond_the_access_rate_waits_in_vain(stage: Stage) -> None:
    probe = await stage.started(probe_request(rate_bps=1_101 * M))
    assert "has an access rate of 1000 Mb/s, its feeds take 0 Mb/s" in probe.reason


async def test_a_probe_that_ran_when_the_hub_ended_has_failed(stage: Stage) -> None:
    probe = await stage.started()
    stage.restart()
    await stage.runner.recover()
    assert (stage.kept(probe).state, stage.kept(probe).reason) == (ProbeState.FAILED, "the hub restarted")


async def test_a_soak_continues_after_a_restart_and_states_the_gap(stage: Stage) -> None:
    request = replace(probe_request(kind=ProbeKind.SOAK), steps=(ProbeStep(10 * M, 100_000),))
    probe = await stage.started(request)
    begin = stage.clock.now()
    for number in range(30):
        stage.runner.handle(ProbeSecondReported(probe.name, ProbeSecond(number, 10, 10, 0, 0, 0, 1_000 + number % 2)))
    await stage.work(seconds=30)
    stage.restart()
    stage.clock.advance(10)
    await stage.runner.recover()
    await stage.work()
    again = stage.kept(probe)
    assert (again.state, again.attempts, again.started_at) == (ProbeState.RUNNING, 2, begin)
    (gap,) = again.gaps
    assert (gap.since, gap.until) == (begin + timedelta(seconds=30), begin + timedelta(seconds=40))
    assert gap.reason == "the hub restarted"
    assert stage.node.started[-1].request.steps == (ProbeStep(10 * M, 60_000),)
    stage.runner.handle(ProbeSecondReported(again.name, ProbeSecond(0, 10, 10, 0, 0, 0, 1_000)))
    stage.clock.advance(60)
    ended = await stage.ends(again)
    assert ended.state is ProbeState.DONE
    assert ended.result is not None
    assert ended.result.variation == pytest.approx(0.0005, rel=0.1)
    with stage.ledger.transaction() as tx:
        assert [one.second for one in tx.measured.probing.probes.seconds(probe.id)] == [*range(30), 40]


async def test_a_soak_continues_after_the_sites_session_ended(stage: Stage) -> None:
    request = replace(probe_request(kind=ProbeKind.SOAK), steps=(ProbeStep(10 * M, 100_000),))
    probe = await stage.started(request)
    stage.clock.advance(20)
    stage.hear(over(probe.name, step(10 * M), outcome="failed", reason="the site's session ended"))
    await stage.work()
    assert stage.kept(probe).reason == "it continues soon: the site's session ended"
    await stage.work(seconds=1)
    again = stage.kept(probe)
    assert (again.state, again.attempts) == (ProbeState.RUNNING, 2)
    ended = await stage.ends(again)
    assert ended.result is not None
    assert ended.result.steps[0].sent == 2_000, "both attempts"
    assert [gap.reason for gap in ended.gaps] == ["the site's session ended"]


async def test_the_nodes_death_fails_a_probe(stage: Stage) -> None:
    probe = await stage.started()
    stage.runner.handle(NodeChanged(stage.clock.now(), running=False, restarts=1, reason="killed"))
    await stage.work()
    assert stage.kept(probe).reason == "the hub's node ended: killed"


async def test_a_schedule_adds_its_probe_each_period_within_its_window(stage: Stage) -> None:
    now = stage.clock.now()
    assert now.hour == 0
    with stage.ledger.transaction() as tx:
        tx.measured.probing.schedules.add(ProbeSchedule(0, probe_request(), 6, now, 0, 7))
    await stage.work()
    (first,) = stage.runner.running
    assert first.schedule == 1
    await stage.ends(first)
    await stage.work(seconds=6 * 3600)
    assert len(stage.node.started) == 2
    await stage.ends(stage.runner.running[0])
    await stage.work(seconds=6 * 3600)
    assert len(stage.node.started) == 2, "noon is outside the window"
    with stage.ledger.transaction() as tx:
        assert tx.measured.probing.schedules.one(1).next_at == now + timedelta(days=1)


async def _planted(_: object) -> BookingAnswer:
    raise KeyError("x")


async def test_an_unknown_error_at_one_turn_is_counted_and_it_is_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(stage.bookings, "book", _planted)
        probe = await stage.started()
    assert {fault.handler for fault in FAULTS.all()} == {"probes.turn"}
    assert probe.state is ProbeState.WAITING
    await stage.work(seconds=1)
    assert stage.kept(probe).state is ProbeState.RUNNING


async def test_an_unknown_error_at_one_start_is_counted_and_ends_that_probe_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(stage.node, "start_probe", _planted)
        probe = await stage.started()
    assert {fault.handler for fault in FAULTS.all()} == {"probes.begin"}
    other = await stage.started(probe_request("isu.edu"))
    assert other.state is ProbeState.RUNNING
    await stage.work(seconds=41)
    assert stage.kept(probe).state is ProbeState.FAILED


async def test_the_loops_run_a_probe_from_the_request_to_its_end(stage: Stage) -> None:
    running = asyncio.create_task(stage.runner.run())
    probe = stage.add()
    await _until(lambda: bool(stage.node.started))
    stage.runner.handle(over(f"p{probe.id}-1", step(10 * M)))
    await _until(lambda: stage.kept(probe).ended)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stage.kept(probe).state is ProbeState.DONE


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_an_unknown_error_at_one_stop_is_counted_and_the_probe_ends_nevertheless(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = await stage.started()
    monkeypatch.setattr(stage.node, "stop_probe", _planted)
    stage.lacks("isu.edu", 3)
    await stage.work()
    assert {fault.handler for fault in FAULTS.all()} == {"probes.stop"}
    await stage.work(seconds=3)
    assert stage.kept(probe).state is ProbeState.STOPPED
