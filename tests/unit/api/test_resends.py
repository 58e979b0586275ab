"""Resends over the api, and subscriptions that begin in the past."""

from datetime import timedelta

import pytest

from downburst.domain.events import ResendsChanged
from downburst.foundation.clock import FakeClock, to_us
from unit.api.conftest import Asked
from unit.api.test_configuration import site_and_feed

WANTED = {"site": "unl.edu", "feed": "NGRID", "from": "2h", "pattern": "^A"}


async def test_a_resend_reaches_the_node_until_it_is_cancelled(hub: Asked, clock: FakeClock) -> None:
    await subscriber(hub)
    made = await hub.ask("POST", "/v1/resends", 201, json=WANTED | {"to": "90m", "not_pattern": "Z"})
    assert (made["kind"], made["state"], made["pattern"], made["not_pattern"]) == ("resend", "waiting", "^A", "Z")
    assert hub.node.fake.sites["unl.edu"]["resends"] == [
        {
            "resend": made["id"],
            "feed": "NGRID",
            "kind": "resend",
            "from_us": to_us(clock.now() - timedelta(hours=2)),
            "to_us": to_us(clock.now() - timedelta(minutes=90)),
            "wanted": {"pattern": "^A", "not_pattern": "Z"},
            "had": [],
        }
    ]
    assert ResendsChanged() in [await hub.events.next() for _ in range(4)]
    assert await hub.ask("GET", f"/v1/resends/{made['id']}") == made
    assert await hub.ask("GET", "/v1/resends?site=unl.edu&feed=NGRID") == [made]
    assert await hub.ask("GET", "/v1/resends?site=other") == []
    assert (await hub.ask("DELETE", f"/v1/resends/{made['id']}"))["state"] == "cancelled"
    assert hub.node.fake.sites["unl.edu"]["resends"] == []


async def test_a_resend_ends_now_at_the_latest(hub: Asked, clock: FakeClock) -> None:
    await subscriber(hub)
    made = await hub.ask("POST", "/v1/resends", 201, json=WANTED | {"to": "2030-01-01T00:00:00Z"})
    assert made["to"] == clock.now().isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("change", "status", "code", "part"),
    [
        ({"from": "1h", "to": "2h"}, 400, "bad-request", "swap `from` and `to`"),
        ({"from": "yesterday"}, 400, "bad-request", "2026-01-31T06:00:00Z"),
        ({"from": "2026-01-01T00:00:00"}, 400, "bad-request", "with an offset"),
        ({"pattern": "a(b"}, 422, "bad-pattern", "character 2"),
        ({"feed": "NONE"}, 404, "unknown-feed", "NONE"),
        ({"site": "none"}, 404, "not-found", "none"),
        ({"tpyo": 1}, 400, "bad-request", "tpyo"),
    ],
)
async def test_a_bad_resend_is_refused(
    hub: Asked, change: dict[str, object], status: int, code: str, part: str
) -> None:
    await site_and_feed(hub)
    problem = await hub.problem("POST", "/v1/resends", status, code, json=WANTED | change)
    assert part in problem["detail"]
    assert await hub.ask("GET", "/v1/resends") == []
    await hub.problem("GET", "/v1/resends/5", 404, "not-found")


async def test_the_allow_list_holds_for_resends(hub: Asked) -> None:
    await site_and_feed(hub, allow=["OTHER"])
    await hub.problem("POST", "/v1/resends", 403, "refused", json=WANTED)


async def test_a_subscription_from_the_past_gets_what_it_had_not(hub: Asked, clock: FakeClock) -> None:
    await site_and_feed(hub)
    path = "/v1/sites/unl.edu/subscriptions"
    await hub.ask("POST", path, 201, json={"feed": "NGRID", "pattern": "^A"})
    assert await hub.ask("GET", "/v1/resends") == []
    body = {"feed": "NGRID", "start": "6h", "in_order": True, "hold_s": 0.5, "max_age_s": 60}
    wish = await hub.ask("POST", path, 201, json=body)
    (backfill,) = await hub.ask("GET", "/v1/resends")
    assert (backfill["kind"], backfill["requested_by"]) == ("backfill", f"subscription {wish['id']}")
    assert backfill["had"] == [{"pattern": "^A", "not_pattern": None}]
    line = hub.node.fake.sites["unl.edu"]
    assert line["resends"][0]["from_us"] == to_us(clock.now() - timedelta(hours=6))
    assert line["subscriptions"][1] == {
        "feed": "NGRID",
        "pattern": ".*",
        "not_pattern": None,
        "hold_us": 500_000,
        "max_age_us": 60_000_000,
    }


async def test_only_a_subscriber_gets_a_resend(hub: Asked) -> None:
    await site_and_feed(hub)
    problem = await hub.problem("POST", "/v1/resends", 403, "refused", json=WANTED)
    assert "subscriptions add unl.edu 'NGRID' --start 2h" in problem["detail"]


async def subscriber(hub: Asked) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/sites/unl.edu/subscriptions", 201, json={"feed": "NGRID"})
