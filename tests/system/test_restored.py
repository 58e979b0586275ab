"""Directories that are lost or replaced by older copies: no number names two products, and later ones are there."""

import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from downburst.foundation.file_names import decode
from kit.node import HubNode, Play, SiteNode, Subscribe
from kit.patience import wait_for

pytestmark = [pytest.mark.system]


def put(play: Play, products: int) -> None:
    for _ in range(products):
        play.put()


def started(node: HubNode, subscribe: Subscribe, seed: int) -> tuple[SiteNode, Play]:
    node.feed("NGRID")
    site = subscribe("one", "NGRID")
    node.wait_connected("one")
    play = Play(node, "NGRID", seed)
    put(play, 30)
    site.wait_received(30)
    assert node.drained()
    return site, play


def test_a_hub_with_an_older_log_gives_no_number_again(node: HubNode, subscribe: Subscribe, tmp_path: Path) -> None:
    site, play = started(node, subscribe, seed=31)
    log = node.directory / "data" / "log"
    node.stop()
    shutil.copytree(log, tmp_path / "backup")
    node.start()
    node.wait_connected("one")
    put(play, 30)
    received = site.wait_received(60)
    node.stop()
    shutil.rmtree(log)
    shutil.copytree(tmp_path / "backup", log)
    lost = max(sequence for _, sequence in play.acknowledged)
    node.start()
    node.wait_connected("one")
    fault = wait_for("a word of the hub", lambda: said(node, "restored from a backup"))
    assert f"up to {lost} of feed NGRID" in fault
    assert "downburst resend --site one --feed NGRID" in fault
    put(play, 10)
    assert min(sequence for _, sequence in list(play.acknowledged)[60:]) > lost
    assert node.drained()
    # Products that the site received before the loss are still there, and so are later ones.
    assert site.wait_received(70) == play.acknowledged
    assert received.items() <= play.acknowledged.items()


def test_a_site_with_older_directories_takes_up_from_there(
    node: HubNode, subscribe: Subscribe, tmp_path: Path
) -> None:
    site, play = started(node, subscribe, seed=32)
    assert site.stop() == 0
    shutil.copytree(site.directory, tmp_path / "backup", ignore=shutil.ignore_patterns("*.sock"))
    site.start()
    node.wait_connected("one")
    put(play, 30)
    site.wait_received(60)
    site.kill()
    shutil.rmtree(site.directory)
    shutil.copytree(tmp_path / "backup", site.directory)
    site.start()
    node.wait_connected("one")
    put(play, 10)
    assert node.drained()
    assert site.wait_received(70) == play.acknowledged


def test_a_hub_that_lost_its_log_begins_another_life_of_it(node: HubNode, subscribe: Subscribe) -> None:
    site, play = started(node, subscribe, seed=33)
    before = dict(play.acknowledged)
    node.kill()
    shutil.rmtree(node.directory / "data" / "log")
    node.start()
    node.wait_connected("one")
    again = Play(node, "NGRID", seed=33)
    put(again, 40)
    assert node.drained()
    wait_for("the ten products that are not known", lambda: len(by_id(site)) == 40)
    assert by_id(site) == dict(again.acknowledged.values())
    assert set(before.values()) <= set(again.acknowledged.values()), "the source sent the same once more"
    # Empty products are never duplicates by content; none of the others came a second time.
    empty = sum(digest == sha256(b"").hexdigest() for _, digest in before.values())
    assert len(list((site.directory / "received").rglob("*_*"))) == 40 + empty


def by_id(site: SiteNode) -> dict[str, str]:
    """Id to digest; the numbers of two epochs may be the same, so files are read here."""
    root = site.directory / "received"
    files = [path for path in root.rglob("*") if path.is_file()]
    return {decode(str(path.relative_to(root))).product_id: sha256(path.read_bytes()).hexdigest() for path in files}


def said(node: HubNode, words: str) -> str | None:
    faults = (event["sentence"] for event in node.events_named("fault"))
    return next((sentence for sentence in faults if words in sentence), None)
