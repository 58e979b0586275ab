"""A real Prometheus scrapes a running hub: its figures, every query of the dashboard, every rule."""

import math
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kit.board import board, questions
from kit.node import SiteNode
from kit.patience import wait_for
from kit.prometheus import Prometheus, program
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system]
PRODUCTS = 40
DELIVERED = 'sum(downburst_delivery_latency_seconds_count{feed="NGRID",site="here.edu"})'


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[WholeHub]:
    hub = WholeHub(tmp_path / "hub", multicast_network="239.78.93.0/24").start()
    yield hub
    if hub.process.poll() is None:
        hub.stop()


@pytest.fixture
def site(hub: WholeHub, tmp_path: Path) -> Iterator[SiteNode]:
    """One of two sites; the other one, away.edu, never connects."""
    hub.ask("POST", "/v1/feeds", json={"feed": "NGRID"})
    for name in ("here.edu", "away.edu"):
        hub.ask("POST", "/v1/sites", json={"site": name})
        hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": "NGRID"})
    site = SiteNode(tmp_path / "here", hub.sites)
    site.directory.mkdir()
    site.token_file.write_text(hub.ask("POST", "/v1/sites/here.edu/tokens", json={})["token"])
    yield site.start()
    site.stop()


@pytest.fixture
def prometheus(hub: WholeHub, site: SiteNode, tmp_path: Path) -> Iterator[Prometheus]:
    program("prometheus")
    wanted = {"name": "prometheus", "role": "viewer", "scopes": ["metrics"], "days": 1}
    token = hub.ask("POST", "/v1/access-tokens", json=wanted)["token"]
    with Prometheus(tmp_path / "prometheus", hub.http, token) as running:
        yield running


def test_a_real_prometheus_reads_the_hubs_figures(
    hub: WholeHub, site: SiteNode, prometheus: Prometheus, tmp_path: Path
) -> None:
    begun = time.time()
    put(hub, range(PRODUCTS))
    site.wait_received(PRODUCTS)
    prometheus.wait_for(DELIVERED, PRODUCTS)
    figures_are_the_apis(hub, prometheus, begun)
    questions_have_answers(prometheus)
    rules_are_well(prometheus)
    promtool_finds_nothing(hub)
    counters_begin_at_0_with_another_hub(hub, site, prometheus)


def put(hub: WholeHub, numbers: range) -> None:
    for number in numbers:
        hub.ask("PUT", f"/v1/feeds/NGRID/products/p{number}", content=b"x" * (1000 + number))


def figures_are_the_apis(hub: WholeHub, prometheus: Prometheus, begun: float) -> None:
    (feed,) = hub.ask("GET", "/v1/overview")["feeds"]
    prometheus.wait_for('downburst_ingest_products_total{feed="NGRID"}', feed["products"])
    assert prometheus.one('downburst_ingest_bytes_total{feed="NGRID"}') == feed["bytes"] == sum(range(1000, 1040))
    assert {row["site"]: up for row, up in prometheus.query("downburst_site_up")} == {"here.edu": 1, "away.edu": 0}
    assert prometheus.one("downburst_sessions") == 1
    ((carried, _),) = prometheus.query("downburst_transport_info")
    assert (carried["feed"], carried["site"], carried["transport"]) == ("NGRID", "here.edu", "unicast")
    ((build, _),) = prometheus.query("downburst_build_info")
    version = hub.ask("GET", "/v1/status")["version"]
    assert (build["part"], build["version"]) == ("hub", version)
    ((build, _),) = prometheus.query("downburst_site_build_info")
    assert (build["site"], build["version"]) == ("here.edu", version)
    assert prometheus.one("downburst_log_products") == PRODUCTS
    oldest = prometheus.one("downburst_log_oldest_product_timestamp_seconds")
    assert oldest is not None
    assert begun - 1 <= oldest <= time.time()
    size, limit = prometheus.one("downburst_log_size_bytes"), prometheus.one("downburst_log_limit_bytes")
    assert size is not None
    assert limit == 10_000_000_000
    assert feed["bytes"] <= size <= limit
    latencies_are_the_apis(hub, prometheus)


def latencies_are_the_apis(hub: WholeHub, prometheus: Prometheus) -> None:
    """The p50 and p99 of the page, which are nearest ranks, lie in the buckets that hold these ranks."""
    found = [row for row in hub.ask("GET", "/v1/latency") if row["kind"] == "distribution"]
    assert [(row["site"], row["count"]) for row in found] == [("here.edu", PRODUCTS)]
    rows = prometheus.query('downburst_delivery_latency_seconds_bucket{site="here.edu"}')
    buckets = sorted((float(labels["le"]), count) for labels, count in rows)
    assert [count for _, count in buckets] == sorted(count for _, count in buckets)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        rank, below = math.ceil(share * PRODUCTS), 0.0
        for bound, count in buckets:
            if count >= rank:
                assert below * 0.98 <= found[0][name] / 1000 <= bound * 1.02, (name, found[0], buckets)
                break
            below = bound
    total = prometheus.one("sum(downburst_delivery_latency_seconds_sum)")
    assert total is not None
    assert total / PRODUCTS <= found[0]["max"] / 1000


def questions_have_answers(prometheus: Prometheus) -> None:
    """The queries use only metrics that a hub exports; troubles and circuits have no answer here."""
    titles = {panel["title"] for panel in board()["panels"]}
    assert titles >= CALM
    for title, question in questions():
        # `rate` needs two scrapes.
        wait_for(f"{title}: {question}", partial(is_answered, prometheus, title, question), 60)
    assert prometheus.one(dict(questions())["Sites connected"]) == 0.5
    assert prometheus.one(dict(questions())["Sites away"]) == 1


def is_answered(prometheus: Prometheus, title: str, question: str) -> bool:
    return bool(prometheus.query(question)) or title in CALM


def rules_are_well(prometheus: Prometheus) -> None:
    def health() -> list[tuple[str, str]]:
        return [(one["name"], one["health"]) for group in prometheus.ask("rules")["groups"] for one in group["rules"]]

    wait_for("all rules to be evaluated", lambda: "unknown" not in {how for _, how in health()}, 60)
    assert {how for _, how in health()} == {"ok"}, health()
    firing = {one["labels"]["alertname"] for one in prometheus.ask("alerts")["alerts"] if one["state"] == "firing"}
    assert firing <= {"DownburstAlarm"}, firing


def promtool_finds_nothing(hub: WholeHub) -> None:
    text = hub.answer("GET", "/metrics").text
    argv = [program("promtool"), "check", "metrics"]
    told = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def counters_begin_at_0_with_another_hub(hub: WholeHub, site: SiteNode, prometheus: Prometheus) -> None:
    hub.stop()
    prometheus.wait_for('up{job="downburst"}', 0)
    hub.start()
    prometheus.wait_for('up{job="downburst"}', 1)
    prometheus.wait_for("downburst_sessions", 1)
    put(hub, range(PRODUCTS, PRODUCTS + 3))
    site.wait_received(PRODUCTS + 3)
    prometheus.wait_for(DELIVERED, 3)
    assert prometheus.one('downburst_ingest_products_total{feed="NGRID"}') == 3
    sent = 'sum(downburst_egress_bytes_total{feed="NGRID"})'
    assert prometheus.one(f"{sent} >= bool sum(max_over_time(downburst_egress_bytes_total[10m]))") == 1


CALM = {
    *("Open alarms", "Products lost", "Predicted over measured p99", "Circuits, reserved and used"),
    *("Unknown errors", "Repair, share of what goes out", "Products that sites lack"),
}
