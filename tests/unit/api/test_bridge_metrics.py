"""Metrics of bridges, with the names of WIS2's hierarchy."""

from downburst.domain.bridges import CentreCounts, PublisherNow, SourceNow, Standing
from downburst.exposition.catalogue import GC_DOWNLOADED, GC_ERRORS, GC_INTEGRITY, GC_LAST
from downburst.foundation.clock import FakeClock
from unit.api.conftest import Asked
from unit.api.test_bridges import URL, WANTED
from unit.api.test_configuration import site_and_feed
from unit.api.test_publishers import WANTED as PUBLISHER

HIERARCHY = {
    "wmo_wis2_gc_downloaded_total",
    "wmo_wis2_gc_downloaded_errors_total",
    "wmo_wis2_gc_last_download_timestamp_seconds",
    "wmo_wis2_gc_integrity_failed_total",
}
"""wmo-im/wis2-metric-hierarchy, metrics/gc.csv: all of it."""


async def test_downloads_are_counted_by_centre_under_the_hierarchys_names(hub: Asked, clock: FakeClock) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/bridges", 201, json=WANTED)
    await hub.ask("POST", "/v1/publishers", 201, json=PUBLISHER)
    now = SourceNow({URL: Standing(clock.now(), bound=1, last_at=clock.now(), fault="")})
    now.centres["de-dwd"] = CentreCounts(downloaded=7, errors=2, differing=1, last_at=clock.now())
    hub.runtime.live.bridges.sources["dwd"] = now
    hub.runtime.live.bridges.publishers["synop"] = PublisherNow()
    text = (await hub.client.get("/metrics")).text
    at_s = clock.now().timestamp()
    for line in (
        'wmo_wis2_gc_downloaded_total{centre_id="de-dwd",report_by="hub"} 7',
        'wmo_wis2_gc_downloaded_errors_total{centre_id="de-dwd",report_by="hub"} 2',
        'wmo_wis2_gc_integrity_failed_total{centre_id="de-dwd",report_by="hub"} 1',
        f'downburst_bridge_connected{{bridge="dwd",broker="{URL}"}} 1',
        'downburst_publisher_connected{publisher="synop"} 0',
    ):
        assert line in text, text[-3_000:]
    assert f"{at_s:.0f}"[:8] in text
    assert {metric.name for metric in (GC_DOWNLOADED, GC_ERRORS, GC_LAST, GC_INTEGRITY)} == HIERARCHY
