"""Windows, crashes, cuts and measurements, with a clock that is passed in and a node in memory."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitDriver,
    CircuitEnd,
    CircuitProblem,
    CircuitRequest,
    CircuitState,
    CircuitUse,
    Direction,
    Standing,
)
from downburst.domain.circuits.signs import CircuitsChanged, CircuitTold
from downburst.domain.events import (
    FaultSeen,
    NodeChanged,
    SessionChanged,
    SitesChanged,
    TrafficSeen,
)
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.supervision import FAULTS
from downburst_circuits.controller import TICK_S
from kit.circuits import M, NodeInMemory
from unit.circuits.stage import HOUR, Stage

STEPS = 7
"""The least number of answers that the node gives in the life of one circuit."""


async def test_a_circuit_lives_from_its_begin_to_its_end_and_leaves_nothing(stage: Stage) -> None:
    circuit = await stage.reserve(start=1, back=10)
    await stage.settle()
    assert stage.lived(circuit) == ["admitted"]
    assert stage.node.held == {}
    await stage.after(3600)
    assert stage.lived(circuit) == ["admitted", "provisioning", "verifying", "active"]
    assert list(stage.node.held) == [circuit.number]
    await stage.after(3600)
    assert stage.lived(circuit)[-2:] == ["ending", "ended"]
    assert stage.node.held == {}
    assert stage.register.open == {}


async def test_moments_fire_at_the_tick_after_them_and_not_before(stage: Stage) -> None:
    circuit = await stage.reserve(start=1)
    await stage.after(3599.999)
    assert stage.state(circuit) is CircuitState.ADMITTED
    await stage.after(0.001)
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_the_running_keeper_fires_within_a_second(stage: Stage) -> None:
    """Runs in real time: the loop itself must look often enough, whatever the bus does."""
    circuit = await stage.reserve(start=1)
    changed = stage.bus.subscribe(CircuitsChanged)
    running = asyncio.create_task(stage.controller.run())
    await asyncio.sleep(0)
    stage.clock.advance(3600)
    async with asyncio.timeout(1.0):
        assert await changed.next() == CircuitsChanged(circuit.number)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert stage.lived(circuit)[1] == "provisioning"


async def test_inner_addresses_are_given_at_the_begin_and_differ(stage: Stage) -> None:
    one, other = await stage.active(rate=100), await stage.active(rate=100)
    wide = await stage.active(rate=100, to=("unl.edu", "ttu.edu"))
    given = [end.address for circuit in (one, other, wide) for end in circuit.ends]
    assert None not in given
    assert len(set(given)) == 7
    assert [str(end.address).rpartition("/")[2] for end in (*one.ends, *wide.ends)] == ["31", "31", "27", "27", "27"]


@pytest.mark.parametrize("answers", range(STEPS))
async def test_a_hub_that_crashes_with_its_node_at_any_step_goes_on(stage: Stage, answers: int) -> None:
    circuit = await stage.reserve(start=1, back=10)
    stage.node.dies_after = answers
    await stage.after(3600)
    stage.node.dies_after, stage.node.running = None, True
    again = await stage.again()
    await again.settle()
    await again.after(60)
    assert again.state(circuit) is CircuitState.ACTIVE
    assert list(again.node.held) == [circuit.number]
    await again.after(3600)
    assert again.state(circuit) is CircuitState.ENDED
    assert again.node.held == {}


async def test_what_a_crash_left_at_the_node_is_removed(stage: Stage) -> None:
    circuit = await stage.active()
    await stage.service.cancel(circuit.number, by="op")
    leftover = dict(stage.node.held)
    await stage.settle()
    stage.node.held = leftover
    again = await stage.again()
    await again.settle()
    assert again.node.held == {}


async def test_a_window_that_passed_while_the_hub_was_off_ends(stage: Stage) -> None:
    waiting, standing = await stage.reserve(start=1, rate=100), await stage.active(rate=100)
    stage.clock.advance(24 * 3600)
    again = await stage.again()
    await again.settle()
    assert [again.state(circuit) for circuit in (waiting, standing)] == [CircuitState.ENDED] * 2
    assert again.node.held == {}


async def test_a_node_that_restarts_is_told_the_whole_set(stage: Stage) -> None:
    one, other = await stage.active(rate=100), await stage.active(rate=100)
    stage.node.held.clear()
    await stage.controller.handle(NodeChanged(stage.clock.now(), running=True, restarts=1))
    await stage.settle()
    assert f"hold {one.number} {other.number}" in stage.node.done
    assert sorted(stage.node.held) == [one.number, other.number]
    assert stage.state(one) is CircuitState.ACTIVE


async def test_a_node_that_is_away_costs_time_only(stage: Stage) -> None:
    stage.node.running = False
    circuit = await stage.reserve()
    await stage.after(10)
    assert stage.state(circuit) is CircuitState.PROVISIONING
    stage.node.running = True
    await stage.after(60)
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_an_unknown_error_at_one_circuit_is_counted_and_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_lease: object) -> Standing:
        raise KeyError("x")

    with monkeypatch.context() as patch:
        patch.setattr(stage.node, "circuit_up", fail)
        circuit = await stage.reserve()
        await stage.after(10)
    assert stage.state(circuit) is CircuitState.PROVISIONING
    assert {fault.handler for fault in FAULTS.all()} == {"circuits.work"}
    await stage.after(60)
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_a_failure_names_step_hop_and_remedy_and_is_tried_again(stage: Stage) -> None:
    problem = CircuitProblem("class 1:7 can't be made", "shaping", "eth0 at the hub", "give it CAP_NET_ADMIN")
    stage.node.refuses[1] = problem
    circuit = await stage.reserve()
    await stage.settle()
    event = stage.events(circuit)[-1]
    assert (event.state, event.step, event.hop, event.remedy) == (
        CircuitState.FAILED,
        "shaping",
        "eth0 at the hub",
        "give it CAP_NET_ADMIN",
    )
    stage.node.refuses.clear()
    await stage.after(1)
    assert stage.state(circuit) is CircuitState.FAILED
    await stage.after(5)
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_tries_become_rarer(stage: Stage) -> None:
    stage.node.refuses[1] = CircuitProblem("no")
    await stage.reserve()
    for _ in range(300):
        await stage.after(1)
    assert 5 <= len([what for what in stage.node.done if what.startswith("up")]) <= 12


async def test_it_does_not_become_active_while_its_far_end_is_missing(stage: Stage) -> None:
    stage.node.away.add("unl.edu")
    circuit = await stage.reserve()
    await stage.settle()
    assert stage.state(circuit) is CircuitState.FAILED
    assert "unl.edu is not connected" in stage.kept(circuit).reason
    stage.node.away.clear()
    await stage.controller.handle(SessionChanged("unl.edu", "connected", stage.clock.now(), "192.0.2.9"))
    await stage.settle()
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_a_path_that_passes_nothing_is_never_active(stage: Stage) -> None:
    stage.node.silent.add("unl.edu")
    circuit = await stage.reserve()
    await stage.settle()
    assert "active" not in stage.lived(circuit)
    assert "none of 5 probes to unl.edu came back" in stage.kept(circuit).reason
    assert stage.events(circuit)[-1].step == "verify"


async def test_less_than_it_reserved_makes_it_degraded_with_the_cause(stage: Stage) -> None:
    stage.node.carries_bps["unl.edu"] = 250 * M
    circuit = await stage.reserve()
    await stage.settle()
    assert stage.state(circuit) is CircuitState.DEGRADED
    found = stage.measured(circuit)["unl.edu", Direction.OUT]
    assert (found.cause, found.rate_bps, found.enough) == ("policer", 250 * M, False)
    assert "policer at 250 Mb/s" in stage.kept(circuit).reason
    stage.node.carries_bps.clear()
    await stage.after(61)
    assert stage.state(circuit) is CircuitState.ACTIVE
    assert stage.kept(circuit).reason == ""


async def test_the_train_goes_inside_the_reservation_and_both_ways(stage: Stage) -> None:
    circuit = await stage.active(rate=500, back=100)
    trains = [what for what in stage.node.done if what.startswith("rate")]
    assert trains == [f"rate {circuit.number} unl.edu out 450M", f"rate {circuit.number} unl.edu in 90M"]
    assert stage.measured(circuit)["unl.edu", Direction.IN].rate_bps == 90 * M


async def test_a_circuit_is_measured_again_after_ten_minutes(stage: Stage) -> None:
    circuit = await stage.active()
    await stage.after(599)
    assert len([what for what in stage.node.done if what.startswith("rate")]) == 1
    stage.node.carries_bps["unl.edu"] = 250 * M
    await stage.after(2)
    assert stage.state(circuit) is CircuitState.DEGRADED


async def test_what_products_use_leaves_less_to_the_train_and_counts(stage: Stage) -> None:
    circuit = await stage.active()
    await stage.controller.handle(used(circuit.number, 300 * M))
    stage.node.uses_bps["unl.edu"] = 300 * M
    await stage.after(601)
    assert stage.node.done[-1] == f"rate {circuit.number} unl.edu out 150M"
    assert stage.state(circuit) is CircuitState.ACTIVE
    assert stage.measured(circuit)["unl.edu", Direction.OUT].rate_bps == 450 * M


async def test_products_that_went_before_the_train_did_cost_the_circuit_nothing(stage: Stage) -> None:
    """The train leaves room for the usage of the last second; the next train claims the room that became free."""
    circuit = await stage.active()
    await stage.controller.handle(used(circuit.number, 300 * M))
    await stage.after(601)
    assert stage.node.done[-2:] == [f"rate {circuit.number} unl.edu out {rate}M" for rate in (150, 450)]
    assert stage.state(circuit) is CircuitState.ACTIVE
    assert stage.measured(circuit)["unl.edu", Direction.OUT].rate_bps == 450 * M


@pytest.mark.parametrize(("slow", "state"), [(2, CircuitState.ACTIVE), (3, CircuitState.DEGRADED)])
async def test_a_host_that_is_busy_for_a_moment_costs_its_circuit_nothing(
    stage: Stage, slow: int, state: CircuitState
) -> None:
    circuit = await stage.active()
    stage.node.slow_trains = slow
    await stage.after(601)
    assert stage.state(circuit) is state


@pytest.mark.parametrize(("held_up", "state"), [(1, CircuitState.ACTIVE), (2, CircuitState.DEGRADED)])
async def test_one_train_that_was_held_up_is_asked_again_before_a_circuit_is_said_to_be_short(
    stage: Stage, held_up: int, state: CircuitState
) -> None:
    circuit = await stage.active()
    stage.node.held_up_trains = held_up
    await stage.after(601)
    assert stage.state(circuit) is state
    assert stage.node.done[-2:] == [f"rate {circuit.number} unl.edu out 450M"] * 2


async def test_what_all_sites_use_together_counts_as_even_shares(stage: Stage) -> None:
    circuit = await stage.active(rate=300, to=("unl.edu", "ttu.edu", "wisc.edu"))
    await stage.controller.handle(used(circuit.number, 3 * 200 * M, site=None))
    stage.node.uses_bps |= dict.fromkeys(circuit.sites, 200 * M)
    await stage.after(601)
    assert stage.node.done[-1] == f"rate {circuit.number} wisc.edu out 70M"
    assert stage.measured(circuit)["unl.edu", Direction.OUT].rate_bps == 270 * M


async def test_a_circuit_that_is_full_of_products_is_not_asked_for_more(stage: Stage) -> None:
    circuit = await stage.active()
    await stage.controller.handle(used(circuit.number, 440 * M))
    await stage.after(601)
    assert stage.node.done[-1] == f"reach {circuit.number} unl.edu"
    assert stage.measured(circuit)["unl.edu", Direction.OUT].rate_bps == 440 * M


async def test_a_cut_is_down_however_slow_the_ledger_is(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen on a busy machine: an event whose handling took longer than a tick was dropped, and the circuit stood."""
    circuit = await stage.active(hours=100)
    change = stage.register.change

    async def slowly(*arguments: Any) -> Circuit | None:
        await asyncio.sleep(2 * TICK_S)
        return await change(*arguments)

    monkeypatch.setattr(stage.register, "change", slowly)
    running = asyncio.create_task(stage.controller.run())
    problem = CircuitProblem("nothing came back for 1 s", "probe", "unl.edu")
    async with asyncio.timeout(20):
        # The controller subscribes in its first turn.
        await asyncio.sleep(0)
        stage.bus.publish(CircuitTold(circuit.number, "unl.edu", "down", stage.clock.now(), problem))
        while stage.state(circuit) is not CircuitState.DOWN:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_cut_is_down_and_comes_back_through_probes(stage: Stage) -> None:
    circuit = await stage.active()
    stage.node.silent.add("unl.edu")
    await stage.told(circuit, "down")
    assert stage.state(circuit) is CircuitState.DOWN
    assert "nothing came back" in stage.kept(circuit).reason
    stage.node.silent.clear()
    await stage.told(circuit, "up")
    assert stage.lived(circuit)[-3:] == ["down", "verifying", "active"]


