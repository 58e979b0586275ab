"""The physical limit without encryption: one file by `sendfile` to a connection per site, which writes a file."""

from pathlib import Path

from bench.harness.fan_out import FanOut, Stream
from bench.peers.tcp_fan_out import TcpFanOut
from kit.namespaces import Lab


class Sendfile:
    """The products as one file: no framing, no digests, no receipts, and nothing known about where one ends."""

    name = "raw sendfile fan-out"

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        """Send as many bytes as the products have."""
        sites = len(lab.hosts) - 1
        delivery = TcpFanOut(lab, directory).deliver(stream.products * stream.product_bytes)
        if len(delivery.took_s) < sites:
            raise RuntimeError(f"sendfile left {sites - len(delivery.took_s)} sites incomplete")
        took_s = max(delivery.took_s.values())
        return FanOut(stream.products, stream.product_bytes, sites, took_s, delivery.cpu_s)
