"""Repair between sites over the api: the exchange of a site, the account, and who may change them."""

import pytest

from downburst.domain.access import Role
from downburst.domain.feeds import Feed
from downburst.domain.relays.siblings import Saved
from downburst.domain.sites import Site
from downburst.ledger import Ledger
from unit.api.conftest import Asked

PATH = "/v1/sites/unl.edu/siblings"


@pytest.fixture(autouse=True)
def _sites(ledger: Ledger) -> None:
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        for name in ("unl.edu", "isu.edu"):
            tx.sites.add(Site(name))


async def test_an_exchange_is_off_until_it_is_switched_on(hub: Asked, ledger: Ledger) -> None:
    assert await hub.ask("GET", PATH) == {"site": "unl.edu", "exchange": None, "saved": [], "saved_bytes": 0}
    made = await hub.ask("PUT", PATH, json={"address": "ldm.unl.edu:7380", "upload_bytes_per_second": 5_000})
    exchange = made["exchange"]
    assert (exchange["address"], exchange["upload_bytes_per_second"]) == ("ldm.unl.edu:7380", 5_000)
    assert (exchange["upload_bytes_per_day"], exchange["set_by"]) == (50_000_000_000, "local")
    with ledger.transaction() as tx:
        tx.fleet.siblings.count([Saved("unl.edu", "NGRID", 3, 900), Saved("isu.edu", "NGRID", 1, 10)])
    listed = await hub.ask("GET", "/v1/siblings")
    assert [(one["site"], one["exchange"] is None, one["saved_bytes"]) for one in listed] == [
        ("isu.edu", True, 10),
        ("unl.edu", False, 900),
    ]
    assert (await hub.ask("GET", "/v1/siblings?limit=1"))[0]["site"] == "isu.edu"
    await hub.ask("DELETE", PATH, 204)
    left = await hub.ask("GET", PATH)
    assert (left["exchange"], left["saved"]) == (None, [{"feed": "NGRID", "products": 3, "bytes": 900}])
    assert (
        'downburst_sibling_saved_bytes_total{site="unl.edu",feed="NGRID"} 900'
        in (await hub.client.get("/metrics")).text
    )


@pytest.mark.parametrize(
    "wanted",
    [
        {"address": "no-port"},
        {"address": 5},
        {"upload_bytes_per_second": 0},
        {"upload_bytes_per_day": -1},
        {"upload": 5},
    ],
)
async def test_an_impossible_exchange_is_refused(hub: Asked, wanted: dict[str, object]) -> None:
    await hub.problem("PUT", PATH, 400, "bad-request", json=wanted)
    assert (await hub.ask("GET", PATH))["exchange"] is None


async def test_a_sites_administrator_sets_the_sites_own_exchange(hub: Asked) -> None:
    made = await hub.ask(
        "POST", "/v1/access-tokens", 201, json={"name": "unl", "role": Role.SITE.value, "site": "unl.edu"}
    )
    own = {"Authorization": f"Bearer {made['token']}"}
    assert (await hub.ask("PUT", PATH, json={}, headers=own))["exchange"]["set_by"] == "token 1 (unl)"
    await hub.problem("PUT", "/v1/sites/isu.edu/siblings", 403, "refused", json={}, headers=own)
    await hub.problem("GET", "/v1/siblings", 403, "refused", headers=own)
    await hub.ask("DELETE", PATH, 204, headers=own)


async def test_a_site_that_is_unknown_has_no_exchange(hub: Asked) -> None:
    for method in ("GET", "DELETE"):
        await hub.problem(method, "/v1/sites/none.edu/siblings", 404, "not-found")
    await hub.problem("PUT", "/v1/sites/none.edu/siblings", 404, "not-found", json={})
