"""Locations of the tools that `scripts/cluster-tools.sh` builds; if one is missing, the test is skipped."""

import os
import shutil
from pathlib import Path

from kit.capabilities import skip


def tool(name: str, *, kind: str) -> str:
    """The path of a tool; `kind` is the script's argument that builds it."""
    built = CACHE / "bin" / name
    found = str(built) if os.access(built, os.X_OK) else shutil.which(name)
    if found is None:
        skip(f"{name} is not there: scripts/cluster-tools.sh {kind} builds it, with Go")
    return found


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "downburst-cluster"
