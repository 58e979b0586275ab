"""Circuits on demand of a whole hub: offers and providers by commands, the configuration file, a restart, orders."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from downburst.domain.ordering import DemandOrder, OrderStep, OrderTimes
from downburst.foundation.clock import SystemClock
from downburst.ledger import Ledger
from integration.conftest import RunningHub, Starter

SET = (
    *("offers", "set", "campus", "--hub-port", "ae1", "--port", "unl-ae1", "--rate", "500M", "--rate", "50M"),
    *("--setup-s", "1.5", "--circuit-hours-a-day", "0.5"),
)
SURF = (
    *("providers", "set", "surf", "--url", "https://nsi.example/", "--provider-nsa", "urn:ogf:network:s"),
    *(
        "--requester-nsa",
        "urn:ogf:network:h",
        "--certificate",
        "/c.pem",
        "--key",
        "/c.key",
        "--authorities",
        "/a.pem",
    ),
)
BAD = [
    (("offers", "set", "x", "--hub-port", "ae1"), "a new one needs --port, --rate"),
    (("offers", "set", "campus", "--port", "nowhere"), "there is no port 'nowhere'"),
    (("offers", "set", "campus", "--rate", "50"), "'50' is not a rate"),
    (("offers", "set", "campus", "--rate", "1k"), "rates_bps.0: "),
    (("offers", "set", "campus", "--setup-s", "nan"), ""),
    (("offers", "set", "campus", "--price", "inf"), "inf is not a number of a definite size"),
    (("offers", "set", "campus", "--orders-a-day", "1.5"), "orders_a_day: "),
    (("offers", "set", "campus", "--provider", "unknown"), "there is no provider 'unknown'"),
    (("offers", "set", "-campus", "--rate", "1G"), ""),
    (("offers", "remove", "unknown", "--yes"), "there is no offer 'unknown'"),
    (("providers", "set", "surf", "--url", "ftp://nsi.example/"), "is not https://HOST/PATH"),
    (("providers", "set", "surf", "--key", "none"), "belong together"),
    (("providers", "set", "surf", "--key", "c.key"), "'c.key' is not an absolute path"),
    (("providers", "remove", "surf", "--yes"), "is needed by offer 'far'"),
    (("order", "99"), "there is no order 99"),
    (("add", "--to", "unl.edu", "--rate", "1G", "--provider", "surf"), "driver linux asks no provider"),
    (("add", "--to", "unl.edu", "--rate", "1G", "--driver", "nsi"), "driver nsi asks a provider"),
]


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    """A hub with ports, an offer of its own and one of a provider."""
    hub = starter.hub()
    hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    hub.ask("POST", "/v1/ports", 201, json={"port": "ae1", "rate_bps": 10**9})
    hub.ask("POST", "/v1/ports", 201, json={"port": "unl-ae1", "rate_bps": 10**9, "site": "unl.edu"})
    done(hub, *SET)
    done(hub, *SURF)
    done(hub, "offers", "set", "far", "--hub-port", "ae1", "--port", "unl-ae1", "--rate", "1G", "--provider", "surf")
    return hub


def done(hub: RunningHub, *argv: str) -> str:
    ran = hub.command("circuits", *argv)
    assert ran.returncode == 0, ran
    return ran.stdout


def shown(hub: RunningHub) -> dict[str, Any]:
    return {part: json.loads(done(hub, part, "list", "--json"))[part] for part in ("offers", "providers")}


@pytest.mark.all
def test_offers_and_providers_survive_a_file_and_a_restart(hub: RunningHub, starter: Starter) -> None:
    before = shown(hub)
    campus, far = before["offers"]
    assert (campus["rates_bps"], campus["setup_s"], campus["circuit_hours_a_day"]) == (
        [5 * 10**7, 5 * 10**8],
        1.5,
        0.5,
    )
    assert (far["provider"], before["providers"][0]["key"]) == ("surf", "/c.key")
    file = starter.home / "hub.yaml"
    file.write_text(hub.command("export").stdout)
    assert "nothing to change" in hub.command("diff", "-f", str(file), "--prune").stdout
    done(hub, "offers", "set", "campus", "--circuit-hours-a-day", "none", "--orders-a-day", "3")
    done(hub, "offers", "remove", "far", "--yes")
    done(hub, "providers", "remove", "surf", "--yes")
    ran = hub.command("apply", "-f", str(file), "--prune", "--yes")
    assert [line.split(":")[0] for line in ran.stdout.splitlines()] == [
        *("add circuit provider surf", "change circuit offer campus", "add circuit offer far", "3 changes made"),
    ], ran
    changes = hub.ask("GET", "/v1/audit", params={"kind": "circuit offer", "subject": "campus"})["items"]
    assert [one["action"] for one in reversed(changes)] == ["added", "changed", "changed"]
    assert hub.stop() == 0
    again = starter.hub(http=hub.http, sites=hub.sites, data_dir=hub.directory)
    after = shown(again)
    assert after["offers"][0] == campus
    assert after["offers"][1] | {"created_at": far["created_at"]} == far
    assert after["providers"] == before["providers"]


@pytest.mark.all
def test_bad_input_is_one_sentence_and_changes_nothing(hub: RunningHub) -> None:
    before = shown(hub)
    for argv, said in BAD:
        ran = hub.command("circuits", *argv)
        assert ran.returncode == 2, ran
        assert said in ran.stderr, argv
        assert not said or ran.stderr.count("\n") == 1, ran.stderr
    assert shown(hub) == before


@pytest.mark.all
def test_orders_are_read_back_with_reason_and_outcome(hub: RunningHub, starter: Starter) -> None:
    assert "no circuit was ordered" in done(hub, "orders")
    assert hub.stop() == 0
    now = datetime.now(UTC)
    times = OrderTimes(now - timedelta(seconds=2), now + timedelta(minutes=5), up_at=now, ended_at=now)
    ended = DemandOrder(0, "campus", "NGRID", "unl.edu", 50_000_000, "a train is due", times, OrderStep.ENDED)
    ledger = Ledger.open(f"sqlite:///{hub.directory / 'ledger.sqlite'}", SystemClock())
    with ledger.transaction() as tx:
        number = tx.planning.orders.add(ended).number
    ledger.close()
    again = starter.hub(http=hub.http, sites=hub.sites, data_dir=hub.directory)
    (order,) = json.loads(done(again, "orders", "--offer", "campus", "--feed", "NGRID", "--json"))["orders"]
    assert (order["order"], order["step"], order["setup_s"]) == (number, "ended", 2.0)
    assert json.loads(done(again, "orders", "--site", "other.edu", "--json")) == {"orders": [], "next": None}
    assert "a train is due" in done(again, "order", str(number))
    assert shown(again)["offers"][0]["measured"] == {"count": 1, "median_s": 2.0, "p90_s": 2.0}
