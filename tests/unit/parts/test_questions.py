"""Calls between processes: typed answers arrive whole, in pieces if long, and refusals keep their type."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.access import THE_HUB, Caller, Role, Scope, acting, who_acts
from downburst.domain.circuits import CircuitChange
from downburst.domain.events import PartAnswered, PartAsked
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import CircuitConflict, DownburstError, Failure, NodeAway, NotFound, PartAway
from downburst.parts import questions
from downburst.parts.names import Part
from downburst.parts.questions import Remote, answer_for_good, answers_of
from downburst.supervision import FAULTS, start


@dataclass(frozen=True, slots=True)
class Thing:
    """A value with every kind of field that values of the domain have."""

    name: str
    at: datetime
    change: CircuitChange
    parts: tuple[str, ...] = ()


class Shop:
    """A part in another process."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.callers: list[Caller] = []

    async def repeat(self, thing: Thing, *, times: int = 1) -> list[Thing]:
        self.callers.append(who_acts())
        return [thing] * times

    async def nothing(self) -> None:
        return None

    async def fail(self, kind: str) -> None:
        raise ERRORS[kind]

    async def linger(self, seconds: float) -> str:
        self.entered.set()
        await asyncio.sleep(seconds)
        return "done"


ERRORS: dict[str, Exception] = {
    "conflict": CircuitConflict("there is no room", circuits=[{"circuit": 1, "rate_bps": 5}], port="p"),
    "unknown": NotFound("there is no circuit 7"),
    "unexpected": KeyError("x"),
}
THING = Thing("a" * 10 + '\u00fc\0"', FakeClock().now(), CircuitChange(rate_out_bps=2**60), ("b", "c"))


@asynccontextmanager
async def shop(bus: LocalBus) -> AsyncIterator[Shop]:
    open_shop = Shop()
    answers = answers_of(open_shop, Shop.repeat, Shop.nothing, Shop.fail, Shop.linger)
    task = start("test.shop", answer_for_good(bus, Part.CIRCUITS, answers))
    await asyncio.sleep(0)
    yield open_shop
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_values_come_back_whole() -> None:
    bus = LocalBus()
    async with shop(bus):
        remote = Remote(bus, Part.CIRCUITS)
        assert await remote.ask(Shop.repeat, thing=THING, times=2) == [THING, THING]
        await remote.ask(Shop.nothing)


async def test_what_is_long_travels_in_pieces_that_brokers_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "PIECE", 64)
    bus = LocalBus()
    seen = bus.subscribe(PartAsked, PartAnswered)
    async with shop(bus):
        remote = Remote(bus, Part.CIRCUITS)
        asked = [remote.ask(Shop.repeat, thing=THING, times=times) for times in (1, 30, 7)]
        assert [len(found) for found in await asyncio.gather(*asked)] == [1, 30, 7]
    pieces = [event for event in seen._waiting if isinstance(event, PartAsked | PartAnswered)]
    assert len(pieces) > 50
    assert all(len(event.content) <= 64 for event in pieces)


@pytest.mark.parametrize(
    ("kind", "error", "sentence"),
    [
        ("conflict", CircuitConflict, "there is no room"),
        ("unknown", NotFound, "there is no circuit 7"),
        ("unexpected", Failure, "the circuit service met an unexpected error"),
    ],
)
async def test_refusals_are_raised_as_what_they_were(kind: str, error: type[DownburstError], sentence: str) -> None:
    bus = LocalBus()
    async with shop(bus):
        with pytest.raises(error, match=sentence) as raised:
            await Remote(bus, Part.CIRCUITS).ask(Shop.fail, kind=kind)
    given = ERRORS[kind]
    assert raised.value.extra == (given.extra if isinstance(given, DownburstError) else {})
    assert [fault.handler for fault in FAULTS.all()] == (["parts.answer"] if kind == "unexpected" else [])


async def test_whoever_asked_is_known_to_the_part_for_its_audit() -> None:
    bus, caller = LocalBus(), Caller("eve", Role.OPERATOR, frozenset({Scope.OPERATE}), peer="192.0.2.1")
    async with shop(bus) as answering:
        remote = Remote(bus, Part.CIRCUITS)
        with acting(caller):
            await remote.ask(Shop.repeat, thing=THING, times=1)
        await remote.ask(Shop.repeat, thing=THING, times=1)
    assert answering.callers[0] == caller
    assert answering.callers[1] is THE_HUB


async def test_a_part_that_is_gone_is_told_from_one_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "SIGN_S", 0.5)
    monkeypatch.setattr(questions, "WORKING_S", 0.05)
    bus = LocalBus()
    remote = Remote(bus, Part.CIRCUITS)
    async with shop(bus):
        assert await remote.ask(Shop.linger, seconds=1.5) == "done"
    with pytest.raises(PartAway, match="downburst circuit-service"):
        await remote.ask(Shop.nothing)
    assert PartAway("x").status == 503


async def test_whoever_takes_over_answers_what_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "SIGN_S", 4.0)
    bus = LocalBus()
    asking = start("test.asking", Remote(bus, Part.CIRCUITS).ask(Shop.repeat, thing=THING, times=1))
    await asyncio.sleep(0.1)
    async with shop(bus) as answering:
        assert await asking == [THING]
    assert len(answering.callers) == 1


async def test_what_is_asked_again_is_done_once() -> None:
    bus = LocalBus()
    async with shop(bus) as answering:
        content = questions._spoken(Shop.repeat).write({"thing": THING, "times": 1})
        for _ in range(3):
            bus.publish(PartAsked("7f", Part.CIRCUITS, "Shop.repeat", content))
        assert await Remote(bus, Part.CIRCUITS).ask(Shop.repeat, thing=THING, times=2) == [THING, THING]
        await asyncio.sleep(0.1)
    assert len(answering.callers) == 2


async def test_a_part_that_ends_over_a_question_does_not_keep_anybody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "SIGN_S", 0.3)
    bus = LocalBus()
    async with shop(bus) as answering:
        asking = start("test.asking", Remote(bus, Part.CIRCUITS).ask(Shop.linger, seconds=60))
        await answering.entered.wait()
        with pytest.raises(PartAway):
            await asking


async def test_an_unknown_question_is_refused() -> None:
    bus = LocalBus()
    async with shop(bus):
        with pytest.raises(Failure, match="same release"):
            await Remote(bus, Part.CIRCUITS).ask(ERROR_METHOD)


async def test_pieces_of_processes_that_ended_are_forgotten() -> None:
    bus = LocalBus()
    async with shop(bus):
        for number in range(questions.MOST_INCOMPLETE * 3):
            bus.publish(PartAsked(f"{number}", Part.CIRCUITS, "Shop.nothing", "{", 0, 2))
        await Remote(bus, Part.CIRCUITS).ask(Shop.nothing)


async def unheard_of() -> None:
    """A method that no part has."""
    raise NodeAway("never called")


ERROR_METHOD = unheard_of
