"""Circuit requests: valid ones, refused ones with their sentences, and dry runs that change nothing."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.circuits import (
    CircuitCarriage,
    CircuitChange,
    CircuitDriver,
    CircuitEnd,
    CircuitProblem,
    CircuitRequest,
    CircuitState,
    Port,
    Replication,
)
from downburst.domain.sites import CircuitAttachment, Site
from downburst.foundation.errors import (
    AlreadyThere,
    BadInput,
    CircuitConflict,
    DownburstError,
    Failure,
    NodeAway,
    NotFound,
)
from kit.circuits import M
from unit.circuits.stage import HOUR, Stage


async def refused(stage: Stage, kind: type[DownburstError] = BadInput, **given: Any) -> str:
    with pytest.raises(kind) as error:
        await stage.reserve(**given)
    assert "\n" not in error.value.sentence
    assert stage.register.open == {}
    return error.value.sentence


def pair(hub: CircuitEnd, site: CircuitEnd) -> tuple[CircuitEnd, ...]:
    return (hub, site)


async def test_an_admitted_circuit_has_ports_and_one_tag(stage: Stage) -> None:
    circuit = await stage.reserve(start=1)
    assert [(end.port, end.site, end.vlan) for end in circuit.ends] == [
        ("hub-eth0", None, 100),
        ("unl.edu-eth1", "unl.edu", 100),
    ]
    assert stage.events(circuit)[0].sentence.startswith("500 Mb/s to and 0 b/s from unl.edu are reserved from 2026")


async def test_bad_windows_are_refused_each_with_its_sentence(stage: Stage) -> None:
    now = stage.clock.now()
    assert "not after its begin" in await refused(stage, end=now - HOUR, begin=now)
    assert "not after its begin" in await refused(stage, end=now, begin=now)
    assert "begins at 2025-12-31 23:00:00 UTC" in await refused(stage, begin=now - HOUR, end=now + HOUR)
    assert "is the year right?" in await refused(stage, begin=now + timedelta(days=4000), end=None)


async def test_a_begin_that_has_just_passed_is_now(stage: Stage) -> None:
    circuit = await stage.reserve(begin=stage.clock.now() - timedelta(seconds=30))
    assert circuit.begin == stage.clock.now()


async def test_unknown_ports_and_sites_are_named(stage: Stage) -> None:
    ends = pair(CircuitEnd("hub-eth7"), CircuitEnd("", "unl.edu"))
    assert "there is no port 'hub-eth7'; known are: hub-eth0" in await refused(stage, NotFound, ends=ends)
    assert "there is no site 'mit.edu'" in await refused(stage, NotFound, to=("mit.edu",))


async def test_a_rate_above_the_port_is_refused(stage: Stage) -> None:
    sentence = await refused(stage, rate=1001)
    assert "circuits may reserve 1 Gb/s of port hub-eth0 and the circuit would need 1.001 Gb/s" in sentence
    assert "(3 copies)" in await refused(stage, rate=400, to=("unl.edu", "ttu.edu", "wisc.edu"))
    assert "give at least 64 kb/s" in await refused(stage, rate=0)
    port = replace(stage.register.ports["hub-eth0"], port_rate_bps=10_000 * M)
    await stage.service.change_port(port)
    assert "or allow them more of the port" in await refused(stage, rate=1001)
    assert "port hub-eth0 is one of 10 Gb/s and the circuit would need" in await refused(stage, rate=10_001)
    with pytest.raises(BadInput, match=r"is one of 10 Gb/s and circuits can't reserve 11 Gb/s of it"):
        await stage.service.change_port(replace(port, rate_bps=11_000 * M))


async def test_a_group_of_the_underlay_costs_the_hub_one_copy(stage: Stage) -> None:
    sites = ("unl.edu", "ttu.edu", "wisc.edu")
    carriage = CircuitCarriage(replication=Replication.UNDERLAY, group="239.1.2.3")
    await stage.reserve(rate=900, to=sites, carriage=carriage)
    with pytest.raises(CircuitConflict):
        await stage.reserve(rate=101)


async def test_tags_outside_the_range_are_refused(stage: Stage) -> None:
    ends = pair(CircuitEnd("hub-eth0", first_vlan=200, last_vlan=200), CircuitEnd("", "unl.edu"))
    assert "the tag 200 lies outside those of port hub-eth0, which has 100-199" in await refused(stage, ends=ends)
    ends = pair(CircuitEnd("hub-eth0", first_vlan=150, last_vlan=250), CircuitEnd("", "unl.edu"))
    assert "150-250" in await refused(stage, ends=ends)


async def test_ends_must_be_the_hub_and_sites_each_once(stage: Stage) -> None:
    assert "name a site" in await refused(stage, ends=(CircuitEnd("hub-eth0"),))
    swapped = pair(CircuitEnd("unl.edu-eth1"), CircuitEnd("hub-eth0"))
    assert "swap the ends" in await refused(stage, ends=swapped)
    assert "named twice" in await refused(stage, to=("unl.edu", "unl.edu"))


async def test_a_port_that_no_node_can_use_is_refused_with_what_is_missing(stage: Stage) -> None:
    await stage.service.add_port(Port("hub-eth1", 1000 * M))
    ends = pair(CircuitEnd("hub-eth1"), CircuitEnd("", "unl.edu"))
    assert "--interface eth0" in await refused(stage, ends=ends)
    await stage.service.change_port(Port("hub-eth1", 1000 * M, interface="eth1"))
    assert "--underlay 192.0.2.1" in await refused(stage, ends=ends)
    assert "10.10.200.10/24" in await refused(stage, ends=ends, carriage=DECLARED)
    bare = pair(replace(ends[0], address="10.0.0.1"), replace(ends[1], address="10.0.0.2/24"))
    assert "'10.0.0.1' was given for port hub-eth1" in await refused(stage, ends=bare, carriage=DECLARED)
    assert "the ports hub-eth0, hub-eth1; name one" in await refused(stage)


async def test_a_site_with_several_ports_ends_at_the_one_it_is_attached_by(stage: Stage) -> None:
    await stage.service.add_port(Port("unl-eth2", 1000 * M, "unl.edu", "eth2", "192.0.2.77"))
    with stage.ledger.transaction() as tx:
        tx.sites.change(Site("unl.edu", circuit_attachment=CircuitAttachment("unl-eth2", 1, 4094)))
    circuit = await stage.reserve()
    assert circuit.ends[1].port == "unl-eth2"
    assert circuit.ends[1].vlan is None


async def test_overlapping_windows_are_refused_with_who_holds_the_port(stage: Stage) -> None:
    holder = await stage.reserve(rate=600, start=1, description="NEXRAD2 to Nebraska")
    with pytest.raises(CircuitConflict) as error:
        await stage.reserve(rate=500, to=("ttu.edu",), start=1.5)
    assert error.value.status == 409
    assert f"because of circuit {holder.number}" in error.value.sentence
    assert "400 Mb/s of 1 Gb/s free" in error.value.sentence
    assert "from 2026-01-01 01:30:00 UTC to 2026-01-01 02:00:00 UTC" in error.value.sentence
    listed: Any = error.value.extra["circuits"]
    assert [(each["circuit"], each["description"]) for each in listed] == [(holder.number, "NEXRAD2 to Nebraska")]
    await stage.reserve(rate=500, to=("ttu.edu",), start=2)


async def test_a_change_that_is_refused_names_who_is_in_the_way_and_what_stays(stage: Stage) -> None:
    first = await stage.reserve(rate=500, start=1)
    other = await stage.reserve(rate=400, to=("ttu.edu",), start=1)
    for dry_run in (True, False):
        with pytest.raises(CircuitConflict) as error:
            await stage.service.modify(first.number, CircuitChange(rate_out_bps=900 * M), by="op", dry_run=dry_run)
        assert "port hub-eth0 has 600 Mb/s of 1 Gb/s free" in error.value.sentence
        assert f"because of circuit {other.number}, and 900 Mb/s out and" in error.value.sentence
        stays = f"circuit {first.number} stays admitted as it was, with 500 Mb/s out and 0 b/s in"
        assert error.value.sentence.endswith(stays)


async def test_the_same_request_again_is_the_same_circuit(stage: Stage) -> None:
    wish = replace(stage.wish(), request=CircuitRequest("mine", asked_sha256="a" * 64))
    first = await stage.service.request(wish)
    again = await stage.service.request(replace(wish, begin=wish.begin + timedelta(seconds=5)))
    assert (first.done, again.done) == (True, False)
    assert again.circuit.number == first.circuit.number
    with pytest.raises(AlreadyThere, match=f"made circuit {first.circuit.number}"):
        await stage.service.request(replace(wish, request=CircuitRequest("mine", asked_sha256="b" * 64)))


async def test_a_request_that_comes_twice_at_once_is_one_circuit(stage: Stage) -> None:
    wish = replace(stage.wish(), request=CircuitRequest("mine"))
    answers = await asyncio.gather(*(stage.service.request(wish) for _ in range(5)))
    assert len({answer.circuit.number for answer in answers}) == 1
    assert [answer.done for answer in answers].count(True) == 1


async def test_requests_that_come_at_once_never_get_more_than_the_port_has(stage: Stage) -> None:
    asked = [
        stage.service.request(stage.wish(rate=300, to=(site,))) for site in ("unl.edu", "ttu.edu") for _ in range(4)
    ]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert len([answer for answer in answers if not isinstance(answer, Exception)]) == 3


async def test_dry_runs_change_nothing(stage: Stage) -> None:
    circuit = await stage.active()
    done, events = list(stage.node.done), stage.events(circuit)
    would = await stage.service.request(stage.wish(rate=100, to=("ttu.edu",)), dry_run=True)
    assert (would.done, would.circuit.number, would.circuit.ends[1].vlan) == (False, 0, 101)
    number, by = circuit.number, "op"
    await stage.service.modify(number, CircuitChange(rate_out_bps=900 * M), by=by, dry_run=True)
    await stage.service.cancel(number, by=by, dry_run=True)
    await stage.service.clone(number, request_id="c", begin=None, by=by, dry_run=True)
    with pytest.raises(CircuitConflict):
        await stage.service.request(stage.wish(rate=501), dry_run=True)
    assert (stage.node.done, stage.events(circuit)) == (done, events)
    assert stage.kept(circuit) == circuit


async def test_a_modification_is_carried_out_in_place(stage: Stage) -> None:
    circuit = await stage.active()
    later = circuit.begin + 5 * HOUR
    change = CircuitChange(rate_out_bps=900 * M, end=later)
    answer = await stage.service.modify(circuit.number, change, by="op")
    assert (answer.circuit.rate_out_bps, answer.circuit.end) == (900 * M, later)
    assert stage.node.done[-1] == f"up {circuit.number} 900M"
    assert stage.events(circuit)[-1].sentence.startswith("out 500 Mb/s -> 900 Mb/s, end 2026-01-01 01:00:00 UTC ->")
    await stage.after(3600)
    assert stage.state(circuit) is CircuitState.ACTIVE
    await stage.after(4 * 3600)
    assert stage.state(circuit) is CircuitState.ENDED


async def test_a_modification_that_does_not_fit_leaves_circuit_and_traffic_untouched(stage: Stage) -> None:
    circuit = await stage.active(rate=500)
    await stage.reserve(rate=300, to=("ttu.edu",), start=0.5)
    done = list(stage.node.done)
    with pytest.raises(CircuitConflict):
        await stage.service.modify(circuit.number, CircuitChange(rate_out_bps=900 * M), by="op")
    assert stage.node.done == done
    assert stage.kept(circuit) == circuit
    await stage.service.modify(circuit.number, CircuitChange(rate_out_bps=700 * M), by="op")


@pytest.mark.parametrize("why", ["refuses", "away"])
async def test_a_modification_that_the_node_refuses_is_rolled_back_everywhere(stage: Stage, why: str) -> None:
    circuit = await stage.active(rate=500)
    if why == "refuses":
        stage.node.refuses[circuit.number] = CircuitProblem("no such class", "shaping", "eth0", "look")
    stage.node.running = why != "away"
    with pytest.raises(Failure if why == "refuses" else NodeAway):
        await stage.service.modify(circuit.number, CircuitChange(rate_out_bps=900 * M), by="op")
    assert stage.kept(circuit) == circuit
    assert "was not made" in stage.events(circuit)[-1].sentence
    assert stage.node.held[circuit.number].circuit.rate_out_bps == 500 * M
    assert (await stage.reserve(rate=500, to=("ttu.edu",))).number, "the calendar has the old rate again"


async def test_a_modification_that_means_nothing_is_refused(stage: Stage) -> None:
    circuit = await stage.reserve(start=1)
    for change in (CircuitChange(), CircuitChange(rate_out_bps=500 * M)):
        with pytest.raises(BadInput, match="nothing would change"):
            await stage.service.modify(circuit.number, change, by="op")
    with pytest.raises(BadInput, match="not after its begin"):
        await stage.service.modify(circuit.number, CircuitChange(end=stage.clock.now()), by="op")
    with pytest.raises(NotFound):
        await stage.service.modify(99, CircuitChange(rate_out_bps=M), by="op")


async def test_a_cancelled_circuit_gives_its_rate_back_at_once(stage: Stage) -> None:
    circuit = await stage.active(rate=900)
    answer = await stage.service.cancel(circuit.number, by="op")
    assert answer.circuit.state is CircuitState.CANCELLING
    other = await stage.reserve(rate=900)
    await stage.settle()
    assert stage.state(circuit) is CircuitState.CANCELLED
    assert list(stage.node.held) == [other.number]
    with pytest.raises(BadInput, match="cancelled already"):
        await stage.service.cancel(circuit.number, by="op")


async def test_a_circuit_cancelled_while_it_is_made_does_not_come_back(stage: Stage) -> None:
    circuit = await stage.reserve()
    await stage.controller.tick()
    await stage.service.cancel(circuit.number, by="op")
    await stage.settle()
    assert stage.state(circuit) is CircuitState.CANCELLED
    assert stage.node.held == {}


async def test_a_clone_lasts_as_long_from_now(stage: Stage) -> None:
    circuit = await stage.active(hours=3, rate=400, description="nightly")
    await stage.service.cancel(circuit.number, by="op")
    await stage.after(7200)
    clone = (await stage.service.clone(circuit.number, request_id="c1", begin=None, by="op")).circuit
    assert clone.begin == stage.clock.now()
    assert clone.end == stage.clock.now() + 3 * HOUR
    assert (clone.rate_out_bps, clone.request) == (400 * M, CircuitRequest("c1", "nightly", requested_by="op"))
    await stage.settle()
    assert stage.state(clone) is CircuitState.ACTIVE


async def test_a_port_keeps_what_its_circuits_were_promised(stage: Stage) -> None:
    circuit = await stage.reserve(start=1)
    port = stage.register.ports["hub-eth0"]
    with pytest.raises(CircuitConflict, match="hold up to 500 Mb/s"):
        await stage.service.change_port(replace(port, rate_bps=400 * M))
    with pytest.raises(BadInput, match="keeps its host and interface"):
        await stage.service.change_port(replace(port, interface="eth9"))
    with pytest.raises(AlreadyThere, match=f"such as {circuit.number}"):
        await stage.service.remove_port("hub-eth0")
    await stage.service.change_port(replace(port, rate_bps=2000 * M))
    await stage.reserve(rate=1000, to=("ttu.edu",), start=1)
    with pytest.raises(NotFound, match=r"there is no site 'mit\.edu'"):
        await stage.service.add_port(Port("mit-eth0", M, "mit.edu"))
    with pytest.raises(NotFound, match="known are"):
        await stage.service.remove_port("nowhere")


async def test_only_what_stands_is_measured(stage: Stage) -> None:
    waiting = await stage.reserve(start=1, rate=100)
    with pytest.raises(BadInput, match="when it is up"):
        await stage.service.measure(waiting.number)
    standing = await stage.active(rate=100)
    before = len(stage.node.done)
    await stage.service.measure(standing.number)
    await stage.settle()
    assert stage.node.done[before:] == [
        f"reach {standing.number} unl.edu",
        f"rate {standing.number} unl.edu out 90M",
    ]


DECLARED = CircuitCarriage(CircuitDriver.DECLARED)
