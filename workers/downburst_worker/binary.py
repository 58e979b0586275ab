"""Where the node's binary is."""

import os
import shutil
from pathlib import Path

from downburst.errors import Failure


def find_node(given: Path | None = None) -> Path:
    """The binary: as given, beside this source tree's build, or on PATH."""
    if given is not None:
        return _usable(given)
    for place in (BUILT / "release", BUILT / "debug"):
        if _executable(place / NAME):
            return place / NAME
    on_path = shutil.which(NAME)
    if on_path is not None:
        return Path(on_path)
    raise Failure(
        f"the binary {NAME} is neither in {BUILT}/release nor on PATH; "
        "run `make setup`, or name it with the setting `node` (DOWNBURST_NODE)"
    )


def _usable(path: Path) -> Path:
    absolute = path.expanduser().absolute()
    if not _executable(absolute):
        raise Failure(f"the node binary {absolute} is not there or not executable; correct `node` (DOWNBURST_NODE)")
    return absolute


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


NAME = "downburst-node"
BUILT = Path(__file__).resolve().parent.parent / "target"
