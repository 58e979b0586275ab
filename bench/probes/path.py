"""A hub's node and a site with a wire between them, and one probe of it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kit.node import Line, NodeError
from kit.probed_path import ProbedPath, probed_path
from kit.wire import Lane

M = 1_000_000
WIRE_BPS, DELAY_MS = 40 * M, 10.0
LANE = Lane(rate_bps=WIRE_BPS, delay_ms=DELAY_MS, buffer_bytes=60_000)


class MissingError(RuntimeError):
    """A program, or an ability of the node, that a row needs."""


def probed(path: ProbedPath, name: str, **wanted: Any) -> Line:
    """The result of a probe; a refusal is a failure with the node's reason."""
    try:
        path.begin(name, **wanted)
    except NodeError as error:
        raise MissingError(f"the node refused the probe: {error.sentence}") from error
    ended = path.ended(name, 300)
    if ended["outcome"] != "done":
        raise RuntimeError(f"the probe is {ended['outcome']}: {ended['reason']}")
    return ended


@contextmanager
def wired(directory: Path, to_site: Lane = LANE, to_hub: Lane = LANE) -> Iterator[ProbedPath]:
    """A fresh pair; skips the row at the end if the wire lagged."""
    with ExitStack() as stack:
        path = probed_path(stack, directory, to_site=to_site, to_hub=to_hub)
        yield path
        path.wire.stop().needs_small_lag()
