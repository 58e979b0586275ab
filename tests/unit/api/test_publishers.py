"""Publishers of WIS2 over the api, and the origin server of their products."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from contract.test_ledger_publishers import outgoing
from downburst.deliveries import ProductFacts
from downburst.deliveries.browsing import Browse, Browsed
from downburst.domain.bridges.exporting import ExportedFile, ExportedProduct
from downburst.domain.bridges.publishers import Step
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.limits import LimitSettings
from downburst.wis2.announcing import Announcing, Ready, outgoing_of
from downburst_api.app import create_app
from factories import SOME_TIME, runtime
from unit.api.conftest import Asked
from unit.api.test_configuration import site_and_feed

WANTED: dict[str, Any] = {
    "publisher": "synop",
    "feed": "NGRID",
    "centre": "us-unidata",
    "topic": "core/weather/surface-based-observations/synop",
    "metadata_id": "urn:wmo:md:us-unidata:synop",
    "broker": {"url": "mqtts://broker.example", "user": "node", "password": "secret-word"},
    "base_url": "https://hub.example",
}
CONTENT = b"SMVX52 TJSJ 291200\r\r\nAAXX 29121"


def exported(directory: Path, hub: Asked, sequence: int = 42) -> None:
    """Has the node hand out a product."""
    path = directory / "file"
    path.write_bytes(CONTENT)
    product = ExportedProduct("NGRID", "7", sequence, "SMVX52 TJSJ 291200", len(CONTENT), SOME_TIME)
    file = ExportedFile(product, hashlib.sha512(CONTENT).digest(), path)
    hub.node.exports["NGRID", "7", sequence] = file


def links(directory: Path) -> list[str]:
    """The names of the product's file."""
    return [path.name for path in directory.iterdir() if path.name.startswith("file")]


async def test_a_publisher_is_added_changed_and_removed_and_its_password_shown_to_nobody(hub: Asked) -> None:
    await site_and_feed(hub)
    made = await hub.ask("POST", "/v1/publishers", 201, json=WANTED)
    assert (made["enabled"], made["broker"]["fault"]) == (False, "switched off")
    refused = await hub.problem("PATCH", "/v1/publishers/synop", 400, "bad-request", json={"enabled": True})
    assert "WIS2 asks for 24 h" in refused["detail"]
    assert not (await hub.ask("GET", "/v1/publishers/synop"))["enabled"], "nothing has changed"
    await hub.ask("PATCH", "/v1/feeds/NGRID", json={"retention_hours": 24})
    changed = await hub.ask("PATCH", "/v1/publishers/synop", json={"enabled": True, "topic": "core/ocean/surface"})
    assert (changed["enabled"], changed["topic"]) == (True, "core/ocean/surface")
    assert await hub.ask("GET", "/v1/publishers") == [changed]
    assert "secret-word" not in str(made) + str(changed)
    await hub.ask("DELETE", "/v1/publishers/synop", 204)
    await hub.problem("GET", "/v1/publishers/synop", 404, "not-found")


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"feed": "NONE"}, 404, "not-found"),
        ({"centre": "unidata"}, 400, "bad-request"),
        ({"topic": "weather/synop"}, 400, "bad-request"),
        ({"topic": "core/#"}, 400, "bad-request"),
        ({"metadata_id": "synop"}, 400, "bad-request"),
        ({"base_url": "ftp://hub.example"}, 400, "bad-request"),
        ({"media_type": "bufr"}, 400, "bad-request"),
        ({"broker": WANTED["broker"] | {"mqtt": 311}}, 400, "bad-request"),
        ({"publisher": "SYNOP"}, 400, "bad-request"),
    ],
)
async def test_impossible_publishers_are_refused(
    hub: Asked, change: dict[str, object], status: int, code: str
) -> None:
    await site_and_feed(hub)
    await hub.problem("POST", "/v1/publishers", status, code, json=WANTED | change)
    assert await hub.ask("GET", "/v1/publishers") == []


