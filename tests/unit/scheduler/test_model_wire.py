"""Product bytes on a link: the overhead of frames for each transport."""

import numpy as np
import pytest

from downburst_scheduler.models import wire
from downburst_scheduler.models.wire import Overhead
from unit.scheduler.feeds import arrivals


@pytest.mark.parametrize(
    ("overhead", "frame_bytes", "payload_bytes"),
    [(wire.UNICAST, 1_514, 1_448), (wire.TUNNEL, 1_514, 1_398), (wire.GROUP, 1_498, 1_395)],
)
def test_a_large_product_weighs_its_frames(overhead: Overhead, frame_bytes: int, payload_bytes: int) -> None:
    size_bytes = np.array([10e6])
    frames = np.ceil(size_bytes / payload_bytes) * frame_bytes
    assert overhead.on(size_bytes) == pytest.approx(frames, rel=0.003)


@pytest.mark.parametrize("overhead", [wire.UNICAST, wire.TUNNEL, wire.GROUP])
def test_a_small_product_weighs_its_head_as_well(overhead: Overhead) -> None:
    assert 1_700 < float(overhead.on(np.array([1_500.0]))[0]) < 2_000


def test_arrivals_keep_their_times() -> None:
    came = arrivals((0.0, 1e6), (2.0, 2e6), span_s=10)
    sent = wire.framed(came, Overhead(0.5, 100))
    assert (sent.at_s.tolist(), sent.span_s) == ([0.0, 2.0], 10)
    assert sent.size_bytes.tolist() == [1_500_100, 3_000_100]
