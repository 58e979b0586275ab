"""The paths of the node's binaries."""

import os
import shutil
from pathlib import Path

from downburst.foundation.errors import Failure


def find_node(given: Path | None = None) -> Path:
    """The binary: as given, in this source tree's build, or on PATH."""
    return _find(NAME, given, "run `make setup`, or name it with the setting `node` (DOWNBURST_NODE)")


def find_node_for_kafka(given: Path | None = None) -> Path:
    """The hub's node that keeps logs on Kafka: next to the other one, in this source tree's build, or on PATH."""
    beside = None if given is None else given.expanduser().absolute().with_name(NAME_FOR_KAFKA)
    if beside is not None and _executable(beside):
        return beside
    return _find(NAME_FOR_KAFKA, None, "run `make node-kafka`, or set kafka.products = here")


def _find(name: str, given: Path | None, remedy: str) -> Path:
    if given is not None:
        return _usable(given)
    for place in (BUILT / "release", BUILT / "debug"):
        if _executable(place / name):
            return place / name
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    raise Failure(f"the binary {name} is neither in {BUILT}/release nor on PATH; {remedy}")


def _usable(path: Path) -> Path:
    absolute = path.expanduser().absolute()
    if not _executable(absolute):
        raise Failure(f"the node binary {absolute} is not there or not executable; correct `node` (DOWNBURST_NODE)")
    return absolute


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


NAME = "downburst-node"
NAME_FOR_KAFKA = "downburst-node-kafka"
BUILT = Path(__file__).resolve().parent.parent / "target"
