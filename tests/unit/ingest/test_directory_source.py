"""The watched directory: complete files only, taken once, and a sentence for those that fail."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.errors import NodeAway, NotWritable, UnknownFeed
from downburst_ingest import directory
from downburst_ingest.directory import AfterIngest, DirectorySource
from downburst_ingest.rules import PathRule, PathRules


class Node:
    """Stores products like the node; refuses the feed NOPE; is away for the first `away` calls."""

    def __init__(self, *, away: int = 0) -> None:
        self.products: dict[tuple[str, str], list[bytes]] = {}
        self.running = self.most_running = 0
        self.away = away
        self.hold = asyncio.Event()
        self.hold.set()

    async def __call__(self, path: Path, product: Product, *, remove: bool) -> Acknowledgement:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.hold.wait()
            await asyncio.sleep(0)
            return self._store(path, product, remove=remove)
        finally:
            self.running -= 1

    def _store(self, path: Path, product: Product, *, remove: bool) -> Acknowledgement:
        if self.away:
            self.away -= 1
            raise NodeAway("the node is restarting; try again")
        if product.feed == "NOPE":
            raise UnknownFeed("there is no feed 'NOPE'; add it first")
        data = path.read_bytes()
        kept = self.products.setdefault((product.feed, product.product_id), [])
        duplicate = data in kept
        if not duplicate:
            kept.append(data)
        if remove:
            path.unlink()
        return Acknowledgement(
            len(data), "00", sequence=None if duplicate else 1, duplicate_of=1 if duplicate else None
        )


@asynccontextmanager
async def watching(
    tree: Path,
    node: Node,
    *,
    after: AfterIngest = AfterIngest.MOVE,
    rules: PathRules | None = None,
    concurrency: int = 4,
) -> AsyncIterator[tuple[DirectorySource, list[str]]]:
    faults: list[str] = []
    source = DirectorySource(tree, node, rules=rules, after=after, concurrency=concurrency, on_fault=faults.append)
    task = asyncio.create_task(source.run())
    try:
        yield source, faults
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the condition looks at files, which set no event
            await asyncio.sleep(0.005)


def drop(tree: Path, name: str, data: bytes = b"x") -> Path:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


async def test_files_that_lie_there_and_files_that_come_are_stored_and_moved(tmp_path: Path) -> None:
    node = Node()
    drop(tmp_path, "TEXT/nws/old.txt", b"old")
    async with watching(tmp_path, node) as (source, _):
        await until(lambda: source.counts.stored == 1)
        drop(tmp_path, "TEXT/fresh.txt", b"fresh")
        drop(tmp_path, "DEEP/a/b/c/d.bin", b"deep")
        await until(lambda: source.counts.stored == 3)
    assert node.products == {
        ("TEXT", "nws/old.txt"): [b"old"],
        ("TEXT", "fresh.txt"): [b"fresh"],
        ("DEEP", "a/b/c/d.bin"): [b"deep"],
    }
    assert (tmp_path / "done/TEXT/nws/old.txt").read_bytes() == b"old"
    assert not (tmp_path / "TEXT/fresh.txt").exists()
    assert list((tmp_path / ".taken").iterdir()) == []


async def test_a_file_is_taken_only_once_its_writer_has_closed_it(tmp_path: Path) -> None:
    node = Node()
    (tmp_path / "TEXT").mkdir()
    early = (tmp_path / "TEXT/early").open("wb", buffering=0)
    early.write(b"first half, ")
    async with watching(tmp_path, node) as (source, _):
        drop(tmp_path, "TEXT/marker1")
        await until(lambda: source.counts.stored == 1)
        late = (tmp_path / "TEXT/late").open("wb", buffering=0)
        late.write(b"half")
        drop(tmp_path, "TEXT/marker2")
        await until(lambda: source.counts.stored == 2)
        assert set(node.products) == {("TEXT", "marker1"), ("TEXT", "marker2")}
        early.write(b"second half")
        early.close()
        late.write(b" and half")
        late.close()
        await until(lambda: source.counts.stored == 4)
    assert node.products["TEXT", "early"] == [b"first half, second half"]
    assert node.products["TEXT", "late"] == [b"half and half"]


async def test_temporary_names_are_left_alone_until_renamed(tmp_path: Path) -> None:
    node = Node()
    hidden, part, tmp = (drop(tmp_path, f"TEXT/{name}") for name in (".hidden", "a.part", "b.tmp"))
    async with watching(tmp_path, node) as (source, _):
        drop(tmp_path, "TEXT/marker")
        await until(lambda: source.counts.stored == 1)
        assert hidden.exists()
        assert tmp.exists()
        part.rename(tmp_path / "TEXT/a")
        await until(lambda: source.counts.stored == 2)
    assert set(node.products) == {("TEXT", "marker"), ("TEXT", "a")}


async def test_a_tree_renamed_into_place_is_taken_whole(tmp_path: Path) -> None:
    node, outside = Node(), tmp_path / "outside"
    drop(outside, "TEXT/a/1")
    drop(outside, "TEXT/2")
    tree = tmp_path / "watched"
    tree.mkdir()
    async with watching(tree, node) as (source, _):
        drop(tree, "TEXT0/marker")
        await until(lambda: source.counts.stored == 1)
        (outside / "TEXT").rename(tree / "TEXT")
        await until(lambda: source.counts.stored == 3)
        drop(tree, "TEXT/a/3")
        await until(lambda: source.counts.stored == 4)


async def test_files_without_a_product_land_in_failed_with_the_reason(tmp_path: Path) -> None:
    node = Node()
    drop(tmp_path, "stray.txt")
    drop(tmp_path, "NOPE/x", b"kept")
    drop(tmp_path, "TEXT/line\nbreak")
    os.close(os.open(os.fsencode(tmp_path / "TEXT") + b"/\xff", os.O_CREAT | os.O_WRONLY))
    async with watching(tmp_path, node) as (source, faults):
        await until(lambda: source.counts.failed == 4)
    assert "the name of a feed" in (tmp_path / "failed/stray.txt.reason.txt").read_text()
    assert "add it first" in (tmp_path / "failed/NOPE/x.reason.txt").read_text()
    assert "U+000A" in (tmp_path / "failed/TEXT/line\nbreak.reason.txt").read_text()
    assert (tmp_path / "failed/NOPE/x").read_bytes() == b"kept"
    assert len(faults) == 4
    assert node.products == {}


async def test_remove_leaves_nothing_and_a_duplicate_is_counted_as_one(tmp_path: Path) -> None:
    node = Node()
    async with watching(tmp_path, node, after=AfterIngest.REMOVE) as (source, _):
        drop(tmp_path, "TEXT/a", b"same")
        await until(lambda: source.counts.stored == 1)
        drop(tmp_path, "TEXT/a", b"same")
        await until(lambda: source.counts.duplicates == 1)
    assert list((tmp_path / "done").iterdir()) == []
    assert list((tmp_path / ".taken").iterdir()) == []


async def test_two_files_of_one_name_both_stay_in_done(tmp_path: Path) -> None:
    node = Node()
    async with watching(tmp_path, node) as (source, _):
        for number, data in enumerate([b"first", b"second"], start=1):
            drop(tmp_path, "TEXT/a", data)
            await until(lambda number=number: source.counts.stored == number)  # type: ignore[misc]
    assert (tmp_path / "done/TEXT/a").read_bytes() == b"first"
    assert (tmp_path / "done/TEXT/a.2").read_bytes() == b"second"


async def test_a_node_that_is_away_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "FIRST_RETRY_S", 0.001)
    node = Node(away=3)
    drop(tmp_path, "TEXT/a", b"patient")
    async with watching(tmp_path, node) as (source, faults):
        await until(lambda: source.counts.stored == 1)
    assert node.products == {("TEXT", "a"): [b"patient"]}
    assert len(faults) == 1
    assert not list((tmp_path / "failed").iterdir())


async def test_what_was_taken_before_a_stop_is_stored_by_the_next_run(tmp_path: Path) -> None:
    node = Node()
    node.hold.clear()
    drop(tmp_path, "TEXT/nws/a", b"in flight")
    async with watching(tmp_path, node):
        await until(lambda: node.running == 1)
    assert node.products == {}
    node.hold.set()
    async with watching(tmp_path, node) as (source, _):
        await until(lambda: source.counts.stored == 1)
    assert node.products == {("TEXT", "nws/a"): [b"in flight"]}
    assert list((tmp_path / ".taken").iterdir()) == []


async def test_no_more_than_the_set_number_run_at_once(tmp_path: Path) -> None:
    node = Node()
    for number in range(50):
        drop(tmp_path, f"TEXT/{number}")
    async with watching(tmp_path, node, concurrency=3) as (source, _):
        await until(lambda: source.counts.stored == 50)
    assert node.most_running == 3


async def test_rules_name_the_product(tmp_path: Path) -> None:
    rules = PathRules([PathRule.parse(r"radar/(?P<site>\w+)/(.*)", feed="NEXRAD2", product_id=r"\g<site>/\2")])
    node = Node()
    drop(tmp_path, "radar/KTLX/20240101")
    drop(tmp_path, "other/x")
    async with watching(tmp_path, node, rules=rules) as (source, _):
        await until(lambda: source.counts.stored == 1 and source.counts.failed == 1)
    assert set(node.products) == {("NEXRAD2", "KTLX/20240101")}


async def test_a_directory_that_can_not_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotWritable, match="can't be used"):
        await DirectorySource(tmp_path / "file" / "below", Node()).run()


async def test_a_source_runs_again_after_its_directory_was_lost(tmp_path: Path) -> None:
    node, tree = Node(), tmp_path / "watched"
    source = DirectorySource(tree, node)
    for number in (1, 2):
        task = asyncio.create_task(source.run())
        await until((tree / ".taken").is_dir)
        drop(tree, f"TEXT/{number}")
        await until(lambda number=number: source.counts.stored == number)  # type: ignore[misc]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        tree.rename(tmp_path / f"lost{number}")
    assert set(node.products) == {("TEXT", "1"), ("TEXT", "2")}
