"""A hub's configuration is exported and imported: nothing changes, no secret leaves, a prune removes the rest."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from fastapi import FastAPI
from typer.testing import CliRunner

from downburst.domain.alarms import Objective, Receiver, ReceiverKind, Silence
from downburst.domain.circuits import Port
from downburst.domain.feeds import DuplicateRule, Feed
from downburst.domain.ordering import Budget, Offer, Provider
from downburst.domain.plans import Transport
from downburst.domain.relays import FanOut, Relay
from downburst.domain.sites import CircuitAttachment, Place, Site
from downburst.domain.subscriptions import Limit, Subscription
from downburst.domain.tcp.profiles import ProfileMode, TcpKnobs, TcpProfile
from downburst.domain.topology import Domain, Host, Link, Maintenance, Switch, TagKind, TagRange, Topology
from downburst.domain.upstreams import LdmAccept, LdmSource, Upstream
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger, Transaction
from downburst_api.app import create_app
from downburst_app.cli import app
from downburst_app.cli.client import HubClient
from downburst_app.cli.configuration.configuration import Known, steps, without_secrets
from downburst_circuits.service import CircuitService
from factories import AUTHORIZATION, plan, runtime, unicast

OFFER: dict[str, Any] = {"offer": "x", "hub_port": "a", "ports": ["b"], "rates_bps": [10**8]}
NSI: dict[str, Any] = {
    "provider": "x",
    "url": "http://127.0.0.1/",
    "provider_nsa": "urn:ogf:network:s",
    "requester_nsa": "urn:ogf:network:h",
}
NETWORK = Topology(
    domains=(Domain("campus"),),
    switches=(Switch("chic", "campus", ("chic-1", "chic-2"), translates=True),),
    links=(
        Link("unl", "chic-2", "a-ae1", 10**10, 10**9, TagRange(TagKind.VNI, 5_000, 6_000), cost=3),
        Link("up", "ae1", "chic-1", 10**10, 10**10, TagRange(TagKind.VLAN, 100, 199)),
    ),
    hosts=(Host("hub-1", ("ae1",), 10**10),),
    maintenance=(Maintenance("work", ("unl",), datetime(2038, 1, 1, tzinfo=UTC), datetime(2038, 1, 2, tzinfo=UTC)),),
)
MAINTENANCE_BEGINS = datetime(2038, 1, 1, tzinfo=UTC)
MAINTENANCE_ENDS = MAINTENANCE_BEGINS + timedelta(hours=2)


class HubInMemory(HubClient):
    """Calls an application without a network."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__("http://hub")
        self._app = app

    def _answer(self, method: str, path: str, **request: Any) -> httpx.Response:
        answer = asyncio.run(self._asked(method, f"http://hub{path}", **request))
        assert answer.is_success, answer.text
        return answer

    async def _asked(self, method: str, url: str, **request: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, headers=AUTHORIZATION) as client:
            return await client.request(method, url, **request)


@pytest.fixture
def hubs(empty_ledger: Path, tmp_path: Path, clock: FakeClock) -> Iterator[list[tuple[Ledger, HubInMemory]]]:
    """Two hubs; the first has entries of every kind."""
    with ExitStack() as stack:
        made = []
        for name in ("one", "two"):
            shutil.copy(empty_ledger, tmp_path / f"{name}.sqlite")
            ledger = Ledger.open(f"sqlite:///{tmp_path / name}.sqlite", clock)
            stack.callback(ledger.close)
            running = runtime(tmp_path / name, ledger, clock)[0]
            made.append((ledger, HubInMemory(create_app(running))))
            if name == "one":
                with ledger.transaction() as tx:
                    _fill(tx)
            assert isinstance(running.circuits, CircuitService)
            asyncio.run(running.circuits._register.load())
        yield made


