"""Tags of circuits on the wire, translated by nodes between hops, and what happens beyond the rate."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.circuits import Cap, Circuit, CircuitCarriage, CircuitEnd, CircuitRequest, Lease, Port
from downburst.domain.topology import Domain, Link, Switch, TagKind, TagRange, Topology
from downburst.foundation.clock import from_us
from downburst_circuits.calendar import Calendar
from downburst_circuits.desk.booking import Desk
from downburst_circuits.desk.circuits import wanted_of, with_place
from downburst_circuits.desk.network import Network
from downburst_circuits.desk.wire import wired
from downburst_worker.messages.circuit_lines import lease_line
from kit.capabilities import needs
from kit.capture import Capture
from kit.circuit_bed import Bed
from kit.namespaces import Lab
from kit.offered import LESS_THAN_BEST_EFFORT, Offered, mean_bps, median_bps, number_in, offer, other_traffic
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

M = 10**6
RATE_BPS, PORT_BPS = 16 * M, 48 * M
SECONDS, SETTLED_S = 8.0, 5.0
"""The meter of the mark holds a second of the rate, which a quarter more fills in four."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan", "nft-egress")
    with Lab(["hub", "one", "two", "far"]) as lab:
        yield lab


def lease(lab: Lab, *tags: TagRange, nodes: tuple[str | None, ...] = (), cap: Cap = Cap.HARD) -> Lease:
    """The lease of a circuit over a line of links as the calendar books it, with nodes at the switches between."""
    owners = {"hub": None, "one": "one", "two": "two", "far": "far"}
    ports = {
        f"{host}-eth0": Port(f"{host}-eth0", PORT_BPS, site, "eth0", lab.address(host), port_rate_bps=PORT_BPS)
        for host, site in owners.items()
    }
    ends = ["hub-eth0", *(f"s{number}-{side}" for number in range(len(tags) - 1) for side in "ab"), "far-eth0"]
    links = tuple(
        Link(f"hop-{number}", ends[2 * number], ends[2 * number + 1], PORT_BPS, PORT_BPS, among)
        for number, among in enumerate(tags)
    )
    switches = tuple(
        Switch(f"s{number}", "lab", (f"s{number}-a", f"s{number}-b"), translates=True, node=node)
        for number, node in enumerate(nodes)
    )
    topology = Topology((Domain("lab"),), switches, links)
    topology.check(ports)
    network, calendar = Network(topology, ports), Calendar({name: port.rate_bps for name, port in ports.items()})
    network.put_into(calendar)
    wanted = Circuit(
        17,
        CircuitRequest("r"),
        (CircuitEnd("hub-eth0", address="10.9.0.0/31"), CircuitEnd("far-eth0", "far", address="10.9.0.1/31")),
        *(RATE_BPS, RATE_BPS, from_us(0), None),
        carriage=CircuitCarriage(cap=cap),
    )
    booked = Desk(calendar, network).book(wanted_of(wanted, ports, network), 0, 10**6)
    return wired(with_place(wanted, booked), network)


def raised(bed: Bed, wanted: Lease) -> dict[str, Any]:
    return bed.hub.do("circuit-up", circuit=lease_line(wanted))


def vnis(lab: Lab, bed: Bed, *hosts: str) -> dict[tuple[str, str], set[int]]:
    """The identifiers of the tunnels that carry a probe there and back, by their ends, as hosts see them."""
    found: dict[tuple[str, str], set[int]] = {}
    names = {lab.address(host): host for host in lab.hosts}
    with ExitStack() as captures:
        opened = [captures.enter_context(Capture(lab, host)) for host in hosts]
        assert bed.hub.do("circuit-probe", lease=17, site="far", kind="reach")["probe"]["received"] == 5
        for seen in (frame for capture in opened for frame in capture.tunnels()):
            found.setdefault((names[seen.source], names[seen.to]), set()).add(seen.vni)
    return found


