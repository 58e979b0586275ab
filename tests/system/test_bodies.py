"""Large products lie in files of their own, at the hub and at a site, and reach `received/` without a copy.

The way depends on the file system: a clone on XFS, a second name on ext4, a copy from one file system to another.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import DOWNBURST
from kit.file_systems import disk, memory
from kit.node import HubNode, SiteNode, node_binary
from kit.patience import wait_for

pytestmark = [pytest.mark.system]

LARGE = b"a large product " * 100_000
MIDDLE = b"one of a hundred kilobytes " * 4_000
SMALL = b"a small product"
PRODUCTS = {"large": LARGE, "middle": MIDDLE, "small": SMALL}


class Scene:
    """A hub with a feed, and a site whose directory is given."""

    def __init__(self, hub: HubNode, directory: Path, *arguments: str) -> None:
        self.hub = hub
        self.site = SiteNode(directory, hub.address, arguments=arguments)

    def start(self) -> "Scene":
        self.hub.feed("NGRID")
        directory = self.site.token_file.parent
        directory.mkdir(parents=True, exist_ok=True)
        wanted = {"feed": "NGRID", "pattern": ".*", "not_pattern": None}
        self.hub.site("one", wanted, token_file=self.site.token_file)
        self.site.start()
        self.hub.wait_connected("one")
        return self

    def put_all(self) -> None:
        for product_id, content in PRODUCTS.items():
            self.hub.put("NGRID", product_id, content)
        self.site.wait_received(len(PRODUCTS))

    def file(self, product_id: str) -> Path:
        """The file of a product for local software."""
        files = (path for path in (self.site.directory / "received").rglob("*") if path.is_file())
        return next(path for path in files if path.read_bytes()[:20] == PRODUCTS[product_id][:20])

    def bodies(self, product_id: str) -> list[Path]:
        """The bodies of a product in the site's log."""
        size = len(PRODUCTS[product_id])
        return [path for path in bodies(self.site.directory / "log") if path.stat().st_size == size]

    def way(self) -> str:
        """The way in which the site says that files get their bytes; empty while it does not run."""
        argv = [node_binary(), "site-control", "--dir", str(self.site.directory), "--json", "status"]
        told = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
        return str(json.loads(told.stdout)["files"]["used"]) if told.returncode == 0 else ""

    def stop(self) -> None:
        assert self.site.stop() == 0
        assert verify(self.site.directory / "log") == 0


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubNode]:
    hub = HubNode(tmp_path / "hub").start()
    yield hub
    hub.stop()


def test_on_ext4_the_file_is_a_second_name_of_the_body(hub: HubNode, tmp_path: Path) -> None:
    scene = Scene(hub, tmp_path / "site", "--files", "link").start()
    scene.put_all()
    assert scene.way() == "link"
    for product_id in ("large", "middle"):
        (body,) = scene.bodies(product_id)
        file = scene.file(product_id)
        assert (body.stat().st_ino, body.stat().st_nlink) == (file.stat().st_ino, 2)
        assert file.stat().st_mode & 0o777 == 0o444
        assert file.read_bytes() == PRODUCTS[product_id]
    assert scene.bodies("small") == [], "a small product lies in the segment"
    assert {path.stat().st_size for path in bodies(hub.directory / "data" / "log")} == {len(LARGE), len(MIDDLE)}
    assert list((hub.directory / "spool").iterdir()) == []
    scene.stop()


@pytest.mark.root
def test_on_xfs_the_file_is_a_clone(hub: HubNode, tmp_path: Path) -> None:
    with disk(tmp_path / "image", tmp_path / "site", "xfs") as directory:
        scene = Scene(hub, directory).start()
        scene.put_all()
        assert scene.way() == "clone", "a new site clones by itself"
        (body,), file = scene.bodies("large"), scene.file("large")
        assert body.stat().st_ino != file.stat().st_ino
        with file.open("r+b") as written:
            written.write(b"changed by a consumer")
        assert body.read_bytes() == LARGE
        scene.stop()


@pytest.mark.root
def test_between_file_systems_the_file_is_a_copy_and_says_why(hub: HubNode, tmp_path: Path) -> None:
    with memory(tmp_path / "site" / "log"):
        scene = Scene(hub, tmp_path / "site", "--files", "clone").start()
        scene.put_all()
        assert scene.way() == "copy"
        assert "no link is possible here" in scene.site.log()
        assert "no link is possible here" in doctor(scene.site.directory)
        (body,), file = scene.bodies("large"), scene.file("large")
        assert (body.stat().st_nlink, file.read_bytes()) == (1, LARGE)
        assert scene.site.stop() == 0


def test_a_consumer_that_writes_in_place_costs_a_second_delivery(hub: HubNode, tmp_path: Path) -> None:
    scene = Scene(hub, tmp_path / "site", "--files", "link", "--scrub-hours", "0.0005").start()
    scene.put_all()
    file = scene.file("middle")
    damaged = file.stat().st_ino
    with file.open("r+b") as written:
        written.seek(5_000)
        written.write(b"WRITTEN IN PLACE")
    assert wait_for("the product once more", lambda: file.read_bytes() == MIDDLE, 120)
    assert file.stat().st_ino != damaged
    assert "is damaged at 0 (product 2)" in scene.site.log()
    assert len(scene.site.received()) == len(PRODUCTS)
    assert scene.site.stop() == 0


def test_the_choice_is_kept_and_an_older_site_copies(hub: HubNode, tmp_path: Path) -> None:
    scene = Scene(hub, tmp_path / "site", "--files", "copy").start()
    scene.put_all()
    assert scene.bodies("middle") == [], "a copy costs less from the segment"
    (body,), file = scene.bodies("large"), scene.file("large")
    assert (body.stat().st_nlink, scene.way()) == (1, "copy")
    assert file.stat().st_mode & 0o200, "a copy belongs to local software"
    scene.stop()
    scene.site.arguments = ()
    scene.site.start()
    assert wait_for("the way of the site as it runs now", scene.way) == "copy"
    scene.stop()


def doctor(site: Path) -> str:
    """The sentence of `downburst doctor` about a site."""
    argv = [DOWNBURST, "doctor", "--site-dir", str(site), "--data-dir", str(site.parent / "hub"), "--json"]
    told = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60).stdout
    return str(next(one["sentence"] for one in json.loads(told) if one["about"] == "site"))


def bodies(log: Path) -> list[Path]:
    """All bodies below a log."""
    return sorted(log.rglob("*.bodies/*"))


def verify(log: Path) -> int:
    """The exit code of a check of a log."""
    argv = [node_binary(), "log", "verify", str(log)]
    return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode
