"""Senders beside a hub, over a real PostgreSQL and a real Kafka, with traffic on: killed, drained, the hub killed."""

import json
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.domain.receipts import Settled
from downburst.ledger import Ledger
from kit.capabilities import needs
from kit.kafka import Kafka
from kit.node import SiteNode
from kit.patience import wait_for
from kit.postgres import Postgres
from kit.read_only import OWN_MOUNTS, read_only
from kit.sender_scene import FEEDS, Scene
from kit.senders import nodes_of

pytestmark = pytest.mark.system


@pytest.fixture
def scene(tmp_path: Path, server: Postgres, broker: Kafka) -> Scene:
    return Scene(tmp_path, server, broker)


def test_a_sender_killed_and_one_drained_lose_and_double_nothing(scene: Scene) -> None:
    """At sites; a killed node loses the figures of its last second, but no receipt counts twice."""
    one = scene.sender_of("NGRID")
    assert scene.sender_of("CONDUIT") is not one, "feeds are shared out"
    scene.source.more(30)
    one.kill_all()
    scene.recovery_s("a sender was killed")
    one.start()
    scene.source.more(30)
    other = scene.sender_of("NGRID")
    assert other is not one
    assert other.drain() == 0
    scene.recovery_s("a sender was drained")
    scene.source.more(30)
    scene.finish()
    wait_for("the ledger to know that all is everywhere", lambda: settled_at_all(scene), 60)
    missing = len(scene.source.acknowledged) * len(scene.sites) - stored(scene)
    print(f"a sender was killed: {missing} receipts went with it")
    assert 0 <= missing <= IN_HAND
    traced_at_senders(scene)
    connections_of_senders(scene)
    scene.end()


def test_a_hub_killed_loses_and_doubles_nothing_and_sites_start_without_it(scene: Scene) -> None:
    scene.source.more(30)
    scene.hub.kill_api()
    first = scene.sites[0]
    assert first.stop() == 0
    first.start()
    wait_for("a site that starts while there is no hub is served", lambda: scene.is_served(first), 60)
    scene.hub.start()
    scene.recovery_s("the hub was killed and started")
    scene.source.more(30)
    scene.finish()
    scene.end()


def test_a_drain_and_another_credential_count_nothing_twice_and_a_revoked_site_is_shut_out(scene: Scene) -> None:
    site, name = scene.sites[0], scene.sites[0].directory.name
    wait_for("two senders serve the site", lambda: len(nodes_of(site)) == 2, 60)
    before = secret_of(site)
    scene.hub.ask("POST", f"/v1/sites/{name}/credentials/replacement")
    wait_for("the former credential counts for nothing", lambda: replaced(scene, site, before), 90)
    wait_for("both senders serve the site with the new one", lambda: len(nodes_of(site)) == 2, 60)
    scene.source.more(20)
    drained = scene.sender_of("NGRID")
    assert drained.drain() == 0
    scene.recovery_s("a sender was drained")
    drained.start()
    scene.source.more(20)
    scene.finish()
    counted_once_at_each(scene)
    other, name = scene.sites[1], scene.sites[1].directory.name
    scene.hub.ask("DELETE", f"/v1/sites/{name}/credentials")
    assert other.process.wait(60) == 3
    assert "is not valid here (unknown or revoked)" in other.log()
    scene.end()


def test_a_site_that_was_away_gets_what_a_short_copy_no_longer_has(
    tmp_path: Path, server: Postgres, broker: Kafka
) -> None:
    scene = Scene(tmp_path, server, broker, more_kafka="copy_mb = 1\n")
    scene.source.more(10)
    site = scene.sites[0]
    assert site.stop() == 0
    put = [put_large(scene, number) for number in range(LARGE)]
    sender = scene.sender_of("NGRID", scene.sites[1])
    wait_for("the others to have it", lambda: set(put) <= digests_at(scene.sites[1]), 60)
    wait_for("a short copy", lambda: bytes_below(sender.directory) < LARGE * LARGE_BYTES / 2, 60)
    site.start()
    scene.finish()
    wait_for("all that was put meanwhile", lambda: set(put) <= digests_at(site), 60)
    scene.end()


