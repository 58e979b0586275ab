"""Answers that come from senders, and bytes that go to others."""

from pathlib import Path

from downburst.bus.port import Bus
from downburst_worker.remote.deliveries import RemoteDeliveries
from downburst_worker.remote.exported_files import Export, ExportedFiles
from downburst_worker.remote.tracer import RemoteTracer


class Remote:
    """The parts of an agent's answers that its own node does not have, or does not keep."""

    def __init__(self, bus: Bus, directory: Path, export: Export) -> None:
        self.deliveries = RemoteDeliveries(bus)
        self.tracer = RemoteTracer(bus)
        self.files = ExportedFiles(directory, export)
