"""The tracer of a whole hub: a quiet feed is limited by nothing but itself, and a product moves the counters."""

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until


def _connections(hub: RunningHub, variable: str) -> list[dict[str, Any]]:
    found = hub.ask("GET", "/v1/sites/here/tracer", params={"last_s": 30, "variable": variable})
    assert (found["unable"], found["damaged"], found["variables"]) == (None, 0, [variable])
    connections: list[dict[str, Any]] = found["connections"]
    return connections


def _acked(connection: dict[str, Any]) -> int:
    return int(connection["samples"][-1][1])


@pytest.mark.all
def test_a_quiet_site_is_judged_and_its_bytes_advance(starter: Starter, tmp_path: Path) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "here"})
    hub.ask("POST", "/v1/sites/here/subscriptions", 201, json={"feed": "NGRID"})
    starter.receiver(hub, "here", hub.ask("POST", "/v1/sites/here/tokens", 201)["token"])

    def quiet() -> dict[str, Any] | None:
        judged = [one for one in _connections(hub, "bytes_acked") if one["verdict"] and one["role"] == "session"]
        return next((one for one in judged if one["verdict"]["seconds"] > 1.5), None)

    connection = until("its session is judged", quiet)
    assert connection["verdict"]["leading"] == "application"
    assert connection["stalls"] == []
    content = os.urandom(150_000)
    hub.ask("PUT", "/v1/feeds/NGRID/products/one", 201, content=content)
    before = _acked(connection)
    after = until(
        "the product's bytes are acknowledged",
        lambda: [one for one in _connections(hub, "bytes_acked") if _acked(one) >= before + len(content)],
    )
    assert after[0]["peer"] == connection["peer"]

    shown = hub.command("tracer", "here", "--csv", str(tmp_path / "samples.csv"))
    assert "application: In" in shown.stdout, shown
    with (tmp_path / "samples.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert int(rows[-1]["bytes_acked"]) >= len(content)
    refused = hub.command("tracer", "here", "--variable", "cwnd")
    assert refused.returncode == 2
    assert "no variable is named" in refused.stderr

    # The kernel counts busy time in its ticks of some milliseconds, which a large product takes even here.
    hub.ask("PUT", "/v1/feeds/NGRID/products/large", 201, content=os.urandom(LARGE_BYTES))

    def factor() -> dict[str, Any] | None:
        asked = {"product": "large", "site": "here"}
        (delivery,) = hub.ask("GET", "/v1/products/trace", params=asked)["products"][0]["deliveries"]
        return next((one for one in delivery["factors"] if one["factor"] == "tcp"), None)

    found = until("the limit of TCP is among the parts of the product's time", factor)
    assert 0 < found["share"] <= 1
    assert found["ms"] > 0
    assert "limited TCP for" in found["sentence"]
    everywhere = hub.ask("GET", "/v1/products/trace", params={"product": "large"})
    assert "tcp" not in {one["factor"] for one in everywhere["products"][0]["deliveries"][0]["factors"]}


LARGE_BYTES = 60_000_000
