"""Tests with load ask the calendar first: grants, waits, refusals, and the trains of circuits."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.circuits import CircuitChange, CircuitEnd, Direction, RateProbe
from downburst.domain.topology import Domain, Link, Switch, TagKind, TagRange, Topology
from downburst.domain.topology.bookings import BookedTest, BookingAnswer, KindOfTest, WantedTest
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict, LimitReached, NotFound
from downburst_circuits import bookings
from downburst_circuits.bookings import CIRCUIT_TRAIN
from kit.circuits import M, NodeInMemory
from unit.circuits.stage import Stage

PATH_TEST = KindOfTest("path-test", "measures a path", 1000 * M, 60)


def wanted(*, out: int = 300, back: int = 0, seconds: float = 10, to: str = "unl.edu") -> WantedTest:
    return WantedTest("path-test", CircuitEnd(""), CircuitEnd("", to), out * M, back * M, seconds)


async def book(stage: Stage, **given: int | float | str) -> BookingAnswer:
    stage.service.tests.add_kind(PATH_TEST)
    return await stage.service.tests.book(wanted(**given))  # type: ignore[arg-type]


def granted(answer: BookingAnswer) -> BookedTest:
    assert answer.booking is not None, answer.sentence
    return answer.booking


async def test_a_test_is_granted_its_rate_for_its_seconds(stage: Stage) -> None:
    booking = granted(await book(stage, out=300, back=100))
    assert (booking.begin, booking.end) == (stage.clock.now(), stage.clock.now() + timedelta(seconds=10))
    assert [end.port for end in (booking.wanted.near, booking.wanted.far)] == ["hub-eth0", "unl.edu-eth1"]
    calendar = stage.register.calendar
    assert calendar.most_bps("hub-eth0", Direction.OUT) == calendar.most_bps("unl.edu-eth1", Direction.IN) == 300 * M
    assert calendar.most_bps("hub-eth0", Direction.IN) == 100 * M
    assert await stage.service.tests.booked() == [booking]


async def test_a_circuit_does_not_get_the_rate_of_a_test_and_is_told_why(stage: Stage) -> None:
    test = granted(await book(stage, out=600, seconds=60))
    with pytest.raises(CircuitConflict, match="nearest window") as refused:
        await stage.reserve(rate=500, to=("ttu.edu",))
    assert f"because of test {test.number} (path-test by hub), and" in str(refused.value)
    assert f"; test {test.number} holds 600 Mb/s out and 0 b/s in to" in str(refused.value)
    assert refused.value.extra["circuits"] == []
    listed: Any = refused.value.extra["tests"]
    assert [(one["test"], one["kind"], one["rate_out_bps"]) for one in listed] == [
        (test.number, "path-test", 600 * M)
    ]
    nearest = refused.value.extra["nearest"]
    assert isinstance(nearest, dict)
    assert nearest["begin"] == (stage.clock.now() + timedelta(seconds=60)).isoformat()
    await stage.reserve(rate=500, to=("ttu.edu",), start=1 / 60)


async def test_circuits_and_tests_in_the_way_are_both_named(stage: Stage) -> None:
    circuit = await stage.active(rate=300)
    test = granted(await book(stage, out=600, to="ttu.edu", seconds=60))
    with pytest.raises(CircuitConflict, match=f"because of circuit {circuit.number} and test {test.number} "):
        await stage.reserve(rate=500, to=("wisc.edu",))


async def test_a_test_that_does_not_fit_now_waits_for_the_first_moment_at_which_it_does(stage: Stage) -> None:
    circuit = await stage.active(rate=800, hours=2)
    answer = await book(stage, out=300)
    assert (answer.booking, answer.begin) == (None, circuit.end)
    assert f"because of circuit {circuit.number}" in answer.sentence
    assert "the test fits from" in answer.sentence
    stage.clock.advance(2 * 3600)
    granted(await book(stage, out=300))


async def test_a_test_without_room_within_a_day_is_refused_with_the_reason(stage: Stage) -> None:
    circuit = await stage.active(rate=800, hours=30)
    with pytest.raises(CircuitConflict, match=f"because of circuit {circuit.number}"):
        await book(stage, out=300)


async def test_two_tests_share_what_is_free_and_a_third_waits(stage: Stage) -> None:
    stage.service.tests.add_kind(PATH_TEST)
    asked = [stage.service.tests.book(wanted(out=500, to=to)) for to in ("unl.edu", "ttu.edu", "wisc.edu")]
    answers = await asyncio.gather(*asked)
    # Each looks up its ends in the ledger first, so the three reach the calendar in any order.
    waiting = [answer for answer in answers if answer.booking is None]
    assert [answer.begin for answer in waiting] == [stage.clock.now() + timedelta(seconds=10)]


async def test_a_test_that_is_over_early_or_in_time_gives_its_rate_back(stage: Stage) -> None:
    first = granted(await book(stage, out=1000))
    stage.clock.advance(4)
    await stage.service.tests.release(first.number)
    with pytest.raises(NotFound, match=f"no running test {first.number}"):
        await stage.service.tests.release(first.number)
    second = granted(await book(stage, out=1000))
    stage.clock.advance(10)
    third = granted(await book(stage, out=1000))
    shown = await stage.service.tests.booked()
    assert [one.number for one in shown] == [third.number, second.number, first.number]
    assert shown[2].end == first.begin + timedelta(seconds=4)
    assert len(stage.register.calendar) == 1


async def test_a_test_takes_a_path_and_keeps_it_when_the_topology_changes(stage: Stage) -> None:
    tags = TagRange(TagKind.VLAN, 100, 199)
    links = (
        Link("up", "hub-eth0", "s-1", 1000 * M, 1000 * M, tags),
        Link("down", "s-2", "unl.edu-eth1", 400 * M, 400 * M, tags),
    )
    topology = Topology((Domain("d"),), (Switch("s", "d", ("s-1", "s-2")),), links)
    await stage.service.desk.put_topology(topology)
    booking = granted(await book(stage, out=300))
    assert [(hop.link, hop.tag) for hop in booking.path] == [("up", 100), ("down", 100)]
    await stage.service.desk.put_topology(replace(topology, links=(links[0], replace(links[1], az_bps=500 * M))))
    assert (await book(stage, out=300)).booking is None
    await stage.service.tests.release(booking.number)
    granted(await book(stage, out=300))


async def test_a_train_of_a_circuit_is_shown_while_it_runs_and_takes_nothing_more(stage: Stage) -> None:
    seen: list[list[BookedTest]] = []
    taken: list[int] = []

    class Watched(NodeInMemory):
        async def probe_rate(
            self, circuit: int, site: str, direction: Direction, *, rate_bps: int, duration_ms: int
        ) -> RateProbe:
            seen.append(await again.service.tests.booked())
            taken.append(again.register.calendar.most_bps("hub-eth0", Direction.OUT))
            return await super().probe_rate(circuit, site, direction, rate_bps=rate_bps, duration_ms=duration_ms)

    again = await Stage(stage.ledger, stage.clock, Watched()).open()
    circuit = await again.active(rate=1000, back=10)
    out = seen[0][0]
    assert (out.wanted.kind, out.wanted.circuit, out.wanted.far.site) == (CIRCUIT_TRAIN, circuit.number, "unl.edu")
    assert (out.wanted.rate_out_bps, out.wanted.rate_in_bps) == (900 * M, 0)
    assert seen[1][0].wanted.rate_in_bps == 9 * M
    assert set(taken) == {1000 * M}
    assert [one.end <= again.clock.now() for one in await again.service.tests.booked()] == [True, True]


async def test_inside_a_circuit_one_test_runs_at_a_time(stage: Stage) -> None:
    circuit = await stage.active(rate=500)
    stage.service.tests.add_kind(PATH_TEST)
    inside = replace(wanted(out=500), circuit=circuit.number)
    booking = granted(await stage.service.tests.book(inside))
    assert stage.register.calendar.most_bps("hub-eth0", Direction.OUT) == 500 * M
    answer = await stage.service.tests.book(inside)
    assert (answer.booking, answer.begin) == (None, booking.end)
    assert f"runs inside circuit {circuit.number}" in answer.sentence
    await stage.service.tests.release(booking.number)
    granted(await stage.service.tests.book(inside))
    with pytest.raises(BadInput, match="has less than the rate of this test"):
        await stage.service.tests.book(replace(inside, rate_out_bps=501 * M))
    with pytest.raises(BadInput, match="circuit 99 is not up"):
        await stage.service.tests.book(replace(inside, circuit=99))


async def test_what_cannot_be_booked_is_told_in_a_sentence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = stage.service.tests
    with pytest.raises(NotFound, match="no kind of test 'path-test'; known are: by-hand, circuit-train"):
        await desk.book(wanted())
    desk.add_kind(PATH_TEST)
    desk.add_kind(PATH_TEST)
    with pytest.raises(AlreadyThere, match="another kind of test called path-test"):
        desk.add_kind(replace(PATH_TEST, most_s=1))
    for seconds in (0, -1, 61, float("nan"), float("inf")):
        with pytest.raises(BadInput, match="takes 60 s at most"):
            await desk.book(wanted(seconds=seconds))
    for out, back in ((0, 0), (-1, 5), (1001, 0)):
        with pytest.raises(BadInput, match="sends at most 1 Gb/s"):
            await desk.book(wanted(out=out, back=back))
    with pytest.raises(NotFound, match="there is no site 'nowhere'"):
        await desk.book(wanted(to="nowhere"))
    monkeypatch.setattr(bookings, "MOST_RUNNING", 1)
    granted(await desk.book(wanted(out=1)))
    with pytest.raises(LimitReached, match="1 tests are booked"):
        await desk.book(wanted(out=1))


async def test_a_test_in_one_direction_alone_is_fine(stage: Stage) -> None:
    booking = granted(await book(stage, out=0, back=700))
    assert booking.wanted.rate_out_bps == 0
    assert stage.register.calendar.most_bps("hub-eth0", Direction.OUT) == 0


async def book_probe(stage: Stage, rate: int, seconds: float = 3_600) -> BookedTest:
    asked = WantedTest("probe", CircuitEnd(""), CircuitEnd("", "unl.edu"), rate * M, 0, seconds)
    return granted(await stage.service.tests.book(asked))


async def test_a_probe_gives_way_to_a_circuit(stage: Stage) -> None:
    probe = await book_probe(stage, 600)
    stage.clock.advance(5)
    await stage.reserve(rate=500, to=("ttu.edu",))
    (ended,) = await stage.service.tests.booked()
    assert (ended.number, ended.end) == (probe.number, stage.clock.now())
    assert stage.register.calendar.most_bps("hub-eth0", Direction.OUT) == 500 * M


async def test_a_probe_keeps_its_rate_when_the_circuit_does_not_fit_without_it_either(stage: Stage) -> None:
    await stage.active(rate=300)
    probe = await book_probe(stage, 600)
    with pytest.raises(CircuitConflict):
        await stage.reserve(rate=900, to=("ttu.edu",))
    assert (await stage.service.tests.booked())[0] == probe
    assert stage.register.calendar.most_bps("hub-eth0", Direction.OUT) == 900 * M


async def test_a_trial_of_a_request_ends_no_probe(stage: Stage) -> None:
    probe = await book_probe(stage, 600)
    await stage.service.request(stage.wish(rate=500, to=("ttu.edu",)), dry_run=True)
    assert await stage.service.tests.booked() == [probe]
    assert stage.register.calendar.most_bps("hub-eth0", Direction.OUT) == 600 * M


async def test_other_tests_do_not_give_way(stage: Stage) -> None:
    await book(stage, out=600, seconds=60)
    with pytest.raises(CircuitConflict):
        await stage.reserve(rate=500, to=("ttu.edu",))


async def test_a_probe_gives_way_to_a_higher_rate_of_a_circuit_but_not_to_its_trial(stage: Stage) -> None:
    circuit = await stage.active(rate=300, to=("ttu.edu",))
    await stage.active(rate=200, to=("wisc.edu",))
    probe = await book_probe(stage, 500)
    more = CircuitChange(rate_out_bps=700 * M)
    await stage.service.modify(circuit.number, more, by="eve", dry_run=True)
    assert await running(stage) == [probe.number]
    with pytest.raises(CircuitConflict):
        await stage.service.modify(circuit.number, CircuitChange(rate_out_bps=900 * M), by="eve")
    assert await running(stage) == [probe.number]
    await stage.service.modify(circuit.number, more, by="eve")
    assert await running(stage) == []
    assert stage.register.calendar.most_bps("hub-eth0", Direction.OUT) == 900 * M


async def test_a_probe_gives_way_to_a_new_leaf(stage: Stage) -> None:
    circuit = await stage.reserve(rate=200, to=("ttu.edu", "wisc.edu"))
    probe = await book_probe(stage, 600)
    leaf = CircuitEnd("", "unl.edu")
    await stage.service.leaves.add_leaf(circuit.number, leaf, by="eve", dry_run=True)
    assert await running(stage) == [probe.number]
    await stage.service.leaves.add_leaf(circuit.number, leaf, by="eve")
    assert await running(stage) == []


async def running(stage: Stage) -> list[int]:
    now = stage.clock.now()
    return [one.number for one in await stage.service.tests.booked() if one.end > now]
