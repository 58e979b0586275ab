"""Bytes on a link: from products to frames, the unit in which rates of links, circuits and legs are stated.

Models play bits at rates, of any unit. If a rate is that of a link, products are taken with all their overhead, so
that both are in bits of Ethernet frames.
"""

from dataclasses import dataclass

from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals


@dataclass(frozen=True, slots=True)
class Overhead:
    """The overhead of a transport from the bytes of a product to frames."""

    share: float
    per_product_bytes: float

    def on(self, size_bytes: Floats) -> Floats:
        """The bytes of the frames that carry products of these sizes."""
        return size_bytes * (1 + self.share) + self.per_product_bytes


def framed(arrivals: Arrivals, overhead: Overhead) -> Arrivals:
    """The arrivals with the sizes of their frames."""
    return Arrivals(arrivals.at_s, overhead.on(arrivals.size_bytes), arrivals.span_s)


def _by_tcp(segment_bytes: float) -> Overhead:
    """Full frames of 1,514 bytes (no checksum: shapers don't count it) and records of TLS."""
    share = FRAME_BYTES / segment_bytes * (1 + RECORD_EXTRA_BYTES / RECORD_BYTES) - 1
    return Overhead(share, PRODUCT_HEAD_BYTES)


FRAME_BYTES = 1_514
RECORD_BYTES, RECORD_EXTRA_BYTES = 16_384, 22
PRODUCT_HEAD_BYTES = 250
"""The description of a product, and its share of a frame that is not full."""
UNICAST = _by_tcp(segment_bytes=1_448)
"""TCP with time stamps over Ethernet."""
TUNNEL = _by_tcp(segment_bytes=1_398)
"""The same inside a circuit's VXLAN, with outer frames of the same length."""
GROUP = Overhead(share=0.075, per_product_bytes=300)
"""Datagrams of a leg, counted as in its pace: headers, seals, manifests and the batches' signatures."""