async def test_a_return_that_nobody_told_of_is_found(stage: Stage) -> None:
    circuit = await stage.active()
    stage.node.silent.add("unl.edu")
    await stage.told(circuit, "down")
    stage.node.silent.clear()
    await stage.after(700)
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_one_site_of_several_that_is_cut_degrades_the_circuit_for_it_alone(stage: Stage) -> None:
    circuit = await stage.active(rate=100, to=("unl.edu", "ttu.edu"))
    stage.node.silent.add("ttu.edu")
    await stage.told(circuit, "down", "ttu.edu")
    assert stage.state(circuit) is CircuitState.DEGRADED
    rows = stage.measured(circuit)
    assert rows["unl.edu", Direction.OUT].enough
    assert not rows["ttu.edu", Direction.OUT].enough
    stage.node.silent.clear()
    await stage.told(circuit, "up", "ttu.edu")
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_a_multipoint_circuit_serves_those_who_are_there(stage: Stage) -> None:
    stage.node.away.add("ttu.edu")
    circuit = await stage.reserve(rate=100, to=("unl.edu", "ttu.edu"))
    await stage.settle()
    assert stage.state(circuit) is CircuitState.DEGRADED
    assert stage.measured(circuit)["unl.edu", Direction.OUT].enough


async def test_what_the_node_removed_too_early_is_made_again(stage: Stage) -> None:
    circuit = await stage.active()
    stage.node.held.clear()
    await stage.told(circuit, "removed")
    assert stage.lived(circuit)[-3:] == ["provisioning", "verifying", "active"]