@pytest.mark.long(34)
@pytest.mark.root
def test_a_site_at_a_sender_that_loses_in_silence_is_an_alarm(
    tmp_path: Path, server: Postgres, broker: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("root")
    for name, value in QUICK_ALARMS.items():
        monkeypatch.setenv(f"DOWNBURST_ALARMS__{name}", value)
    scene = Scene(tmp_path, server, broker, sites_prefix=OWN_MOUNTS)
    site = scene.sites[0]
    for one in scene.sites:
        wait_for("heartbeats of both feeds to come out", partial(heartbeats_come_out, scene, one), 60)
    scene.source.more(10)
    with read_only(site.process.pid, site.directory / "received"):
        # Of the feed without traffic: on the other one a product may be on its way at any moment.
        acknowledges = "it acknowledges the products that it gets"
        wait_for("the alarm", lambda: acknowledges in sentence_of(scene, site, "CONDUIT"), 60)
        blamed = [(one["site"], one["kind"], one["sentence"]) for one in alarms(scene)]
        assert {name for name, *_ in blamed} == {site.directory.name}, blamed
    wait_for("the end of the alarm", lambda: not silent(scene, site), 60)
    scene.finish()
    scene.end()


def put_large(scene: Scene, number: int) -> str:
    """The SHA-256 of a product of many parts."""
    content = bytes([number]) * LARGE_BYTES
    url = f"http://{scene.hub.http}/v1/feeds/NGRID/products/large-{number}"
    assert httpx.put(url, content=content, headers=scene.hub.authorization, timeout=60).is_success
    return sha256(content).hexdigest()


def digests_at(site: SiteNode) -> set[str]:
    return {digest for _, digest in site.received().values()}


def bytes_below(directory: Path) -> int:
    """The space of the files on the disk, without holes."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


def heartbeats_come_out(scene: Scene, site: SiteNode) -> bool:
    told = scene.hub.ask("GET", f"/v1/sites/{site.directory.name}")["heartbeats"]
    return {feed for feed, beats in told.items() if beats["came_out"]} == set(FEEDS)


def silent(scene: Scene, site: SiteNode) -> list[Any]:
    """The alarms that no heartbeat comes out at the site."""
    return [one for one in alarms(scene) if (one["kind"], one["site"]) == ("heartbeat", site.directory.name)]


def sentence_of(scene: Scene, site: SiteNode, feed: str) -> str:
    return "".join(one["sentence"] for one in silent(scene, site) if one["feed"] == feed)


def alarms(scene: Scene) -> list[Any]:
    found: list[Any] = scene.hub.ask("GET", "/v1/alarms")["items"]
    return found


def traced_at_senders(scene: Scene) -> None:
    """The hub reports a product's paths to sites that other nodes serve, with times."""
    newest = max(scene.source.acknowledged)
    found = scene.hub.ask("GET", f"/v1/products/trace?feed=NGRID&product={newest}")
    (product,) = found["products"]
    told = {
        one["site"]: (one["state"], one["timing"]["distribution_ms"] is not None) for one in product["deliveries"]
    }
    assert told == {site.directory.name: ("stored", True) for site in scene.sites}, found


def connections_of_senders(scene: Scene) -> None:
    """The hub reports the recorded connections of a site at the nodes that serve it."""
    site = scene.sites[0]
    found = scene.hub.ask("GET", f"/v1/sites/{site.directory.name}/tracer?last_s=30")
    assert found["unable"] is None, found
    ports = {address.rpartition(":")[2] for address in nodes_of(site)}
    assert ports <= {one["local"].rpartition(":")[2] for one in found["connections"]}, found


def secret_of(site: SiteNode) -> str:
    return str(json.loads((site.directory / "state" / "identity.json").read_text())["secret"])


def replaced(scene: Scene, site: SiteNode, before: str) -> bool:
    """True if the site shows a credential other than before, and no other one is valid."""
    kept = scene.hub.ask("GET", f"/v1/sites/{site.directory.name}")["credentials"]
    good = [str(one["sha256"]) for one in kept if not one["revoked_at"] and not one["replaced_at"]]
    shown = secret_of(site)
    return shown != before and good == [sha256(shown.encode()).hexdigest()]


def counted_once_at_each(scene: Scene) -> None:
    """The ledger counts every receipt of the senders once."""
    wanted = len(scene.source.acknowledged) * len(scene.sites)
    wait_for("all receipts in the ledger", lambda: stored(scene) >= wanted, 60)
    assert stored(scene) == wanted


def stored(scene: Scene) -> int:
    """The number of receipts of stored products that the ledger has counted."""
    return sum(report.stored for report in reports(scene))


def settled_at_all(scene: Scene) -> bool:
    """True if every site is known to have everything up to the newest product."""
    newest = max(scene.source.acknowledged)
    return sum(report.feed == "NGRID" and report.settled_to >= newest for report in reports(scene)) == len(
        scene.sites
    )


def reports(scene: Scene) -> list[Settled]:
    ledger = Ledger.look_into(scene.url)
    with ledger.transaction(writes=False) as tx:
        found = tx.measured.settled.all()
    ledger.close()
    return found


QUICK_ALARMS = {"HEARTBEAT_S": "0.5", "HEARTBEAT_LATE_S": "5", "LOOK_S": "0.5", "END_AFTER_S": "1"}
"""A sixth of the usual limit: on two busy processors a heartbeat of a healthy site took up to 3 s."""
LARGE, LARGE_BYTES = 12, 1_500_000
IN_HAND = 3 * 150
"""Receipts of three sites for what the source can have brought in three seconds: batches are written each second."""
