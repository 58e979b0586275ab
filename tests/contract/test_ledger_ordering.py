"""Offers, providers, orders on demand and reservations in the ledger."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from downburst.domain.circuits import Circuit, CircuitCarriage, CircuitDriver, CircuitEnd, CircuitRequest, Port
from downburst.domain.ordering import (
    Budget,
    Certificate,
    DemandOrder,
    Dialect,
    Offer,
    OrderStep,
    OrderTimes,
    OrderUse,
    Provider,
)
from downburst.domain.relays import Relay
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, BadInput, NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories.audit import Changes
from downburst.ledger.repositories.ordering.orders import WhichOrders
from factories import SOME_TIME

OFFER = Offer("campus", "hub-eth0", ("far-eth0",), (10_000_000, 50_000_000), setup_s=1.0, budget=Budget(2.5, 40))
CERTIFICATE = Certificate(Path("/etc/nsi/hub.pem"), Path("/etc/nsi/hub.key"), Path("/etc/nsi/ca.pem"))
AT = OrderTimes(SOME_TIME, SOME_TIME + timedelta(minutes=5))
SURF = Provider(
    "surf",
    "https://nsi.example.net/soap/connection/provider",
    "urn:ogf:network:example.net:2026:nsa:supa",
    "urn:ogf:network:hub.example:2026:nsa:downburst",
    Dialect.P2PS,
    CERTIFICATE,
)


@pytest.fixture
def ports(tx: Transaction) -> None:
    tx.ports.add(Port("hub-eth0", 50_000_000))
    tx.ports.add(Port("far-eth0", 50_000_000, site="far.example"))
    tx.ports.add(Port("other-eth0", 50_000_000, site="other.example"))
    tx.sites.add(Site("far.example"))
    for name, sites in (("campus", ("far.example",)), ("depot", ("campus",))):
        tx.fleet.relays.put(Relay(name, f"{name}.example:7379", sites=sites))
        tx.ports.add(Port(f"{name}-eth0", 50_000_000, site=name))
    tx.ports.add(Port("depot-eth1", 50_000_000, site="depot"))


def ordered(tx: Transaction, offer: str = "campus", **fields: object) -> DemandOrder:
    order = DemandOrder(0, offer, "CONDUIT", "far.example", 10_000_000, "a burst is due", AT)
    return tx.planning.orders.add(replace(order, **fields))  # type: ignore[arg-type]


@pytest.mark.usefixtures("ports")
def test_an_offer_comes_back_whole_and_is_changed_in_place(tx: Transaction, clock: FakeClock) -> None:
    kept = tx.planning.offers.put(OFFER)
    assert kept == replace(OFFER, created_at=clock.now()) == tx.planning.offers.one("campus")
    clock.advance(60)
    assert tx.planning.offers.put(OFFER) == kept, "nothing changed"
    dearer = tx.planning.offers.put(replace(OFFER, price=2.0, budget=Budget()))
    assert (dearer.price, dearer.budget, dearer.created_at) == (2.0, Budget(), kept.created_at)
    assert [one.subject for one in tx.access.audit.page(Changes(kind="circuit offer"))] == ["campus", "campus"]
    tx.planning.offers.remove("campus")
    with pytest.raises(NotFound, match="offers list"):
        tx.planning.offers.one("campus")


@pytest.mark.usefixtures("ports")
def test_a_port_that_offers_name_stays(tx: Transaction) -> None:
    for number in range(7):
        tx.planning.offers.put(replace(OFFER, name=f"offer{number}"))
    before = tx.ports.all()
    for port in ("hub-eth0", "far-eth0"):
        with pytest.raises(AlreadyThere) as refused:
            tx.ports.remove(port)
        assert str(refused.value) == (
            f"port {port!r} is named by offers of circuits: offer0, offer1, offer2, offer3, offer4 and 2 more; "
            "change or remove them first"
        )
    assert tx.ports.all() == before
    for number in range(7):
        tx.planning.offers.remove(f"offer{number}")
    tx.ports.remove("hub-eth0")
    assert [port for port in before if port.name != "hub-eth0"] == tx.ports.all()


@pytest.mark.usefixtures("ports")
def test_offers_begin_at_the_hubs_own_node(tx: Transaction) -> None:
    own = tx.ports.one("hub-eth0")
    tx.ports.change(replace(own, sender="one"))
    with pytest.raises(BadInput, match=r"offer campus: port hub-eth0 is at the sender one"):
        tx.planning.offers.put(OFFER)
    tx.ports.change(own)
    tx.planning.offers.put(OFFER)
    with pytest.raises(BadInput, match=r"offer campus: port hub-eth0 is at the sender one"):
        tx.ports.change(replace(own, sender="one"))


@pytest.mark.usefixtures("ports")
def test_an_offer_may_join_relays(tx: Transaction, clock: FakeClock) -> None:
    core = replace(OFFER, hub_port="depot-eth0", ports=("campus-eth0",))
    assert tx.planning.offers.put(core) == replace(core, created_at=clock.now()) == tx.planning.offers.one("campus")


@pytest.mark.usefixtures("ports")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hub_port": "nowhere"}, "no port 'nowhere'"),
        ({"hub_port": "far-eth0", "ports": ("hub-eth0",)}, "port hub-eth0 is the hub's"),
        (
            {"hub_port": "far-eth0", "ports": ("other-eth0",)},
            "far-eth0 is neither the hub's nor that of a relay with",
        ),
        (
            {"hub_port": "depot-eth0"},
            "port far-eth0 is not that of a relay with an address; circuits from relay depot",
        ),
        ({"hub_port": "depot-eth0", "ports": ("depot-eth1",)}, "are both those of relay depot"),
        ({"hub_port": "depot-eth0", "ports": ("campus-eth0",), "provider": "surf"}, "surf makes no circuits between"),
        ({"ports": ("hub-eth0",)}, "hub-eth0 is named for both ends"),
        ({"ports": ()}, "name 1 to"),
        ({"provider": "nsi.example"}, "no provider 'nsi.example'"),
        ({"rates_bps": (50_000_000, 10_000_000)}, "ascending"),
        ({"rates_bps": (999,)}, "not within"),
        ({"rates_bps": (900_000_000,)}, "above the rate of a port"),
        ({"setup_s": float("nan")}, "set-up"),
        ({"least_hold_s": -1.0}, "smallest hold"),
        ({"price": float("inf")}, "price"),
        ({"budget": Budget(circuit_hours=-1)}, "circuit-hours"),
        ({"budget": Budget(orders=10**9)}, "orders a day"),
    ],
)
def test_an_impossible_offer_is_refused_in_a_sentence(tx: Transaction, wrong: dict[str, object], said: str) -> None:
    with pytest.raises((BadInput, NotFound), match=said):
        tx.planning.offers.put(replace(OFFER, **wrong))  # type: ignore[arg-type]
    assert tx.planning.offers.all() == []


@pytest.mark.usefixtures("ports")
def test_an_offer_in_use_stays(tx: Transaction) -> None:
    tx.planning.offers.put(OFFER)
    order = ordered(tx)
    with pytest.raises(AlreadyThere, match=f"order {order.number}"):
        tx.planning.offers.remove("campus")
    tx.planning.orders.save(replace(order, step=OrderStep.ENDED))
    tx.planning.offers.remove("campus")


def test_orders_are_found_by_their_step_and_time(tx: Transaction) -> None:
    first = ordered(tx)
    second = ordered(tx, site="near.example", times=replace(AT, ordered_at=SOME_TIME + timedelta(hours=1)))
    assert tx.planning.orders.open() == [first, second]
    assert first.request_id == f"on-demand-{first.number}"
    times, use = replace(AT, ended_at=SOME_TIME + timedelta(minutes=1)), OrderUse(0.4, 12, 3.5)
    used = replace(first, step=OrderStep.ENDED, circuit=7, times=times, outcome="12 products", use=use)
    tx.planning.orders.save(used)
    assert tx.planning.orders.one(first.number) == used
    assert tx.planning.orders.open() == [second]
    assert tx.planning.orders.since(SOME_TIME + timedelta(minutes=30)) == [second]
    assert tx.planning.orders.since(SOME_TIME) == [used, second]
    assert tx.planning.orders.page(WhichOrders(site="near.example")) == [second]
    assert tx.planning.orders.page(WhichOrders(before=second.number)) == [used]
    said = [one.action for one in tx.access.audit.page(Changes(kind="circuit order", subject=str(first.number)))]
    assert said == ["ended", "ordered"]


def test_budgets_count_the_orders_of_their_offers(tx: Transaction) -> None:
    first, other = ordered(tx), ordered(tx, "other")
    assert tx.planning.orders.since(SOME_TIME, offers=["campus"]) == [first]
    assert tx.planning.orders.since(SOME_TIME, offers=["campus", "other"]) == [first, other]
    assert tx.planning.orders.since(SOME_TIME, offers=[]) == []


def test_trains_are_found_once_by_their_feed_and_in_their_order(tx: Transaction) -> None:
    starts = [SOME_TIME + timedelta(minutes=minute) for minute in (0, 5, 9)]
    for start, site in ((starts[2], "far.example"), (starts[1], "far.example"), (starts[1], "near.example")):
        ordered(tx, site=site, times=replace(AT, train_at=start))
    ordered(tx, times=replace(AT, train_at=starts[0]))
    ordered(tx)
    assert tx.planning.orders.trains(starts[1]) == {"CONDUIT": starts[1:]}
    assert tx.planning.orders.trains(SOME_TIME) == {"CONDUIT": starts}


def test_set_up_times_are_those_of_the_last_orders(tx: Transaction) -> None:
    assert tx.planning.orders.setups(["campus"]) == {}
    for seconds in (100, *range(1, 21)):
        ordered(tx, times=replace(AT, up_at=SOME_TIME + timedelta(seconds=seconds)), step=OrderStep.ENDED)
    ordered(tx, "other", times=replace(AT, up_at=SOME_TIME + timedelta(seconds=900)))
    ordered(tx)
    found = tx.planning.orders.setups(["campus", "none"])
    assert list(found) == ["campus"]
    assert (found["campus"].count, found["campus"].median_s) == (20, 10.5)
    assert found["campus"].p90_s == pytest.approx(18.1)


def test_a_provider_in_use_stays(tx: Transaction) -> None:
    assert tx.planning.providers.put(SURF) == SURF == tx.planning.providers.one("surf")
    bare = replace(SURF, name="proxy", url="http://127.0.0.1:8080/", certificate=None, reply_to="https://a.example/")
    assert tx.planning.providers.put(bare) == bare
    assert tx.planning.providers.all() == [bare, SURF]
    with pytest.raises(BadInput, match="own nodes"):
        tx.planning.providers.put(replace(SURF, name="linux"))
    carriage = CircuitCarriage(CircuitDriver.NSI, provider="surf")
    ends = (CircuitEnd("hub-eth0"), CircuitEnd("far-eth0", "far.example"))
    wanted = Circuit(0, CircuitRequest("r-1"), ends, 10_000_000, 10_000_000, SOME_TIME, None, carriage)
    number = tx.circuits.add(wanted).number
    assert tx.circuits.one(number).carriage == carriage
    with pytest.raises(AlreadyThere, match=f"circuit {number}"):
        tx.planning.providers.remove("surf")
    tx.planning.nsi.put(number, "surf", {"format": 1})
    tx.planning.nsi.put(number, "surf", {"format": 1, "order": {}})
    assert tx.planning.nsi.of_provider("surf") == [{"format": 1, "order": {}}]
    tx.planning.nsi.remove(number)
    assert tx.planning.nsi.of_provider("surf") == []
    tx.planning.providers.remove("proxy")
    with pytest.raises(NotFound, match="providers list"):
        tx.planning.providers.remove("proxy")
