"""The network behind OpenNSA, which loads this module by its name and calls `Backend`."""

from typing import Any
from uuid import uuid4

import core_path
from core_path import Access
from opennsa import constants
from opennsa.backends.common import genericbackend
from twisted.internet import reactor, task, threads


def Backend(network: str, ports: Any, parent_requester: Any, configuration: Any) -> Any:  # noqa: N802 - its name
    """OpenNSA's own machine of reservations, with the core in its hands."""
    by_name = {port.name: port for port in ports}
    return genericbackend.GenericBackend(network, by_name, Core(), parent_requester, "core", minimum_duration=1)


class Core:
    """Sets up and takes down paths. A target is a port with a VLAN."""

    def getResource(self, port: str, label: Any) -> str:  # noqa: N802
        return f"{port}:{label.labelValue()}"

    def getTarget(self, port: str, label: Any) -> Access:  # noqa: N802
        return Access(port, int(label.labelValue()))

    def canSwapLabel(self, label_type: str) -> bool:  # noqa: N802
        return bool(label_type == constants.ETHERNET_VLAN)

    def createConnectionId(self, source: Access, dest: Access) -> str:  # noqa: N802
        return f"core-{uuid4()}"

    def setupLink(self, connection_id: str, source: Access, dest: Access, rate_mbps: int) -> Any:  # noqa: N802
        """A second longer than it takes: OpenNSA writes two states at once, and may lose that a fast path is up.

        It then takes nothing down at the release.
        """
        done = threads.deferToThread(core_path.bring_up, source, dest, rate_mbps)
        return done.addCallback(lambda result: task.deferLater(reactor, 1.0, lambda: result))

    def teardownLink(self, connection_id: str, source: Access, dest: Access, rate_mbps: int) -> Any:  # noqa: N802
        return threads.deferToThread(core_path.take_down, source, dest)