async def test_what_cannot_be_removed_is_said_and_tried_until_it_is_gone(stage: Stage) -> None:
    circuit = await stage.active()
    stage.node.stuck.append(CircuitProblem("dbc1 is busy", "tunnel", "eth0 at the hub", "ip link del dbc1"))
    await stage.after(3600)
    assert stage.state(circuit) is CircuitState.ENDING
    assert stage.kept(circuit).reason == "dbc1 is busy"
    stage.node.stuck.clear()
    await stage.after(60)
    assert stage.state(circuit) is CircuitState.ENDED


async def test_a_clock_set_back_takes_nothing_away_and_is_said(stage: Stage) -> None:
    circuit = await stage.active()
    seen = stage.bus.subscribe(FaultSeen)
    stepped(stage, -2 * HOUR)
    await stage.settle()
    assert stage.state(circuit) is CircuitState.ACTIVE
    fault = await seen.next()
    assert isinstance(fault, FaultSeen)
    assert "set back by 7200 s" in fault.sentence
    with stage.ledger.transaction(writes=False) as tx:
        assert [kept.sentence for kept in tx.measured.faults.recent()] == [fault.sentence]
    await stage.after(2 * 3600 + 1800)
    assert stage.state(circuit) is CircuitState.ACTIVE
    await stage.after(1800)
    assert stage.state(circuit) is CircuitState.ENDED