def _fill(tx: Transaction) -> None:
    tx.feeds.add(Feed("NGRID", objective_ms=1500, retention_hours=6))
    tx.feeds.add(Feed("TEXT", ldm_feed_type="IDS|DDPLUS", duplicate_rule=DuplicateRule.SIGNATURE))
    tx.planning.plans.append(plan("NGRID", unicast(1)))
    tx.planning.pins.set("NGRID", Transport.UNICAST, by="anna")
    tx.sites.add(
        Site(
            "a.edu",
            organisation="A",
            place=Place("Lincoln", 40.8, -96.7),
            circuit_attachment=CircuitAttachment("ae1", 100, 199),
            ceiling_mbps_by_hour=tuple(float(hour + 1) for hour in range(24)),
            allow=("NGRID",),
            limits=(Limit("NGRID", "^Y", "TEST"),),
            multicast=False,
        )
    )
    tx.sites.add(Site("b.edu", active=False))
    tx.subscriptions.add(Subscription(0, "a.edu", "NGRID", "^A", "test", in_order=True, hold_s=0.5, max_age_s=60.0))
    tx.subscriptions.add(Subscription(0, "b.edu", "TEXT"))
    tx.ldm.sources.add(LdmSource("idd", "NGRID", ("idd.example.edu",), "[05]$", 7200))
    tx.ldm.accepts.add(LdmAccept(0, "EXP", "^x", ".*"))
    tx.fleet.upstreams.add(Upstream("national", "hub.example.org:7370", "dbt1.secret", ("NGRID",)))
    knobs = TcpKnobs("bbr", send_buffer_bytes=8_388_608, connections=4)
    tx.fleet.tcp_profiles.put(TcpProfile("overseas", "192.0.2.0/24", ProfileMode.TRIAL, knobs))
    tx.fleet.tcp_profiles.put(TcpProfile("campus", "2001:db8::/32", ProfileMode.LEARN))
    tx.fleet.relays.put(Relay("lincoln", "relay.a.edu:7379", FanOut.GROUP, ("a.edu",), ("NGRID",)))
    tx.fleet.relays.put(Relay("alpha", "[2001:db8::1]:7379", sites=("lincoln",)))
    tx.ports.add(Port("ae1", 10_000_000_000, first_vlan=100, last_vlan=199))
    tx.ports.add(Port("a-ae1", 10_000_000_000, site="a.edu"))
    tx.planning.topology.put(NETWORK)
    tx.planning.providers.put(Provider("surf", "http://127.0.0.1:80/", "urn:ogf:network:s", "urn:ogf:network:h"))
    tx.planning.offers.put(Offer("campus", "ae1", ("a-ae1",), (10**8,), budget=Budget(0.0, 5)))
    tx.planning.offers.put(Offer("far", "ae1", ("a-ae1",), (10**8, 10**9), "surf", price=0.0, setup_s=1.5))
    tx.alerting.receivers.add(Receiver("mail", ReceiverKind.MAIL, "ops@example.edu", (), ("NGRID",), ()))
    tx.alerting.site_receivers.add(Receiver("duty", ReceiverKind.MAIL, "duty@a.edu", feeds=("NGRID",), owner="a.edu"))
    tx.alerting.objectives.put(Objective("NGRID", "a.edu", 4000.0, quantile=0.9))
    tx.alerting.silences.add(
        Silence(0, MAINTENANCE_ENDS, "anna", "a new disk", site="a.edu", begins=MAINTENANCE_BEGINS)
    )
    tx.alerting.silences.add(Silence(0, MAINTENANCE_ENDS, "anna", "begun at once"))
    tx.alerting.receivers.add(
        Receiver("chat", ReceiverKind.WEBHOOK, "https://chat.example/hooks/T0/sesame", (), (), ())
    )


def carry_out(hub: HubInMemory, wanted: dict[str, Any], *, prune: bool = False) -> list[str]:
    made = steps(wanted, Known(hub), prune=prune)
    for step in made:
        hub.ask(step.method, "v1", *step.path, **({} if step.body is None else {"json": step.body}))
    return [step.what for step in made]


