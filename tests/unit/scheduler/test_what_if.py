"""Other conditions of a feed: the live planner's own decisions and figures, and the values at which they flip."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest

import downburst_scheduler.loop
from downburst.domain.events import SubscriptionsChanged
from downburst.domain.plans import OtherConditions, Pin, TrafficSpan, Transport, WhatIf
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import NothingToCompare, TooMany, UnknownFeed
from downburst.ledger import Ledger
from downburst.parts.names import Part
from downburst.parts.questions import answer_for_good
from downburst.settings.hub import Settings
from downburst.settings.scheduler import SchedulerSettings
from downburst_scheduler.figures.traffic import Arrivals, FeedWindow
from downburst_scheduler.models.offers import DemandOffer
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.planner import Decision, Question, Rules, decide
from downburst_scheduler.what_if import desk
from downburst_scheduler.what_if.conditions import so_many, under
from downburst_scheduler.what_if.desk import RemoteWhatIf, WhatIfDesk, answers_of_desk
from downburst_scheduler.what_if.flips import SLIDERS
from downburst_scheduler.what_if.trying import Inputs, try_other
from factories import SOME_TIME
from unit.scheduler.feeds import live, ngrid_hour, peaked, sites, steady
from unit.scheduler.test_loop import FIVE, Hub

NONE = OtherConditions()


@pytest.fixture
def hub(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> Hub:
    settings = Settings(data_dir=tmp_path, scheduler=SchedulerSettings(step_s=10, window_s=120, dwell_s=60))
    return Hub(ledger, settings, clock)


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Question, Decision]]:
    """All questions of the live loop with its decisions."""
    found: list[tuple[Question, Decision]] = []

    def record(question: Question) -> Decision:
        decision = decide(question)
        found.append((question, decision))
        return decision

    monkeypatch.setattr(downburst_scheduler.loop, "decide", record)
    return found


def asked(traffic: Arrivals | None = None, count: int = 5, **other: object) -> Question:
    return Question(traffic or steady(), live(*sites(count), **other), now_s=0.0, rules=Rules())


def tried(question: Question, other: OtherConditions = NONE, *, searches: float = float("inf")) -> WhatIf:
    """The answer, with flips found by so many looks at the time."""
    looks = count(1)
    inputs = Inputs(question, question.arrivals, 0.0)
    return try_other("NGRID", inputs, other, may_search=lambda: next(looks) <= searches)


def choice(question: Question, other: OtherConditions = NONE) -> WhatIf:
    """The answer without a search of flips."""
    return tried(question, other, searches=0)


async def test_without_other_conditions_it_is_the_live_plan(
    hub: Hub, decided: list[tuple[Question, Decision]]
) -> None:
    """For a steady feed, one of small products, and one with bursts beyond its objective."""
    for feed, takers in (("NGRID", FIVE), ("TEXT", FIVE[:1]), ("BUSY", FIVE[:3])):
        hub.add(feed, *takers)
    await hub.loop.start()
    for second in range(60):
        await hub.seconds(1)
        await hub.seconds(1, sizes=(400,), feed="TEXT")
        await hub.seconds(1, sizes=(2_000_000,) * (40 if second % 10 == 0 else 1), feed="BUSY")
    _are_equal(hub, decided, ("NGRID", "TEXT", "BUSY"))


async def test_on_the_recorded_hour_it_is_the_live_plan(hub: Hub, decided: list[tuple[Question, Decision]]) -> None:
    hub.add("NGRID", *FIVE)
    recorded = list(_by_second(ngrid_hour(), seconds=200))
    await hub.loop.start()
    for sizes in recorded:
        await hub.seconds(1, sizes=sizes)
    _are_equal(hub, decided, ("NGRID",))


def _are_equal(hub: Hub, decided: list[tuple[Question, Decision]], feeds: tuple[str, ...]) -> None:
    """The same transport, figures and sentence as in each decision of the live loop and in its plans."""
    measured = [(question, decision) for question, decision in decided if len(question.arrivals.at_s)]
    assert len(measured) > 15
    for question, decision in measured:
        answer = choice(question)
        assert (answer.now.transport, answer.now.candidates) == (decision.transport, decision.candidates)
        assert answer.then.transport is (decision.favourite or decision.chosen).transport
        assert sorted(answer.then.candidates, key=str) == sorted(decision.candidates, key=str)
    for feed in feeds:
        plan = hub.plan(feed)
        of_plan = [question for question, decision in measured if decision.candidates == plan.candidates]
        said = {(answer.now.transport, answer.now.sentence) for answer in map(choice, of_plan)}
        assert (plan.transport, plan.reason) in said, feed


async def test_the_desk_asks_about_the_loops_own_state(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(40)
    answer = await WhatIfDesk(hub.loop).what_if("NGRID", NONE, search=False)
    assert answer.now.transport is answer.then.transport is hub.plan().transport is Transport.MULTICAST
    assert (answer.today.sites, answer.span_s, answer.products) == (5, 40.0, 400)
    assert answer.today == answer.tried
    version = hub.plan().version
    await WhatIfDesk(hub.loop).what_if("NGRID", OtherConditions(sites=1), search=True)
    assert hub.plan().version == version
    assert (await WhatIfDesk(hub.loop).what_if("NGRID", NONE, search=False)) == answer


async def test_a_scheduler_apart_gives_the_same_answer_over_the_bus(hub: Hub) -> None:
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(20)
    questions = WhatIfDesk(hub.loop)
    task = asyncio.create_task(answer_for_good(hub.bus, Part.SCHEDULER, answers_of_desk(questions)))
    await asyncio.sleep(0)
    try:
        remote, other = RemoteWhatIf(hub.bus), OtherConditions(sites=50, objective_ms=3_000.0)
        assert await remote.what_if("NGRID", other, search=True) == await questions.what_if(
            "NGRID", other, search=True
        )
        with pytest.raises(UnknownFeed, match="did you mean NGRID"):
            await remote.what_if("NGRIDS", other, search=True)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_feed_without_sites_or_products_is_refused_with_the_reason(hub: Hub) -> None:
    hub.add("NGRID")
    await hub.loop.start()
    questions = WhatIfDesk(hub.loop)
    with pytest.raises(NothingToCompare, match="no site takes NGRID"):
        await questions.what_if("NGRID", NONE, search=True)
    hub.add("NGRID", "a")
    await hub.loop.handle(SubscriptionsChanged())
    with pytest.raises(NothingToCompare, match="no product of NGRID came since the hub started"):
        await questions.what_if("NGRID", NONE, search=True)
    await hub.seconds(5)
    await hub.seconds(200, sizes=())
    with pytest.raises(NothingToCompare, match=r"in the last 120 s; try .*, or try its busiest minutes"):
        await questions.what_if("NGRID", NONE, search=True)
    busiest = await questions.what_if("NGRID", OtherConditions(traffic=TrafficSpan.BUSIEST), search=False)
    assert busiest.products == 50
    assert busiest.begun_s_ago > 120


@pytest.mark.parametrize("traffic", [steady(), steady(size_bytes=2_000, every_s=0.05), peaked(10e6, 30e6, minutes=5)])
def test_a_choice_flips_where_it_is_said_and_not_before(traffic: Arrivals) -> None:
    question = replace(asked(traffic, 8, egress_bps=200e6), pin=None)
    other = OtherConditions(sites=12)
    answer = tried(question, other)
    assert answer.complete
    assert answer.flips
    limits = {slider.condition: slider for slider in SLIDERS}
    for flip in answer.flips:
        slider = limits[flip.condition]
        assert slider.least <= flip.at <= slider.most
        assert (flip.at < getattr(answer.tried, flip.condition)) is flip.below
        there = choice(question, slider.set(other, flip.at)).then.transport
        assert there is flip.transport is not answer.then.transport
    sites_flip = next(flip for flip in answer.flips if flip.condition == "sites")
    for number in range(int(sites_flip.at) + 1, 13) if sites_flip.below else range(12, int(sites_flip.at)):
        assert choice(question, OtherConditions(sites=number)).then.transport is answer.then.transport


def test_each_condition_reaches_the_models() -> None:
    question = replace(asked(count=4), situation=live(*(replace(one, demand=OFFER) for one in sites(4))))
    today = choice(question)
    assert today.today.setup_s == 20.0
    other = OtherConditions(sites=6, egress_bps=5e6, objective_ms=700.0, setup_s=1.0)
    answer = choice(question, other)
    assert answer.tried == replace(answer.tried, sites=6, egress_bps=5e6, objective_ms=700.0, setup_s=1.0)
    one_by_one = [
        choice(question, replace(NONE, **{name: getattr(other, name)})).then.candidates
        for name in ("sites", "egress_bps", "setup_s")
    ]
    assert all(candidates != today.then.candidates for candidates in one_by_one)
    slow = under(question, OtherConditions(setup_s=1.0)).situation.sites[0]
    assert isinstance(slow, SiteFacts)
    assert slow.demand == replace(OFFER, setup_s=1.0)
    late = choice(asked(peaked(20e6, 60e6, minutes=5), 8, egress_bps=20e6), OtherConditions(objective_ms=10.0))
    assert "over the objective of 10 ms" in late.then.sentence


def test_a_smaller_number_of_sites_is_part_of_a_larger_one() -> None:
    known = tuple(replace(one, circuit=None, in_group=True) for one in sites(7))
    names = [{site.name for site in so_many(known, wanted)} for wanted in range(1, 20)]
    assert all(fewer < more for fewer, more in pairwise(names))
    assert [len(some) for some in names] == list(range(1, 20)), "copies have names of their own"
    assert {site.name for site in known} == names[6]
    assert not any(site.in_group for site in so_many(known, 9)[7:])
    assert so_many(known, 7) == known


def test_notes_say_on_what_an_answer_stands() -> None:
    question = asked(count=4)
    assert choice(question).notes == ()
    assert (
        "100 sites more are taken to be like the present ones" in tried(question, OtherConditions(sites=104)).notes[0]
    )
    assert tried(question, OtherConditions(sites=3)).notes[0].startswith("3 of the 4 sites are taken")
    assert "no offer of circuits on demand" in tried(question, OtherConditions(setup_s=3.0)).notes[0]
    pinned = replace(question, pin=Pin("NGRID", Transport.UNICAST, "anna", SOME_TIME))
    answer = tried(pinned, OtherConditions(sites=104))
    assert answer.then.transport is Transport.UNICAST
    assert answer.notes[-1].startswith("the feed is pinned by anna")
    assert tried(replace(question, mistrust="predictions are off")).notes == ("predictions are off",)


def test_a_search_that_ended_early_says_so_and_keeps_its_flips() -> None:
    other, whole = OtherConditions(sites=30), tried(asked(), OtherConditions(sites=30))
    for searches in range(12):
        answer = tried(asked(), other, searches=searches)
        assert not answer.complete
        assert answer.then == whole.then
        assert answer.flips == whole.flips[: len(answer.flips)]
    assert whole.complete


async def test_a_search_ends_for_a_question_that_waits(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "LEAST_SEARCH_S", 0.0)
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(30)
    questions = WhatIfDesk(hub.loop)
    both = (questions.what_if("NGRID", OtherConditions(sites=sites), search=True) for sites in (200, 100))
    first, last = await asyncio.gather(*both)
    assert (first.complete, last.complete) == (False, True)
    assert (first.tried.sites, last.tried.sites) == (200, 100)


async def test_a_question_that_waits_too_long_is_refused(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "PATIENCE_S", 0.01)
    hub.add("NGRID", *FIVE)
    await hub.loop.start()
    await hub.seconds(5)
    questions = WhatIfDesk(hub.loop)
    async with questions._turn:
        with pytest.raises(TooMany, match="busy with other questions"):
            await questions.what_if("NGRID", NONE, search=False)
    assert (await questions.what_if("NGRID", NONE, search=False)).products == 50


def test_the_busiest_window_of_the_day_is_kept_and_forgotten_a_day_later() -> None:
    window = FeedWindow(20, 800.0)

    def seconds(count: int, size: int) -> None:
        for _ in range(count):
            window.add(seconds=1.0, products=1 if size else 0, size_bytes=size, sizes=(size,) if size else ())

    seconds(40, 1_000)
    seconds(20, 9_000)
    now, age_s = window.busiest()
    assert (now.size_bytes.sum(), age_s) == (180_000, 0.0), "the present is the busiest"
    seconds(700, 1_000)
    busiest, age_s = window.busiest()
    assert (busiest.size_bytes.sum(), busiest.span_s, age_s) == (180_000, 20.0, 700.0)
    seconds(200, 1_000)
    assert window.busiest()[0].size_bytes.sum() == 20_000
    assert len(window._busy) <= 10


def _by_second(traffic: Arrivals, *, seconds: int) -> Iterator[tuple[int, ...]]:
    for at in range(seconds):
        inside = (traffic.at_s >= at) & (traffic.at_s < at + 1)
        yield tuple(map(int, traffic.size_bytes[inside]))


OFFER = DemandOffer("campus", (100_000_000, 500_000_000), 0.5, 20.0)
