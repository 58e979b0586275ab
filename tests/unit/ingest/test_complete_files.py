"""Files reported by the kernel: none half-written, none forgotten, even when its queue overflows."""

import asyncio
import errno
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from downburst.foundation.errors import Failure
from downburst_ingest.directory import is_ignored
from downburst_ingest.inotify import CompleteFiles, open_for_writing

QUEUED_EVENTS = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


async def test_an_overflown_queue_loses_no_file(tmp_path: Path) -> None:
    queue = QUEUED_EVENTS
    if queue > 20_000:
        pytest.skip(f"the kernel queues {queue} events here; too many files would be needed to overflow it")
    files = CompleteFiles(tmp_path, ignored=is_ignored)
    (tmp_path / "first").touch()
    seen: set[Path] = set()
    wanted = {tmp_path / f"{number:05d}" for number in range(queue // 2 + 100)}
    async with asyncio.timeout(60), aclosing(aiter(files)) as complete:  # type: ignore[type-var]
        async for path in complete:
            if path.name == "first":
                for each in wanted:
                    each.touch()
            seen.add(path)
            if wanted <= seen:
                break
    files.close()


def test_a_file_is_open_for_writing_until_its_last_writer_closed_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb"):
        assert open_for_writing(path)
        with path.open("ab"):
            pass
        assert open_for_writing(path)
    assert not open_for_writing(path)
    with path.open("rb"):
        assert not open_for_writing(path)
    assert not open_for_writing(tmp_path / "nothing")


async def test_a_directory_that_is_lost_before_it_is_watched_is_no_error(tmp_path: Path) -> None:
    files = CompleteFiles(tmp_path / "never made", ignored=is_ignored)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(aiter(files)), 0.05)
    files.close()


async def test_files_of_a_directory_that_moved_come_by_their_new_paths(tmp_path: Path) -> None:
    """Covers files queued at the time of the move, and later ones."""
    (tmp_path / "before").mkdir()
    files = CompleteFiles(tmp_path, ignored=is_ignored)
    (tmp_path / "first").touch()
    seen: list[Path] = []
    async with asyncio.timeout(60), aclosing(aiter(files)) as complete:  # type: ignore[type-var]
        async for path in complete:
            seen.append(path)
            if path.name == "first":
                (tmp_path / "before").rename(tmp_path / "after")
                (tmp_path / "after" / "queued").touch()
            if path == tmp_path / "after" / "queued" and seen.count(path) == 1:
                (tmp_path / "after" / "later").touch()
            if path == tmp_path / "after" / "later":
                break
    files.close()


async def test_a_tree_that_can_not_be_watched_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CompleteFiles(tmp_path, ignored=is_ignored)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("asyncinotify.Inotify.add_watch", full)
    with pytest.raises(Failure, match=r"raise fs\.inotify\.max_user_watches"):
        await anext(aiter(files))
    files.close()


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("a/b", False),
        ("a/.b", True),
        ("a/b.tmp", True),
        ("a/b.part", True),
        ("a/b.tmp.gz", False),
        ("done", True),
        ("failed", True),
        ("a/done", False),
        (".taken", True),
    ],
)
def test_what_is_left_alone(path: str, *, ignored: bool) -> None:
    assert is_ignored(Path(path)) is ignored
