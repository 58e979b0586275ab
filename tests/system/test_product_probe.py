"""A product of the hub's own through a real node: stored, read back, bounded on its disk, and not seen by others."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from kit.capabilities import needs
from kit.node import HubNode, Line, NodeError, node_binary
from kit.patience import wait_for
from kit.read_only import OWN_MOUNTS, read_only

pytestmark = [pytest.mark.system]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HubNode]:
    node = HubNode(tmp_path / "hub").start()
    yield node
    node.stop()


def prove(node: HubNode, content: bytes | None = None, *, digest: str | None = None) -> Line:
    content = os.urandom(4096) if content is None else content
    path = node.directory / "spool" / "probe"
    path.write_bytes(content)
    answer = node.do("prove", path=str(path), digest=digest or blake3(content).hexdigest())
    assert (answer["digest"], answer["size"]) == (blake3(content).hexdigest(), len(content))
    assert not path.exists()
    return answer


def refused(node: HubNode, digest: str | None = None) -> str:
    with pytest.raises(NodeError) as refusal:
        prove(node, digest=digest)
    return refusal.value.sentence


def counted(node: HubNode) -> set[str]:
    """Feeds whose traffic lines reported products."""
    told = [feed for line in node.events_named("traffic") for feed in line["feeds"]]
    return {feed["feed"] for feed in told if feed["products"]}


def spoil(path: Path, content: bytes) -> None:
    """Turns a bit of a product on the disk."""
    at = path.read_bytes().index(content) + 100
    # In place: truncation of a mapped file ends the process that reads it.
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([content[100] ^ 1]))


def segments(node: HubNode) -> list[Path]:
    return sorted((node.directory / "data" / "log" / ".probe").glob("*.segment"))


def test_it_is_stored_read_back_and_seen_by_nobody(node: HubNode) -> None:
    node.feed("NGRID")
    assert [prove(node)["kept"] for _ in range(3)] == [1, 2, 3]
    assert prove(node, b"")["kept"] == 4
    assert len(segments(node)) == 4, "each makes a file: a disk that takes no more files is found out"
    status = node.do("status")
    assert [feed["feed"] for feed in status["feeds"]] == ["NGRID"]
    node.put("NGRID", "p", b"p")
    wait_for("the product of a feed to be counted", lambda: counted(node))
    assert counted(node) == {"NGRID"}
    argv = [node_binary(), "log", "stat", str(node.directory / "data")]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "NGRID" in listed
    assert "probe" not in listed


def test_bytes_that_changed_on_the_disk_are_named_and_the_log_goes_on(node: HubNode) -> None:
    for number in range(3):
        prove(node, b"%d" % number * 4096)
    spoil(segments(node)[0], b"0" * 4096)
    assert refused(node).startswith("read-back: product 1, stored at ")
    assert "look for failures of the disk" in refused(node), "as long as it is in the log"
    assert refused(node, digest="0" * 64).startswith("append: ")


def test_a_log_that_can_not_be_read_is_told_once_and_set_aside(node: HubNode) -> None:
    prove(node)
    node.stop()
    log = node.directory / "data" / "log" / ".probe"
    for path in (*log.glob("*.segment"), *log.glob("*.index")):
        path.write_bytes(os.urandom(5000))
    node.start()
    assert "look for failures of the disk" in refused(node)
    assert prove(node)["kept"] >= 1
    assert list(log.glob("*.quarantined")) == [], "a disk that fails would make more and more of them"


@pytest.mark.root
def test_a_directory_of_logs_that_turned_read_only_is_told(tmp_path: Path) -> None:
    needs("root")
    node = HubNode(tmp_path / "hub", prefix=OWN_MOUNTS).start()
    prove(node)
    with read_only(node.process.pid, node.directory / "data" / "log"):
        sentence = refused(node)
        assert sentence.startswith("append: ")
        assert "is read-only" in sentence
    assert prove(node)["kept"] >= 1
    node.stop()
