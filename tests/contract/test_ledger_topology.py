"""The topology in the ledger."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.circuits import Port
from downburst.domain.sites import Site
from downburst.domain.topology import Domain, Host, Link, Maintenance, Switch, TagKind, TagRange, Topology
from downburst.foundation.errors import AlreadyThere, BadInput
from downburst.ledger import Transaction
from downburst.ledger.repositories.audit import Changes
from factories import SOME_TIME

WINDOW = Maintenance("fibre-work", ("west",), SOME_TIME, SOME_TIME + timedelta(hours=1), "a new amplifier")
SMALL = Topology(
    domains=(Domain("campus", "our own"),),
    switches=(Switch("chic", "campus", ("chic-1", "chic-2"), translates=True, node="mid.edu"),),
    links=(
        Link("east", "chic-2", "unl-eth1", 10**10, 10**9, TagRange(TagKind.VLAN, 100, 199), cost=3),
        Link("west", "hub-eth0", "chic-1", 10**10, 10**10, TagRange(TagKind.VNI, 5_000, 6_000)),
    ),
    hosts=(Host("hub-1", ("hub-eth0",), 10**10),),
    maintenance=(WINDOW,),
)


def with_ports(tx: Transaction) -> Transaction:
    for name in ("hub-eth0", "unl-eth1"):
        tx.ports.add(Port(name, 10**9))
    tx.sites.add(Site("mid.edu", created_at=SOME_TIME))
    tx.ports.add(Port("mid-eth0", 10**9, "mid.edu", "eth0", "192.0.2.5"))
    return tx


def test_a_topology_is_kept_as_a_whole_and_replaced_as_a_whole(tx: Transaction) -> None:
    kept = with_ports(tx).planning.topology
    assert kept.get() == Topology()
    assert kept.put(SMALL) == SMALL
    assert kept.get() == SMALL
    smaller = replace(SMALL, links=SMALL.links[:1], maintenance=())
    assert kept.put(smaller) == kept.get() == smaller


def test_the_audit_has_the_changes(tx: Transaction) -> None:
    with_ports(tx).planning.topology.put(SMALL)
    tx.planning.topology.put(replace(SMALL, domains=(Domain("campus", "ours"),)))
    tx.planning.topology.put(replace(SMALL, domains=(Domain("campus", "ours"),)))
    counted = tx.access.audit.page(Changes(kind="topology"))
    assert counted[0].after == {"changes": ["change domain campus"]}
    assert len(counted) == 2


def test_a_topology_that_names_an_unknown_port_is_refused_and_changes_nothing(tx: Transaction) -> None:
    kept = with_ports(tx).planning.topology
    kept.put(SMALL)
    with pytest.raises(BadInput, match=r"link west ends at hub-eth7, and there is no port of that name"):
        kept.put(replace(SMALL, links=(replace(SMALL.links[1], a="hub-eth7"),)))
    assert kept.get() == SMALL


def test_a_port_that_the_topology_needs_is_held(tx: Transaction) -> None:
    with_ports(tx).planning.topology.put(SMALL)
    with pytest.raises(AlreadyThere, match="needed by link west"):
        tx.planning.topology.check_free("hub-eth0")
    tx.planning.topology.put(Topology())
    tx.planning.topology.check_free("hub-eth0")
