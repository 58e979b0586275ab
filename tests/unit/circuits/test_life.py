"""Holds, paths by hand and overrides, in virtual time; each goes on after a restart of the hub."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.access import SCOPES_OF, Caller, Role, acting
from downburst.domain.circuits import (
    STANDING,
    Circuit,
    CircuitChange,
    CircuitCreation,
    CircuitProblem,
    CircuitRequest,
    CircuitState,
    PathOrder,
)
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict, Failure, NotFound
from downburst.ledger.repositories.audit import Changes
from downburst_circuits.terms import MOST_HOLD_S
from kit.circuits import M
from unit.circuits.stage import HOUR, Stage
from unit.circuits.test_desk_service import NETWORK

ACTIVE, DOWN = CircuitState.ACTIVE, CircuitState.DOWN


async def held(stage: Stage, seconds: float = 120, *, rate: int = 500, start: float = 1) -> Circuit:
    return (await stage.service.request(stage.wish(rate=rate, start=start), seconds)).circuit


async def by_hand(stage: Stage, **given: Any) -> Circuit:
    request = CircuitRequest(f"by-hand-{len(stage.register.open)}", creation=CircuitCreation.BY_HAND)
    return await stage.reserve(request=request, **given)


def said(stage: Stage, circuit: Circuit, event: str) -> str:
    """The sentence and the author of the last event of a kind."""
    found = [one for one in stage.events(circuit) if one.event == event]
    return f"{found[-1].sentence} ({found[-1].by})"


async def test_a_held_circuit_is_committed_and_lives_like_any_other(stage: Stage) -> None:
    circuit = await held(stage)
    assert (circuit.state, circuit.held_until) == (CircuitState.HELD, stage.clock.now() + timedelta(minutes=2))
    assert "are held until 2026-" in said(stage, circuit, "held")
    await stage.after(119.999)
    tried = await stage.service.commit(circuit.number, by="eve", dry_run=True)
    assert (tried.done, tried.circuit.state, tried.circuit.held_until) == (False, CircuitState.ADMITTED, None)
    assert stage.state(circuit) is CircuitState.HELD
    answer = await stage.service.commit(circuit.number, by="eve")
    assert (answer.done, answer.circuit.state, answer.circuit.held_until) == (True, CircuitState.ADMITTED, None)
    assert said(stage, circuit, "committed") == "committed by eve (eve)"
    assert (await stage.service.commit(circuit.number, by="eve")).done is False
    await stage.after(3600)
    assert stage.lived(circuit) == ["held", "admitted", "provisioning", "verifying", "active"]


async def test_a_hold_occupies_the_calendar_and_expires_at_its_moment(stage: Stage) -> None:
    circuit = await held(stage, rate=800)
    with pytest.raises(CircuitConflict, match=rf"circuit {circuit.number}"):
        await stage.reserve(rate=300, start=1)
    await stage.after(119.999)
    assert stage.state(circuit) is CircuitState.HELD
    await stage.after(0.001)
    kept = stage.kept(circuit)
    assert (kept.state, kept.held_until, stage.register.open) == (CircuitState.EXPIRED, None, {})
    assert "not committed (hub)" in said(stage, circuit, "expired")
    await stage.reserve(rate=800, start=1)
    for dry_run in (False, True):
        with pytest.raises(AlreadyThere, match=f"circuit {circuit.number} is expired, so it can't be committed"):
            await stage.service.commit(circuit.number, by="eve", dry_run=dry_run)


async def test_a_commit_at_the_moment_of_expiry_is_too_late_before_the_controller_has_looked(stage: Stage) -> None:
    circuit = await held(stage)
    stage.clock.advance(120)
    with pytest.raises(AlreadyThere, match=f"the hold of circuit {circuit.number} is over"):
        await stage.service.commit(circuit.number, by="eve")
    await stage.settle()
    assert stage.state(circuit) is CircuitState.EXPIRED


async def test_a_hold_over_its_begin_builds_nothing_until_the_commit(stage: Stage) -> None:
    circuit = await held(stage, 600, start=0)
    await stage.after(300)
    assert (stage.state(circuit), stage.node.held) == (CircuitState.HELD, {})
    await stage.service.commit(circuit.number, by="eve")
    await stage.settle()
    assert stage.state(circuit) is ACTIVE


async def test_a_hold_ends_with_its_window(stage: Stage) -> None:
    wish = stage.wish(start=0, hours=0.01)
    circuit = (await stage.service.request(wish, 3_600)).circuit
    await stage.after(36)
    assert stage.state(circuit) is CircuitState.EXPIRED


async def test_a_hold_goes_on_after_a_restart_and_expires_there(stage: Stage) -> None:
    circuit, late = await held(stage), await held(stage, 600, rate=100)
    again = await stage.again()
    assert again.register.calendar.users("hub-eth0") == [circuit.number, late.number]
    await again.after(60)
    assert again.state(circuit) is CircuitState.HELD
    stage.clock.advance(60)
    restarted = await stage.again()
    await restarted.settle()
    assert (restarted.state(circuit), restarted.state(late)) == (CircuitState.EXPIRED, CircuitState.HELD)


async def test_a_held_circuit_is_modified_moved_and_cancelled_without_the_node(stage: Stage) -> None:
    circuit = await held(stage)
    change = CircuitChange(rate_out_bps=300 * M, begin=circuit.begin + 2 * HOUR, end=circuit.begin + 3 * HOUR)
    changed = (await stage.service.modify(circuit.number, change, by="eve")).circuit
    assert (changed.state, changed.held_until) == (CircuitState.HELD, circuit.held_until)
    assert (changed.begin, changed.rate_out_bps) == (circuit.begin + 2 * HOUR, 300 * M)
    await stage.reserve(rate=1000, start=1)
    answer = await stage.service.cancel(circuit.number, by="eve")
    assert (answer.circuit.state, answer.circuit.held_until) == (CircuitState.CANCELLED, None)
    assert [one for one in stage.node.done if str(circuit.number) in one.split()] == []


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.5, MOST_HOLD_S + 1, float("nan"), float("inf")])
async def test_a_hold_of_no_time_or_of_days_is_refused(stage: Stage, seconds: float) -> None:
    with pytest.raises(BadInput, match=r"hold it for 1 to 3,600 s"):
        await held(stage, seconds)
    assert stage.register.open == {}


async def test_two_commits_at_once_commit_once(stage: Stage) -> None:
    circuit = await held(stage)
    answers = await asyncio.gather(*(stage.service.commit(circuit.number, by=name) for name in ("ann", "eve")))
    assert [answer.done for answer in answers] == [True, False]
    assert len([one for one in stage.events(circuit) if one.event == "committed"]) == 1


async def test_a_path_by_hand_is_created_torn_down_and_created_again(stage: Stage) -> None:
    circuit = await by_hand(stage, start=1, hours=2)
    with pytest.raises(AlreadyThere, match="before its window begins"):
        await stage.service.create_path(circuit.number, by="eve")
    await stage.after(3600)
    assert (stage.state(circuit), stage.node.held) == (CircuitState.WAITING, {})
    assert f"downburst circuits create-path {circuit.number} (hub)" in said(stage, circuit, "opened")
    tried = await stage.service.create_path(circuit.number, by="eve", dry_run=True)
    assert (tried.done, tried.circuit.state) == (False, CircuitState.PROVISIONING)
    assert stage.state(circuit) is CircuitState.WAITING
    assert (await stage.service.create_path(circuit.number, by="eve")).done
    await stage.settle()
    assert stage.state(circuit) is ACTIVE
    assert (await stage.service.create_path(circuit.number, by="eve")).done is False
    addresses = [end.address for end in stage.kept(circuit).ends]
    torn = await stage.service.tear_down_path(circuit.number, by="ann")
    assert torn.circuit.state is CircuitState.TEARING_DOWN
    with pytest.raises(AlreadyThere, match="being torn down"):
        await stage.service.create_path(circuit.number, by="eve")
    await stage.settle()
    assert (stage.state(circuit), stage.node.held) == (CircuitState.WAITING, {})
    assert said(stage, circuit, "torn-down") == "its path is torn down, as ann asked (ann)"
    assert (await stage.service.tear_down_path(circuit.number, by="ann")).done is False
    with pytest.raises(CircuitConflict):
        await stage.reserve(rate=600)
    await stage.service.create_path(circuit.number, by="eve")
    await stage.settle()
    assert stage.lived(circuit)[-4:] == ["waiting", "provisioning", "verifying", "active"]
    assert [end.address for end in stage.kept(circuit).ends] == addresses
    await stage.after(7200)
    assert stage.lived(circuit)[-2:] == ["ending", "ended"]


async def test_an_automatic_path_that_is_torn_down_waits_until_the_end_of_its_window(stage: Stage) -> None:
    circuit = await stage.active()
    await stage.service.tear_down_path(circuit.number, by="ann")
    await stage.settle()
    assert stage.state(circuit) is CircuitState.WAITING
    await stage.after(3600)
    assert stage.state(circuit) is CircuitState.ENDED
    with pytest.raises(AlreadyThere, match="can't be created, as that is ended"):
        await stage.service.create_path(circuit.number, by="eve")
    with pytest.raises(NotFound):
        await stage.service.tear_down_path(999, by="eve")


async def test_waiting_and_tearing_down_go_on_after_a_restart(stage: Stage) -> None:
    circuit = await by_hand(stage)
    await stage.settle()
    again = await stage.again()
    await again.settle()
    assert (again.state(circuit), again.node.held) == (CircuitState.WAITING, {})
    await again.service.create_path(circuit.number, by="eve")
    await again.settle()
    await again.service.tear_down_path(circuit.number, by="eve")
    assert list(again.node.held) == [circuit.number]
    third = await again.again()
    await third.settle()
    assert (third.state(circuit), third.node.held) == (CircuitState.WAITING, {})


@pytest.mark.parametrize("answers", range(7))
async def test_a_hub_that_crashes_with_its_node_in_a_tear_down_or_a_creation_goes_on(
    stage: Stage, answers: int
) -> None:
    circuit = await stage.active()
    stage.node.dies_after = answers
    await stage.service.tear_down_path(circuit.number, by="eve")
    await stage.settle()
    if stage.state(circuit) is CircuitState.WAITING:
        await stage.service.create_path(circuit.number, by="eve")
        await stage.settle()
    stage.node.dies_after, stage.node.running = None, True
    again = await stage.again()
    await again.settle()
    await again.after(60)
    if again.state(circuit) is CircuitState.WAITING:
        assert again.node.held == {}
        await again.service.create_path(circuit.number, by="eve")
        await again.settle()
    assert again.state(circuit) is ACTIVE
    assert list(again.node.held) == [circuit.number]


async def test_parts_that_stay_behind_are_removed_before_it_waits(stage: Stage) -> None:
    circuit = await stage.active()
    stage.node.stuck = [CircuitProblem("device busy", "link", "eth0")]
    await stage.service.tear_down_path(circuit.number, by="ann")
    await stage.settle()
    assert (stage.state(circuit), stage.kept(circuit).reason) == (CircuitState.TEARING_DOWN, "device busy")
    stage.node.stuck = []
    await stage.after(120)
    assert stage.state(circuit) is CircuitState.WAITING


async def test_a_waiting_circuit_is_cancelled_at_once_and_one_in_mid_tear_down_after_it(stage: Stage) -> None:
    waiting = await by_hand(stage)
    await stage.settle()
    assert (await stage.service.cancel(waiting.number, by="eve")).circuit.state is CircuitState.CANCELLED
    circuit = await stage.active()
    await stage.service.tear_down_path(circuit.number, by="eve")
    await stage.service.cancel(circuit.number, by="eve")
    await stage.settle()
    assert stage.lived(circuit)[-3:] == ["tearing-down", "cancelling", "cancelled"]


async def test_a_waiting_circuit_is_modified_and_its_next_path_has_the_new_terms(stage: Stage) -> None:
    circuit = await by_hand(stage)
    await stage.settle()
    await stage.service.modify(circuit.number, CircuitChange(rate_out_bps=200 * M), by="eve")
    await stage.service.create_path(circuit.number, by="eve")
    await stage.settle()
    assert stage.node.held[circuit.number].circuit.rate_out_bps == 200 * M


async def test_words_of_the_node_about_a_circuit_without_a_path_have_no_effect(stage: Stage) -> None:
    circuit = await by_hand(stage)
    await stage.settle()
    for word in ("up", "down", "removed"):
        await stage.told(circuit, word)
    assert (stage.state(circuit), stage.node.held) == (CircuitState.WAITING, {})


async def test_an_override_is_recorded_with_its_reason_and_survives_probes_and_restarts(stage: Stage) -> None:
    circuit = await stage.active()
    with acting(Caller("ann", Role.ADMIN, SCOPES_OF[Role.ADMIN])):
        answer = await stage.service.override(circuit.number, DOWN, "its switch is replaced", by="ann")
    assert (answer.done, answer.circuit.overridden, answer.circuit.state) == (True, DOWN, ACTIVE)
    assert said(stage, circuit, "overridden") == "overridden as down by ann: its switch is replaced (ann)"
    with stage.ledger.transaction() as tx:
        (change, *_) = tx.access.audit.page(Changes(kind="circuit"))
    assert (change.who, change.after and change.after["override_reason"]) == ("ann", "its switch is replaced")
    again = await stage.again()
    await again.service.measure(circuit.number)
    await again.settle()
    kept = again.kept(circuit)
    assert (kept.state, kept.usable_state, kept.shown_reason) == (
        ACTIVE,
        DOWN,
        "overridden by ann: its switch is replaced",
    )
    assert list(again.node.held) == [circuit.number], "the node keeps it, so that probes go on"
    assert (await again.service.override(circuit.number, DOWN, "its switch is replaced", by="ann")).done is False
    cleared = await again.service.override(circuit.number, None, by="ann")
    assert (cleared.circuit.overridden, cleared.circuit.usable_state) == (None, ACTIVE)
    assert said(again, circuit, "overridden") == "the override as down is cleared by ann (ann)"


async def test_an_override_to_active_hides_a_shortfall_and_nothing_worse(stage: Stage) -> None:
    circuit = await stage.active()
    await stage.service.override(circuit.number, ACTIVE, "the probe is wrong", by="ann")
    stage.node.carries_bps["unl.edu"] = 100 * M
    await stage.service.measure(circuit.number)
    await stage.settle()
    kept = stage.kept(circuit)
    assert (kept.state, kept.shown_state, kept.usable_state) == (CircuitState.DEGRADED, ACTIVE, CircuitState.DEGRADED)
    await stage.told(circuit, "down")
    kept = stage.kept(circuit)
    assert (kept.state, kept.shown_state, kept.usable_state) == (DOWN, DOWN, DOWN)


async def test_an_override_is_tried_and_refused(stage: Stage) -> None:
    circuit = await stage.active()
    tried = await stage.service.override(circuit.number, DOWN, "maintenance", by="ann", dry_run=True)
    assert (tried.done, tried.circuit.overridden, stage.kept(circuit).overridden) == (False, DOWN, None)
    for state in set(CircuitState) - {ACTIVE, DOWN}:
        with pytest.raises(BadInput, match="give active or down"):
            await stage.service.override(circuit.number, state, "why", by="ann")
    with pytest.raises(BadInput, match="needs its reason"):
        await stage.service.override(circuit.number, DOWN, " ", by="ann")
    await stage.service.cancel(circuit.number, by="ann")
    with pytest.raises(BadInput, match="can't be changed"):
        await stage.service.override(circuit.number, DOWN, "why", by="ann")


async def test_the_node_gets_the_same_leases_whatever_the_override(stage: Stage) -> None:
    circuit = await stage.active()
    for state in (DOWN, ACTIVE):
        await stage.service.override(circuit.number, state, "why", by="ann")
        assert list((await stage.again()).node.held) == [circuit.number]
    waiting = await by_hand(stage, rate=10)
    await stage.settle()
    await stage.service.override(waiting.number, ACTIVE, "why", by="ann")
    again = await stage.again()
    await again.settle()
    assert list(again.node.held) == [circuit.number]
    assert again.state(waiting) not in STANDING


async def test_a_copy_has_the_wishes_for_the_path_and_neither_hold_nor_override(stage: Stage) -> None:
    await stage.service.desk.put_topology(NETWORK)
    request = CircuitRequest("first", creation=CircuitCreation.BY_HAND, exclude=("slow",))
    circuit = (await stage.service.request(stage.wish(rate=10, request=request), 60)).circuit
    await stage.service.override(circuit.number, DOWN, "why", by="ann")
    copy = await stage.service.clone(circuit.number, request_id="second", begin=None, by="eve")
    assert (copy.circuit.creation, copy.circuit.request.exclude) == (CircuitCreation.BY_HAND, ("slow",))
    assert (copy.circuit.state, copy.circuit.held_until, copy.circuit.override) == (
        CircuitState.ADMITTED,
        None,
        None,
    )
    assert [hop.link for hop in copy.circuit.path] == ["up", "wide", "unl"]


async def test_requests_choose_their_path(stage: Stage) -> None:
    await stage.service.desk.put_topology(NETWORK)
    for request, links in (
        (CircuitRequest("a"), ["up", "slow", "unl"]),
        (CircuitRequest("b", exclude=("slow",)), ["up", "wide", "unl"]),
        (CircuitRequest("c", include=("wide", "chic")), ["up", "wide", "unl"]),
        (CircuitRequest("d", path_order=PathOrder.WIDEST), ["up", "wide", "unl"]),
    ):
        made = await stage.reserve(rate=10, request=request)
        assert [hop.link for hop in made.path] == links
        assert stage.kept(made).request == request
    for request, sentence in (
        (CircuitRequest("e", exclude=("nowhere",)), "there is no link or switch 'nowhere'"),
        (CircuitRequest("f", include=("slow",), exclude=("slow",)), "slow is both included and excluded"),
        (CircuitRequest("g", exclude=("up",)), "no path leads from hub-eth0 to unl.edu-eth1 without up"),
        (CircuitRequest("h", include=("slow", "wide")), "over slow, wide"),
    ):
        with pytest.raises(BadInput, match=sentence):
            await stage.reserve(rate=10, request=request)
    with pytest.raises(BadInput, match="the hub chooses no path for this circuit"):
        await stage.reserve(to=("ttu.edu",), rate=10, request=CircuitRequest("i", include=("up",)))


async def test_a_change_keeps_the_old_terms_reserved_until_it_is_made(stage: Stage) -> None:
    """The node refuses a lower rate while another request takes what it would set free."""
    circuit = await stage.active(rate=800)
    problem = CircuitProblem("the class can't be changed", "class", "eth0")

    async def greedy() -> None:
        with pytest.raises(CircuitConflict):
            await stage.reserve(rate=600)

    stage.node.refuses[circuit.number] = problem
    with pytest.raises(Failure, match="stays as it was"):
        await asyncio.gather(
            stage.service.modify(circuit.number, CircuitChange(rate_out_bps=300 * M), by="eve"), greedy()
        )
    assert stage.kept(circuit).rate_out_bps == 800 * M
    assert stage.register.calendar.most_bps("hub-eth0") == 800 * M


async def test_a_change_waits_for_the_topology(stage: Stage) -> None:
    """Both take one lock: a change never lands on a link that a new topology narrows at the same moment."""
    await stage.service.desk.put_topology(NETWORK)
    circuit = await stage.reserve(rate=300, start=1)
    async with stage.service._one_at_a_time:
        change = asyncio.create_task(
            stage.service.modify(circuit.number, CircuitChange(rate_out_bps=200 * M), by="eve")
        )
        for _ in range(20):
            await asyncio.sleep(0)
        assert not change.done()
    assert (await change).circuit.rate_out_bps == 200 * M


async def test_a_window_that_has_begun_keeps_its_begin(stage: Stage) -> None:
    circuit = await stage.active()
    with pytest.raises(BadInput, match="has begun, so its begin stays"):
        await stage.service.modify(circuit.number, CircuitChange(begin=circuit.begin + HOUR / 2), by="eve")
    later = await stage.reserve(start=3, rate=10)
    with pytest.raises(BadInput, match="would begin at"):
        await stage.service.modify(later.number, CircuitChange(begin=circuit.begin - HOUR), by="eve")
    with pytest.raises(BadInput, match="not after its begin"):
        await stage.service.modify(later.number, CircuitChange(begin=later.begin + HOUR), by="eve")


async def test_a_moved_window_begins_at_its_new_moment(stage: Stage) -> None:
    circuit = await stage.reserve(start=1)
    moved = CircuitChange(begin=circuit.begin + HOUR, end=circuit.begin + 2 * HOUR)
    await stage.service.modify(circuit.number, moved, by="eve")
    await stage.after(3600)
    assert stage.state(circuit) is CircuitState.ADMITTED
    await stage.after(3600)
    assert stage.state(circuit) is ACTIVE
