"""A site's administrator sees the feeds and products that the site may take, and no trace of others."""

from typing import Any

import httpx
import pytest

from downburst.domain.access import Role
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Limit
from downburst.ledger import Transaction
from downburst_api.app import create_app
from unit.api.conftest import Asked


@pytest.fixture
async def site(hub: Asked) -> httpx.AsyncClient:
    """The administrator of unl.edu, which may take NGRID's products that begin with YZ, all of HDS, and no SECRET."""
    limit = Limit("NGRID", "^YZ", "TEST")

    def make(tx: Transaction) -> None:
        for name in ("NGRID", "HDS", "SECRET"):
            tx.feeds.add(Feed(name))
        tx.sites.add(Site("unl.edu", allow=("NGRID", "HDS"), limits=(limit,)))

    await hub.runtime.ledger.write(make)
    await hub.node.refresh()
    for feed, product in (
        ("SECRET", "hidden"),
        ("NGRID", "YZ-1"),
        ("NGRID", "YZ-TEST"),
        ("NGRID", "XX"),
        ("HDS", "a"),
    ):
        await hub.ask("PUT", f"/v1/feeds/{feed}/products/{product}", 201, content=product.encode())
    made = await hub.ask("POST", "/v1/access-tokens", 201, json={"name": "x", "role": Role.SITE, "site": "unl.edu"})
    transport = httpx.ASGITransport(create_app(hub.runtime), raise_app_exceptions=False)
    bearer = {"Authorization": f"Bearer {made['token']}"}
    return httpx.AsyncClient(transport=transport, base_url="http://hub", headers=bearer)


async def asked(site: httpx.AsyncClient, path: str, **params: Any) -> tuple[int, Any]:
    answer = await site.get(path, params=params or None)
    return answer.status_code, answer.json()


async def digest_of(hub: Asked, product: str) -> str:
    found = await hub.ask("GET", "/v1/products/trace", params={"product": product})
    digest: str = found["products"][0]["digest"]
    return digest


async def test_finding_06_a_trace_tells_a_site_nothing_of_feeds_that_it_may_not_take(
    hub: Asked, site: httpx.AsyncClient
) -> None:
    digest = await digest_of(hub, "hidden")
    for product, feed in (
        ("hidden", None),
        ("hidden", "SECRET"),
        ("SECRET:1", None),
        (digest, None),
        ("1", "SECRET"),
    ):
        params = {"product": product} | ({} if feed is None else {"feed": feed})
        status, problem = await asked(site, "/v1/products/trace", **params)
        assert status == 404, problem
        assert "blake3" not in str(problem)
        assert digest not in str(problem) or product == digest
    status, found = await asked(site, "/v1/products/trace", product="a")
    assert (status, [one["product_id"] for one in found["products"]]) == (200, ["a"])


async def test_finding_06_nor_of_products_beyond_its_limits(hub: Asked, site: httpx.AsyncClient) -> None:
    for product in ("XX", "YZ-TEST", "NGRID:3", await digest_of(hub, "XX")):
        status, problem = await asked(site, "/v1/products/trace", product=product)
        assert status == 404, problem
    assert (await asked(site, "/v1/products/trace", product="NGRID:1"))[0] == 200
    _, listed = await asked(site, "/v1/products", feed="NGRID", since="30000d")
    assert [one["product_id"] for one in listed["items"]] == ["YZ-1"]
    tested = await site.post("/v1/feeds/NGRID/pattern-test", json={"pattern": "^XX"})
    assert (tested.status_code, tested.json()["matched"], tested.json()["other_ids"]) == (200, 0, ["YZ-1"]), (
        tested.text
    )


@pytest.mark.parametrize(
    "path",
    [
        "/v1/products?feed={feed}",
        "/v1/feeds/{feed}/distribution",
        "/v1/volume/history?feed={feed}",
        "/v1/latency?feed={feed}",
        "/v1/latency/history?feed={feed}",
        "/v1/latency/heat?feed={feed}",
        "/v1/deliveries?feed={feed}",
        "/v1/products/trace?product=x&feed={feed}",
    ],
)
async def test_a_feed_that_a_site_may_not_take_is_answered_for_like_one_that_is_not_there(
    site: httpx.AsyncClient, path: str
) -> None:
    status, there = await asked(site, path.format(feed="SECRET"))
    _, nowhere = await asked(site, path.format(feed="SECRAT"))
    assert status == 404, there
    assert str(there).replace("SECRET", "SECRAT") == str(nowhere)