def through_a_file(document: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(yaml.safe_dump(document, sort_keys=False))
    return read


def test_what_was_exported_changes_nothing(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), _ = hubs
    document = through_a_file(Known(hub).document())
    assert set(document) == {
        *("feeds", "sites", "ldm_sources", "ldm_accepts", "upstreams", "ports", "pins", "alarm_receivers"),
        *("site_alarm_receivers", "objectives", "maintenance", "tcp_profiles", "relays"),
        *("circuit_providers", "circuit_offers", "topology"),
    }
    assert "secret" not in str(document)
    assert "sesame" not in str(document)
    for prune in (False, True):
        assert steps(document, Known(hub), prune=prune) == []


def test_an_empty_hub_becomes_the_one_that_was_exported(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), (_, empty) = hubs
    document = through_a_file(Known(hub).document())
    # A pin is shown with its feed's plan, and no plan exists here.
    del document["pins"]
    document["upstreams"] = []
    document["alarm_receivers"] = [one for one in document["alarm_receivers"] if one["receiver"] == "mail"]
    assert len(carry_out(empty, document)) == 2 + 2 + 2 + 2 + 2 + 2 + 2 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
    assert carry_out(empty, document) == []
    left = {part: entries for part, entries in document.items() if entries}
    assert through_a_file(Known(empty).document()) == left


def test_a_prune_removes_what_named_parts_do_not_name(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), _ = hubs
    document = Known(hub).document()
    site = document["sites"][0]
    wanted = {"sites": [site | {"subscriptions": []}], "ldm_accepts": [], "pins": []}
    assert carry_out(hub, wanted) == []
    told = carry_out(hub, wanted, prune=True)
    assert [line.split(" to ")[0] for line in told] == [
        "remove the pin of feed NGRID",
        "remove site b.edu",
        "end subscription 1 of a.edu",
        "let hosts that match .* no longer push EXP ^x",
    ]
    left = Known(hub).document()
    assert [one["site"] for one in left["sites"]] == ["a.edu"]
    assert left["feeds"] == document["feeds"], "a part that was left out stays"
    assert carry_out(hub, wanted, prune=True) == []


def test_a_prune_leaves_no_offer_without_its_ports(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), _ = hubs
    document = Known(hub).document()
    hubs_own = [one for one in document["ports"] if one["port"] == "ae1"]
    campus = [one for one in document["circuit_offers"] if one["offer"] == "campus"]
    for wanted, said in (
        ({"feeds": [], "ports": hubs_own}, "port 'a-ae1' is not in the file, .*: campus, far; add the port, or"),
        ({"ports": hubs_own, "circuit_offers": campus}, "port 'a-ae1' .*: campus; add"),
        ({"ports": []}, "port 'a-ae1'"),
    ):
        with pytest.raises(BadInput, match=said):
            carry_out(hub, wanted, prune=True)
    assert Known(hub).document() == document
    assert carry_out(hub, {"ports": hubs_own}) == [], "without --prune nothing is removed"
    both = steps({"ports": [], "circuit_offers": []}, Known(hub), prune=True)
    assert [step.what for step in both] == [
        "remove circuit offer campus",
        "remove circuit offer far",
        "remove port a-ae1",
        "remove port ae1",
    ]


def test_objectives_receivers_of_sites_and_windows_are_changed_and_pruned(
    hubs: list[tuple[Ledger, HubInMemory]],
) -> None:
    (_, hub), _ = hubs
    parts = ("site_alarm_receivers", "objectives", "maintenance")
    wanted = {part: entries for part, entries in Known(hub).document().items() if part in parts}
    wanted["objectives"][0]["objective_ms"] = 500.0
    wanted["site_alarm_receivers"][0]["address"] = "night@a.edu"
    over = {"begins": "2020-01-01T00:00:00Z", "minutes": 60, "site": "a.edu"}
    wanted["maintenance"].append(over)
    assert carry_out(hub, wanted) == [
        "remove alarm receiver duty of a.edu, to recreate it",
        "add alarm receiver duty of a.edu: mail night@a.edu",
        "set the objective of NGRID at a.edu to 500 ms: quantile 0.9",
    ]
    assert carry_out(hub, wanted, prune=True) == [], "a window that is over is no difference"
    told = carry_out(hub, {part: [] for part in parts}, prune=True)
    assert [line.split(":")[0] for line in told] == [
        "remove alarm receiver duty of a.edu",
        "remove the objective of NGRID at a.edu",
        "end window 1",
    ]
    assert not set(parts) & set(Known(hub).document())
    assert len(hub.ask("GET", "v1", "silences")) == 1, "a silence that began at once is no window"


@pytest.mark.parametrize(
    ("begins", "said"), [("tomorrow", "is not a time"), ("2030-01-01T00:00:00", "has no offset from UTC")]
)
def test_an_instant_of_a_window_is_whole(hubs: list[tuple[Ledger, HubInMemory]], begins: str, said: str) -> None:
    (_, hub), _ = hubs
    with pytest.raises(BadInput, match=said):
        steps({"maintenance": [{"begins": begins, "minutes": 5}]}, Known(hub), prune=False)


def test_tcp_profiles_are_added_changed_and_pruned(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), _ = hubs
    wanted = Known(hub).document()["tcp_profiles"]
    assert wanted == [
        {"profile": "campus", "prefix": "2001:db8::/32", "mode": "learn"},
        {
            "profile": "overseas",
            "prefix": "192.0.2.0/24",
            "mode": "trial",
            "knobs": {"congestion": "bbr", "send_buffer_bytes": 8_388_608, "connections": 4},
        },
    ]
    static = {"profile": "overseas", "prefix": "192.0.2.0/24", "knobs": {"congestion": "reno"}}
    fresh = {"profile": "far", "prefix": "2001:DB8:1::/48", "mode": "static", "knobs": {"pacing_bps": 50_000_000}}
    assert carry_out(hub, {"tcp_profiles": [static, fresh]}, prune=True) == [
        "change TCP profile overseas: prefix 192.0.2.0/24, knobs {'congestion': 'reno'}",
        "add TCP profile far: prefix 2001:db8:1::/48, knobs {'pacing_bps': 50000000}",
        "remove TCP profile campus",
    ]
    assert carry_out(hub, {"tcp_profiles": [static, fresh]}, prune=True) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prefix": "192.0.2.9/24", "knobs": {"congestion": "bbr"}}, "has bits of a host; write 192.0.2.0/24"),
        ({"prefix": "192.0.2.0/24", "knobs": {"connections": 99}}, "a number of connections of 99 is impossible"),
        ({"prefix": "192.0.2.0/24", "knobs": {"connections": "4"}}, "TCP profile x can't be used"),
        ({"prefix": "192.0.2.0/24", "knobs": {"window": 4}}, "TCP profile x can't be used"),
        ({"prefix": "192.0.2.0/24", "knobs": ["bbr"]}, "TCP profile x can't be used"),
        ({"prefix": "192.0.2.0/24", "knobs": {"congestion": 7}}, "TCP profile x can't be used"),
        ({"prefix": "192.0.2.0/24", "mode": "guess"}, "TCP profile x can't be used"),
        ({"prefix": "192.0.2.0/24"}, "profile x sets nothing"),
        ({}, "an entry of tcp_profiles has no prefix"),
    ],
)
def test_an_impossible_tcp_profile_is_refused_before_any_change(
    hubs: list[tuple[Ledger, HubInMemory]], given: dict[str, Any], said: str
) -> None:
    (_, hub), _ = hubs
    with pytest.raises(BadInput) as refused:
        steps({"feeds": [{"feed": "NEW"}], "tcp_profiles": [{"profile": "x", **given}]}, Known(hub), prune=False)
    assert said in refused.value.sentence


