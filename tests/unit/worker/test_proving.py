"""The probe's product: the sentence begins with the failed step, and nothing of the product stays behind."""

from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from downburst.foundation.errors import DiskFull, DownburstError, Failure, NodeAway, NotWritable
from downburst_worker.proving import PRODUCT_BYTES, prove_store


class Node:
    def __init__(self, error: DownburstError | None = None, **changed: object) -> None:
        self.error, self.changed = error, changed
        self.told: list[dict[str, Any]] = []

    async def ask(self, do: str, *, timeout_s: float, path: str, digest: str) -> dict[str, Any]:
        self.told.append({"do": do, "timeout_s": timeout_s})
        if self.error is not None:
            raise self.error
        return {"digest": digest, "size": taken(Path(path), digest)} | self.changed


def taken(path: Path, digest: str) -> int:
    content = path.read_bytes()
    assert blake3(content).hexdigest() == digest
    path.unlink()
    return len(content)


def files(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


async def proven(node: Node, home: Path) -> None:
    for name in ("node", "spool"):
        (home / name).mkdir(exist_ok=True)
    await prove_store(node.ask, node_dir=home / "node", spool_dir=home / "spool", answer_s=9)


async def test_a_small_product_goes_to_the_node_and_nothing_stays(tmp_path: Path) -> None:
    node = Node()
    await proven(node, tmp_path)
    assert node.told == [{"do": "prove", "timeout_s": 9}]
    assert files(tmp_path) == []
    assert PRODUCT_BYTES <= 4096, "each five seconds"


@pytest.mark.parametrize(
    ("error", "begins"),
    [
        (NodeAway("the node did not answer"), "node: the node did not answer"),
        (DiskFull("append: the disk is full"), "append: the disk is full"),
        (NotWritable("append: the log is read-only"), "append: the log is read-only"),
        (Failure("read-back: product 7 is damaged"), "read-back: product 7 is damaged"),
    ],
)
async def test_the_step_at_which_it_got_no_further_is_named(tmp_path: Path, error: Failure, begins: str) -> None:
    with pytest.raises(Failure) as refusal:
        await proven(Node(error), tmp_path)
    assert refusal.value.sentence.startswith(begins)
    assert files(tmp_path) == []


@pytest.mark.parametrize("changed", [{"digest": "0" * 64}, {"size": 1}, {"digest": None}])
async def test_other_bytes_than_were_told_are_no_proof(tmp_path: Path, changed: dict[str, object]) -> None:
    with pytest.raises(Failure, match=r"read-back: the log of .* returns other bytes"):
        await proven(Node(None, **changed), tmp_path)


async def test_a_disk_without_room_and_a_spool_that_is_gone_are_steps_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node()
    (tmp_path / "node").mkdir()
    with pytest.raises(Failure, match=r"^spool: .* can't be written"):
        await prove_store(node.ask, node_dir=tmp_path / "node", spool_dir=tmp_path / "gone", answer_s=9)
    usage = type("Usage", (), {"free": 3_000_000})()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    with pytest.raises(Failure, match=r"^room: the disk of .* is full: 3,000,000 bytes are left; free some space"):
        await proven(node, tmp_path)
    assert node.told == []