def test_the_tag_of_the_calendar_is_on_the_wire(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    wanted = lease(lab, TagRange(TagKind.VNI, 3021, 3030))
    assert [hop.tag for hop in wanted.circuit.path] == [3021]
    assert raised(bed, wanted)["state"] == "up"
    assert vnis(lab, bed, "hub") == {("hub", "far"): {3021}, ("far", "hub"): {3021}}
    bed.hub.do("circuit-down", lease=17)
    bed.wait_untouched("hub", "far")


def test_a_vlan_of_the_calendar_is_an_interface_of_the_port(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    able = bed.hub.do("circuit-host")["vlan"]
    standing = raised(bed, lease(lab, TagRange(TagKind.VLAN, 100, 109)))
    if not able["able"]:
        print(able["sentence"], able["remedy"])
        assert standing["state"] == "failed"
        assert "making VLAN 100 on eth0 is not possible with this host's kernel" in standing["ends"][0]["sentence"]
        bed.wait_untouched("hub", "far")
    needs("8021q")
    assert standing["state"] == "up"
    shown = lab.output("hub", ["ip", "-d", "link", "show", "type", "vlan"])
    assert "vlan protocol 802.1Q id 100" in shown
    assert bed.hub.do("circuit-probe", lease=17, site="far", kind="reach")["probe"]["received"] == 5


def test_nodes_between_hops_translate_and_stand_again_after_a_crash(
    lab: Lab, stack: ExitStack, tmp_path: Path
) -> None:
    bed = Bed(lab, tmp_path, stack, between=("one", "two"))
    ranges = [TagRange(TagKind.VNI, first, first + 9) for first in (3021, 3123, 3225)]
    wanted = lease(lab, *ranges, nodes=("one", "two"))
    tags = [hop.tag for hop in wanted.circuit.path]
    assert tags == [3021, 3123, 3225]
    standing = raised(bed, wanted)
    assert standing["state"] == "up", standing
    assert [end["site"] for end in standing["ends"]] == [None, "far", "one", "two"]
    hops = [("hub", "one"), ("one", "two"), ("two", "far")]
    expected = {pair: {tag} for hop, tag in zip(hops, tags, strict=True) for pair in (hop, hop[::-1])}
    assert vnis(lab, bed, "one", "two") == expected
    bed.between["one"].kill()
    bed.hub.kill()
    bed.hub.start()
    bed.hub.wait_connected("far")
    bed.hub.wait_connected("two")
    bed.between["one"].start()
    bed.hub.wait_connected("one")
    (again,) = bed.hub.do("circuits", circuits=[lease_line(wanted)])["circuits"]
    assert again["state"] == "up", again
    wait_for("the path as before", lambda: vnis(lab, bed, "one", "two") == expected)
    bed.hub.do("circuit-down", lease=17)
    bed.wait_untouched("hub", "one", "two", "far")


def flow(lab: Lab, bed: Bed, cap: Cap) -> tuple[Offered, set[int]]:
    """A quarter more than the rate of a circuit with this cap is offered; also the marks of its tunnel at the port.

    Nothing overtakes anything there. Behind it, the lab's lines are queues of each processor, which keep no order.
    """
    wanted = lease(lab, TagRange(TagKind.VNI, 3021, 3030), cap=cap)
    standing = raised(bed, wanted)
    assert standing["state"] == "up", standing
    with Capture(lab, "hub") as capture:
        result = offer(lab, "hub", "far", "10.9.0.1", rate_bps=1.25 * RATE_BPS, seconds=SECONDS)
        sent = [(number, seen.dscp) for seen in capture.tunnels() if (number := number_in(seen.inside)) is not None]
    numbers = [number for number, _ in sent]
    assert len(numbers) > 0.9 * len(result.arrived)
    assert numbers == sorted(numbers), "a datagram overtook another in the circuit"
    return result, {dscp for _, dscp in sent}


def shares(result: Offered) -> tuple[float, float]:
    """The delivered part of the rate, and of the excess, once all is settled."""
    end_s = result.sent_at_s[0] + SECONDS
    begin_s = end_s - (SECONDS - SETTLED_S)
    offered_bps, came_bps = (median_bps(at_s, begin_s, end_s) for at_s in (result.sent_at_s, result.arrived_at_s))
    assert offered_bps > 1.2 * RATE_BPS, f"only {offered_bps / 1e6:.1f} Mb/s were offered: this machine is too busy"
    excess = (came_bps - RATE_BPS) / (offered_bps - RATE_BPS)
    print(f"offered {offered_bps / 1e6:.2f}, came {came_bps / 1e6:.2f} Mb/s; of the excess {excess:.3f}")
    return came_bps / RATE_BPS, excess


def test_a_hard_cap_delivers_no_more_than_the_rate(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    result, marks = flow(lab, bed, Cap.HARD)
    reserved, _ = shares(result)
    assert reserved <= 1
    settled_s = result.sent_at_s[0] + SETTLED_S
    assert mean_bps(result.arrived_at_s, settled_s, settled_s + SECONDS - SETTLED_S) <= RATE_BPS
    assert marks == {0}


def test_the_excess_of_a_soft_cap_passes_marked_on_an_idle_port(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    result, marks = flow(lab, bed, Cap.SOFT)
    reserved, excess = shares(result)
    assert reserved >= 0.95
    assert excess >= 0.8
    # 1 + 0.8 x 0.25 of 1.25: as much, without regard to the time of each.
    assert len(result.arrived) >= 0.96 * len(result.sent_at_s)
    marked = result.marked_share()
    print(f"{marked:.3f} of the datagrams are marked")
    assert 0.1 < marked < 0.3, "the excess is a fifth"
    assert marks == {0, LESS_THAN_BEST_EFFORT}


def test_the_excess_of_a_soft_cap_gives_way_on_a_busy_port(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    with other_traffic(lab, "hub", lab.address("far")):
        before, began_s = sent_by_port(lab), time.monotonic()
        result, _ = flow(lab, bed, Cap.SOFT)
        port_bps = (sent_by_port(lab) - before) * 8 / (time.monotonic() - began_s)
    assert port_bps > 0.95 * PORT_BPS, f"the port carried {port_bps / 1e6:.1f} Mb/s, so it was not busy"
    reserved, excess = shares(result)
    assert reserved >= 0.95
    assert excess < 0.05


def sent_by_port(lab: Lab) -> int:
    """Bytes of frames that the hub's port has sent."""
    return int(lab.output("hub", ["cat", "/sys/class/net/eth0/statistics/tx_bytes"]))
