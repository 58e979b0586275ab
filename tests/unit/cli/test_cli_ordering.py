"""`downburst circuits offers`, `providers`, `orders` and `order`: requests to the hub, its answers, refusals."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

OFFER: dict[str, Any] = {
    "offer": "campus",
    "provider": "linux",
    "hub_port": "ae1",
    "ports": ["unl-ae1", "wis-ae1"],
    "rates_bps": [100_000_000, 500_000_000],
    "price": None,
    "setup_s": 1.0,
    "least_hold_s": 30.0,
    "circuit_hours_a_day": 8.0,
    "orders_a_day": None,
    "created_at": "2026-01-01T00:00:00Z",
    "measured": {"count": 20, "median_s": 2.345, "p90_s": 8.0},
    "used_today": {"circuit_hours": 0.25, "orders": 1_200},
}
PROVIDER: dict[str, Any] = {
    "provider": "surf",
    "url": "https://nsi.example.net/provider",
    "provider_nsa": "urn:ogf:network:example.net:2026:nsa",
    "requester_nsa": "urn:ogf:network:hub.example:2026:nsa",
    "dialect": "p2ps",
    "certificate": "/etc/nsi/hub.pem",
    "key": "/etc/nsi/hub.key",
    "authorities": "/etc/nsi/ca.pem",
    "reply_to": None,
    "service_type": "urn:type",
}
ORDER: dict[str, Any] = {
    "order": 12,
    "offer": "campus",
    "feed": "NGRID",
    "site": "unl.edu",
    "rate_bps": 100_000_000,
    "reason": "a train of products is due at 06:00",
    "step": "ended",
    "circuit": 7,
    "ordered_at": "2026-01-01T05:59:00Z",
    "until": "2026-01-01T06:30:00Z",
    "up_at": "2026-01-01T05:59:02Z",
    "released_at": "2026-01-01T06:20:00Z",
    "ended_at": "2026-01-01T06:20:01Z",
    "setup_s": 2.0,
    "outcome": "120 products went over it",
    "used_share": 0.25,
    "products": 120,
    "gained_ms": 350.5,
}
FRESH = ORDER | dict.fromkeys(
    ("circuit", "up_at", "released_at", "ended_at", "setup_s", "used_share", "products", "gained_ms")
)
NEW_PROVIDER = (
    *("providers", "set", "new", "--url", "https://n.example/", "--provider-nsa", "urn:ogf:network:n"),
    *("--requester-nsa", "urn:ogf:network:h"),
)


@dataclass
class Asked:
    empty: bool = False
    requests: list[tuple[str, str, Any, Any]] = field(default_factory=list)

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        path = url.partition("/v1/")[2]
        self.requests.append((method, path, given.get("json"), given.get("params")))
        lists: dict[str, Any] = {
            "circuit-offers": {"offers": [OFFER]},
            "circuit-providers": {"providers": [PROVIDER]},
            "circuit-orders": {"orders": [ORDER, FRESH | {"order": 11, "step": "ordered"}], "next": None},
            "circuit-orders/12": ORDER,
            "circuit-orders/11": FRESH | {"order": 11, "step": "ordered", "outcome": ""},
        }
        if self.empty and path in lists:
            lists[path] = {name: [] for name in lists[path]}
        answer = lists.get(path, OFFER if "offers" in path else PROVIDER)
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    # Tables have whole lines.
    monkeypatch.setenv("COLUMNS", "250")
    stand_in = Asked()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    return stand_in


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["circuits", *argv])
    return int(str(end.value.code or 0))


def test_offers_are_listed_with_their_use(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("offers", "list", "--wide") == 0
    out = capsys.readouterr().out
    for said in (
        "campus",
        "unl-ae1 wis-ae1",
        "100 Mb/s, 500 Mb/s",
        "2.35 s, p90 8 s",
        "0.25 of 8",
        "1,200",
        "default",
    ):
        assert said in out
    assert run("offers", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"offers": [OFFER]}
    asked.empty = True
    assert run("offers", "list") == 0
    assert "downburst circuits offers set campus" in capsys.readouterr().out


def test_a_new_offer_has_exactly_the_given_values(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    rates = ("--rate", "500M", "--rate", "100M", "--rate", "500M")
    assert run("offers", "set", "new", "--hub-port", "ae1", "--port", "a", "--port", "b", *rates) == 0
    wanted = {"hub_port": "ae1", "ports": ["a", "b"], "rates_bps": [100_000_000, 500_000_000]}
    assert asked.requests[-1][:3] == ("PUT", "circuit-offers/new", wanted)
    limits = ("--price", "0.5", "--setup-s", "2.5", "--circuit-hours-a-day", "1.5", "--orders-a-day", "40")
    more = ("--provider", "surf", "--least-hold-s", "60")
    assert run("offers", "set", "new", "--hub-port", "ae1", "--port", "a", *rates, *limits, *more) == 0
    assert asked.requests[-1][2] == wanted | {
        "ports": ["a"],
        "price": 0.5,
        "setup_s": 2.5,
        "circuit_hours_a_day": 1.5,
        "orders_a_day": 40,
        "provider": "surf",
        "least_hold_s": 60,
    }
    assert capsys.readouterr().out.splitlines()[-1] == (
        "offer campus: 100 Mb/s, 500 Mb/s from ae1 to unl-ae1, wis-ae1 by linux, at most 8 circuit-hours a day"
    )


def test_a_change_of_an_offer_keeps_its_other_values(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--circuit-hours-a-day", "none", "--orders-a-day", "0", "--price", "default")
    assert run("offers", "set", "campus", *limits, "--json") == 0
    body = asked.requests[-1][2]
    assert body == {
        "provider": "linux",
        "hub_port": "ae1",
        "ports": ["unl-ae1", "wis-ae1"],
        "price": None,
        "setup_s": 1.0,
        "rates_bps": [100_000_000, 500_000_000],
        "least_hold_s": 30.0,
        "circuit_hours_a_day": None,
        "orders_a_day": 0,
    }
    assert json.loads(capsys.readouterr().out) == OFFER


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("offers", "set", "new"), "there is no offer 'new' yet, and a new one needs --hub-port, --port, --rate"),
        (("offers", "set", "campus", "--rate", "500"), "'500' is not a rate"),
        (("offers", "set", "campus", "--orders-a-day", "many"), "'many' is not a number; give one, or none"),
        (("offers", "set", "campus", "--price", "none"), "'none' is not a number; give one, or default"),
        (("offers", "set", "campus", "--setup-s", "nan"), "Invalid value for"),
        (("offers", "set", "campus", "--price", "-inf"), "-inf is not a number of a definite size"),
        (("providers", "set", "new", "--url", "x"), "a new one needs --provider-nsa, --requester-nsa"),
        (("offers", "remove", "campus"), "repeat the command with --yes"),
        (("providers", "remove", "surf"), "repeat the command with --yes"),
    ],
)
def test_bad_input_changes_nothing(
    asked: Asked, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str
) -> None:
    assert run(*argv) == 2
    assert said in capsys.readouterr().err
    assert [one for one in asked.requests if one[0] != "GET"] == []


def test_providers_are_listed_set_and_removed(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("providers", "list", "--wide") == 0
    out = capsys.readouterr().out
    assert "urn:ogf:network:example.net:2026:nsa" in out
    assert "/etc/nsi/hub.pem" in out
    assert run(*NEW_PROVIDER, "--dialect", "none") == 0
    assert asked.requests[-1][:3] == (
        "PUT",
        "circuit-providers/new",
        {
            "url": "https://n.example/",
            "provider_nsa": "urn:ogf:network:n",
            "dialect": "none",
            "requester_nsa": "urn:ogf:network:h",
        },
    )
    none = ("--certificate", "none", "--key", "none", "--authorities", "none")
    assert run("providers", "set", "surf", *none, "--url", "http://127.0.0.1/", "--reply-to", "https://h/") == 0
    changed = {"url": "http://127.0.0.1/", "reply_to": "https://h/"}
    kept = {name: value for name, value in PROVIDER.items() if name != "provider"}
    assert asked.requests[-1][2] == kept | dict.fromkeys(("certificate", "key", "authorities")) | changed
    assert run("providers", "remove", "surf", "--yes", "--json") == 0
    assert asked.requests[-1][:2] == ("DELETE", "circuit-providers/surf")
    capsys.readouterr()
    assert run("providers", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"providers": [PROVIDER]}
    asked.empty = True
    assert run("providers", "list") == 0
    assert "there are no providers" in capsys.readouterr().out


def test_an_offer_is_removed(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("offers", "remove", "campus", "--yes") == 0
    assert asked.requests[-1][:2] == ("DELETE", "circuit-offers/campus")
    assert capsys.readouterr().out == "offer campus removed\n"


def test_orders_are_listed_by_their_objects(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("orders", "--offer", "campus", "--feed", "NGRID", "--site", "unl.edu", "--limit", "5", "--wide") == 0
    assert asked.requests[-1][1:] == (
        "circuit-orders",
        None,
        {"offer": "campus", "feed": "NGRID", "site": "unl.edu", "limit": 5},
    )
    out = capsys.readouterr().out
    for said in ("12", "ended", "2026-01-01 05:59:00", "2 s", "25%", "120 products went over it", "ordered"):
        assert said in out
    asked.empty = True
    assert run("orders") == 0
    assert "downburst circuits offers list" in capsys.readouterr().out


def test_an_order_is_shown_with_its_reason(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("order", "12") == 0
    out = capsys.readouterr().out
    for said in ("a train of products is due", "2026-01-01 05:59:02, 2 s after the order", "350.5 ms", "25%"):
        assert said in out
    assert run("order", "11") == 0
    assert "not known" in capsys.readouterr().out
    assert run("order", "12", "--json") == 0
    assert json.loads(capsys.readouterr().out) == ORDER
    assert run("order", "0") == 2
