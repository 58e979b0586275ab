"""The lines about circuits, as docs/node-lines.md specifies them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitDriver,
    CircuitEnd,
    CircuitProblem,
    CircuitRequest,
    CircuitUse,
    Direction,
    Lease,
    Port,
    Standing,
    Transit,
    WireTag,
)
from downburst_worker.messages.circuit_lines import (
    circuit_told,
    circuit_use,
    lease_line,
    rate_probe,
    reach_probe,
    standing,
)
from factories import SOME_TIME

CIRCUIT = Circuit(
    17,
    CircuitRequest("r1"),
    (CircuitEnd("hub-eth0", vlan=100, address="10.231.0.0/31"), CircuitEnd("unl-eth1", "unl.edu", vlan=101)),
    500_000_000,
    10_000_000,
    SOME_TIME,
    SOME_TIME + timedelta(seconds=1),
)
PORTS = (
    Port("hub-eth0", 10**9, None, "eth0", "192.0.2.1", port_rate_bps=10**10),
    Port("unl-eth1", 10**9, "unl.edu", "eth1", "192.0.2.9"),
)


def test_a_lease_is_told_with_all_that_a_node_needs() -> None:
    assert lease_line(Lease(CIRCUIT, PORTS)) == {
        "lease": 17,
        "driver": "linux",
        "shape": "point-to-point",
        "replication": "head-end",
        "group": None,
        "vni": 4113,
        "cap": "hard",
        "rate_out_bps": 500_000_000,
        "rate_in_bps": 10_000_000,
        "shaped_share": 0.9,
        "burst_bytes": None,
        "until_us": 1_767_225_601_000_000,
        "ends": [
            {
                "end": "hub-eth0",
                "site": None,
                "interface": "eth0",
                "underlay": "192.0.2.1",
                "port_rate_bps": 10**10,
                "vlan": 100,
                "vni": None,
                "via": None,
                "address": "10.231.0.0/31",
            },
            {
                "end": "unl-eth1",
                "site": "unl.edu",
                "interface": "eth1",
                "underlay": "192.0.2.9",
                "port_rate_bps": None,
                "vlan": 101,
                "vni": None,
                "via": None,
                "address": None,
            },
        ],
        "transits": [],
    }


def test_the_tags_of_hops_take_the_place_of_a_tunnel_of_its_own() -> None:
    mid = Port("mid-eth0", 10**9, "mid.edu", "eth0", "192.0.2.5")
    tags = WireTag(vni=3021, via=mid.underlay), WireTag(vlan=3123)
    line = lease_line(Lease(CIRCUIT, PORTS, tags, (Transit(mid, replace(tags[0], via="192.0.2.1"), tags[1]),)))
    assert line["vni"] is None
    assert [(end["vlan"], end["vni"], end["via"]) for end in line["ends"]] == [
        (None, 3021, "192.0.2.5"),
        (3123, None, None),
    ]
    (transit,) = line["transits"]
    assert (transit["site"], transit["end"], transit["underlay"]) == ("mid.edu", "mid-eth0", "192.0.2.5")
    assert transit["near"] == {"vlan": None, "vni": 3021, "via": "192.0.2.1"}
    assert transit["far"] == {"vlan": 3123, "vni": None, "via": None}


def test_a_declared_circuit_has_no_underlay_and_may_last_until_told() -> None:
    line = lease_line(Lease(replace(CIRCUIT, carriage=CircuitCarriage(CircuitDriver.DECLARED), end=None), PORTS))
    assert (line["until_us"], [end["underlay"] for end in line["ends"]]) == (None, [None, None])


def test_a_granted_circuit_is_a_tag_of_the_port_or_the_interface_as_it_is() -> None:
    granted = replace(CIRCUIT, carriage=CircuitCarriage(CircuitDriver.NSI, provider="north"))
    tagged = lease_line(Lease(granted, tuple(replace(port, first_vlan=100, last_vlan=119) for port in PORTS)))
    plain = lease_line(Lease(granted, PORTS))
    for line, driver in ((tagged, "linux"), (plain, "declared")):
        assert (line["driver"], line["vni"]) == (driver, None)
        assert [(end["underlay"], end["vlan"]) for end in line["ends"]] == [(None, 100), (None, 101)]


def test_a_standing_tells_the_ends_that_do_not_stand() -> None:
    good = {"end": "hub-eth0", "site": None, "state": "up", "step": None, "hop": None, "sentence": None}
    away = {"end": "unl-eth1", "site": "unl.edu", "state": "away"}
    said = "no VXLAN"
    failed = {
        **away,
        "state": "failed",
        "step": "kernel",
        "hop": "eth1 at unl.edu",
        "sentence": said,
        "remedy": "modprobe",
    }
    assert standing({"lease": 17, "state": "up", "took_ms": 22.5, "ends": [good]}) == Standing(17, "up", 22.5)
    (problem,) = standing({"lease": 17, "state": "partial", "took_ms": 3, "ends": [good, away]}).problems
    assert (problem.sentence, problem.step, problem.hop) == ("unl.edu is not connected", "site", "unl-eth1")
    assert "start its receiver" in problem.remedy
    assert standing({"lease": 17, "state": "failed", "ends": [failed]}).problems == (
        CircuitProblem("no VXLAN", "kernel", "eth1 at unl.edu", "modprobe", "unl.edu"),
    )


def test_probes_are_read_with_and_without_an_answer() -> None:
    trip = {"min": 36_000, "median": 36_200, "max": 40_000}
    reach = {"kind": "reach", "site": "unl.edu", "sent": 5, "received": 4, "round_trip_us": trip}
    assert reach_probe({"probe": reach}).round_trip_us == 36_200
    assert reach_probe({"probe": reach | {"received": 0, "round_trip_us": None}}).round_trip_us is None
    rate = reach | {
        "kind": "rate",
        "direction": "in",
        "sent": 1000,
        "received": 900,
        "offered_bps": 450e6,
        "received_bps": 400e6,
        "bins_bps": [400e6] * 10,
        "lost_share_by_bin": [0.1] * 10,
        "delay_rise_us": {"median": 10, "p95": 20, "max": 30},
        "burst": {"packets": 64, "received": 60},
    }
    assert rate_probe({"probe": rate | {"others_bps": 8_000}}).others_bps == 8_000
    probe = rate_probe({"probe": rate})
    assert (probe.direction, probe.delay_rise_max_us) == (Direction.IN, 30)
    assert probe.loss_share == pytest.approx(0.1)
    assert (probe.burst_sent, probe.burst_received, len(probe.bins_bps)) == (64, 60, 10)
    nothing = rate | {"received": 0, "received_bps": None, "bins_bps": [], "delay_rise_us": None, "burst": None}
    assert rate_probe({"probe": nothing}).received_bps == 0


def test_events_and_uses_are_read() -> None:
    line = {"event": "circuit", "at_us": 1_767_225_600_000_000, "lease": 17, "site": "unl.edu", "state": "up"}
    assert circuit_told(line).problem is None
    down = circuit_told(line | {"state": "down", "sentence": "nothing came back", "step": "probe"})
    assert (down.circuit, down.at, down.problem) == (
        17,
        SOME_TIME,
        CircuitProblem("nothing came back", "probe", site="unl.edu"),
    )
    used = {"lease": 17, "site": None, "out_bytes": 5, "in_bytes": 6}
    assert circuit_use(used) == CircuitUse(17, None, 5, 6)
