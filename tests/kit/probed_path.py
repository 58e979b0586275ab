"""A hub's node and a site with a wire of known rate between them, for probes of that path."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kit.namespaces import Lab
from kit.node import HubNode, Line, SiteNode
from kit.wire import Lane, Wire

SITE = "far"


@dataclass(frozen=True)
class ProbedPath:
    """The two ends and the wire."""

    lab: Lab
    hub: HubNode
    site: SiteNode
    wire: Wire

    def begin(self, probe: str, **fields: object) -> None:
        """Orders a probe; raises the node's refusal."""
        self.hub.do("probe", probe=probe, site=SITE, **fields)

    def ended(self, probe: str, seconds: float = 60.0) -> Line:
        """Waits for the end of a probe."""
        return self.hub.wait_event(seconds, event="probe-ended", probe=probe)


def probed_path(stack: ExitStack, directory: Path, *, to_site: Lane, to_hub: Lane) -> ProbedPath:
    """A fresh pair, which ends with the stack; the node has begun to report."""
    lab = stack.enter_context(Lab(["hub", SITE]))
    wire = stack.enter_context(Wire(lab, "hub", SITE, to_right=to_site, to_left=to_hub))
    hub = HubNode(directory / "hub", listen=f"{wire.left_address}:7370", prefix=lab.command("hub", []))
    stack.callback(hub.stop)
    hub.start()
    hub.feed("NGRID")
    site = SiteNode(directory / SITE, hub.address, prefix=lab.command(SITE, []))
    hub.site(SITE, {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    stack.callback(site.stop)
    site.start()
    hub.wait_connected(SITE)
    hub.wait_event(event="traffic")
    return ProbedPath(lab, hub, site, wire)
