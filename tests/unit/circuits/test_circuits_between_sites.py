"""Circuits between two sites, such as two relays: the hub reserves and orders them, and has no end of its own."""

from dataclasses import replace

import pytest

from downburst.domain.circuits import CircuitEnd, CircuitProblem, CircuitState, Direction
from downburst.domain.circuits.signs import CircuitTold
from downburst.domain.events import SessionChanged
from downburst.foundation.errors import BadInput, CircuitConflict
from kit.circuits import M
from unit.circuits.stage import Stage

UNL, TTU, WISC = (CircuitEnd("", site) for site in ("unl.edu", "ttu.edu", "wisc.edu"))
NAMED = CircuitEnd("unl.edu-eth1", "unl.edu"), CircuitEnd("ttu.edu-eth1", "ttu.edu")


async def test_it_goes_up_and_away_as_any_other_and_is_probed_from_its_near_site(stage: Stage) -> None:
    circuit = await stage.active(ends=NAMED, rate=100, back=40)
    assert stage.lived(circuit) == ["admitted", "provisioning", "verifying", "active"]
    assert (circuit.near_site, circuit.far_sites, circuit.served_sites) == ("unl.edu", ("ttu.edu",), ())
    assert [end.address is not None for end in circuit.ends] == [True, True]
    assert {key: row.rate_bps for key, row in stage.measured(circuit).items()} == {
        ("ttu.edu", Direction.OUT): 90 * M,
        ("ttu.edu", Direction.IN): 36 * M,
    }
    probed = [one for one in stage.node.done if one.startswith("r")]
    assert probed[0] == f"reach {circuit.number} ttu.edu"
    assert all("ttu.edu" in one for one in probed)
    await stage.service.cancel(circuit.number, by="op")
    await stage.settle()
    assert (stage.state(circuit), stage.node.held) == (CircuitState.CANCELLED, {})


async def test_both_ports_are_reserved_and_the_hubs_is_not(stage: Stage) -> None:
    first = await stage.reserve(ends=(UNL, TTU), rate=900, back=100)
    assert first.reason.startswith("900 Mb/s from unl.edu to ttu.edu and 100 Mb/s back are reserved from")
    await stage.reserve(rate=1000, to=("wisc.edu",))
    with pytest.raises(CircuitConflict, match=r"port ttu\.edu-eth1 has 100 Mb/s of 1 Gb/s free to be received"):
        await stage.reserve(ends=(WISC, TTU), rate=200)
    with pytest.raises(CircuitConflict, match=r"port unl\.edu-eth1 has 100 Mb/s of 1 Gb/s free to be sent"):
        await stage.reserve(ends=(UNL, WISC), rate=200)
    assert (await stage.reserve(ends=(TTU, UNL), rate=100, back=50)).near_site == "ttu.edu"


async def test_three_sites_need_the_hub_and_one_site_is_no_pair(stage: Stage) -> None:
    async def refused(*ends: CircuitEnd) -> str:
        with pytest.raises(BadInput) as error:
            await stage.reserve(ends=ends)
        return error.value.sentence

    assert "a circuit to 2 sites begins at the hub, and unl.edu was named" in await refused(UNL, TTU, WISC)
    await stage.service.add_port(replace(stage.register.ports["unl.edu-eth1"], name="unl-eth2", interface="eth2"))
    second = CircuitEnd("unl-eth2")
    assert "site unl.edu is named twice" in await refused(NAMED[0], second)
    assert "port unl.edu-eth1 is named twice" in await refused(NAMED[0], NAMED[0])
    assert "is the hub's, and every far end must be a site's" in await refused(WISC, CircuitEnd("hub-eth0"))
    assert "neither a site nor a port" in await refused(WISC, CircuitEnd(""))
    assert "port unl-eth2 belongs to unl.edu, not to ttu.edu" in await refused(
        WISC, CircuitEnd("unl-eth2", "ttu.edu")
    )


@pytest.mark.parametrize("away", ["unl.edu", "ttu.edu"])
async def test_a_site_without_a_session_is_named_and_the_circuit_follows_when_it_connects(
    stage: Stage, away: str
) -> None:
    stage.node.away.add(away)
    circuit = await stage.reserve(ends=(UNL, TTU), rate=100)
    await stage.settle()
    assert stage.state(circuit) is CircuitState.FAILED
    assert stage.kept(circuit).reason == f"{away} is not connected"
    stage.node.away.clear()
    await stage.controller.handle(SessionChanged(away, "connected", stage.clock.now(), "192.0.2.9"))
    await stage.settle()
    assert stage.state(circuit) is CircuitState.ACTIVE


@pytest.mark.parametrize("lost", ["unl.edu", "ttu.edu"])
async def test_a_lost_end_takes_it_down_immediately_and_a_found_one_has_it_measured(stage: Stage, lost: str) -> None:
    circuit = await stage.active(ends=(UNL, TTU), rate=100)
    problem = CircuitProblem(f"{lost} is not connected", "site", f"{lost}-eth1 at {lost}", "start its relay")
    await stage.controller.handle(CircuitTold(circuit.number, lost, "down", stage.clock.now(), problem))
    assert stage.state(circuit) is CircuitState.DOWN
    assert stage.kept(circuit).reason == f"{lost} is not connected"
    await stage.told(circuit, "up", lost)
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_a_hub_that_starts_anew_finds_it(stage: Stage) -> None:
    circuit = await stage.active(ends=(UNL, TTU), rate=100)
    again = await stage.again()
    await again.settle()
    assert again.state(circuit) is CircuitState.ACTIVE
    assert list(stage.node.held) == [circuit.number]
    copy = (await again.service.clone(circuit.number, request_id="copy", begin=None, by="op")).circuit
    assert [end.site for end in copy.ends] == ["unl.edu", "ttu.edu"]
