"""A product whose bytes change on the hub's disk: the hub learns of it from its sites, and alerts its operator."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kit.node import HubNode, SiteNode, Subscribe, node_binary
from kit.patience import wait_for

pytestmark = [pytest.mark.system]
GOOD, BAD = b"good" * 300, b"soon damaged" * 100_000
"""A body below 1 MiB would stay in the hub's memory for some seconds, intact."""


def test_a_rejected_product_is_looked_at_said_and_sent_no_more(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    sites = [subscribe(name, "NGRID") for name in ("one", "two")]
    for site in sites:
        site.wait_begun("NGRID")
        assert site.stop() == 0
    damaged = node.put("NGRID", "bad", BAD)["sequence"]
    node.put("NGRID", "good", GOOD)
    flip_a_bit(node.directory / "data" / "log", BAD)
    sites[0].start()
    sentence = node.wait_event(event="fault")["sentence"]
    assert f"product {damaged} of feed NGRID was damaged on the hub's disk" in sentence
    assert "`downburst log verify`" in sentence
    assert f" sequence {damaged}: " in verify(node)
    assert "sequence" in node.put("NGRID", "bad", BAD), "it is no duplicate of what was damaged"
    everything = {("bad", damaged + 2), ("good", damaged + 1)}
    assert wait_for("the good one, and the bad one brought again", lambda: ids(sites[0]) == everything)
    sites[1].start()
    assert wait_for("the same at a site that was away", lambda: ids(sites[1]) == everything)
    assert node.drained()
    assert "three times" not in sites[1].log(), "the damaged one is not even sent"
    assert len(node.events_named("fault")) == 1, "it is said once"


def test_a_resend_over_a_damaged_product_ends_and_says_so(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    site = subscribe("one", "NGRID")
    node.wait_connected("one")
    damaged = node.put("NGRID", "bad", BAD)["sequence"]
    node.put("NGRID", "good", GOOD)
    assert wait_for("both", lambda: len(ids(site)) == 2)
    flip_a_bit(node.directory / "data" / "log", BAD)
    node.resends["one"] = [everything_once_more()]
    node.tell_sites()
    end = node.wait_event(event="resend", site="one")
    assert (end["products"], end["bytes"], end["expired"]) == (1, len(GOOD), 1), (
        "the good one came, the other is told"
    )
    sentence = node.wait_event(event="fault")["sentence"]
    assert f"product {damaged} of feed NGRID was damaged on the hub's disk" in sentence
    node.put("NGRID", "next", GOOD + b"!")
    assert wait_for("a live one after it", lambda: len(ids(site)) == 3)
    assert node.drained(), "nothing is owed of what is damaged"


def everything_once_more() -> dict[str, Any]:
    later_us = time.time_ns() // 1_000 + 3_600_000_000
    wanted = {"pattern": ".*", "not_pattern": None}
    return {
        "resend": 1,
        "feed": "NGRID",
        "kind": "resend",
        "from_us": 0,
        "to_us": later_us,
        "wanted": wanted,
        "had": [],
    }


def ids(site: SiteNode) -> set[tuple[str, int]]:
    return {(product_id, sequence) for (_, sequence), (product_id, _) in site.received().items()}


def verify(node: HubNode) -> str:
    command = [node_binary(), "log", "verify", str(node.directory / "data" / "log")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 1, found
    return found.stdout + found.stderr


def flip_a_bit(log: Path, content: bytes) -> None:
    for stored in (*log.rglob("*.segment"), *log.rglob("*.bodies/*")):
        with stored.open("r+b") as file:
            begin = file.read(4 << 20).find(content)
            if begin >= 0:
                file.seek(begin + 500)
                file.write(bytes([content[500] ^ 1]))
                return
    raise AssertionError("the product is neither in a segment nor in a body")
