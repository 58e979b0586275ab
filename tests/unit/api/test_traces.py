"""Product traces over HTTP: the product's location, the sites that have it, and the reasons for those that do not."""

from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.receipts import Batch, ProductException
from downburst.foundation.clock import to_us
from factories import EPOCH, SOME_TIME, sketch_row
from kit.fake_node import PRODUCT_STORED_US
from unit.api.conftest import Asked


async def _hub_with_product(hub: Asked, *, allow: list[str] | None = None) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"} | ({"allow": allow} if allow else {}))
    await hub.ask("POST", "/v1/sites/unl.edu/subscriptions", 201, json={"feed": "NGRID", "pattern": "^nam"})
    await hub.ask("PUT", "/v1/feeds/NGRID/products/nam.grib2", 201, content=b"bytes")


async def _trace(hub: Asked, product: str, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = await hub.ask("GET", "/v1/products/trace", params={"product": product, **given})
    return found


def _receipt(after_ms: int) -> dict[str, Any]:
    stored_us = PRODUCT_STORED_US + after_ms * 1000
    return {
        "outcome": "stored",
        "lane": "live",
        "transport": "unicast",
        "leg": 1,
        "repaired": False,
        "first_byte_us": stored_us - 4000,
        "last_byte_us": stored_us - 1000,
        "site_stored_us": stored_us,
        "action_done_us": None,
        "clock_offset_us": 0,
        "clock_bound_us": 200,
        "sent_before": [{"feed": "HDS", "products": 2, "bytes": 48_000_000}],
    }


async def test_a_product_is_found_by_id_number_and_file_name(hub: Asked) -> None:
    await _hub_with_product(hub)
    file = f"/data/received/NGRID/{int(EPOCH):016x}-0000000001_nam.grib2"
    for text, read_as in (("nam.grib2", "id"), ("NGRID:1", "sequence"), (file, "file")):
        found = await _trace(hub, text)
        assert (found["read_as"], found["asked"]) == (read_as, text)
        (product,) = found["products"]
        assert (product["feed"], product["sequence"], product["product_id"]) == ("NGRID", 1, "nam.grib2")
    digest = found["products"][0]["digest"]
    assert (await _trace(hub, digest[:12].upper()))["read_as"] == "digest"


async def test_a_site_that_never_enrolled_waits_with_reason_and_next_action(hub: Asked) -> None:
    await _hub_with_product(hub)
    (product,) = (await _trace(hub, "nam.grib2"))["products"]
    (delivery,) = product["deliveries"]
    assert (delivery["site"], delivery["state"]) == ("unl.edu", "waiting")
    assert delivery["reason"] == "no receiver of the site has ever enrolled"
    assert "downburst sites token unl.edu" in delivery["next_action"]
    assert product["states"] == {"waiting": 1}


async def test_a_site_is_judged_by_its_own_objective(hub: Asked) -> None:
    await _hub_with_product(hub)
    hub.node.fake.ways["unl.edu"] = {"receipts": [_receipt(9000)]}

    async def judged() -> tuple[str | None, float]:
        (product,) = (await _trace(hub, "nam.grib2"))["products"]
        (delivery,) = product["deliveries"]
        return delivery["timing"]["slow"], delivery["objective_ms"]

    feed = await hub.ask("GET", "/v1/feeds/NGRID")
    assert await judged() == ("queue", feed["objective_ms"])
    await hub.ask("PUT", "/v1/feeds/NGRID/objectives/unl.edu", json={"objective_ms": 60_000})
    slow, objective_ms = await judged()
    assert slow != "queue"
    assert objective_ms == 60_000
    await hub.ask("PATCH", "/v1/feeds/NGRID", json={"objective_ms": 60_000})
    await hub.ask("PUT", "/v1/feeds/NGRID/objectives/unl.edu", json={"objective_ms": 5})
    assert await judged() == ("queue", 5)


async def test_an_answer_has_the_time_of_the_hub_and_the_objective_of_sites_that_wait(hub: Asked) -> None:
    await _hub_with_product(hub)
    found = await _trace(hub, "nam.grib2")
    assert found["answered_at"] == SOME_TIME.isoformat().replace("+00:00", "Z")
    (delivery,) = found["products"][0]["deliveries"]
    assert delivery["state"] == "waiting"
    assert delivery["objective_ms"] > 0


async def test_a_stored_product_shows_where_its_time_went(hub: Asked) -> None:
    await _hub_with_product(hub)
    hub.node.fake.ways["unl.edu"] = {"receipts": [_receipt(9000)]}
    (product,) = (await _trace(hub, "nam.grib2"))["products"]
    (delivery,) = product["deliveries"]
    assert delivery["state"] == "stored"
    assert delivery["timing"]["slow"] == "queue"
    assert "behind 48 MB of HDS" in delivery["reason"]
    stages = {stage["stage"]: stage["ms"] for stage in delivery["timing"]["stages"]}
    assert stages == {"origin": pytest.approx(stages["origin"]), "queue": 8996.0, "transfer": 3.0, "store": 1.0} | {
        "action": None
    }


async def test_the_ring_is_read_once_for_a_site_and_never_for_all(hub: Asked) -> None:
    await _hub_with_product(hub)
    for number in range(2, 5):
        await hub.ask("PUT", "/v1/feeds/NGRID/products/nam.grib2", 201, content=b"bytes" * number)
    hub.node.fake.ways["unl.edu"] = {"receipts": [_receipt(9000)]}
    found = await _trace(hub, "nam.grib2", site="unl.edu")
    listed = [product["deliveries"][0]["factors"] for product in found["products"]]
    limits = [[one["sentence"] for one in factors if one["factor"] == "tcp"] for factors in listed]
    assert limits == [["network loss limited TCP for 100 % of the time with bytes to send"], [], [], []]
    (job,) = (job for job in hub.node.fake.jobs if job["do"] == "tracer")
    assert (job["site"], job["points"]) == ("unl.edu", 2)
    await _trace(hub, "nam.grib2")
    assert [one["do"] for one in hub.node.fake.jobs].count("tracer") == 1


async def test_a_site_without_the_right_is_shown_as_denied(hub: Asked) -> None:
    await _hub_with_product(hub)
    await hub.ask("PATCH", "/v1/sites/unl.edu", json={"allow": ["HDS"]})
    (product,) = (await _trace(hub, "nam.grib2"))["products"]
    assert product["states"] == {"denied": 1}


async def test_a_site_that_is_asked_for_is_shown_whatever_it_wants(hub: Asked) -> None:
    await _hub_with_product(hub)
    await hub.ask("POST", "/v1/sites", 201, json={"site": "psu.edu"})
    (all_sites,) = (await _trace(hub, "nam.grib2"))["products"]
    assert [delivery["site"] for delivery in all_sites["deliveries"]] == ["unl.edu"]
    (one,) = (await _trace(hub, "nam.grib2", site="psu.edu"))["products"]
    assert [(d["site"], d["state"]) for d in one["deliveries"]] == [("psu.edu", "not-subscribed")]


async def test_what_the_ledger_lists_as_lost_is_lost_here_too(hub: Asked) -> None:
    await _hub_with_product(hub)
    lost = ProductException("NGRID", EPOCH, 1, "unl.edu", "rejected", SOME_TIME)
    await hub.runtime.ledger.write(lambda tx: tx.measured.batches.load(Batch("b1", exceptions=(lost,))))
    (product,) = (await _trace(hub, "NGRID:1"))["products"]
    assert product["states"] == {"rejected": 1}


async def test_what_nobody_knows_is_a_problem_that_says_what_to_do(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    missing = {"product": "nobody.knows"}
    problem = await hub.problem("GET", "/v1/products/trace", 404, "not-found", params=missing)
    assert "downburst log tail" in problem["detail"]
    await hub.problem("GET", "/v1/products/trace", 404, "unknown-feed", params=missing | {"feed": "NGIRD"})
    await hub.problem("GET", "/v1/products/trace", 404, "not-found", params=missing | {"site": "nobody"})
    await hub.problem("GET", "/v1/products/trace", 400, "bad-request", params={"product": "x" * 300})


async def test_what_sites_lost_is_listed_with_the_products_names(hub: Asked) -> None:
    await _hub_with_product(hub)
    lost = [
        ProductException("NGRID", EPOCH, number, "unl.edu", outcome, SOME_TIME + timedelta(minutes=number))
        for number, outcome in ((1, "expired"), (2, "rejected"), (3, "expired"))
    ]
    await hub.runtime.ledger.write(lambda tx: tx.measured.batches.load(Batch("b1", exceptions=tuple(lost))))
    page = await hub.ask("GET", "/v1/deliveries", params={"site": "unl.edu", "limit": 2})
    assert [item["sequence"] for item in page["items"]] == [3, 2]
    rest = await hub.ask("GET", "/v1/deliveries", params={"site": "unl.edu", "limit": 2, "after": page["next"]})
    ((item,), more) = rest["items"], rest["next"]
    assert (item["product_id"], item["state"], more) == ("nam.grib2", "expired", None)
    assert page["items"][0]["product_id"] is None, "the log does not know it any more"
    rejected = await hub.ask("GET", "/v1/deliveries", params={"state": "rejected"})
    assert [item["sequence"] for item in rejected["items"]] == [2]
    await hub.problem("GET", "/v1/deliveries", 400, "bad-request", params={"after": "nonsense"})
    await hub.problem("GET", "/v1/deliveries", 400, "bad-request", params={"from": "yesterday"})


async def test_history_goes_by_the_minute_for_a_day_and_by_the_day_for_a_year(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    now = to_us(SOME_TIME) // 60_000_000
    old = now - 3 * 1440
    rows = [sketch_row([10.0], minute=minute) for minute in (now, now - 5, old, old + 1)]
    await hub.runtime.ledger.write(lambda tx: tx.measured.latency.add(*rows))
    minutes = await hub.ask("GET", "/v1/latency/history", params={"feed": "NGRID", "minutes": 60})
    assert (minutes["step_minutes"], [point["count"] for point in minutes["points"]]) == (1, [1, 1])
    days = await hub.ask("GET", "/v1/latency/history", params={"feed": "NGRID", "minutes": 366 * 1440})
    assert (days["step_minutes"], sum(point["count"] for point in days["points"])) == (1440, 4)
    assert len(days["points"]) <= 3
