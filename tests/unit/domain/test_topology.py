"""Elements of a topology and their fit: one sentence for each rule."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.circuits import Port
from downburst.domain.topology import Domain, Host, Link, Maintenance, Switch, TagKind, TagRange, Topology
from factories import SOME_TIME

HOUR = timedelta(hours=1)
PORTS = {
    "hub-eth0": Port("hub-eth0", 10**9),
    "unl-eth1": Port("unl-eth1", 10**9, "unl.edu", first_vlan=100, last_vlan=199),
}
WEST = Link("west", "hub-eth0", "chic-1", 10**9, 10**9)
EAST = Link("east", "chic-2", "unl-eth1", 10**9, 10**9, TagRange(TagKind.VLAN, 100, 199))
WHOLE = Topology(
    domains=(Domain("campus"),),
    switches=(Switch("chic", "campus", ("chic-1", "chic-2")),),
    links=(WEST, EAST),
    hosts=(Host("hub-1", ("hub-eth0",), 10**10),),
    maintenance=(Maintenance("work", ("chic", "west", "hub-1", "unl-eth1"), SOME_TIME, SOME_TIME + HOUR),),
)


def test_a_topology_that_fits_together_is_accepted() -> None:
    WHOLE.check(PORTS)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (replace(WHOLE, domains=()), "switch chic is in domain campus, and there is no domain"),
        (replace(WHOLE, links=(WEST, replace(WEST, name="again"))), "port hub-eth0 has two links, west and again"),
        (replace(WHOLE, links=(WEST, replace(EAST, z="ttu-eth1"))), "link east ends at ttu-eth1, and there is no"),
        (replace(WHOLE, links=(WEST, replace(EAST, z="chic-1"))), "port chic-1 has two links"),
        (replace(WHOLE, links=(WEST, replace(EAST, name="chic"))), "chic names two things"),
        (replace(WHOLE, links=(replace(WEST, a="chic-2"),)), "link west leads from switch chic to itself"),
        (replace(WHOLE, hosts=(Host("x", ("chic-1",), 1),)), "there is no port of the hub or a site"),
        (replace(WHOLE, hosts=(*WHOLE.hosts, Host("x", ("hub-eth0",), 1))), "port hub-eth0 is of two hosts"),
        (replace(WHOLE, hosts=(Host("x", ("hub-eth0", "unl-eth1"), 1),)), "host x has ports of the hub and unl.edu"),
        (
            replace(WHOLE, links=(WEST, replace(EAST, tags=TagRange(TagKind.VNI, 1, 9)))),
            "link east has VNIs and its port unl-eth1 has VLANs",
        ),
        (
            replace(
                WHOLE, switches=(Switch("chic", "campus", ("chic-1", "chic-2"), translates=True, node="unl.edu"),)
            ),
            "switch chic has the node of unl.edu, which needs exactly one port, with an interface and an underlay "
            "address; its ports are: unl-eth1",
        ),
        (
            replace(WHOLE, maintenance=(replace(WHOLE.maintenance[0], of=("nowhere",)),)),
            "maintenance work is of nowhere, and there is no link, switch, host or port",
        ),
    ],
)
def test_elements_that_do_not_fit_are_refused_by_name(wrong: Topology, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        wrong.check(PORTS)


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [(TagKind.VLAN, 0, 5), (TagKind.VLAN, 9, 8), (TagKind.VLAN, 1, 4095), (TagKind.VNI, 1, 2**24)],
)
def test_a_range_of_tags_is_one_of_its_kind(kind: TagKind, first: int, last: int) -> None:
    with pytest.raises(ValueError, match="is no range of"):
        TagRange(kind, first, last)


def test_values_beyond_their_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="usable name"):
        Domain("a b")
    with pytest.raises(ValueError, match="to itself"):
        Link("l", "a", "a", 1, 1)
    with pytest.raises(ValueError, match="a rate of 0 b/s"):
        Link("l", "a", "b", 0, 1)
    with pytest.raises(ValueError, match="a cost of 0"):
        Link("l", "a", "b", 1, 1, cost=0)
    with pytest.raises(ValueError, match="lists a name twice"):
        Switch("s", "d", ("x", "x"))
    with pytest.raises(ValueError, match=r"has the node of unl\.edu and does not translate"):
        Switch("s", "d", ("x",), node="unl.edu")
    with pytest.raises(ValueError, match="lists 0 names"):
        Host("h", (), 1)
    with pytest.raises(ValueError, match="a rate of 0 b/s"):
        Host("h", ("p",), 0)
    with pytest.raises(ValueError, match="not after its begin"):
        Maintenance("m", ("x",), SOME_TIME, SOME_TIME)
    with pytest.raises(ValueError, match="without an offset"):
        Maintenance("m", ("x",), SOME_TIME.replace(tzinfo=None), SOME_TIME.replace(tzinfo=None) + HOUR)


def test_differences_and_users_are_told_by_kind_and_name() -> None:
    wanted = replace(WHOLE, links=(WEST, replace(EAST, cost=7)), hosts=(), domains=(*WHOLE.domains, Domain("x")))
    assert WHOLE.difference(wanted) == ["add domain x", "change link east", "remove host hub-1"]
    assert WHOLE.difference(WHOLE) == []
    assert WHOLE.users("hub-eth0") == ["link west", "host hub-1"]
    assert WHOLE.users("unl-eth1") == ["link east", "maintenance work"]
