"""Browsing a feed's log: products by part of their id, patterns tried on received products, sizes and silences."""

from typing import Any

from unit.api.conftest import Asked


async def _filled(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    for name in ("nam/1", "gfs/1", "nam/2", "gfs/2", "nam/3"):
        await hub.ask("PUT", f"/v1/feeds/NGRID/products/{name}", 201, content=name.encode())


async def _test(hub: Asked, **wanted: Any) -> dict[str, Any]:
    found: dict[str, Any] = await hub.ask("POST", "/v1/feeds/NGRID/pattern-test", json=wanted)
    return found


async def test_products_are_listed_newest_first_in_pages(hub: Asked) -> None:
    await _filled(hub)
    asked = {"feed": "NGRID", "contains": "nam", "since": "24h", "limit": 2}
    first = await hub.ask("GET", "/v1/products", params=asked)
    assert [one["product_id"] for one in first["items"]] == ["nam/3", "nam/2"]
    assert first["items"][0].keys() >= {"feed", "sequence", "stored_at", "size", "digest", "kept"}
    rest = await hub.ask("GET", "/v1/products", params={**asked, "cursor": first["next"]})
    assert ([one["product_id"] for one in rest["items"]], rest["next"]) == (["nam/1"], None)
    await hub.problem("GET", "/v1/products", 404, "unknown-feed", params={"feed": "NONE"})


async def test_a_pattern_is_tried_on_what_came(hub: Asked) -> None:
    await _filled(hub)
    found = await _test(hub, pattern="^nam", not_pattern="2$", hours=24)
    assert (found["products"], found["matched"], found["complete"]) == (5, 2, True)
    assert found["matched_ids"] == ["nam/3", "nam/1"]
    assert found["other_ids"] == ["gfs/2", "nam/2", "gfs/1"]
    assert found["matched_bytes"] == 2 * 2000


async def test_a_pattern_that_cannot_be_read_is_refused_with_field_and_position(hub: Asked) -> None:
    await _filled(hub)
    problem = await hub.problem(
        "POST", "/v1/feeds/NGRID/pattern-test", 422, "bad-pattern", json={"pattern": ".*", "not_pattern": "a(b"}
    )
    assert (problem["field"], problem["position"]) == ("not_pattern", 2)
    await hub.problem("POST", "/v1/feeds/NGRID/pattern-test", 400, "bad-request", json={"hours": 25})


async def test_sizes_and_silences_come_by_powers_of_two(hub: Asked) -> None:
    await _filled(hub)
    found = await hub.ask("GET", "/v1/feeds/NGRID/distribution", params={"hours": 24})
    assert found["sizes"] == [{"up_to_bytes": 2048, "products": 5}]
    assert found["silences"] == [{"up_to_ms": 1, "times": 4}]
    assert (found["products"], found["bytes"]) == (5, 10_000)


async def test_a_sites_administrator_looks_only_into_feeds_that_the_site_may_take(hub: Asked) -> None:
    await _filled(hub)
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "OTHER"})
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu", "allow": ["NGRID"]})
    token = await hub.ask("POST", "/v1/access-tokens", 201, json={"name": "t", "role": "site", "site": "unl.edu"})
    headers = {"Authorization": f"Bearer {token['token']}"}
    for method, path in (("POST", "pattern-test"), ("GET", "distribution")):
        given: dict[str, Any] = {"json": {}} if method == "POST" else {}
        await hub.ask(method, f"/v1/feeds/NGRID/{path}", headers=headers, **given)
        await hub.problem(method, f"/v1/feeds/OTHER/{path}", 404, "unknown-feed", headers=headers, **given)
    await hub.ask("GET", "/v1/products", headers=headers, params={"feed": "NGRID"})
    await hub.problem("GET", "/v1/products", 404, "unknown-feed", headers=headers, params={"feed": "OTHER"})