async def test_the_notification_is_shown_before_anything_is_sent(
    hub: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/publishers", 201, json=WANTED)
    exported(tmp_path, hub)
    facts = ProductFacts(
        "NGRID", "7", 42, "x", "ldm", SOME_TIME, SOME_TIME, len(CONTENT), "ab" * 32, "grid", kept=True
    )

    async def browse(_wanted: Browse) -> Browsed:
        return Browsed((facts,), (), 1, 1, 1, {}, {}, 41, complete=True)

    monkeypatch.setattr(hub.node, "browse", browse)
    shown = await hub.ask("POST", "/v1/publishers/synop/preview")
    assert (shown["step"], shown["reason"]) == ("waiting", "")
    assert shown["notification"]["properties"]["gts"] == {"ttaaii": "SMVX52", "cccc": "TJSJ"}
    assert await hub.ask("GET", "/v1/publishers/synop/products") == []


async def test_an_announced_product_is_served_to_anybody_whole_and_in_ranges(hub: Asked, tmp_path: Path) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/publishers", 201, json=WANTED)
    exported(tmp_path, hub)
    one = replace(outgoing(42), epoch="7", digest=hashlib.sha512(CONTENT).hexdigest())
    with hub.runtime.ledger.transaction() as tx:
        tx.wis2.outbox.put([one, outgoing(41, step=Step.REFUSED)])
    client = hub.client
    client.headers.pop("authorization", None)
    url = "/wis2/synop/7/42-SMVX52%20TJSJ%20291200"
    whole = await client.get(url)
    assert (whole.status_code, whole.content) == (200, CONTENT)
    part = await client.get(url, headers={"range": "bytes=7-10"})
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"TJSJ", "bytes 7-10/31")
    head = await client.head(url)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "31", b"")
    for gone in (
        "/wis2/synop/7/41-x",
        "/wis2/synop/8/42-x",
        "/wis2/other/7/42-x",
        "/wis2/synop/7/x",
        "/wis2/synop/7/9",
    ):
        assert (await client.get(gone)).status_code == 404, gone
    assert links(tmp_path) == ["file"], "no links are left"


async def test_withdrawn_data_are_announced_and_served_no_more(hub: Asked, tmp_path: Path) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/publishers", 201, json=WANTED)
    exported(tmp_path, hub)
    with hub.runtime.ledger.transaction() as tx:
        publisher = tx.wis2.publishers.one("synop")
    file = hub.node.exports["NGRID", "7", 42]
    now = Announcing("31e9d66a-cd83-4174-9429-b932f1abe1be", SOME_TIME, None)
    made = outgoing_of(publisher, Ready(file.product, file.sha512, CONTENT), now)
    with hub.runtime.ledger.transaction() as tx:
        tx.wis2.outbox.put([made])
    gone = await hub.ask("POST", "/v1/publishers/synop/withdraw", json={"data_id": made.data_id})
    assert gone["notification"]["links"][0]["rel"] == "deletion"
    assert json.loads(made.payload)["id"] != gone["id"]
    assert (await hub.client.get("/wis2/synop/7/42-x")).status_code == 404
    await hub.problem("POST", "/v1/publishers/synop/withdraw", 404, "not-found", json={"data_id": "other"})


async def test_caches_may_ask_for_more_files_than_a_caller_without_a_login_may_ask_questions(
    tmp_path: Path, ledger: Ledger, clock: FakeClock
) -> None:
    limits = LimitSettings(requests_per_minute_without_login=1, files_per_minute_without_login=3)
    made, _ = runtime(tmp_path, ledger, clock, limits=limits)
    transport = httpx.ASGITransport(create_app(made))
    async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
        files = [(await client.get("/wis2/synop/7/42-x")).status_code for _ in range(4)]
        questions = [(await client.get("/v1/session")).status_code for _ in range(2)]
    assert (files, questions) == ([404, 404, 404, 429], [200, 429])
