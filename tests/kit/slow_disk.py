"""A disk that writes so many bytes a second, for the processes of a test alone."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kit.capabilities import skip
from kit.file_systems import disk

GROUPS = Path("/sys/fs/cgroup/blkio")


@dataclass(frozen=True)
class SlowDisk:
    """A mounted disk; processes that are bound to it write slowly there."""

    directory: Path
    group: Path

    def bind(self, pid: int) -> None:
        """Makes the disk slow for a process and all of its threads."""
        (self.group / "cgroup.procs").write_text(str(pid))


@contextmanager
def slow_disk(home: Path, rate_bytes_per_s: int) -> Iterator[SlowDisk]:
    """A disk of ext4 for the length of the block.

    It is mounted `sync`: the kernel binds the writes of a process, not those of its own write-back.
    """
    if not (GROUPS / "blkio.throttle.write_bps_device").exists():
        skip("the kernel has no blkio controller with limits on devices (cgroup v1)")
    with disk(home / "disk.image", home / "disk", "ext4", options="sync") as directory:
        device = directory.stat().st_dev
        group = GROUPS / f"db{os.getpid()}x{secrets.token_hex(3)}"
        group.mkdir()
        try:
            limit = f"{os.major(device)}:{os.minor(device)} {rate_bytes_per_s}"
            (group / "blkio.throttle.write_bps_device").write_text(limit)
            yield SlowDisk(directory, group)
        finally:
            _removed(group)


def _removed(group: Path) -> None:
    """A group is removable once no process is in it."""
    for pid in (group / "cgroup.procs").read_text().split():
        (GROUPS / "cgroup.procs").write_text(pid)
    group.rmdir()
