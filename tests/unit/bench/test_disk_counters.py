"""Counters of disks, memory and threads that are read from /proc and /sys."""

import os
from pathlib import Path

import pytest
from bench.harness.counters import cpu_s_by_thread
from bench.harness.disk import (
    Written,
    file_system,
    parse_file_system,
    parse_sectors_written,
    parse_written,
    together,
    written,
)
from bench.harness.memory import Memory, Samples, memory_bytes

IO = """rchar: 6976
wchar: 5000000
syscr: 10
syscw: 3
read_bytes: 4096
write_bytes: 3002368
cancelled_write_bytes: 1000448
"""
STATUS = "Name:\tnode\nVmHWM:\t  90 kB\nVmRSS:\t    2048 kB\nRssAnon:\t    1024 kB\n"
MOUNTS = """22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
35 22 0:30 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=1024k
36 22 0:31 / /media/a\\040disk rw shared:2 master:3 - xfs /dev/sdb rw
"""


def test_bytes_that_never_reached_the_disk_are_taken_off() -> None:
    assert parse_written(IO) == Written(to_disk=2_001_920, by_calls=5_000_000)


def test_a_process_may_remove_what_another_one_wrote() -> None:
    api, node = Written(1_000, 1_100), Written(-900, 50)
    assert together([api, node]) == Written(100, 1_150)
    assert Written(10, 20).since(Written(4, 5)) == Written(6, 15)


def test_writes_of_this_process_are_counted(tmp_path: Path) -> None:
    before = written(os.getpid())
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    assert written(os.getpid()).since(before).by_calls >= 100_000


def test_sectors_of_a_block_device() -> None:
    assert (
        parse_sectors_written("   58038 8355 3549386 18144 13653 58071 6447600 19534 0 6424 38204 5005\n")
        == 6_447_600
    )


@pytest.mark.parametrize(("device", "kind"), [("254:0", "ext4"), ("0:30", "tmpfs"), ("0:31", "xfs"), ("9:9", "")])
def test_the_file_system_of_a_device(device: str, kind: str) -> None:
    assert parse_file_system(MOUNTS, device) == kind


def test_the_file_system_of_proc_is_found() -> None:
    assert file_system(Path("/proc")) == "proc"


def test_sizes_of_a_status() -> None:
    assert [memory_bytes(STATUS, name) for name in ("VmHWM", "RssAnon")] == [92_160, 1_048_576]


def test_growth_and_spread_of_memory() -> None:
    memory = Memory(100, anonymous_least_bytes=80, anonymous_most_bytes=150, peak_resident_bytes=900)
    assert (memory.growth_bytes, memory.spread_bytes) == (50, 70)


def test_memory_of_this_process_is_sampled_at_the_ends() -> None:
    with Samples({"this": os.getpid()}) as samples:
        held = bytearray(os.urandom(64 << 20))
        memory = samples.of()["this"]
    assert memory.growth_bytes > len(held) / 2
    assert memory.peak_resident_bytes >= memory.anonymous_most_bytes


def test_processor_time_by_thread_has_the_names_of_threads() -> None:
    name = Path("/proc/self/task", str(os.getpid()), "comm").read_text().strip()
    assert cpu_s_by_thread(os.getpid())[name] >= 0