async def test_a_clock_set_forward_fires_what_it_passed(stage: Stage) -> None:
    ends, begins = await stage.active(rate=100), await stage.reserve(rate=100, start=2)
    stepped(stage, 2 * HOUR)
    await stage.settle()
    assert stage.state(ends) is CircuitState.ENDED
    assert stage.state(begins) is CircuitState.ACTIVE


async def test_a_removed_site_takes_its_circuits_with_it(stage: Stage) -> None:
    circuit = await stage.active()
    with stage.ledger.transaction() as tx:
        tx.sites.remove("unl.edu")
    await stage.controller.handle(SitesChanged())
    await stage.settle()
    assert stage.state(circuit) is CircuitState.CANCELLED
    assert stage.node.held == {}


async def test_a_declared_circuit_keeps_its_own_addresses(stage: Stage) -> None:
    ends = (CircuitEnd("", address="10.10.200.10/24"), CircuitEnd("", "unl.edu", address="10.10.200.20/24"))
    request = CircuitRequest("r", ticket="NOC-4711")
    wish = replace(stage.wish(), request=request, carriage=CircuitCarriage(CircuitDriver.DECLARED), ends=ends)
    circuit = (await stage.service.request(wish)).circuit
    await stage.settle()
    assert stage.state(circuit) is CircuitState.ACTIVE
    assert [end.address for end in stage.kept(circuit).ends] == ["10.10.200.10/24", "10.10.200.20/24"]


async def test_a_hub_without_ports_asks_its_node_nothing(ledger: Ledger, clock: FakeClock) -> None:
    stage = Stage(ledger, clock, NodeInMemory())
    await stage.register.load()
    stage.controller.start()
    await stage.settle()
    assert stage.node.done == []


def used(circuit: int, rate_bps: float, *, site: str | None = "unl.edu") -> TrafficSeen:
    count = round(rate_bps / 8)
    return TrafficSeen(0, 1_000_000, (), (), (), 0, (CircuitUse(circuit, site, count, 0),))


def stepped(stage: Stage, by: timedelta) -> None:
    stage.clock._start += by
