"""One server and the products that wait for it, under three orders of service.

All functions take products in order of arrival with their service times, and return sojourns: from arrival to the end
of service. First come first served and shortest first are computed by whole arrays; round robin (processor sharing)
has no such form and is played product by product, but only where products overlap. Busy periods are the same for
every order of service and independent of each other, so that a sample can represent many.
"""

import heapq
import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from downburst_scheduler.figures.histograms import Floats

Indices = npt.NDArray[np.int64]


class Order(StrEnum):
    """The order of service."""

    FIRST_COME = "first-come"
    ROUND_ROBIN = "round-robin"
    SHORTEST = "shortest-first"


@dataclass(frozen=True, slots=True)
class Sojourns:
    """Sojourns of products, each representing `weight` of them; `index` lists the products that were played."""

    index: Indices
    sojourn_s: Floats
    weight: Floats
    alone: npt.NDArray[np.bool_]
    """True if the product found the server idle."""


def play(at_s: Floats, service_s: Floats, order: Order, *, budget: int = 400_000) -> Sojourns:
    """The sojourns under an order of service; of overlapping products at most about `budget` are played."""
    wait_s = waits(at_s, service_s)
    alone = wait_s <= 0
    if order is Order.FIRST_COME:
        return Sojourns(np.arange(len(at_s)), wait_s + service_s, np.ones(len(at_s)), alone)
    index, weight, lengths = _played(alone, budget)
    sojourn_s = service_s[index].copy()
    meeting = np.repeat(lengths > 1, lengths)
    order_of_service = round_robin if order is Order.ROUND_ROBIN else shortest_first
    sojourn_s[meeting] = order_of_service(at_s[index[meeting]], service_s[index[meeting]])
    return Sojourns(index, sojourn_s, weight, alone[index])


def waits(at_s: Floats, service_s: Floats) -> Floats:
    """The wait of each product under first come, first served (Lindley's recursion)."""
    done_before_s = np.cumsum(service_s) - service_s
    wait_s = np.maximum.accumulate(at_s - done_before_s) + done_before_s - at_s
    result: Floats = np.where(wait_s > NO_WAIT_S, wait_s, 0.0)
    return result


def backlog_bytes(wait_s: Floats, size_bytes: Floats, rate_bps: float) -> float:
    """The maximum length of the queue: the backlog at a product's arrival, plus the product."""
    return float((wait_s * rate_bps / 8 + size_bytes).max()) if len(wait_s) else 0.0


def round_robin(at_s: Floats, service_s: Floats) -> Floats:
    """Processor sharing: all products present are served at the same time, at equal shares of the rate."""
    sojourn_s = np.empty(len(at_s))
    starts = np.flatnonzero(waits(at_s, service_s) <= 0).tolist()
    times, services = at_s.tolist(), service_s.tolist()
    for start, end in pairwise([*starts, len(times)]):
        sojourn_s[start:end] = _shared(times[start:end], services[start:end])
    return sojourn_s


def shortest_first(at_s: Floats, service_s: Floats) -> Floats:
    """Preemptive, by classes of service times a factor of two apart; within a class first come, first served.

    A class is served in the time that shorter ones leave idle. On the clock that only runs in that time it is an
    ordinary queue, and its ends are translated back.
    """
    classes = _classes(service_s)
    sojourn_s = np.empty(len(at_s))
    busy = _Busy(np.empty(0), np.empty(0))
    for one in np.unique(classes):
        members = np.flatnonzero(classes == one)
        arrived = busy.idle_before(at_s[members])
        done = arrived + waits(arrived, service_s[members]) + service_s[members]
        sojourn_s[members] = busy.when_idle_was(done) - at_s[members]
        so_far = np.flatnonzero(classes <= one)
        busy = _Busy.of(at_s[so_far], service_s[so_far])
    return sojourn_s


