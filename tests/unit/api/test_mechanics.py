"""Mechanics that all routes share: paging, conditional changes, and repeated requests."""

from typing import Any

import pytest

from downburst.domain.alarms import AlarmKind, Condition
from downburst.domain.feeds import Feed
from downburst.domain.receipts import Batch, ProductException
from downburst.domain.resends import Resend
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock
from factories import AUTHORIZATION, sketch_row
from unit.api.conftest import Asked


async def pages(hub: Asked, path: str, limit: int) -> list[Any]:
    found, path = [], f"{path}{'&' if '?' in path else '?'}limit={limit}"
    while True:
        answer = await hub.client.get(path)
        assert answer.status_code == 200, answer.text
        found.append(answer.json())
        if "next" not in answer.links:
            return found
        path = answer.links["next"]["url"]


@pytest.fixture
def filled(hub: Asked, clock: FakeClock) -> Asked:
    with hub.runtime.ledger.transaction() as tx:
        for name in ("NGRID", "A|FEED", "TEXT"):
            tx.feeds.add(Feed(name))
        for name in ("c.edu", "a.edu", "b.edu"):
            tx.sites.add(Site(name))
            for feed in ("NGRID", "TEXT"):
                tx.subscriptions.add(Subscription(0, name, feed))
                tx.resends.add(Resend(0, name, feed, clock.now(), clock.now()))
                tx.measured.latency.add(
                    sketch_row([1.0], site=name, feed=feed, minute=int(clock.now().timestamp()) // 60)
                )
    return hub


@pytest.mark.parametrize("path", ["feeds", "sites", "subscriptions", "resends", "latency", "subscriptions?feed=TEXT"])
async def test_a_list_comes_whole_or_page_by_page(filled: Asked, path: str) -> None:
    whole = await filled.ask("GET", f"/v1/{path}")
    assert len(whole) >= 3
    for limit in (1, 2, len(whole), 1000):
        found = await pages(filled, f"/v1/{path}", limit)
        assert [item for page in found for item in page] == whole
        assert [len(page) for page in found[:-1]] == [limit] * (len(found) - 1)


@pytest.mark.parametrize("path", ["audit", "deliveries", "alarms?ended=true"])
async def test_a_document_leads_to_the_next_page(filled: Asked, path: str) -> None:
    with filled.runtime.ledger.transaction() as tx:
        for number in (1, 2, 3):
            kind, subject = AlarmKind.CIRCUIT, str(number)
            tx.alerting.alarms.raise_(Condition(kind, "sentence", "step", subject=subject))
            lost = ProductException("NGRID", "7", number, "a.edu", "expired", filled.runtime.clock.now())
            tx.measured.batches.load(Batch(subject, exceptions=(lost,)))
    whole = (await filled.ask("GET", f"/v1/{path}"))["items"]
    assert len(whole) >= 3
    found = await pages(filled, f"/v1/{path}", 2)
    assert [item for page in found for item in page["items"]] == whole
    assert found[0]["next"] is not None
    assert found[-1]["next"] is None


async def test_every_list_has_pages(filled: Asked) -> None:
    described = (await filled.client.get("/openapi.json")).json()["paths"]
    lists = {}
    for path, operations in described.items():
        answer = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if answer.get("application/json", {}).get("schema", {}).get("type") == "array":
            named = {one["name"] for one in operations["get"].get("parameters", ())}
            lists[path] = {"cursor", "limit"} <= named
    assert len(lists) > 20
    assert [path for path, has_pages in lists.items() if not has_pages and path not in WHOLE] == []


WHOLE = {
    "/v1/bridges/{bridge}/passed-over",
    "/v1/circuits/calendar",
    "/v1/latency/history",
    "/v1/probes/{probe}/seconds",
}
"""Answers of a bounded size, whatever the amount of data: a range in steps."""


async def test_what_goes_between_two_pages_hides_nothing_else(filled: Asked) -> None:
    first = await filled.client.get("/v1/sites?limit=1")
    await filled.ask("DELETE", f"/v1/sites/{first.json()[0]['site']}", 204)
    rest = await filled.ask("GET", first.links["next"]["url"].replace("limit=1", "limit=9"))
    assert [one["site"] for one in rest] == ["b.edu", "c.edu"]


@pytest.mark.parametrize("cursor", ["nonsense", "WzFd", "WyJhIiwiYiJd", "bnVsbA", "ü"])
async def test_a_cursor_of_another_list_is_refused(filled: Asked, cursor: str) -> None:
    await filled.problem("GET", f"/v1/sites?cursor={cursor}", 400, "bad-request")
    await filled.problem("GET", "/v1/resends?cursor=WyJhIl0", 400, "bad-request")


async def test_a_change_is_made_to_what_was_seen_or_not_at_all(filled: Asked) -> None:
    for path, change in (("feeds/NGRID", {"objective_ms": 100}), ("sites/a.edu", {"organisation": "A"})):
        seen = (await filled.client.get(f"/v1/{path}")).headers["etag"]
        changed = await filled.client.patch(f"/v1/{path}", json=change, headers={"If-Match": seen})
        assert changed.status_code == 200
        assert changed.headers["etag"] not in ("", seen)
        for method in ("PATCH", "DELETE"):
            body = {"json": change} if method == "PATCH" else {}
            await filled.problem(method, f"/v1/{path}", 412, "changed-meanwhile", headers={"If-Match": seen}, **body)
        again = (await filled.client.get(f"/v1/{path}")).headers["etag"]
        assert again == changed.headers["etag"]
        await filled.ask("DELETE", f"/v1/{path}", 204, headers={"If-Match": f'"other", {again}'})


async def test_a_feed_that_is_put_may_have_to_be_there(filled: Asked) -> None:
    await filled.problem("PUT", "/v1/feeds/FRESH", 412, "changed-meanwhile", json={}, headers={"If-Match": "*"})
    made = await filled.client.put("/v1/feeds/FRESH", json={})
    changed: dict[str, Any] = {"json": {"objective_ms": 5}, "headers": {"If-Match": made.headers["etag"]}}
    await filled.ask("PUT", "/v1/feeds/FRESH", **changed)
    await filled.problem("PUT", "/v1/feeds/FRESH", 412, "changed-meanwhile", **changed)


async def test_pins_and_subscriptions_are_changed_as_they_were_seen(filled: Asked, clock: FakeClock) -> None:
    first = await filled.client.put("/v1/feeds/NGRID/pin", json={"transport": "unicast"})
    clock.advance(1)
    seen: dict[str, Any] = {"headers": {"If-Match": first.headers["etag"]}}
    await filled.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "multicast"}, **seen)
    await filled.problem("DELETE", "/v1/feeds/NGRID/pin", 412, "changed-meanwhile", **seen)
    await filled.ask("DELETE", "/v1/feeds/NGRID/pin", 204)
    await filled.problem("DELETE", "/v1/feeds/NGRID/pin", 412, "changed-meanwhile", **seen)
    made = await filled.client.post("/v1/sites/a.edu/subscriptions", json={"feed": "NGRID", "pattern": "^A"})
    number, its = made.json()["id"], {"headers": {"If-Match": made.headers["etag"]}}
    await filled.problem(
        "DELETE", f"/v1/subscriptions/{number}", 412, "changed-meanwhile", headers={"If-Match": '"x"'}
    )
    await filled.ask("DELETE", f"/v1/subscriptions/{number}", 204, **its)
    await filled.problem("DELETE", f"/v1/sites/a.edu/subscriptions/{number}", 412, "changed-meanwhile", **its)


