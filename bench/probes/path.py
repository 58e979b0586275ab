"""A hub's node and a site with a wire between them, and one probe of it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.namespaces import Lab
from kit.node import HubNode, Line, NodeError, SiteNode
from kit.wire import Lane, Wire

M = 1_000_000
WIRE_BPS, DELAY_MS = 40 * M, 10.0
LANE = Lane(rate_bps=WIRE_BPS, delay_ms=DELAY_MS, buffer_bytes=60_000)


class MissingError(RuntimeError):
    """A program, or an ability of the node, that a row needs."""


@dataclass(frozen=True)
class ProbedPath:
    """The two ends and the wire."""

    lab: Lab
    hub: HubNode
    wire: Wire

    def probed(self, name: str, **wanted: Any) -> Line:
        """The result of a probe; a refusal is a failure with the node's reason."""
        try:
            self.hub.do("probe", probe=name, site="far", **wanted)
        except NodeError as error:
            raise MissingError(f"the node refused the probe: {error.sentence}") from error
        ended = self.hub.wait_event(300, event="probe-ended", probe=name)
        if ended["outcome"] != "done":
            raise RuntimeError(f"the probe is {ended['outcome']}: {ended['reason']}")
        return ended


@contextmanager
def probed_path(directory: Path, to_site: Lane = LANE, to_hub: Lane = LANE) -> Iterator[ProbedPath]:
    """A fresh pair; skips the row at the end if the wire lagged."""
    with Lab(["hub", "far"]) as lab, ExitStack() as stack:
        wire = stack.enter_context(Wire(lab, "hub", "far", to_right=to_site, to_left=to_hub))
        hub = HubNode(directory / "hub", listen=f"{wire.left_address}:7370", prefix=lab.command("hub", []))
        stack.callback(hub.stop)
        hub.start()
        hub.feed("NGRID")
        site = SiteNode(directory / "far", hub.address, prefix=lab.command("far", []))
        hub.site("far", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        stack.callback(site.stop)
        site.start()
        hub.wait_connected("far")
        hub.wait_event(event="traffic")
        yield ProbedPath(lab, hub, wire)
        wire.stop().needs_small_lag()
