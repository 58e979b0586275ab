"""Unexpected errors in other processes are reported to the hub, bounded; an alarm names process and handler."""

import asyncio
import threading
from pathlib import Path

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.alarms import AlarmKind
from downburst.domain.events import HandlerFailed
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst.settings.alarms import AlarmSettings
from downburst.supervision import FAULTS, remote_faults, start
from downburst.supervision.faults import HOLDS, LONGEST
from downburst.supervision.remote_faults import RemoteFaults, tell_faults
from downburst_alarms.hub_facts import LiveFacts
from downburst_alarms.notices import NetworkTeller
from downburst_alarms.watch import AlarmWatch
from factories import settings


async def test_a_flood_is_told_once_and_again_while_it_is_of_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus = LocalBus()
    heard = bus.subscribe(HandlerFailed)
    telling = start("test.telling", tell_faults(bus, "scheduler on pod-1"))
    await asyncio.sleep(0)
    thread = threading.Thread(target=lambda: [FAULTS.caught("kafka.events", KeyError("x"), "a") for _ in range(500)])
    thread.start()
    await asyncio.to_thread(thread.join)
    first = await asyncio.wait_for(heard.next(), 20)
    assert isinstance(first, HandlerFailed)
    assert (first.process, first.handler, first.error) == ("scheduler on pod-1", "kafka.events", "KeyError: 'x'")
    await asyncio.sleep(0)
    assert heard.take_dropped() == 0
    telling.cancel()
    monkeypatch.setattr(remote_faults, "AGAIN_S", 0.001)
    again = start("test.telling", tell_faults(bus, "scheduler on pod-1"))
    while not (isinstance(told := await asyncio.wait_for(heard.next(), 20), HandlerFailed) and told.count == 500):
        pass
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    FAULTS.caught("kafka.other", KeyError("y"))
    await asyncio.sleep(0.01)
    waiting = [event for event in heard._waiting if isinstance(event, HandlerFailed)]
    assert {event.handler for event in waiting} <= {"kafka.events"}, "who was cancelled hears no more"


def test_the_hub_keeps_the_last_of_each_place_bounded_and_for_a_while() -> None:
    clock, kept = FakeClock(), RemoteFaults()
    for number in range(remote_faults.MOST + 500):
        kept.seen(_failed(process="p" * 10_000, handler=f"h{number}"), clock.now())
        clock.advance(0.001)
    found = kept.recent(clock.now())
    assert len(found) == remote_faults.MOST
    assert all(len(one.sentence) < 6 * LONGEST for one in found)
    event = _failed(process="sender one", handler="node.line")
    kept.seen(event, clock.now())
    clock.advance(HOLDS.total_seconds() - 1)
    kept.seen(event, clock.now())
    assert [one.place for one in kept.recent(clock.now())][-1:] == ["node.line of the sender one"]
    clock.advance(2)
    assert kept.recent(clock.now()) == [], "told again, but not met again"


async def test_the_alarm_names_process_and_handler(ledger: Ledger, tmp_path: Path) -> None:
    clock, bus = FakeClock(), LocalBus()
    own = settings(tmp_path / "hub", alarms=AlarmSettings(disk_free_share=0, look_s=0.01))
    teller = NetworkTeller(own.name, own.alarms)
    facts = LiveFacts(LiveState(), tmp_path)
    watch = AlarmWatch(ledger, bus, facts, clock=clock, settings=own, teller=teller, say=_unsaid)
    running = asyncio.create_task(watch.run())
    async with asyncio.timeout(20):
        while not (alarms := await ledger.read(lambda tx: tx.alerting.alarms.newest())):
            bus.publish(_failed(process="fleet on a", handler="fleet.look"))
            await asyncio.sleep(0.01)
    running.cancel()
    (alarm,) = alarms
    assert (alarm.kind, alarm.subject) == (AlarmKind.INTERNAL_FAULT, "fleet.look of the fleet on a")
    assert "KeyError: 'x'" in alarm.sentence
    assert alarm.next_step.startswith("the fleet on a continues without it")


def _failed(*, process: str, handler: str) -> HandlerFailed:
    return HandlerFailed(process, handler, 1, FakeClock().now(), "KeyError: 'x'", "w")


async def _unsaid(_sentence: str, _next_step: str) -> None:
    return
