"""State of a running site whose bytes change on its disk: an alarm names file and feed before the next start."""

from pathlib import Path
from typing import Any

import pytest

from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system]
PLACES = {"CHECKPOINT": "positions/CHECKPOINT.cbor", "SHOWN": "files/SHOWN", "ACTED": "actions/*/ACTED"}


def test_damage_of_a_running_sites_state_is_an_alarm_and_its_next_change_mends_it(tmp_path: Path) -> None:
    hub = WholeHub(tmp_path / "hub", more="[alarms]\nlook_s = 0.2\n").start()
    site = _site(hub, tmp_path)
    _put(hub, "first")
    state = site.directory / "state"
    files = {feed: _appears(state, place) for feed, place in PLACES.items()}
    wait_for("all products at the site", lambda: len(site.received()) == len(PLACES))
    before: dict[str, bytes] = {}

    def named() -> bool:
        """A file that the site wrote before the scrub reached it is damaged again."""
        known = _damaged(hub)
        for feed in PLACES.keys() - known.keys():
            if files[feed].read_bytes() != before.get(feed):
                before[feed] = _flip(files[feed])
        return known.keys() == PLACES.keys()

    wait_for("an alarm of each file", named)
    for feed, sentence in _damaged(hub).items():
        assert str(files[feed]) in sentence
        assert "the next change rewrites it" in sentence
    # A place has two copies, which are written in turn.
    _put(hub, "second", "third")
    wait_for("other bytes in each file", lambda: all(files[feed].read_bytes() != before[feed] for feed in PLACES))
    log = site.log()
    assert site.stop() == 0
    site.start()
    _put(hub, "fourth")
    wait_for("all products at the site", lambda: len(site.received()) == 4 * len(PLACES))
    assert "damaged" not in site.log().removeprefix(log), "the start finds everything whole"
    assert site.stop() == 0
    assert hub.stop() == 0


def _site(hub: WholeHub, home: Path) -> SiteNode:
    (home / "pqact.conf").write_text("ANY\t.*\tFILE\t-close\tfiled/\\0\n")
    site = SiteNode(
        home / "site",
        hub.sites,
        arguments=("--actions", str(home / "pqact.conf"), "--scrub-hours", "0.0003"),
    )
    hub.ask("POST", "/v1/sites", json={"site": "unl.edu", "multicast_interface": "127.0.0.1"})
    for feed in PLACES:
        hub.ask("POST", "/v1/feeds", json={"feed": feed, "class": "observation"})
        hub.ask("POST", "/v1/sites/unl.edu/subscriptions", json={"feed": feed})
    site.directory.mkdir()
    site.token_file.write_text(hub.ask("POST", "/v1/sites/unl.edu/tokens", json={})["token"])
    site.start()
    checkpoints = site.directory / "state" / "positions"
    wait_for("a checkpoint of each feed", lambda: len(list(checkpoints.glob("*.cbor"))) == len(PLACES))
    return site


def _appears(state: Path, place: str) -> Path:
    return wait_for(f"the file {place}", lambda: next(state.glob(place), None))


def _put(hub: WholeHub, *names: str) -> None:
    for feed in PLACES:
        for name in names:
            hub.ask("PUT", f"/v1/feeds/{feed}/products/{name}", content=f"{feed} {name}".encode())


def _flip(path: Path) -> bytes:
    """Changes a bit of the last number; returns the bytes after that."""
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    with path.open("r+b") as file:
        file.seek(len(content) - 5)
        file.write(content[-5:-4])
    return bytes(content)


def _damaged(hub: WholeHub) -> dict[str, str]:
    alarms: list[dict[str, Any]] = hub.ask("GET", "/v1/alarms")["items"]
    return {alarm["feed"]: alarm["sentence"] for alarm in alarms if alarm["kind"] == "damaged-data"}