def test_relays_are_added_changed_and_pruned(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), _ = hubs
    document = Known(hub).document()
    assert document["relays"] == [
        {"relay": "alpha", "address": "[2001:db8::1]:7379", "sites": ["lincoln"]},
        {
            "relay": "lincoln",
            "address": "relay.a.edu:7379",
            "fan_out": "group",
            "sites": ["a.edu"],
            "feeds": ["NGRID"],
        },
    ]
    assert {"alpha", "lincoln"}.isdisjoint(site["site"] for site in document["sites"])
    changed = {"relay": "lincoln", "address": "relay.a.edu:7379", "sites": ["b.edu", "a.edu"]}
    fresh = {"relay": "far", "fan_out": "unicast", "feeds": ["*"]}
    outer = {"relay": "beta", "address": "beta.edu:7379", "sites": ["far"]}
    wanted = {"sites": document["sites"], "relays": [outer, changed, fresh]}
    assert carry_out(hub, wanted, prune=True) == [
        "change relay lincoln: address relay.a.edu:7379, sites ['a.edu', 'b.edu']",
        "add relay far: fan_out unicast",
        "add relay beta: address beta.edu:7379, sites ['far']",
        "remove relay alpha",
    ], "each follows the relays behind it"
    assert carry_out(hub, wanted, prune=True) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "relay x carries nothing"),
        ({"address": "here"}, "'here' is not the address of a relay"),
        ({"address": 5}, "relay x can't be used"),
        ({"address": "a:1", "fan_out": "shout", "feeds": ["*"]}, "relay x can't be used"),
        ({"address": "a:1", "sites": "a.edu"}, "the sites of relay x are no list of names"),
        ({"address": "a:1", "feeds": [7]}, "the feeds of relay x are no list of names"),
        ({"address": "a:1", "sites": ["x"]}, "relay x can't be behind itself"),
    ],
)
def test_an_impossible_relay_is_refused_before_any_change(
    hubs: list[tuple[Ledger, HubInMemory]], given: dict[str, Any], said: str
) -> None:
    (_, hub), _ = hubs
    with pytest.raises(BadInput) as refused:
        steps({"feeds": [{"feed": "NEW"}], "relays": [{"relay": "x", **given}]}, Known(hub), prune=False)
    assert said in refused.value.sentence


