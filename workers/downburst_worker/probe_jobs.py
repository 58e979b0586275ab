"""The node's jobs for probes of paths."""

from downburst.domain.probes import Probe
from downburst_worker.messages.probe_lines import probe_job
from downburst_worker.node import NodeProcess


class ProbeJobs:
    """The probe service's requests to the hub's node."""

    def __init__(self, node: NodeProcess) -> None:
        self._node = node

    @property
    def running(self) -> bool:
        """True if the node is up and has sites and feeds."""
        return self._node.running

    async def start_probe(self, probe: Probe) -> None:
        """Starts the present attempt of a probe; returns when the site has accepted it."""
        await self._node.ask("probe", timeout_s=START_S, **probe_job(probe))

    async def stop_probe(self, name: str, reason: str) -> None:
        """Has an attempt end within a second; one that has ended already is none."""
        await self._node.ask("probe-stop", timeout_s=STOP_S, probe=name, reason=reason)


START_S = 10.0
STOP_S = 2.0
