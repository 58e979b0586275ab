"""The directory that a measurement writes to, and the lines about its progress."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch(needed_bytes: int) -> Iterator[Path]:
    """A directory in memory where there is room, so that no disk is measured."""
    shared = Path("/dev/shm")
    roomy = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > needed_bytes
    if not roomy:
        tell(f"/dev/shm lacks {needed_bytes / 1e9:.0f} GB: the disk is part of what is measured")
    with tempfile.TemporaryDirectory(prefix="downburst-bench-", dir=shared if roomy else None) as directory:
        yield Path(directory)


def tell(line: str) -> None:
    """Print a line about the progress, apart from the result."""
    print(f"  {line}", file=sys.stderr, flush=True)


def warm_memory(directory: Path, needed_bytes: int) -> None:
    """Touch this much memory and free it again: a virtual machine gets untouched pages from its host first.

    Without it the first run of a process that writes much takes twice the time of the third.
    """
    piece = bytes(1 << 20)
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(needed_bytes // len(piece)):
            file.write(piece)
