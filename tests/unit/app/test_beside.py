"""The hub's side of parts in other processes: silence and its end are reported once, ended circuits are removed."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, CircuitState, Port
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import PartSeen
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadSettings
from downburst.ledger import Ledger
from downburst.live.state import CircuitLoad, LiveState
from downburst.parts.names import Part
from downburst.parts.presence import SILENT_S, Presence
from downburst.settings.hub import Settings
from downburst.supervision import keep, start
from downburst_app.wiring.apart import serve_alarms, serve_circuits
from downburst_app.wiring.beside import MEANWHILE, Beside
from factories import settings

SERVERS = {"ledger_url": "postgresql://d@db/d", "kafka": {"servers": "k:9092"}}


class Hub:
    def __init__(self, given: Settings, ledger: Ledger) -> None:
        self.bus, self.live, self.said, self.now_s = LocalBus(), LiveState(), list[tuple[str, str]](), 0.0
        self.beside = Beside(given, ledger=ledger, bus=self.bus, live=self.live, say=self._say)

    async def _say(self, sentence: str, next_step: str) -> None:
        self.said.append((sentence, next_step))


def test_a_hub_of_one_process_has_nothing_to_do(tmp_path: Path, ledger: Ledger) -> None:
    hub = Hub(settings(tmp_path), ledger)
    assert list(hub.beside.runs()) == []
    assert hub.beside.presence.probes() == {}
    assert set(MEANWHILE) == set(Part) - {Part.HUB}


async def test_silence_is_told_once_and_its_end_once(tmp_path: Path, ledger: Ledger) -> None:
    hub = Hub(settings(tmp_path, **SERVERS, circuits={"apart": True}), ledger)
    hub.beside.presence = Presence([Part.CIRCUITS], lambda: hub.now_s)
    for _ in range(3):
        await hub.beside.look()
    assert hub.said == []
    hub.now_s = SILENT_S + 1
    for _ in range(3):
        await hub.beside.look()
    hub.beside.presence.seen(PartSeen("circuit service", "circuit service on a"))
    for _ in range(3):
        await hub.beside.look()
    (silent, step), back = hub.said
    assert silent.startswith("the circuit service gives no sign of life; circuits stay as they are")
    assert "downburst circuit-service" in step
    assert back == ("the circuit service is at work again", "")


async def test_what_runs_for_them_follows_the_settings(tmp_path: Path, ledger: Ledger) -> None:
    given = settings(tmp_path, **SERVERS, scheduler={"apart": True})
    hub = Hub(given, ledger)
    assert [name for name, _ in hub.beside.runs()] == ["beside.presence", "beside.silence"]
    hub = Hub(settings(tmp_path, **SERVERS, circuits={"apart": True}), ledger)
    hub.beside.answer({"question": _answer})
    assert {name for name, _ in hub.beside.runs()} == {
        "beside.presence",
        "beside.silence",
        "beside.questions",
        "beside.circuits",
    }


async def test_circuits_that_ended_elsewhere_leave_the_hubs_memory(
    tmp_path: Path, ledger: Ledger, clock: FakeClock
) -> None:
    with ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu"))
        for port in (Port("here", 10), Port("there", 10, "unl.edu")):
            tx.ports.add(port)
        ends = (CircuitEnd("here"), CircuitEnd("there", "unl.edu"))
        begin, end = clock.now(), clock.now() + timedelta(hours=1)
        made = [
            tx.circuits.add(Circuit(0, CircuitRequest(f"r{state}"), ends, 1, 0, begin, end, state=state))
            for state in (CircuitState.ACTIVE, CircuitState.ENDED)
        ]
    hub = Hub(settings(tmp_path, **SERVERS, circuits={"apart": True}), ledger)
    numbers = [*(circuit.number for circuit in made), 999]
    hub.live.circuits = {(number, None): CircuitLoad() for number in numbers}
    runs = dict(hub.beside.runs())
    task = start("test.circuits", keep("test.circuits", runs["beside.circuits"]))
    await asyncio.sleep(0)
    for number in (*numbers, None):
        hub.bus.publish(CircuitsChanged(number))
    async with asyncio.timeout(20):
        while len(hub.live.circuits) > 1:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
    assert set(hub.live.circuits) == {(made[0].number, None)}
    task.cancel()


@pytest.mark.parametrize(("serve", "name"), [(serve_circuits, "circuits.apart"), (serve_alarms, "alarms.apart")])
async def test_a_part_that_the_hub_runs_itself_is_refused(tmp_path: Path, serve: object, name: str) -> None:
    with pytest.raises(BadSettings, match=f"{name} = true"):
        await serve(settings(tmp_path))  # type: ignore[operator]


async def _answer(content: str) -> str:
    return content
