"""Circuits ordered for trains, in virtual time: reservations, and the latencies of products that ride them.

The acting loop keeps these rules. A train starts with a product after a silence longer than the hold, and its circuit
is given back when the silence is that long again. With `ahead`, the habit of the trains is consulted once, at the end
of a train: the circuit is ordered a set-up and the habit's spread before the expected start, kept if that moment is
past, and given back a hold after the latest expected start. Products take the routed path while no circuit is up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.demand.habit import Habit
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.queues import waits


@dataclass(frozen=True, slots=True)
class Reservations:
    """Circuits of one feed and site, one after the other: the moments of each, in seconds."""

    ordered_s: Floats
    up_s: Floats
    ended_s: Floats
    """The release; the last circuit may outlast the arrivals."""
    releases: int
    """Circuits given back before another one was ordered."""
    released_share: float
    """The share of the arrivals' span between a release and the next order."""

    def reserved_share(self, span_s: float) -> float:
        """The share of the span from an order to its release, the set-up included."""
        if not span_s:
            return 0.0
        return float((np.minimum(self.ended_s, span_s) - np.minimum(self.ordered_s, span_s)).sum()) / span_s


def reservations(arrivals: Arrivals, terms: DemandTerms, *, before_s: Sequence[float] = ()) -> Reservations:
    """The reservations that the acting loop makes for these arrivals; a hold is never shorter than the set-up.

    `before_s` are the starts of earlier trains, which count for the habit.
    """
    at_s, hold_s = arrivals.at_s, max(terms.hold_s, terms.setup_s)
    if len(at_s) == 0:
        return Reservations(np.empty(0), np.empty(0), np.empty(0), 0, 0.0)
    silences = np.flatnonzero(np.diff(at_s) > hold_s)
    starts_s, silent_s = at_s[np.append(0, silences + 1)], at_s[np.append(silences, len(at_s) - 1)] + hold_s
    if terms.ahead:
        trains = _Trains(starts_s.tolist(), silent_s.tolist(), arrivals.span_s)
        starts_s, silent_s = _ahead(trains, Habit.of(before_s), terms.setup_s, hold_s)
    free_s = float((starts_s[1:] - silent_s[:-1]).sum())
    share = free_s / arrivals.span_s if arrivals.span_s else 0.0
    return Reservations(starts_s, starts_s + terms.setup_s, silent_s, len(starts_s) - 1, share)


def recurring(arrivals: Arrivals, terms: DemandTerms) -> Reservations:
    """The same for a loop that knows the habit: as if these arrivals had come once before."""
    if not terms.ahead:
        return reservations(arrivals, terms)
    starts_s = reservations(arrivals, replace(terms, ahead=False)).ordered_s
    return reservations(arrivals, terms, before_s=(starts_s - arrivals.span_s).tolist())


def sojourns_s(
    arrivals: Arrivals, held: Reservations, *, routed_bps: float, circuit_bps: float, share: float = 1.0
) -> Floats:
    """The seconds from arrival to the last byte, in order of arrival, at the routed rate or that of the circuit.

    On a clock that counts the bits which the way could have carried, the queue is an ordinary one of constant rate.
    A site that takes a share of the bytes has a queue of fewer products; each has its full service time.
    """
    bits = arrivals.size_bytes * 8
    routed_bps = max(routed_bps, LEAST_BPS)
    ends_s = np.stack([held.up_s, held.ended_s], axis=1).ravel()
    far_s = max(float(arrivals.at_s[-1]), float(ends_s[-1])) + float(bits.sum()) / routed_bps + 1.0
    moments_s = np.concatenate([[min(0.0, float(ends_s[0]))], ends_s, [far_s]])
    rates_bps = np.full(len(moments_s) - 1, routed_bps)
    rates_bps[1::2] = circuit_bps
    carried = np.concatenate([[0.0], np.cumsum(np.diff(moments_s) * rates_bps)])
    came = np.interp(arrivals.at_s, moments_s, carried)
    begun = came + waits(came, bits * share)
    result: Floats = np.interp(begun + bits, carried, moments_s) - arrivals.at_s
    return result


@dataclass(frozen=True, slots=True)
class _Trains:
    starts_s: list[float]
    silent_s: list[float]
    """A hold after the last product of each."""
    span_s: float


def _ahead(trains: _Trains, habit: Habit, setup_s: float, hold_s: float) -> tuple[Floats, Floats]:
    """Orders and ends where trains are expected; at each end only earlier trains are known."""
    ordered_s, ended_s = [trains.starts_s[0]], []
    following_s = [*trains.starts_s[1:], np.inf]
    for start_s, end_s, next_s in zip(trains.starts_s, trains.silent_s, following_s, strict=True):
        habit.seen(start_s)
        expected = habit.next_after(end_s)
        order_s = np.inf if expected is None else expected.at_s - setup_s - expected.early_s
        until_s = np.inf if expected is None else expected.at_s + expected.early_s + hold_s
        if order_s > end_s:
            ended_s.append(end_s)
            if order_s < min(next_s, trains.span_s):
                ordered_s.append(order_s)
        if len(ordered_s) > len(ended_s) and next_s > until_s:
            ended_s.append(until_s)
        if len(ordered_s) == len(ended_s) and next_s < np.inf:
            ordered_s.append(next_s)
    return np.array(ordered_s), np.array(ended_s)


LEAST_BPS = 1.0
