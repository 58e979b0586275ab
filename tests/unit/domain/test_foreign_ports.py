"""Ports on machines of other networks: the rules under which hand-over to them can work."""

from dataclasses import replace

import pytest

from downburst.domain.circuits import Port
from downburst.domain.topology import Domain, Link, Switch, TagKind, TagRange, Topology

GATE = Port("a-hub", 10**9, underlay="192.0.2.1", first_vlan=100, last_vlan=109)
PORTS = {"a-hub": GATE, "one-eth0": Port("one-eth0", 10**9, "one.edu", "eth0", "192.0.2.2")}
HAND_OVER = Link("hand-over", "a-hub", "s-1", 10**9, 10**9, TagRange(TagKind.VNI, 100, 109))
CORE = Link("core", "s-2", "one-eth0", 10**9, 10**9, TagRange(TagKind.VNI, 3000, 3009))
WHOLE = Topology(
    domains=(Domain("a", ports=("a-hub",)), Domain("b")),
    switches=(Switch("s", "b", ("s-1", "s-2"), translates=True, node="one.edu"),),
    links=(HAND_OVER, CORE),
)


def test_a_port_of_another_network_may_have_vlans_by_name_and_vnis_on_its_link() -> None:
    WHOLE.check(PORTS)
    assert WHOLE.foreign_ports == {"a-hub"}
    assert WHOLE.users("a-hub") == ["domain a", "link hand-over"]


@pytest.mark.parametrize(
    ("wrong", "ports", "sentence"),
    [
        (
            replace(WHOLE, domains=(Domain("a", ports=("x",)), Domain("b"))),
            PORTS,
            "domain a has port x, and there is",
        ),
        (
            replace(WHOLE, domains=(Domain("a", ports=("a-hub",)), Domain("b", ports=("a-hub",)))),
            PORTS,
            "port a-hub is of two domains, a and b",
        ),
        (WHOLE, PORTS | {"a-hub": replace(GATE, interface="eth0")}, "which is on the hub with the interface eth0; a"),
        (WHOLE, PORTS | {"a-hub": replace(GATE, site="far.edu")}, "which is on far.edu with the interface none; a"),
        (
            replace(WHOLE, links=(HAND_OVER, replace(CORE, tags=TagRange(TagKind.VNI, 109, 200)))),
            PORTS,
            "links hand-over and core at switch s have VNIs in common, and its node can't join two hops with one VNI",
        ),
    ],
)
def test_hand_over_that_can_not_work_is_refused(wrong: Topology, ports: dict[str, Port], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        wrong.check(ports)


def test_tags_may_be_alike_where_no_node_joins_hops() -> None:
    switch = replace(WHOLE.switches[0], node=None)
    links = HAND_OVER, replace(CORE, tags=HAND_OVER.tags)
    replace(WHOLE, switches=(switch,), links=links).check(PORTS)
