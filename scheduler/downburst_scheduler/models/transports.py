"""Predictions for each transport: latencies at the sites, egress of the hub, use of circuits.

Every function plays the whole trace. Sites with connections slower than their share of the egress keep their rate and
leave the rest to the others. All sites get the same products, so the slower one always has the longer queue, and
fixed max-min fair rates agree with a fluid model that shares anew at every moment.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from downburst_scheduler.figures.histograms import Floats, LogHistogram
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.delays import Delays, Latencies
from downburst_scheduler.models.queues import Indices, Order, backlog_bytes, play, waits
from downburst_scheduler.models.rates import PathFacts, connection_bps
from downburst_scheduler.models.repair import Repair, missing_share, repair_share


@dataclass(frozen=True, slots=True)
class Outcome:
    """The predicted outcome of a transport."""

    latencies: Latencies
    egress_bps: float
    """Mean over the arrivals' span, repair included."""
    peak_egress_bps: float
    """The egress in the busiest minute."""
    repair_share: float = 0.0
    reserved_bps: float = 0.0
    """The sum of the rates of circuits, weighted by the share of time that they were up."""
    utilisation: float | None = None
    buffer_bytes: float = 0.0
    """The maximum backlog of one queue."""
    setups: int = 0


def unicast(
    arrivals: Arrivals,
    sites: Sequence[PathFacts],
    *,
    egress_bps: float,
    order: Order = Order.ROUND_ROBIN,
    first_window_bytes: float = 14_480.0,
) -> Outcome:
    """A copy to each site, by connections limited by the path that share the hub's egress."""
    rates = fair_rates_bps(sites, egress_bps)
    delays: dict[tuple[float, float], Delays] = {}
    found: dict[tuple[float, float, float], LogHistogram] = {}
    latencies = []
    distinct = len(set(rates))
    queue = _Queue(order, max(PLAYED_PRODUCTS // distinct, LEAST_PLAYED) if distinct else 0, first_window_bytes)
    for site, exact_bps in zip(sites, rates, strict=True):
        rate_bps = exact_bps if distinct <= EXACT_RATES else stepped(exact_bps)
        key = (rate_bps, site.share)
        if key not in delays:
            delays[key] = _unicast_delays(arrivals, site, rate_bps, queue)
        place = (*key, site.round_trip_s)
        if place not in found:
            found[place] = delays[key].at_site(site.round_trip_s)
        latencies.append(found[place])
    copies = sum(site.share * site.count for site in sites)
    return Outcome(
        latencies=Latencies.of_sites(latencies, [site.count for site in sites]),
        egress_bps=arrivals.mean_bps * copies,
        peak_egress_bps=peak_minute_bps(arrivals) * copies,
        buffer_bytes=_longest_queue(arrivals, min(rates, default=math.inf)),
    )


def static_circuit(arrivals: Arrivals, sites: Sequence[PathFacts], *, rate_bps: float) -> Outcome:
    """A circuit of this rate to each site, in order of arrival; shaped below its rate, so nothing is lost in it."""
    delays, buffer, _ = _circuit_delays(arrivals, arrivals.size_bytes * 8 / rate_bps, rate_bps)
    return _circuits(arrivals, sites, delays, _Use(rate_bps, arrivals.span_s, buffer, setups=1))


def dynamic_circuit(
    arrivals: Arrivals, sites: Sequence[PathFacts], *, rate_bps: float, setup_s: float, hold_s: float
) -> Outcome:
    """A circuit to each site, requested when a product arrives, and released after a silence of `hold_s`.

    A silence shorter than the set-up frees no capacity in time, so the hold is never shorter than that.
    """
    service_s = arrivals.size_bytes * 8 / rate_bps
    firsts = session_starts(arrivals.at_s, service_s, setup_s=setup_s, hold_s=max(hold_s, setup_s))
    delayed_s = service_s.copy()
    delayed_s[firsts] += setup_s
    delays, buffer, done_s = _circuit_delays(arrivals, delayed_s, rate_bps)
    last = np.append(firsts[1:] - 1, len(done_s) - 1)
    next_s = np.append(arrivals.at_s[firsts[1:]], max(arrivals.span_s, float(done_s[-1])))
    up_s = np.minimum(done_s[last] + max(hold_s, setup_s), next_s) - arrivals.at_s[firsts] - setup_s
    use = _Use(rate_bps, float(np.maximum(up_s, 0).sum()), buffer, len(firsts))
    return _circuits(arrivals, sites, delays, use)


def multicast(
    arrivals: Arrivals,
    sites: Sequence[PathFacts],
    *,
    rate_bps: float,
    repair: Repair = Repair.CODED,
    repair_bps: float | None = None,
    reserved: bool = False,
) -> Outcome:
    """One copy to a group at the slowest member's rate, and repair of the members' losses."""
    rate_bps = min([rate_bps, *(site.access_bps for site in sites if site.access_bps)])
    losses = [site.loss for site in sites for _ in range(max(round(site.count), 1))]
    again = repair_share(arrivals.size_bytes, losses, repair)
    first_s = arrivals.size_bytes * 8 / rate_bps
    repair_s = again * arrivals.size_bytes * 8 / (repair_bps or rate_bps)
    wait_s = waits(arrivals.at_s, first_s + repair_s)
    delays: dict[float, Delays] = {}
    found: dict[tuple[float, float], LogHistogram] = {}
    for site in sites:
        if site.loss not in delays:
            delays[site.loss] = _group_delays(arrivals.size_bytes, wait_s + first_s, repair_s, loss=site.loss)
        if (site.round_trip_s, site.loss) not in found:
            found[site.round_trip_s, site.loss] = delays[site.loss].at_site(site.round_trip_s)
    repaired = float((again * arrivals.size_bytes).sum() / max(arrivals.size_bytes.sum(), 1.0))
    mean_bps, peak_bps = arrivals.mean_bps * (1 + repaired), peak_minute_bps(arrivals) * (1 + repaired)
    return Outcome(
        latencies=Latencies.of_sites(
            [found[site.round_trip_s, site.loss] for site in sites], [site.count for site in sites]
        ),
        egress_bps=mean_bps,
        peak_egress_bps=peak_bps,
        repair_share=repaired,
        reserved_bps=rate_bps if reserved else 0.0,
        utilisation=mean_bps / rate_bps,
        buffer_bytes=backlog_bytes(wait_s, arrivals.size_bytes, rate_bps),
        setups=1 if reserved else 0,
    )


def relayed(
    arrivals: Arrivals, sites: Sequence[Sequence[PathFacts]], *, egress_bps: float, residence_s: float = 0.005
) -> Outcome:
    """Each site behind relays: its path in segments, which forward a product while it arrives."""
    rates = fair_rates_bps([segments[0] for segments in sites], egress_bps)
    queued_s: dict[tuple[float, ...], Floats] = {}
    found: dict[tuple[tuple[float, ...], float], LogHistogram] = {}
    latencies = []
    for segments, first_bps in zip(sites, rates, strict=True):
        line = (segments[0].share, first_bps, *(connection_bps(segment) for segment in segments[1:]))
        away_s = sum(segment.round_trip_s for segment in segments) / 2 + residence_s * (len(segments) - 1)
        if line not in queued_s:
            queued_s[line] = _tandem_s(arrivals, line[1:], share=line[0])
        if (line, away_s) not in found:
            found[line, away_s] = LogHistogram()
            found[line, away_s].add(queued_s[line] + away_s)
        latencies.append(found[line, away_s])
    copies = sum(segments[0].share * segments[0].count for segments in sites)
    return Outcome(
        latencies=Latencies.of_sites(latencies, [segments[0].count for segments in sites]),
        egress_bps=arrivals.mean_bps * copies,
        peak_egress_bps=peak_minute_bps(arrivals) * copies,
    )


def together(parts: Sequence[Outcome]) -> Outcome:
    """Combines sites of one feed that are served in several ways at the same time."""
    if len(parts) == 1:
        return parts[0]
    sent_bps = sum(part.egress_bps for part in parts)
    used = [part.utilisation for part in parts if part.utilisation is not None]
    return Outcome(
        latencies=Latencies.together_of([part.latencies for part in parts]),
        egress_bps=sent_bps,
        peak_egress_bps=sum(part.peak_egress_bps for part in parts),
        repair_share=sum(part.repair_share * part.egress_bps for part in parts) / sent_bps if sent_bps else 0.0,
        reserved_bps=sum(part.reserved_bps for part in parts),
        utilisation=max(used, default=None),
        buffer_bytes=max(part.buffer_bytes for part in parts),
        setups=sum(part.setups for part in parts),
    )


def fair_rates_bps(sites: Sequence[PathFacts], egress_bps: float) -> list[float]:
    """Max-min fair shares of the egress, weighted by each site's share of the feed."""
    rates = [0.0] * len(sites)
    left_bps, weight = egress_bps, sum(site.share * site.count for site in sites)
    limits = [connection_bps(site) for site in sites]
    for index in sorted(range(len(sites)), key=lambda one: limits[one] / max(sites[one].share, 1e-12)):
        fair_bps = left_bps * sites[index].share / weight if weight > 0 else left_bps
        rates[index] = min(fair_bps, limits[index])
        left_bps -= rates[index] * sites[index].count
        weight -= sites[index].share * sites[index].count
    return rates


def session_starts(at_s: Floats, service_s: Floats, *, setup_s: float, hold_s: float) -> Indices:
    """The products for which a circuit is requested: the first, and those after a silence longer than the hold.

    Set-ups delay the following products, which shortens silences; so the candidates are those of a permanent circuit,
    checked in order.
    """
    if len(at_s) == 0:
        return np.empty(0, dtype=np.int64)
    done_s = at_s + waits(at_s, service_s) + service_s
    candidates = np.flatnonzero(at_s[1:] - done_s[:-1] > hold_s) + 1
    work_s = np.concatenate([[0.0], np.cumsum(service_s)])
    starts, begin, free_s = [0], 0, float(at_s[0]) + setup_s
    for candidate in candidates.tolist():
        free_s = max(free_s + float(work_s[candidate] - work_s[begin]), float(done_s[candidate - 1]))
        begin = candidate
        if at_s[candidate] - free_s > hold_s:
            starts.append(candidate)
            free_s = float(at_s[candidate]) + setup_s
    return np.array(starts, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Releases:
    """The share of a circuit's time that a hold time would release, from the gaps between arrivals alone."""

    hold_s: float
    releases: int
    share_of_time: float


def releases(arrivals: Arrivals, *, setup_s: float, hold_s: float) -> Releases:
    """Closed form of the possible gain of dynamic circuits: the sum of each gap's excess over the hold."""
    hold_s = max(hold_s, setup_s)
    gaps_s = np.diff(arrivals.at_s)
    long_s = gaps_s[gaps_s > hold_s]
    share = float((long_s - hold_s).sum()) / arrivals.span_s if arrivals.span_s else 0.0
    return Releases(hold_s, len(long_s), share)


def peak_minute_bps(arrivals: Arrivals) -> float:
    """The rate of the busiest minute; of all the time if that is shorter."""
    width_s = min(60.0, max(arrivals.span_s, 1.0))
    if len(arrivals.at_s) == 0:
        return 0.0
    minute = (arrivals.at_s / width_s).astype(np.int64)
    starts = np.flatnonzero(np.diff(minute, prepend=-1))
    return float(np.add.reduceat(arrivals.size_bytes, starts).max()) * 8 / width_s


@dataclass(frozen=True, slots=True)
class _Queue:
    order: Order
    budget: int
    first_window_bytes: float


def _unicast_delays(arrivals: Arrivals, site: PathFacts, rate_bps: float, queue: _Queue) -> Delays:
    """A site that takes a share of the bytes has a queue of fewer products; each has its full service time."""
    service_s = arrivals.size_bytes * 8 / rate_bps
    sojourns = play(arrivals.at_s, service_s * site.share, queue.order, budget=queue.budget)
    rest_s = service_s[sojourns.index] * (1 - site.share)
    sojourns = replace(sojourns, sojourn_s=sojourns.sojourn_s + rest_s)
    windows = np.ceil(np.log2(1 + arrivals.size_bytes / queue.first_window_bytes))
    fills = math.log2(max(rate_bps * site.round_trip_s / 8 / queue.first_window_bytes, 1.0))
    turns = np.minimum(np.maximum(windows - 1, 0), math.ceil(fills))[sojourns.index] * sojourns.alone
    return Delays.of_values(sojourns.sojourn_s, turns, sojourns.weight)


@dataclass(frozen=True, slots=True)
class _Use:
    """The use of a circuit."""

    rate_bps: float
    up_s: float
    buffer_bytes: float
    setups: int


def _circuit_delays(arrivals: Arrivals, service_s: Floats, rate_bps: float) -> tuple[Delays, float, Floats]:
    wait_s = waits(arrivals.at_s, service_s)
    delays = Delays.of_values(wait_s + service_s, np.zeros(len(wait_s)), np.ones(len(wait_s)))
    return delays, backlog_bytes(wait_s, arrivals.size_bytes, rate_bps), arrivals.at_s + wait_s + service_s


def _circuits(arrivals: Arrivals, sites: Sequence[PathFacts], delays: Delays, use: _Use) -> Outcome:
    by_distance = {site.round_trip_s: delays.at_site(site.round_trip_s) for site in sites}
    up_share = use.up_s / arrivals.span_s if arrivals.span_s else 1.0
    count = sum(site.count for site in sites)
    return Outcome(
        latencies=Latencies.of_sites(
            [by_distance[site.round_trip_s] for site in sites], [site.count for site in sites]
        ),
        egress_bps=arrivals.mean_bps * count,
        peak_egress_bps=peak_minute_bps(arrivals) * count,
        reserved_bps=use.rate_bps * count * up_share,
        utilisation=arrivals.mean_bps / (use.rate_bps * up_share) if up_share else None,
        buffer_bytes=use.buffer_bytes,
        setups=use.setups * round(count),
    )


def _group_delays(size_bytes: Floats, done_s: Floats, repair_s: Floats, *, loss: float) -> Delays:
    """Products with losses at a site are complete a request and a repair later."""
    if loss <= 0:
        return Delays.of_values(done_s, np.zeros(len(done_s)), np.ones(len(done_s)))
    missed = missing_share(size_bytes, loss)
    round_trips = np.repeat([0.0, 1.0], len(done_s))
    latencies_s = np.concatenate([done_s, done_s + repair_s + REQUEST_WAIT_S])
    return Delays.of_values(latencies_s, round_trips, np.concatenate([1 - missed, missed]))


def _tandem_s(arrivals: Arrivals, rates_bps: Sequence[float], *, share: float) -> Floats:
    """A relay forwards a product while it arrives, and ends no earlier than the arrival of the product's end.

    The time on the way shifts all products alike, so it can be added afterwards. Products that the site does not take
    are no load.
    """
    came_s, ended_s = arrivals.at_s, np.zeros(len(arrivals.at_s))
    for rate_bps in rates_bps:
        service_s = arrivals.size_bytes * 8 / rate_bps
        wait_s = waits(came_s, service_s * share)
        ended_s = np.maximum(came_s + wait_s + service_s, ended_s)
        came_s = np.maximum.accumulate(came_s + wait_s)
    return ended_s - arrivals.at_s


def stepped(rate_bps: float) -> float:
    """A rate rounded down in steps of 5 %, so that the work does not grow with the sites."""
    if rate_bps <= 0 or not math.isfinite(rate_bps):
        return rate_bps
    return float(1.05 ** math.floor(math.log(rate_bps, 1.05)))


def _longest_queue(arrivals: Arrivals, rate_bps: float) -> float:
    service_s = arrivals.size_bytes * 8 / rate_bps
    return backlog_bytes(waits(arrivals.at_s, service_s), arrivals.size_bytes, rate_bps)


EXACT_RATES = 8
PLAYED_PRODUCTS, LEAST_PLAYED = 2_000_000, 40_000
"""The number of products played one by one, over all rates and for each of them."""
REQUEST_WAIT_S = 0.02
"""The delay of a receiver's request, so that late packets are not requested."""