async def test_a_request_that_is_sent_twice_is_carried_out_once(filled: Asked, clock: FakeClock) -> None:
    body, key = {"feed": "NGRID", "pattern": "^A"}, {"Idempotency-Key": "k1"}
    answers = [await filled.client.post("/v1/sites/a.edu/subscriptions", json=body, headers=key) for _ in range(3)]
    assert len({(one.status_code, one.text, one.headers["etag"]) for one in answers}) == 1
    assert [one.headers.get("idempotency-replayed") for one in answers] == [None, "true", "true"]
    wishes = await filled.ask("GET", "/v1/sites/a.edu/subscriptions")
    assert sum(wish["pattern"] == "^A" for wish in wishes) == 1
    path = "/v1/sites/a.edu/subscriptions"
    await filled.problem("POST", path, 422, "key-of-another-request", json=body | {"pattern": "^B"}, headers=key)
    other = "/v1/sites/b.edu/subscriptions"
    await filled.problem("POST", other, 422, "key-of-another-request", json=body, headers=key)
    clock.advance(24 * 3600 + 1)
    again = await filled.client.post(path, json=body, headers=key)
    assert again.status_code == 201
    assert "idempotency-replayed" not in again.headers


async def test_a_refused_request_may_be_mended_under_its_key(filled: Asked) -> None:
    key = {"headers": {"Idempotency-Key": "k2"}}
    await filled.problem("POST", "/v1/sites", 409, "already-there", json={"site": "a.edu"}, **key)
    await filled.ask("DELETE", "/v1/sites/a.edu", 204)
    await filled.ask("POST", "/v1/sites", 201, json={"site": "a.edu"}, **key)
    for bad in ("", "x" * 201):
        await filled.problem(
            "POST", "/v1/sites", 400, "bad-request", json={"site": "d.edu"}, headers={"Idempotency-Key": bad}
        )


async def test_secrets_are_told_once_and_not_kept(filled: Asked) -> None:
    key = {"Idempotency-Key": "k3"}
    made = await filled.ask("POST", "/v1/sites/a.edu/tokens", 201, json={}, headers=key)
    await filled.problem("POST", "/v1/sites/a.edu/tokens", 409, "outcome-unknown", json={}, headers=key)
    with filled.runtime.ledger.transaction() as tx:
        kept = tx.access.answers._connection.exec_driver_sql("SELECT * FROM answers").all()
    assert len(kept) == 1
    assert made["token"] not in str(kept)


async def test_a_request_whose_hub_ended_is_not_carried_out_again(
    filled: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, key = {"feed": "NGRID", "pattern": "^A"}, {"Idempotency-Key": "k4"}
    with monkeypatch.context() as cut_off:
        cut_off.setattr("downburst.ledger.repositories.answers.Answers.end", lambda *_: None)
        await filled.ask("POST", "/v1/sites/a.edu/subscriptions", 201, json=body, headers=key)
    path = "/v1/sites/a.edu/subscriptions"
    await filled.problem("POST", path, 409, "outcome-unknown", json=body, headers=key)


async def test_keys_of_different_people_are_different(filled: Asked) -> None:
    token = await filled.ask(
        "POST", "/v1/access-tokens", 201, json={"name": "t", "role": "operator"}, headers=AUTHORIZATION
    )
    body = {"site": "d.edu"}
    await filled.ask("POST", "/v1/sites", 201, json=body, headers={"Idempotency-Key": "k5"})
    other = {"Idempotency-Key": "k5", "Authorization": f"Bearer {token['token']}"}
    await filled.problem("POST", "/v1/sites", 409, "already-there", json=body, headers=other)