def test_offers_and_providers_are_added_changed_and_pruned(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), _ = hubs
    document = Known(hub).document()
    surf = {"provider": "surf", "url": "http://127.0.0.1:80/", "provider_nsa": "urn:ogf:network:s"}
    surf |= {"requester_nsa": "urn:ogf:network:h"}
    assert document["circuit_providers"] == [surf]
    ends = {"hub_port": "ae1", "ports": ["a-ae1"], "rates_bps": [10**8]}
    campus = {"offer": "campus", **ends, "circuit_hours_a_day": 0, "orders_a_day": 5}
    assert document["circuit_offers"][0] == campus
    esnet = surf | {"provider": "esnet", "dialect": "p2ps", "reply_to": None}
    moved = {"offer": "campus", **ends, "provider": "esnet", "setup_s": 60, "least_hold_s": 30}
    wanted = {"circuit_offers": [moved], "circuit_providers": [esnet]}
    assert carry_out(hub, wanted, prune=True) == [
        "add circuit provider esnet: url http://127.0.0.1:80/, provider_nsa urn:ogf:network:s, "
        "requester_nsa urn:ogf:network:h, dialect p2ps",
        "change circuit offer campus: provider esnet, hub_port ae1, ports ['a-ae1'], rates_bps [100000000], "
        "least_hold_s 30.0",
        "remove circuit offer far",
        "remove circuit provider surf",
    ], "each follows those that it needs, and goes before them"
    assert carry_out(hub, wanted, prune=True) == []


@pytest.mark.parametrize(
    ("part", "given", "said"),
    [
        ("circuit_offers", {}, "an entry of circuit_offers has no offer"),
        ("circuit_offers", {"offer": "x"}, "circuit offer x can't be used: hub_port: Field required"),
        ("circuit_offers", {"offer": "x", "setup_s": "soon"}, "circuit offer x can't be used: "),
        ("circuit_offers", OFFER | {"offer": "-x"}, "'-x' can't be the name of an offer"),
        ("circuit_offers", OFFER | {"setup_s": float("nan")}, "circuit offer x can't be used: setup_s: "),
        ("circuit_offers", OFFER | {"ports": ["b", "b"]}, "offer x: a port is named twice"),
        ("circuit_offers", OFFER | {"colour": "red"}, "circuit offer x can't be used: colour: "),
        ("circuit_providers", {"provider": "x", "url": "y"}, "circuit provider x can't be used: provider_nsa: "),
        ("circuit_providers", NSI | {"url": "http://far.example/"}, "provider x would be reached without TLS"),
        ("circuit_providers", NSI | {"key": "/k"}, "circuit provider x can't be used: provider: certificate, key"),
    ],
)
def test_impossible_offers_and_providers_are_refused_before_any_change(
    hubs: list[tuple[Ledger, HubInMemory]], part: str, given: dict[str, Any], said: str
) -> None:
    (_, hub), _ = hubs
    with pytest.raises(BadInput) as refused:
        steps({"feeds": [{"feed": "NEW"}], part: [given]}, Known(hub), prune=False)
    assert said in refused.value.sentence


def test_a_subscription_with_other_options_takes_the_place_of_the_one_before(
    hubs: list[tuple[Ledger, HubInMemory]],
) -> None:
    (_, hub), _ = hubs
    wish = {"feed": "TEXT", "in_order": True}
    told = carry_out(hub, {"sites": [{"site": "b.edu", "subscriptions": [wish]}]})
    assert told == ["subscribe b.edu to TEXT .*", "end subscription 2 of b.edu, which it replaces"]
    assert carry_out(hub, {"sites": [{"site": "b.edu", "subscriptions": [wish]}]}) == []


def test_what_was_hidden_has_to_be_written_down_before_it_is_made(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), (_, empty) = hubs
    document = Known(hub).document()
    with pytest.raises(BadInput, match="chat was masked"):
        carry_out(empty, {"alarm_receivers": document["alarm_receivers"]})
    with pytest.raises(BadInput, match="national is not there yet and needs a token"):
        carry_out(empty, {"upstreams": document["upstreams"]})


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("ops@example.edu", "ops@example.edu"),
        ("https://alerts.example:9093", "https://alerts.example:9093"),
        ("https://chat.example/hooks/T0/sesame", "https://chat.example/..."),
        ("https://chat.example/hook?key=sesame", "https://chat.example/..."),
        ("https://me:sesame@chat.example/hook", "https://chat.example/..."),
    ],
)
def test_secrets_of_addresses_are_hidden(address: str, shown: str) -> None:
    assert without_secrets(address) == shown


