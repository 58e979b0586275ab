"""The cost of repair for a group, and the rate at which loss and speed are in balance.

By unicast, each receiver's losses are sent to it alone, so the cost grows with the number of receivers. Coded, one
symbol repairs a different loss at each receiver, so the receiver with most losses determines the cost.
"""

import math
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np

from downburst_scheduler.figures.histograms import Floats


class Repair(StrEnum):
    """The transport of a group's repair."""

    UNICAST = "unicast"
    """Each lost packet by itself and without delay, as of warnings and observations: the sites' losses add up."""
    CODED = "coded"
    """Symbols over many packets, as of all other feeds."""


def repair_share(size_bytes: Floats, losses: Sequence[float], repair: Repair) -> Floats:
    """Repair over product bytes for products of these sizes; small ones round up to whole symbols."""
    losses = [min(loss, MOST_LOSS) for loss in losses]
    if max(losses, default=0.0) <= 0:
        return np.zeros(len(size_bytes))
    if repair is Repair.UNICAST:
        return np.full(len(size_bytes), sum(loss / (1 - loss) for loss in losses))
    blocks = np.maximum(np.ceil(size_bytes / BLOCK_BYTES), 1)
    steps = np.unique(np.round(np.log2(blocks) * 4))
    shares = [expected_symbols(max(round(2 ** (step / 4)), 1), tuple(losses)) / 2 ** (step / 4) for step in steps]
    result: Floats = np.interp(np.log2(blocks) * 4, steps, shares)
    return result


def expected_symbols(blocks: int, losses: tuple[float, ...]) -> float:
    """The mean of the largest number of blocks that any receiver lost, with independent losses.

    Each repair symbol may be lost as well: hence the factor 1 / (1 - p) of the worst receiver.
    """
    return _expected_most(blocks, tuple(sorted(losses))) / (1 - max(losses))


def missing_share(size_bytes: Floats, loss: float) -> Floats:
    """The probability that a receiver misses at least one block of a product."""
    blocks = np.maximum(np.ceil(size_bytes / BLOCK_BYTES), 1)
    result: Floats = 1 - (1 - min(loss, 0.99)) ** blocks
    return result


@lru_cache(maxsize=4096)
def _expected_most(blocks: int, losses: tuple[float, ...]) -> float:
    """The sum over k of the probability that at least one receiver lost more than k."""
    limit = _surely_less(blocks, losses[-1], len(losses))
    logs = np.zeros(limit)
    for loss, receivers in Counter(losses).items():
        if loss > 0:
            logs += receivers * np.log(np.clip(_binomial_cdf(blocks, loss, limit), 1e-300, 1.0))
    return float((1 - np.exp(logs)).sum())


def _surely_less(blocks: int, loss: float, receivers: int) -> int:
    """A number of losses that hardly any receiver exceeds."""
    deviation = math.sqrt(blocks * loss * (1 - loss))
    return min(blocks, math.ceil(blocks * loss + (6 + math.sqrt(2 * math.log(max(receivers, 1)))) * deviation + 8))


def _binomial_cdf(blocks: int, loss: float, limit: int) -> Floats:
    """P(at most k of the blocks are lost) for k below the limit, by sums of logarithms."""
    k = np.arange(limit)
    steps = np.log((blocks - k[:-1]) / (k[:-1] + 1)) + math.log(loss / (1 - loss))
    logs = blocks * math.log1p(-loss) + np.concatenate([[0.0], np.cumsum(steps)])
    result: Floats = np.cumsum(np.exp(logs))
    return result


MOST_LOSS = 0.5
"""The repair of half is as much as the products, and more is not measured. Sites that lose more leave their group."""
BLOCK_BYTES = 1_400.0
