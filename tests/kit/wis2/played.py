"""The routes of bridges with answers that are the same in every run."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from downburst.deliveries.browsing import Browse
from downburst.domain.bridges import CentreDay, Ended, Hole, Last, Notice, PassedOver, SourceNow, Standing, State
from downburst.domain.bridges.exporting import ExportedFile, ExportedProduct
from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst.wis2.announcing import Announcing, Ready, outgoing_of, record_announced
from downburst.wis2.records import record_of
from downburst_api.runtime import Runtime
from factories import SOME_TIME, NodeStandIn

URL = "mqtts://globalbroker.example"
SOURCE = {
    "bridge": "dwd",
    "feed": "NGRID",
    "brokers": [{"url": URL}, {"url": "wss://second.example/mqtt", "user": "unl", "password": "secret"}],
    "topics": ["cache/a/wis2/de-dwd/data/core/#"],
    "bytes_per_day": 20_000_000_000,
    "replay_url": "https://replay.example",
    "logins": [{"host": "data.example", "user": "unl", "password": "secret"}],
}

PUBLISHER = {
    "publisher": "gfs",
    "feed": "NGRID",
    "centre": "us-unidata",
    "topic": "core/weather/prediction/forecast/medium-range/deterministic/global",
    "metadata_id": "urn:wmo:md:us-unidata:gfs",
    "broker": {"url": "mqtts://broker.example", "user": "node", "password": "secret"},
    "base_url": "https://hub.example",
    "dataset": {
        "title": "GFS",
        "description": "The Global Forecast System on a grid of a quarter of a degree",
        "organization": "Unidata",
        "email": "support@unidata.example",
        "website": "https://unidata.example",
        "country": "USA",
        "keywords": ["forecast", "global", "grid"],
        "begin": "2026-11-01T00:00:00Z",
    },
}


async def play_bridges(ask: Callable[..., Awaitable[Any]], ledger: Ledger, live: LiveState, clock: Clock) -> None:
    """Adds a source at which something is held, something failed and something is waiting; removes it."""
    await ask("POST", "/v1/bridges", body=SOURCE)
    _fill(ledger, clock)
    live.bridges.sources["dwd"] = _now(clock)
    await ask("GET", "/v1/bridges")
    await ask("GET", "/v1/bridges/{bridge}", bridge="dwd")
    for what in ("failed", "centres", "passed-over", "holes"):
        await ask("GET", f"/v1/bridges/{{bridge}}/{what}", bridge="dwd")
    await ask("POST", "/v1/bridges/{bridge}/failed/retry", bridge="dwd")
    await ask("PATCH", "/v1/bridges/{bridge}", bridge="dwd", body={"enabled": False})
    await ask("DELETE", "/v1/bridges/{bridge}", bridge="dwd")
    del live.bridges.sources["dwd"]


async def play_publishers(ask: Callable[..., Awaitable[Any]], made: Runtime, node: NodeStandIn) -> None:
    """Adds a publisher that has announced something; removes it."""
    await ask("PATCH", "/v1/feeds/{feed}", feed="NGRID", body={"retention_hours": 24})
    await ask("POST", "/v1/publishers", body=PUBLISHER)
    newest = (await node.browse(Browse("NGRID", SOME_TIME - timedelta(days=9_999), limit=1))).products[0]
    key = "NGRID", newest.epoch, newest.sequence
    product = ExportedProduct(*key, newest.product_id, 4, SOME_TIME)
    path = made.settings.data_dir / "exported"
    path.write_bytes(b"GRIB")
    node.exports[key] = ExportedFile(product, hashlib.sha512(b"GRIB").digest(), path)
    announcing = Announcing("31e9d66a-cd83-4174-9429-b932f1abe1be", made.clock.now(), None)
    with made.ledger.transaction() as tx:
        publisher = tx.wis2.publishers.one("gfs")
        outgoing = outgoing_of(publisher, Ready(product, node.exports[key].sha512, b"GRIB"), announcing)
        tx.wis2.outbox.put([outgoing])
        assert publisher.dataset is not None
        record = record_of(publisher, publisher.dataset, made.clock.now())
        announced = record_announced(publisher, record, None, replace(announcing, id=announcing.id[:-1] + "0"))
        tx.wis2.outbox.put([announced])
    await ask("GET", "/v1/publishers")
    await ask("GET", "/v1/publishers/{publisher}", publisher="gfs")
    await ask("GET", "/v1/publishers/{publisher}/products", publisher="gfs", query="?step=waiting")
    await ask("POST", "/v1/publishers/{publisher}/preview", publisher="gfs")
    await ask("PATCH", "/v1/publishers/{publisher}", publisher="gfs", body={"enabled": True})
    await ask("POST", "/v1/publishers/{publisher}/withdraw", publisher="gfs", body={"data_id": outgoing.data_id})
    await ask("DELETE", "/v1/publishers/{publisher}", publisher="gfs")


def _fill(ledger: Ledger, clock: Clock) -> None:
    now = clock.now()
    last = Last("31e9d66a-cd83-4174-9429-b932f1abe1be", ("de-dwd/1", "ab" * 64), now, State.COMING)
    topic = "cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop"
    notice = Notice("dwd", "de-dwd/1", last, topic, b"{}", now, "de-dwd", 85_000)
    waiting = replace(notice, data_id="de-dwd/2", last=replace(last, state=State.WAITING))
    with ledger.transaction() as tx:
        tx.wis2.notices.take([notice, waiting, replace(notice, data_id="de-dwd/3")])
        tx.wis2.notices.settle("dwd", [Ended(notice, State.FAILED, "the server answers with status 404")])
        tx.wis2.days.add([CentreDay("dwd", "de-dwd", now.date(), products=2, bytes=170_000, copies=2, failed=1)])
        tx.wis2.holes.add(
            Hole("dwd", URL, now, now, "the broker did not keep the session"), filled_by="wss://second.example/mqtt"
        )


def _now(clock: Clock) -> SourceNow:
    standing = Standing(clock.now(), session_present=True, bound=1, last_at=clock.now(), fault="")
    now = SourceNow({URL: standing})
    now.paces[URL].count(clock.now())
    now.paces[URL].heard(clock.now() - timedelta(seconds=2), clock.now())
    now.latencies.add(3.5)
    sentence = "a notification of this data id with the same or a newer pubtime came before"
    now.passed_over.append(PassedOver(clock.now(), URL, "cache/a/wis2/de-dwd/data/core/weather", "older", sentence))
    return now
