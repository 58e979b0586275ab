"""`downburst analyze --hub`: a running hub's own products and transfers, by the command as its users run it."""

import csv
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until

ASKED = FEWEST_PRODUCTS = 40
SPAN_S = 2.0
"""A shorter recording has no two halves that can be compared."""


@pytest.mark.all
def test_a_hub_s_own_days_are_studied(starter: Starter, tmp_path: Path) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    refused = hub.command("analyze", "--hub", "NGRID")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the hub's log knows 0 products of NGRID" in refused.stderr
    _site(starter, hub, "unl")
    sizes = _put_some(hub)
    until("the newest has a receipt", lambda: _received(hub, f"grid-{len(sizes) - 1}"))

    found = _document(hub)
    assert (found["feed"], found["kind"]) == ("NGRID", "products")
    assert (found["traffic"]["products"], found["traffic"]["bytes"]) == (len(sizes), sum(sizes))
    assert found["circuit_advice"]["order_bps"] >= 1e6
    page = tmp_path / "page.html"
    shown = hub.command("analyze", "--hub", "NGRID", "--html", str(page))
    assert (shown.returncode, "Circuit: order" in shown.stdout) == (0, True), shown.stderr
    assert "Circuit: order" in page.read_text()
    _transfers_are_studied(hub, tmp_path / "own.csv")
    _counters_of_both_ends_are_factors(hub, starter.home / "sites" / "unl")
    pairs = _document(hub, "--heavy", "1k", "--newest", str(ASKED))
    assert pairs["days"][-1]["heavy_pairs"] == 1
    _bad_names_are_one_sentence(hub)


def _site(starter: Starter, hub: RunningHub, name: str) -> None:
    hub.ask("POST", "/v1/sites", 201, json={"site": name})
    hub.ask("POST", f"/v1/sites/{name}/subscriptions", 201, json={"feed": "NGRID", "pattern": ".*"})
    starter.receiver(hub, name, hub.ask("POST", f"/v1/sites/{name}/tokens", 201)["token"])
    until("the site is connected", lambda: _connected(hub, name))


def _connected(hub: RunningHub, name: str) -> bool:
    return any(one["site"] == name and one["connected"] for one in hub.ask("GET", "/v1/overview")["sites"])


def _put_some(hub: RunningHub) -> list[int]:
    """Products for long enough; their sizes."""
    sizes: list[int] = []
    began = time.monotonic()
    while len(sizes) < FEWEST_PRODUCTS or time.monotonic() < began + SPAN_S:
        content = os.urandom(20_000 + 1_000 * (len(sizes) % 40))
        hub.ask("PUT", f"/v1/feeds/NGRID/products/grid-{len(sizes)}", 201, content=content)
        sizes.append(len(content))
    return sizes


def _received(hub: RunningHub, product: str) -> bool:
    (found,) = hub.ask("GET", "/v1/products/trace", params={"product": product})["products"]
    (delivery,) = found["deliveries"]
    return delivery["receipt"] is not None and delivery["receipt"]["clock_offset_us"] is not None


def _document(hub: RunningHub, *arguments: str) -> dict[str, Any]:
    done = hub.command("analyze", "--hub", "NGRID", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _transfers_are_studied(hub: RunningHub, export: Path) -> None:
    """Stamps on two clocks of one host may cross for a few products, which are left out."""
    found = _document(hub, "--transfers", "--newest", str(ASKED), "--export", str(export))
    assert found["kind"] == "transfers"
    assert ASKED * 3 // 4 <= found["sessions"]["transfers"] <= ASKED
    assert (found["sessions"]["peers"], found["sessions"]["sessions"]) == (1, 1)
    names = {one["name"] for one in found["throughput"]["factors"]}
    assert names >= {"concurrency", "size", "hour of the day", "connections", "round trip"}
    assert "circuit" in found["throughput"]["sentence"]
    rows = list(csv.DictReader(export.read_text().splitlines()))
    assert len(rows) == found["sessions"]["transfers"]
    assert "unl" not in export.read_text()
    again = hub.command("analyze", str(export), "--json")
    assert json.loads(again.stdout)["sessions"]["sessions"] == 1, again.stderr


def _counters_of_both_ends_are_factors(hub: RunningHub, site: Path) -> None:
    """The nodes of hub and site record their host each second; its row begins with the second before."""
    until("the hub's node has recorded its host", lambda: len(_rows(hub.directory / "node")) > 2)
    until("the site's node has recorded its host", lambda: len(_rows(site)) > 2)
    assert {row["host"] for row in _rows(hub.directory / "node")} == {"hub"}
    assert {row["host"] for row in _rows(site)} == {"unl"}
    found = _document(hub, "--transfers", "--data-dir", str(hub.directory), "--counters", str(site / "counters"))
    names = {one["name"] for one in found["throughput"]["factors"]}
    columns = ("cpu_busy", "cpu_iowait", "net_in_bytes", "net_out_bytes", "load")
    assert names >= {f"{column} at the {end}" for column in columns for end in ("hub", "site")}


def _rows(directory: Path) -> list[dict[str, str]]:
    file = directory / "counters" / "newest.csv"
    return list(csv.DictReader(file.read_text().splitlines())) if file.exists() else []


def _bad_names_are_one_sentence(hub: RunningHub) -> None:
    for arguments in (["--hub", "NONE"], ["--hub", "NONE", "--transfers"], ["--hub", "NGRID", "--at", "nowhere:x"]):
        done = hub.command("analyze", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    nobody = hub.command("analyze", "--hub", "NGRID", "--at", "http://127.0.0.1:1")
    assert (nobody.returncode, "name it with --at or DOWNBURST_HUB" in nobody.stderr) == (1, True), nobody.stderr
