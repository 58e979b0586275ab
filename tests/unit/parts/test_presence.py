"""A part without signs of life is reported after a while, and so is one that reports its own failure."""

import asyncio
from pathlib import Path

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.events import PartSeen
from downburst.foundation.errors import Failure
from downburst.parts import presence
from downburst.parts.names import Part, parts_apart
from downburst.parts.presence import SILENT_S, Presence, at_work, show_life
from downburst.supervision import start
from factories import settings


class Time:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def fault_of(watched: Presence, name: str) -> str | None:
    try:
        await watched.probes()[name]()
    except Failure as error:
        return error.sentence
    return None


async def test_a_part_has_its_time_then_it_is_silent_until_it_is_heard() -> None:
    time = Time()
    watched = Presence([Part.CIRCUITS, Part.ALARMS], time)
    time.now_s += SILENT_S
    assert watched.silent() == {}
    time.now_s += 1
    watched.seen(PartSeen("alarm service", "alarm service on a"))
    assert watched.silent() == {Part.CIRCUITS: SILENT_S + 1}
    assert await fault_of(watched, "circuit-service") == "no sign of life from the circuit service for 16 s"
    assert await fault_of(watched, "alarm-service") is None
    watched.seen(PartSeen("circuit service", "circuit service on b"))
    watched.seen(PartSeen("scheduler", "scheduler on c"))
    assert watched.silent() == {}
    assert set(watched.probes()) == {"circuit-service", "alarm-service"}


async def test_a_part_that_knows_that_it_does_not_work_fails_its_probe() -> None:
    watched = Presence([Part.ALARMS], Time())
    watched.seen(PartSeen("alarm service", "a", fault="alarms were not evaluated for 80 s"))
    assert await fault_of(watched, "alarm-service") == "alarms were not evaluated for 80 s"
    watched.seen(PartSeen("alarm service", "a"))
    assert await fault_of(watched, "alarm-service") is None


async def test_signs_of_life_go_over_the_bus_with_what_the_part_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "EVERY_S", 0.001)
    bus, faults = LocalBus(), ["alarms were not notified for 70 s", None, None]

    async def prove() -> None:
        if fault := faults.pop(0) if faults else None:
            raise Failure(fault)

    heard = bus.subscribe(PartSeen)
    showing = start("test.life", show_life(bus, Part.ALARMS, "alarm service on a", prove))
    first, second = await asyncio.wait_for(heard.next(), 20), await asyncio.wait_for(heard.next(), 20)
    showing.cancel()
    assert first == PartSeen("alarm service", "alarm service on a", "alarms were not notified for 70 s")
    assert second == PartSeen("alarm service", "alarm service on a")
    await at_work()


async def test_the_start_of_a_hub_is_no_silence_of_its_parts() -> None:
    bus, time = LocalBus(), Time()
    watched = Presence([Part.LATENCY], time)
    time.now_s += 60
    following = start("test.follow", watched.follow(bus))
    await asyncio.sleep(0)
    assert watched.silent() == {}
    time.now_s += 60
    assert watched.silent() == {Part.LATENCY: 60}
    bus.publish(PartSeen("latency service", "a"))
    await asyncio.sleep(0.01)
    assert watched.silent() == {}
    following.cancel()


def test_settings_choose_the_parts(tmp_path: Path) -> None:
    servers = {"ledger_url": "postgresql://d@db/d", "kafka": {"servers": "k:9092"}}
    assert parts_apart(settings(tmp_path)) == []
    given = settings(tmp_path, **servers, circuits={"apart": True}, alarms={"apart": True})
    assert parts_apart(given) == [Part.CIRCUITS, Part.ALARMS]
    given = settings(tmp_path, **servers, scheduler={"apart": True}, latency_apart=True)
    assert [part.command for part in parts_apart(given)] == ["scheduler", "latency-service"]