def test_a_difference_is_told_by_the_exit_code(
    hubs: list[tuple[Ledger, HubInMemory]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, hub), _ = hubs
    monkeypatch.setattr("downburst_app.cli.configuration.applying.HubClient", lambda _: hub)
    file = tmp_path / "hub.yaml"
    run = CliRunner()
    file.write_text(run.invoke(app, ["export"]).stdout)
    same = run.invoke(app, ["diff", "-f", str(file), "--prune"])
    assert (same.exit_code, same.stdout) == (0, "the hub matches the file; nothing to change\n")
    file.write_text("feeds: [{feed: NGRID, objective_ms: 9}]")
    other = run.invoke(app, ["diff", "-f", str(file)])
    assert (other.exit_code, other.stdout) == (1, "change feed NGRID: objective_ms 9\n")


def test_objectives_are_listed_set_and_removed(
    hubs: list[tuple[Ledger, HubInMemory]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, hub), _ = hubs
    monkeypatch.setattr("downburst_app.cli.hub.objectives.HubClient", lambda _: hub)
    run = CliRunner()

    def listed() -> dict[tuple[str, str | None], float]:
        found = json.loads(run.invoke(app, ["objectives", "list", "--json"]).stdout)
        return {(one["feed"], one["site"]): one["objective_ms"] for one in found}

    before = listed()
    assert (before["NGRID", None], before["NGRID", "a.edu"]) == (1500.0, 4000.0)
    wide = run.invoke(app, ["objectives", "set", "NGRID", "700"])
    assert wide.stdout == "NGRID has an objective of 700.0 ms\n"
    narrow = ["objectives", "set", "NGRID", "2000", "--site", "b.edu", "--quantile", "0.95", "--minutes", "30"]
    assert run.invoke(app, narrow).stdout == "NGRID at b.edu has an objective of 2.00 s\n"
    table = run.invoke(app, ["objectives", "list", "--feed", "NGRID"]).stdout
    assert all(word in table for word in ("700.0 ms", "b.edu", "95.00%", "30 min"))
    assert run.invoke(app, ["objectives", "remove", "NGRID", "--site", "a.edu"]).exit_code == 0
    assert {site for feed, site in listed() if feed == "NGRID"} == {None, "b.edu"}
    refused = run.invoke(app, ["objectives", "set", "NGRID", "2000", "--quantile", "0.5"])
    assert isinstance(refused.exception, BadInput)
    assert "name one with --site" in refused.exception.sentence


def test_a_topology_is_changed_by_name_and_pruned_as_a_whole(hubs: list[tuple[Ledger, HubInMemory]]) -> None:
    (_, hub), _ = hubs
    link = {"name": "up", "a": "ae1", "z": "chic-1", "az_bps": 10**9, "za_bps": 10**9}
    wanted = {"topology": {"domains": [{"name": "national"}], "links": [link]}}
    assert carry_out(hub, wanted) == ["topology: add domain national, change link up"]
    assert carry_out(hub, wanted) == []
    less = {"topology": {"domains": [{"name": "national"}]}}
    assert carry_out(hub, less) == []
    assert carry_out(hub, less, prune=True) == [
        "topology: remove domain campus, remove switch chic, remove link unl, remove link up, remove host hub-1, "
        "remove maintenance work"
    ]
    assert Known(hub).topology == {"domains": [{"name": "national"}]}
    # The ports of the former links are free.
    assert carry_out(hub, {"ports": [], "circuit_offers": [], "topology": {}}, prune=True)[0] == (
        "topology: remove domain national"
    )


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ([], None),
        (["x"], "no mapping of domains, switches"),
        ({"links": [{"name": "up"}]}, "topology can't be used: links.0.a: Field required"),
        ({"domains": [{"name": "a b"}]}, "domains.0.name: String should match"),
        ({"moons": []}, "moons: Extra inputs are not permitted"),
    ],
)
def test_a_topology_of_a_file_is_checked_before_any_change(
    hubs: list[tuple[Ledger, HubInMemory]], part: Any, said: str | None
) -> None:
    (_, hub), _ = hubs
    if said is None:
        assert steps({"topology": part}, Known(hub), prune=False) == []
        return
    with pytest.raises(BadInput, match=said):
        steps({"topology": part}, Known(hub), prune=False)
