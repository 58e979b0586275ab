"""The desk for people: circuits along paths, refusals that name holders and the nearest window, two questions."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.circuits import CircuitChange, CircuitEnd, CircuitHop, CircuitRequest, PathOrder
from downburst.domain.topology import Domain, Host, Link, Maintenance, Switch, TagKind, TagRange, Topology
from downburst.domain.topology.questions import PathQuestion, RateQuestion, WindowQuestion
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict
from kit.circuits import M
from unit.circuits.stage import HOUR, Stage

UNL, TTU = "unl.edu-eth1", "ttu.edu-eth1"
TAGS = TagRange(TagKind.VLAN, 100, 199)
HIGH = TagRange(TagKind.VLAN, 150, 199)
NETWORK = Topology(
    domains=(Domain("campus"), Domain("backbone")),
    switches=(
        Switch("core", "campus", ("core-1", "core-2", "core-3")),
        Switch("chic", "backbone", ("chic-1", "chic-2", "chic-3"), translates=True),
    ),
    links=(
        Link("up", "hub-eth0", "core-1", 1000 * M, 1000 * M, TAGS),
        Link("slow", "chic-1", "core-2", 300 * M, 600 * M, TAGS, cost=1),
        Link("wide", "core-3", "chic-2", 800 * M, 800 * M, TAGS, cost=5),
        Link("unl", "chic-3", UNL, 1000 * M, 1000 * M, HIGH),
    ),
    hosts=(Host("hub-1", ("hub-eth0",), 900 * M),),
)
PATH = PathQuestion(CircuitEnd(""), CircuitEnd("", "unl.edu"))


def begin_of(window: object) -> object:
    assert isinstance(window, dict)
    return window["begin"]


@pytest.fixture
async def desk(stage: Stage) -> Stage:
    await stage.service.desk.put_topology(NETWORK)
    return stage


async def test_a_circuit_takes_the_shortest_path_with_room_and_one_tag(desk: Stage) -> None:
    first = await desk.reserve(rate=300, start=1)
    assert first.path == (
        CircuitHop("up", forward=True, tag=150),
        CircuitHop("slow", forward=False, tag=150),
        CircuitHop("unl", forward=True, tag=150),
    )
    second = await desk.reserve(rate=400, start=1)
    assert [(hop.link, hop.tag) for hop in second.path] == [("up", 151), ("wide", 151), ("unl", 151)]
    assert [end.vlan for end in second.ends] == [151, 151]


async def test_paths_and_reservations_are_the_same_after_a_restart(desk: Stage) -> None:
    made = await desk.reserve(rate=300, start=1)
    again = await desk.again()
    assert again.register.open[made.number].path == made.path
    assert NETWORK.difference(again.register.network.topology) == []
    assert again.register.calendar.users("link slow") == [made.number]
    assert again.register.calendar.users("host hub-1") == [made.number]


async def test_a_refusal_names_the_holder_and_the_nearest_window(desk: Stage) -> None:
    holder = await desk.reserve(rate=700, start=1)
    with pytest.raises(CircuitConflict) as refused:
        await desk.reserve(rate=400, start=1)
    said, extra = refused.value.sentence, refused.value.extra
    assert said.startswith("port hub-eth0 has 300 Mb/s of 1 Gb/s free to be sent from")
    assert f"circuit {holder.number} holds 700 Mb/s out and 0 b/s in to 2026-" in said
    assert holder.end is not None
    assert begin_of(extra["nearest"]) in (holder.end.isoformat(), desk.clock.now().isoformat())
    assert "the nearest window with room begins at" in said


async def test_a_host_refuses_what_its_ports_would_carry(desk: Stage) -> None:
    with pytest.raises(CircuitConflict, match=r"host hub-1 has 900 Mb/s of 900 Mb/s free"):
        await desk.reserve(rate=950, start=1)


async def test_a_maintenance_closes_what_it_is_of_and_tells_who_is_affected(desk: Stage) -> None:
    begun = await desk.reserve(rate=300, start=1)
    window = Maintenance("work", ("chic",), begun.begin - HOUR, begun.begin + HOUR, "new fan")
    answer = await desk.service.desk.put_topology(replace(NETWORK, maintenance=(window,)))
    assert (answer.changes, answer.affected) == (("add maintenance work",), (begun.number,))
    with pytest.raises(CircuitConflict, match=r"is closed from .* for maintenance work; .*nearest window") as refused:
        await desk.reserve(rate=10, begin=begun.begin, end=begun.begin + HOUR)
    assert begin_of(refused.value.extra["nearest"]) == window.end.isoformat()
    assert desk.register.open[begun.number].path == begun.path


async def test_a_topology_keeps_what_circuits_hold(desk: Stage) -> None:
    made = await desk.reserve(rate=300, start=1)
    put = desk.service.desk.put_topology
    with pytest.raises(AlreadyThere, match=f"link slow is needed by circuit {made.number}"):
        await put(replace(NETWORK, links=tuple(link for link in NETWORK.links if link.name != "slow")))
    less = tuple(replace(link, za_bps=200 * M) if link.name == "slow" else link for link in NETWORK.links)
    with pytest.raises(CircuitConflict, match="link slow can't have 200 Mb/s in: circuits hold up to 300 Mb/s"):
        await put(replace(NETWORK, links=less))
    with pytest.raises(BadInput, match="there is no domain of that name"):
        await put(replace(NETWORK, domains=()))
    assert desk.register.network.topology == NETWORK
    await desk.service.cancel(made.number, by="anna")
    await desk.settle()
    with pytest.raises(AlreadyThere, match="needed by link up"):
        await desk.service.remove_port("hub-eth0")


async def test_a_dry_run_tells_the_changes_and_makes_none(desk: Stage) -> None:
    answer = await desk.service.desk.put_topology(Topology(), dry_run=True)
    assert (answer.done, len(answer.changes)) == (False, 9)
    assert desk.register.network.topology == NETWORK


async def test_a_change_of_the_rate_is_judged_on_every_link(desk: Stage) -> None:
    made = await desk.reserve(rate=200, start=1)
    with pytest.raises(CircuitConflict, match="link slow has 600 Mb/s of 600 Mb/s free"):
        await desk.service.modify(made.number, CircuitChange(rate_out_bps=700 * M), by="anna")
    kept = await desk.service.modify(made.number, CircuitChange(rate_out_bps=500 * M), by="anna")
    assert (kept.circuit.path, kept.circuit.rate_out_bps) == (made.path, 500 * M)


async def test_the_first_window_for_a_rate_is_found_with_its_path(desk: Stage) -> None:
    holder = await desk.reserve(rate=700, start=0)
    asked = WindowQuestion(PATH, 400 * M, 0, 2700.0, desk.clock.now(), desk.clock.now() + 24 * HOUR)
    answer = await desk.service.desk.find_window(asked)
    assert answer.found is not None
    assert answer.found.begin == holder.end
    assert answer.found.end - answer.found.begin == timedelta(minutes=45)
    assert [hop.link for hop in answer.found.path] == ["up", "slow", "unl"]
    none = await desk.service.desk.find_window(replace(asked, last=desk.clock.now() + timedelta(seconds=1)))
    assert none.found is None
    assert none.sentence.startswith("no window for 400 Mb/s out and 0 b/s in begins up to 2026-01-01")


async def test_the_free_rate_of_a_window_is_that_of_the_widest_path(desk: Stage) -> None:
    now = desk.clock.now()
    asked = RateQuestion(replace(PATH, order=PathOrder.WIDEST), now, now + HOUR)
    answer = await desk.service.desk.find_rate(asked)
    assert (answer.rate_out_bps, answer.rate_in_bps) == (800 * M, 800 * M)
    assert [hop.link for hop in answer.path] == ["up", "wide", "unl"]
    narrow = replace(asked, path=replace(asked.path, exclude=frozenset({"wide"})))
    assert (await desk.service.desk.find_rate(narrow)).rate_out_bps == 600 * M


async def test_bad_questions_get_one_sentence_each(desk: Stage) -> None:
    now, ask = desk.clock.now(), desk.service.desk
    window = WindowQuestion(PATH, 400 * M, 0, 2700.0, now, now + HOUR)
    for wrong, sentence in (
        (replace(window, seconds=0), "give a window of up to 366 days"),
        (replace(window, last=now - HOUR), "a last begin not before the first"),
        (replace(window, first=now - HOUR), "give begins that are not past"),
        (replace(window, rate_out_bps=1), "give at least 64 kb/s"),
        (replace(window, path=replace(PATH, include=frozenset({"moon"}))), "no link or switch 'moon'"),
        (replace(window, path=replace(PATH, exclude=frozenset({"chic"}))), "no path leads from hub-eth0 to"),
    ):
        with pytest.raises(BadInput, match=sentence):
            await ask.find_window(wrong)
    with pytest.raises(BadInput, match="ends not after its begin"):
        await ask.find_rate(RateQuestion(PATH, now, now))


async def test_without_links_at_the_ports_the_ports_alone_count(stage: Stage) -> None:
    made = await stage.reserve(rate=700, start=0)
    now = stage.clock.now()
    answer = await stage.service.desk.find_rate(RateQuestion(PATH, now, now + HOUR))
    assert (answer.rate_out_bps, answer.rate_in_bps, answer.path, made.path) == (300 * M, 1000 * M, (), ())


async def test_full_ports_that_no_path_joins_are_refused_for_the_path(desk: Stage) -> None:
    """No window would do, so there is none to name."""
    await desk.reserve(rate=800, start=1)
    with pytest.raises(BadInput, match="no path leads from hub-eth0 to unl"):
        await desk.reserve(rate=800, start=1, request=CircuitRequest("other", exclude=("unl",)))
