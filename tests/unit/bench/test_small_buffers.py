"""Rows of a small receive buffer, and the kernel's count of drops."""

import pytest
from bench.multicast.small_buffers import NORMAL, REAL_TIME, Losses, kernel_drops, rows_of_small_buffers

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 1170: 01024DEF:7530 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 17
 1171: 0100007F:7531 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 5
"""


def losses(dropped: int) -> Losses:
    return Losses(arrived=10_000, dropped=dropped, reported=dropped, standing="normal")


def test_drops_are_those_of_the_port() -> None:
    assert (kernel_drops(TABLE, 30_000), kernel_drops(TABLE, 30_001), kernel_drops(TABLE, 9)) == (17, 5, 0)


@pytest.mark.parametrize(("urgent", "met"), [(20, True), (21, False)])
def test_the_row_compares_medians(urgent: int, *, met: bool) -> None:
    runs = {NORMAL: [losses(100), losses(100), losses(900)], REAL_TIME: [losses(0), losses(urgent), losses(urgent)]}
    (row,) = rows_of_small_buffers(runs)
    assert row.ours == pytest.approx(urgent / 100)
    assert (row.theirs, row.met) == (1.0, met)