class _Busy:
    """Disjoint intervals in which a server has work, and the clock that stands still in them."""

    def __init__(self, starts_s: Floats, lengths_s: Floats) -> None:
        self._starts_s, self._lengths_s = starts_s, lengths_s
        self._total_s = np.concatenate([[0.0], np.cumsum(lengths_s)])
        self._idle_at_start_s = starts_s - self._total_s[:-1]

    @classmethod
    def of(cls, at_s: Floats, service_s: Floats) -> "_Busy":
        starts = np.flatnonzero(waits(at_s, service_s) <= 0)
        return cls(at_s[starts], np.add.reduceat(service_s, starts))

    def idle_before(self, moment_s: Floats) -> Floats:
        place = np.searchsorted(self._starts_s, moment_s, side="right")
        last = np.maximum(place - 1, 0)
        if len(self._starts_s) == 0:
            return moment_s
        inside_s = np.minimum(moment_s - self._starts_s[last], self._lengths_s[last])
        result: Floats = moment_s - np.where(place > 0, self._total_s[last] + inside_s, 0.0)
        return result

    def when_idle_was(self, idle_s: Floats) -> Floats:
        """The first moment at which the clock showed this value."""
        before = np.searchsorted(self._idle_at_start_s, idle_s - NO_WAIT_S, side="left")
        result: Floats = idle_s + self._total_s[before]
        return result


def _classes(service_s: Floats) -> Indices:
    octaves: Indices = np.floor(np.log2(np.maximum(service_s, SHORTEST_SERVICE_S))).astype(np.int64)
    return octaves


def _played(alone: npt.NDArray[np.bool_], budget: int) -> tuple[Indices, Floats, Indices]:
    """The products of the busy periods to play, the weight of each, and the lengths of the periods."""
    starts = np.flatnonzero(alone)
    lengths = np.diff(starts, append=len(alone))
    chosen, weights = np.arange(len(starts)), np.ones(len(starts))
    if lengths[lengths > 1].sum() > budget:
        some, stand_for = _sample(lengths, budget)
        singles = np.flatnonzero(lengths == 1)
        chosen = np.concatenate([singles, some])
        weights = np.concatenate([np.ones(len(singles)), stand_for])
        chosen, weights = chosen[np.argsort(chosen)], weights[np.argsort(chosen)]
    lengths = lengths[chosen]
    firsts = np.cumsum(lengths) - lengths
    index = np.repeat(starts[chosen] - firsts, lengths) + np.arange(int(lengths.sum()))
    return index, np.repeat(weights, lengths), lengths


def _sample(lengths: Indices, budget: int) -> tuple[Indices, Floats]:
    """Busy periods of several products: the longest up to half the budget, of the others a sample by length."""
    by_length = np.argsort(lengths, kind="stable")[::-1]
    by_length = by_length[lengths[by_length] > 1]
    longest = max(int((np.cumsum(lengths[by_length]) <= budget / 2).sum()), 1)
    kept, others = by_length[:longest], by_length[longest:]
    if len(others) == 0:
        return kept, np.ones(len(kept))
    step = math.ceil(lengths[others].sum() / (budget / 2))
    some = others[min(step // 2, len(others) - 1) :: step]
    factor = float(lengths[others].sum() / lengths[some].sum())
    return np.concatenate([kept, some]), np.concatenate([np.ones(len(kept)), np.full(len(some), factor)])


def _shared(at_s: list[float], service_s: list[float]) -> Floats:
    """One busy period: `served` is the service so far of a product that is present all the time."""
    done_s = [0.0] * len(at_s)
    present: list[tuple[float, int]] = []
    served, now_s = 0.0, at_s[0]
    push, pop = heapq.heappush, heapq.heappop
    for number, moment_s in enumerate(at_s):
        while present:
            leaves, who = present[0]
            leaves_s = now_s + (leaves - served) * len(present)
            if leaves_s > moment_s:
                break
            pop(present)
            served, now_s, done_s[who] = leaves, leaves_s, leaves_s
        if present:
            served += (moment_s - now_s) / len(present)
        now_s = moment_s
        push(present, (served + service_s[number], number))
    while present:
        count = len(present)
        leaves, who = pop(present)
        now_s += (leaves - served) * count
        served, done_s[who] = leaves, now_s
    sojourn_s: Floats = np.array(done_s) - np.array(at_s)
    return sojourn_s


NO_WAIT_S = 1e-9
SHORTEST_SERVICE_S = 1e-6
