"""Circuits by NSI, from the request to the end, in the words of the hub's users."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.circuits import (
    CircuitCarriage,
    CircuitChange,
    CircuitDriver,
    CircuitEnd,
    CircuitProblem,
    CircuitState,
)
from downburst.domain.events import FaultSeen
from downburst.domain.ordering.providers import Certificate, Dialect
from downburst.foundation.clock import FakeClock, SystemClock
from downburst.foundation.errors import BadInput, DownburstError, Failure, NotFound
from downburst.ledger import Ledger
from downburst.supervision import FAULTS, start, tasks
from downburst_circuits.providers import agents
from kit.circuits import M
from kit.nsi.provider import Connection
from unit.circuits.nsi.hub import BY_NSI, NsiHub
from unit.circuits.stage import HOUR, PORTS

KINDS = pytest.mark.parametrize(("kind", "dialect"), [("supa", Dialect.P2PS), ("opennsa", Dialect.NONE)])


@pytest.fixture
async def hub(ledger: Ledger, clock: FakeClock) -> NsiHub:
    return await NsiHub(ledger, clock).open()


@KINDS
async def test_a_circuit_is_ordered_granted_probed_and_given_back(
    ledger: Ledger, clock: FakeClock, kind: str, dialect: Dialect
) -> None:
    hub = await NsiHub(ledger, clock, kind, dialect).open()
    circuit = await hub.active(rate=50, back=49)
    kept = hub.stage.kept(circuit)
    assert hub.granted_mbps() == [50]
    (one,) = hub.machine.live()
    assert one.granted is not None
    assert [f"?vlan={end.vlan}" for end in kept.ends] == [one.granted.source[-9:], one.granted.dest[-9:]]
    assert None not in [end.address for end in kept.ends]
    assert hub.node.held[circuit.number].driver is CircuitDriver.LINUX
    assert hub.stage.lived(circuit) == ["admitted", "provisioning", "verifying", "active"]
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.after(0)
    assert hub.state(circuit) is CircuitState.CANCELLING
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert (hub.machine.live(), hub.node.held) == ([], {})


@KINDS
async def test_a_path_that_is_torn_down_is_given_back_and_ordered_anew(
    ledger: Ledger, clock: FakeClock, kind: str, dialect: Dialect
) -> None:
    hub = await NsiHub(ledger, clock, kind, dialect).open()
    circuit = await hub.active(rate=50)
    await hub.stage.service.tear_down_path(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.WAITING)
    assert (hub.machine.live(), hub.node.held) == ([], {})
    await hub.stage.service.create_path(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert (hub.granted_mbps()[-1], len(hub.machine.live())) == (50, 1)
    assert hub.stage.lived(circuit)[3:] == [
        "active",
        "tearing-down",
        "waiting",
        "provisioning",
        "verifying",
        "active",
    ]


async def test_nothing_is_built_before_the_provider_calls_it_active(hub: NsiHub) -> None:
    circuit = await hub.order(start=1)
    await hub.after(3599)
    assert hub.machine.requests == []
    await hub.after(1)
    assert hub.state(circuit) is CircuitState.PROVISIONING
    assert not any(what.startswith("up") for what in hub.node.done)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)


async def test_a_window_that_passes_ends_it_at_the_provider_too(hub: NsiHub) -> None:
    circuit = await hub.active(hours=1)
    await hub.after(3600)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ENDED)
    assert [one for one in hub.machine.live() if one.provision == "Provisioned"] == []


async def test_a_port_without_tags_is_used_as_it_is(hub: NsiHub) -> None:
    topology = "urn:ogf:network:north.example:2026:topology"
    for port, vlan in zip(PORTS[:2], (1101, 1102), strict=True):
        stp = f"{topology}:{port.name}?vlan={vlan}"
        await hub.stage.service.change_port(replace(port, first_vlan=None, last_vlan=None, stp=stp))
    circuit = await hub.active()
    lease = hub.node.held[circuit.number]
    assert lease.driver is CircuitDriver.DECLARED
    assert [end.address for end in lease.circuit.ends] == ["192.0.2.1/32", "192.0.2.10/32"]
    assert [end.vlan for end in lease.circuit.ends] == [1101, 1102]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("00705", "CAPACITY_UNAVAILABLE"), "it has no room for 50 Mb/s; ask for less, or for another time"),
        (("00704", "STP_UNAVAILABLE"), "it can't serve the end points"),
        (("00102", "end time is in the past"), "give a window that lies ahead, and check both clocks"),
        (("00302", "UNAUTHORIZED"), "ask its operator to allow the hub's certificate and requester NSA"),
        (("00800", "x" * 100_000), "ask its operator; it answered: 00800"),
    ],
)
async def test_a_refusal_fails_with_the_providers_bounded_words(
    hub: NsiHub, answer: tuple[str, str], words: str
) -> None:
    hub.machine._refusal = lambda asked: answer  # type: ignore[method-assign]
    circuit = await hub.order()
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED)
    reason = hub.reason(circuit)
    assert words in reason
    assert f"it answered: {answer[0]}" in reason
    assert "\n" not in reason
    assert len(reason) < 1_000
    await hub.until(lambda: hub.machine.live() == [], seconds=300)
    assert hub.node.held == {}


async def test_an_unknown_end_point_fails_with_both_names(hub: NsiHub) -> None:
    await hub.stage.service.change_port(replace(PORTS[0], stp="urn:ogf:network:north.example:2026:topology:unknown"))
    circuit = await hub.order()
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED)
    assert "it can't serve the end points" in hub.reason(circuit)


async def test_a_refused_circuit_is_ordered_again_after_a_pause_and_not_at_once(hub: NsiHub) -> None:
    await big_ports(hub)
    circuit = await hub.order(rate=2_000)
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED)
    await hub.after(30)
    assert hub.machine.requests.count("reserve") == 1
    hub.machine.port_mbps = 4_000
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.machine.requests.count("reserve") == 2
    assert hub.granted_mbps() == [2_000]


async def test_a_hold_that_expires_fails_in_one_sentence(hub: NsiHub) -> None:
    hub.machine.hold_us = 0
    circuit = await hub.order()
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED)
    assert "gave up its hold before the commit arrived" in hub.reason(circuit)


async def test_an_unreachable_provider_has_refused_nothing_and_is_reported_once(hub: NsiHub) -> None:
    faults = hub.stage.bus.subscribe(FaultSeen)
    hub.line.cut = True
    circuit = await hub.order(hours=24)
    for _ in range(200):
        await hub.after(5)
        assert hub.state(circuit) in (CircuitState.ADMITTED, CircuitState.PROVISIONING)
    assert "can't be reached" in hub.reason(circuit)
    assert "neither granted nor refused" in hub.reason(circuit)
    fault = await faults.next()
    assert isinstance(fault, FaultSeen)
    assert "can't be reached" in fault.sentence
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await faults.next()
    hub.line.cut = False
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.machine.requests.count("reserve") == 1


async def test_a_circuit_of_an_unreachable_provider_ends_only_when_it_is_gone_there(hub: NsiHub) -> None:
    circuit = await hub.active()
    hub.line.cut = True
    await hub.stage.service.cancel(circuit.number, by="op")
    for _ in range(20):
        await hub.after(10)
    assert hub.state(circuit) is CircuitState.CANCELLING
    assert "can't be reached" in hub.reason(circuit)
    assert hub.node.held == {}
    hub.line.cut = False
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert hub.machine.live() == []


async def test_active_without_a_path_is_no_use(hub: NsiHub) -> None:
    hub.node.silent.add("unl.edu")
    circuit = await hub.order()
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED)
    assert hub.granted_mbps() == [50]
    assert "probes to unl.edu came back" in hub.reason(circuit)
    assert "active" not in hub.stage.lived(circuit)
    hub.node.silent.clear()
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.machine.requests.count("reserve") == 1


async def test_a_path_that_the_provider_takes_back_is_probed_at_once(hub: NsiHub) -> None:
    circuit = await hub.active(hours=10)
    only(hub).provision = "Released"
    hub.node.silent.add("unl.edu")
    await hub.until(lambda: hub.state(circuit) is CircuitState.DOWN, seconds=60)


async def test_a_reservation_that_the_provider_ends_early_fails_and_is_ordered_anew(hub: NsiHub) -> None:
    circuit = await hub.active(hours=10)
    only(hub).lifecycle = "Failed"
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED, seconds=60)
    assert "ended the reservation conn-1 before its time" in hub.reason(circuit)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.machine.requests.count("reserve") == 2
    assert len([one for one in hub.machine.live() if one.lifecycle == "Created"]) == 1


async def test_a_granted_tag_that_another_circuit_has_is_given_back(hub: NsiHub) -> None:
    await hub.stage.active(rate=100)
    circuit = await hub.order()
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED)
    assert "granted the tag 100 of port hub-eth0, which circuit 1 has" in hub.reason(circuit)
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert hub.machine.live() == []


async def test_a_circuit_is_modified_at_the_provider_then_at_its_ends(hub: NsiHub) -> None:
    circuit = await hub.active(rate=50)
    change = CircuitChange(rate_out_bps=20 * M)
    work = asyncio.create_task(hub.stage.service.modify(circuit.number, change, by="op"))
    await hub.while_it_waits(work)
    assert (await work).circuit.rate_out_bps == 20 * M
    assert hub.granted_mbps() == [20]
    assert hub.node.held[circuit.number].circuit.rate_out_bps == 20 * M
    assert hub.state(circuit) is CircuitState.ACTIVE


async def test_a_change_that_the_provider_confirms_differently_leaves_all_as_it_was(hub: NsiHub) -> None:
    circuit = await hub.active(rate=50)
    hub.machine.grants = lambda granted: replace(granted, capacity=0)
    with pytest.raises(Failure, match=r"stays as it was: .*confirmed capacity 0 Mb/s instead of 20"):
        await modified(hub, circuit.number, CircuitChange(rate_out_bps=20 * M))
    assert hub.stage.kept(circuit).rate_out_bps == 50 * M
    assert hub.granted_mbps() == [50]


async def test_a_change_that_the_ends_refuse_is_taken_back_at_the_provider(hub: NsiHub) -> None:
    circuit = await hub.active(rate=50)
    hub.node.refuses[circuit.number] = CircuitProblem("no room in the shaper")
    with pytest.raises(Failure, match="no room in the shaper"):
        await modified(hub, circuit.number, CircuitChange(rate_out_bps=20 * M))
    assert hub.granted_mbps() == [50]
    assert hub.stage.kept(circuit).rate_out_bps == 50 * M


async def test_a_change_without_an_answer_is_withdrawn_if_it_was_not_sent(
    hub: NsiHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "CHANGE_S", 0.05)
    circuit = await hub.active(rate=50, hours=10)
    with pytest.raises(Failure, match=r"stays as it was: provider north has not answered"):
        await hub.stage.service.modify(circuit.number, CircuitChange(rate_out_bps=20 * M), by="op")
    for _ in range(5):
        await hub.after(20)
    assert hub.granted_mbps() == [50]
    hub.line.cut = True
    for _ in range(5):
        await hub.after(60)
    with pytest.raises(Failure, match=r"stays as it was: provider north can't be reached"):
        await hub.stage.service.modify(circuit.number, CircuitChange(rate_out_bps=20 * M), by="op")
    hub.line.cut = False
    for _ in range(5):
        await hub.after(300)
    monkeypatch.setattr(agents, "CHANGE_S", 20.0)
    await modified(hub, circuit.number, CircuitChange(rate_out_bps=20 * M))
    assert hub.granted_mbps() == [20]


async def test_the_end_of_a_window_is_extended_at_the_provider(hub: NsiHub) -> None:
    circuit = await hub.active(hours=1)
    end = hub.stage.kept(circuit).end
    assert end is not None
    await modified(hub, circuit.number, CircuitChange(end=end + HOUR))
    await hub.after(3700)
    assert hub.state(circuit) is CircuitState.ACTIVE
    assert only(hub).lifecycle == "Created"
    await hub.after(3600)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ENDED)


async def test_a_change_before_the_begin_is_ordered_as_changed(hub: NsiHub) -> None:
    circuit = await hub.order(rate=50, start=1)
    await hub.stage.service.modify(circuit.number, CircuitChange(rate_out_bps=20 * M), by="op")
    await hub.after(3600)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.granted_mbps() == [20]


async def test_a_change_while_the_provider_decides_is_refused(hub: NsiHub) -> None:
    circuit = await hub.order()
    await hub.after(0)
    with pytest.raises(BadInput, match="is not in service at provider north; wait until it is"):
        await hub.stage.service.modify(circuit.number, CircuitChange(rate_out_bps=20 * M), by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.granted_mbps() == [50]


async def test_a_provider_that_changes_nothing_is_not_asked(ledger: Ledger, clock: FakeClock) -> None:
    hub = await NsiHub(ledger, clock, "opennsa", Dialect.NONE).open()
    circuit = await hub.active()
    before = len(hub.machine.requests)
    with pytest.raises(BadInput, match="changes no reservation; request another circuit"):
        await hub.stage.service.modify(circuit.number, CircuitChange(rate_out_bps=20 * M), by="op")
    assert len(hub.machine.requests) == before


async def test_bad_requests_are_refused_each_in_one_sentence_and_leave_nothing(hub: NsiHub, tmp_path: Path) -> None:
    assert "there is no provider 'south'" in await refused(hub, NotFound, carriage=by("south"))
    assert "none was named" in await refused(hub, carriage=by(None))
    assert "a circuit for each" in await refused(hub, carriage=BY_NSI, to=("unl.edu", "ttu.edu"))
    linux = CircuitCarriage(CircuitDriver.LINUX, provider="north")
    assert "the driver is linux" in await refused(hub, carriage=linux)
    ends = (CircuitEnd("", address="10.0.0.1/24"), CircuitEnd("", "unl.edu"))
    assert "leave the address out" in await refused(hub, carriage=BY_NSI, ends=ends)
    await hub.stage.service.change_port(PORTS[1])
    assert "port unl.edu-eth1 has no STP" in await refused(hub, carriage=BY_NSI)
    await hub.stage.service.change_port(replace(PORTS[1], stp="unl"))
    assert "'unl' is not an STP" in await refused(hub, carriage=BY_NSI)
    await hub.stage.service.change_port(replace(PORTS[1], stp=f"{hub_stp(hub)}?vlan=7-9"))
    assert "its STP allows 7-9" in await refused(hub, carriage=BY_NSI)
    await hub.stage.service.change_port(replace(PORTS[1], stp=hub_stp(hub)))
    assert "name two STPs" in await refused(hub, carriage=BY_NSI)
    untagged = replace(PORTS[1], first_vlan=None, last_vlan=None, stp="urn:ogf:network:x:unl")
    await hub.stage.service.change_port(untagged)
    assert "port unl.edu-eth1 has no tags and the other one has some" in await refused(hub, carriage=BY_NSI)
    await hub.stage.service.change_port(replace(untagged, underlay=""))
    assert "neither tags nor an address" in await refused(hub, carriage=BY_NSI)
    missing = Certificate(tmp_path / "a.pem", tmp_path / "a.key", tmp_path / "ca.pem")
    with hub.ledger.transaction() as tx:
        tx.planning.providers.put(replace(hub.provider, url="https://north.example/", certificate=missing))
    assert "is not a file; correct the path" in await refused(hub, carriage=BY_NSI)
    assert hub.machine.requests == []


async def test_an_end_before_the_begin_and_a_rate_above_the_port(hub: NsiHub) -> None:
    now = hub.clock.now()
    assert "not after its begin" in await refused(hub, carriage=BY_NSI, begin=now, end=now)
    assert "of port hub-eth0" in await refused(hub, carriage=BY_NSI, rate=5_000)


async def test_garbage_is_no_refusal(hub: NsiHub) -> None:
    hub.machine.post = lambda body: (200, b"<html>no")  # type: ignore[method-assign]
    circuit = await hub.order(hours=10)
    for _ in range(20):
        await hub.after(20)
    assert hub.state(circuit) is CircuitState.PROVISIONING
    assert "neither granted nor refused" in hub.reason(circuit)


async def test_a_record_that_changes_goes_on_with_its_orders(hub: NsiHub) -> None:
    circuit = await hub.active()
    with hub.ledger.transaction() as tx:
        tx.planning.providers.put(replace(hub.provider, url="http://127.0.0.1:10/nsi"))
    await hub.after(1)
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert hub.machine.live() == []


async def test_damaged_records_stop_orders_at_that_provider_and_are_reported_once(hub: NsiHub) -> None:
    circuit = await hub.active()
    with hub.ledger.transaction() as tx:
        tx.planning.nsi.put(circuit.number, "north", {"format": 99})
    await hub.again()
    faults = hub.stage.bus.subscribe(FaultSeen)
    other = await hub.order(to=("ttu.edu",))
    for _ in range(5):
        await hub.after(5)
    assert hub.state(other) is CircuitState.PROVISIONING
    assert "stored in format '99'" in hub.reason(other)
    assert hub.machine.requests.count("reserve") == 1
    assert isinstance(await faults.next(), FaultSeen)


async def test_records_are_forgotten_some_time_after_the_end(hub: NsiHub) -> None:
    circuit = await hub.active()
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert stored(hub) == 1
    await hub.after(1)
    await hub.after(600)
    assert stored(hub) == 0
    before = len(hub.machine.requests)
    await hub.after(600)
    assert len(hub.machine.requests) == before


@pytest.mark.all
async def test_the_tasks_of_providers_run_by_themselves_and_end_cleanly(ledger: Ledger) -> None:
    """In real time: an order needs no turns from outside."""
    hub = await NsiHub(ledger, SystemClock()).open()  # type: ignore[arg-type]
    running = [start("test.run", run()) for run in (hub.stage.controller.run, hub.stage.agents.run)]
    circuit = await hub.order()
    async with asyncio.timeout(20):
        while hub.state(circuit) is not CircuitState.ACTIVE:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert hub.stage.agents.known("north") is None


async def test_an_unknown_error_at_one_provider_is_counted_and_it_goes_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.05)
    hub = await NsiHub(ledger, SystemClock()).open()  # type: ignore[arg-type]
    post, hub.line.post = hub.line.post, _planted  # type: ignore[method-assign,assignment]
    circuit = await hub.order()
    running = [start("test.run", run()) for run in (hub.stage.controller.run, hub.stage.agents.run)]
    async with asyncio.timeout(20):
        while not FAULTS.all():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        hub.line.post = post  # type: ignore[method-assign]
        while not hub.machine.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert {fault.handler for fault in FAULTS.all()} == {"circuits.provider"}
    assert hub.state(circuit) is CircuitState.PROVISIONING


async def _planted(*_: object) -> None:
    raise KeyError("planted")


def stored(hub: NsiHub) -> int:
    with hub.ledger.transaction(writes=False) as tx:
        return len(tx.planning.nsi.of_provider("north"))


def only(hub: NsiHub) -> Connection:
    (one,) = hub.machine.live()
    return one


def by(provider: str | None) -> CircuitCarriage:
    return CircuitCarriage(CircuitDriver.NSI, provider=provider)


def hub_stp(hub: NsiHub) -> str:
    return hub.stage.register.ports["hub-eth0"].stp


async def big_ports(hub: NsiHub) -> None:
    for port in hub.stage.register.ports.values():
        hub.stage.register.ports[port.name] = replace(port, rate_bps=10_000 * M)
        hub.stage.register.calendar.capacity(port.name, 10_000 * M)


async def modified(hub: NsiHub, number: int, change: CircuitChange) -> None:
    work = asyncio.create_task(hub.stage.service.modify(number, change, by="op"))
    await hub.while_it_waits(work)
    await work


async def refused(hub: NsiHub, kind: type[DownburstError] = BadInput, **given: Any) -> str:
    with pytest.raises(kind) as error:
        await hub.stage.reserve(**given)
    assert "\n" not in error.value.sentence
    assert hub.stage.register.open == {}
    return error.value.sentence
