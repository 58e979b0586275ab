"""The kernel's counters of a disk: bytes that processes and the block device wrote, and what a directory lies on."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Written:
    """Bytes of one process, or of several together."""

    to_disk: int
    """Pages that it made dirty, less those that it removed again before they reached the disk."""
    by_calls: int
    """Bytes in its write calls: to files, pipes, and sockets where they are not sent by other calls."""

    def since(self, earlier: "Written") -> "Written":
        """The difference between two readings."""
        return Written(self.to_disk - earlier.to_disk, self.by_calls - earlier.by_calls)


def written(pid: int) -> Written:
    """Read the counters of a living process, all its threads together."""
    return parse_written(Path(f"/proc/{pid}/io").read_text())


def parse_written(io: str) -> Written:
    """Read /proc/PID/io; the process that removes a file gets the cancelled bytes, whoever wrote them."""
    counts = {name: int(count) for name, _, count in (line.partition(":") for line in io.splitlines())}
    return Written(counts["write_bytes"] - counts["cancelled_write_bytes"], counts["wchar"])


def together(counts: Iterable[Written]) -> Written:
    """The sum over several processes."""
    counts = tuple(counts)
    return Written(sum(count.to_disk for count in counts), sum(count.by_calls for count in counts))


def device_written_bytes(directory: Path) -> int | None:
    """Write out what is in memory, then read what the directory's block device has written; None without a device."""
    device = directory.stat().st_dev
    stat = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    if not stat.is_file():
        return None
    os.sync()
    return parse_sectors_written(stat.read_text()) * SECTOR_BYTES


def parse_sectors_written(stat: str) -> int:
    """Read the seventh figure of a block device's `stat`."""
    return int(stat.split()[6])


def file_system(directory: Path) -> str:
    """The kind of the file system that holds the directory, such as ext4; empty if the kernel does not list it."""
    device = directory.stat().st_dev
    return parse_file_system(Path("/proc/self/mountinfo").read_text(), f"{os.major(device)}:{os.minor(device)}")


def parse_file_system(mountinfo: str, device: str) -> str:
    """Find the kind of a device's file system in /proc/self/mountinfo, behind the fields of variable number."""
    for line in mountinfo.splitlines():
        fields, _, described = line.partition(" - ")
        if fields.split()[2] == device:
            return described.split()[0]
    return ""


SECTOR_BYTES = 512
"""The unit of the counter, whatever the device's own sectors are."""
