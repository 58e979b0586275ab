"""Causes of differences in throughput: the share of its variance that each factor explains.

A factor's values are put into classes of equal count (peers and hours are classes already). The report is the share
explained by the means of the classes, corrected for the number of classes; so a factor need not be linear, and noise
explains nothing. Slow transfers overlap more, whatever makes them slow; so a factor of the network counts only with
the share beyond the best of all other factors. If that is small, a circuit can't help.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from downburst.recordings.recording import Transfer
from downburst_analyze.counters import Counters
from downburst_scheduler.figures.histograms import Floats


@dataclass(frozen=True, slots=True)
class Factor:
    """A possible influence on throughput."""

    name: str
    explained: float
    """Share of the variance that the factor alone explains; never below zero."""
    pearson: float | None
    spearman: float | None
    """None for classes without an order."""
    of_network: bool


@dataclass(frozen=True, slots=True)
class VarianceFigures:
    """Factors of the throughput of transfers, the most explanatory first."""

    transfers: int
    quartiles_bps: tuple[float, float, float]
    factors: tuple[Factor, ...]
    network_share: float
    """The share that the best of the network's factors explains beyond the best of the others."""
    sentence: str


class VarianceStudy:
    """Keeps start, length, size and peer of transfers, up to a maximum."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, float, int, str]] = []
        self._places: list[int] = []

    def passing(self, transfers: Iterable[Transfer]) -> Iterator[Transfer]:
        """Passes transfers on and remembers the first million with a duration."""
        for place, one in enumerate(transfers):
            if one.duration_s > 0 and one.size_bytes > 0 and len(self._rows) < MOST_TRANSFERS:
                self._rows.append((one.start_us, one.duration_s, one.size_bytes, one.peer))
                self._places.append(place)
            yield one

    def figures(
        self, samples: Mapping[str, Counters] | None = None, conditions: Mapping[str, Floats] | None = None
    ) -> VarianceFigures | None:
        """The report; None if there are too few transfers.

        `samples` are counters of hosts: "" or "hub" for all transfers, others for those with that peer. `conditions`
        have a value for each transfer that was passed on, NaN where it is not known.
        """
        if len(self._rows) < FEWEST_TRANSFERS:
            return None
        log = _Log.of(self._rows)
        known = {name: values[self._places] for name, values in (conditions or {}).items()}
        suspects = [*_suspects(log), *_conditions(known), *_counted(log, samples or {})]
        ranked = tuple(sorted((_factor(one, log.rate_bps) for one in suspects), key=lambda one: -one.explained))
        share = _beyond_all_else(suspects, log.rate_bps)
        low, middle, high = (float(value) for value in np.quantile(log.rate_bps, [0.25, 0.5, 0.75]))
        return VarianceFigures(len(self._rows), (low, middle, high), ranked, share, _sentence(ranked, share))


def predicted_bps(start_s: Floats, end_s: Floats, capacity_bps: float = 1.0) -> Floats:
    """The throughput of each transfer if concurrent ones share a capacity evenly, without other influences."""
    edges_s, under_way = _under_way(start_s, end_s)
    shares = np.divide(1.0, under_way, out=np.zeros(len(under_way)), where=under_way > 0)
    result: Floats = capacity_bps * _mean_over(edges_s, shares, start_s, end_s)
    return result


@dataclass(frozen=True, slots=True)
class _Log:
    start_s: Floats
    end_s: Floats
    size_bytes: Floats
    peers: list[str]
    rate_bps: Floats = field(repr=False)

    @classmethod
    def of(cls, rows: list[tuple[int, float, int, str]]) -> "_Log":
        start_s = np.array([row[0] for row in rows], dtype=np.float64) / 1e6
        took_s = np.array([row[1] for row in rows], dtype=np.float64)
        size_bytes = np.array([row[2] for row in rows], dtype=np.float64)
        return cls(start_s, start_s + took_s, size_bytes, [row[3] for row in rows], size_bytes * 8 / took_s)


@dataclass(frozen=True, slots=True)
class _Suspect:
    name: str
    values: Floats
    of_network: bool = False
    ordered: bool = True


def _suspects(log: _Log) -> Iterator[_Suspect]:
    yield _Suspect("concurrency", predicted_bps(log.start_s, log.end_s), of_network=True)
    yield _Suspect("rate of the others", _others_bps(log), of_network=True)
    yield _Suspect("size", log.size_bytes)
    yield _Suspect("hour of the day", np.floor(log.start_s / 3600) % 24, ordered=False)
    if len(set(log.peers)) > 1:
        yield _Suspect("peer", _numbered(log.peers), ordered=False)


def _conditions(known: Mapping[str, Floats]) -> Iterator[_Suspect]:
    for name, values in known.items():
        if (complete := _completed(values)) is not None:
            yield _Suspect(name, complete)


def _counted(log: _Log, samples: Mapping[str, Counters]) -> Iterator[_Suspect]:
    """Factors at the hub, and at the other end where its host has samples."""
    peers = np.array(log.peers)
    far: dict[str, Floats] = {}
    for host, counters in samples.items():
        here = np.ones(len(peers), dtype=bool) if host in OF_ALL else peers == host
        if not here.any():
            continue
        for name, values in counters.columns.items():
            mean = _mean_over(counters.at_us / 1e6, values, log.start_s[here], log.end_s[here])
            if host in OF_ALL:
                yield _Suspect(f"{name}{OF_ALL[host]}", mean, of_network=name.startswith(NETWORK_PREFIX))
            else:
                far.setdefault(name, np.full(len(peers), np.nan))[here] = mean
    for name, values in far.items():
        if (complete := _completed(values)) is not None:
            yield _Suspect(f"{name} at the site", complete, of_network=name.startswith(NETWORK_PREFIX))


def _completed(values: Floats) -> Floats | None:
    """An unknown value counts as the median, which explains nothing; None if most are unknown."""
    known = np.isfinite(values)
    if known.mean() < LEAST_KNOWN:
        return None
    result: Floats = np.where(known, values, np.median(values[known]))
    return result


def _factor(suspect: _Suspect, rate_bps: Floats) -> Factor:
    explained = _explained(_classes(suspect), rate_bps)
    pearson = _correlation(suspect.values, rate_bps) if suspect.ordered else None
    spearman = _correlation(_ranks(suspect.values), _ranks(rate_bps)) if suspect.ordered else None
    return Factor(suspect.name, explained, pearson, spearman, suspect.of_network)


def _beyond_all_else(suspects: list[_Suspect], rate_bps: Floats) -> float:
    """The share that the network's best factor explains of the remainder after the best other factor."""
    network = [_classes(one) for one in suspects if one.of_network]
    best = max((_classes(one) for one in suspects if not one.of_network), key=lambda one: _explained(one, rate_bps))
    left_bps = rate_bps - _means(best, rate_bps)
    share_left = float(left_bps.var() / rate_bps.var()) if rate_bps.var() > 0 else 0.0
    return share_left * max(_explained(one, left_bps) for one in network)


def _means(classes: Floats, values: Floats) -> Floats:
    """The mean of the class of each value."""
    _, place = np.unique(classes, return_inverse=True)
    result: Floats = (np.bincount(place, weights=values) / np.bincount(place))[place]
    return result


def _classes(suspect: _Suspect) -> Floats:
    if not suspect.ordered:
        return suspect.values
    borders = np.unique(np.quantile(suspect.values, np.linspace(0, 1, CLASSES + 1)[1:-1]))
    return np.searchsorted(borders, suspect.values, side="right").astype(np.float64)


def _explained(classes: Floats, values: Floats) -> float:
    """The correlation ratio, corrected like a regression's share of explained variance."""
    total = float(((values - values.mean()) ** 2).sum())
    free = len(values) - len(np.unique(classes))
    if total <= 0 or free <= 0:
        return 0.0
    within = float(((values - _means(classes, values)) ** 2).sum())
    return max(1 - (within / free) / (total / (len(values) - 1)), 0.0)


def _correlation(first: Floats, second: Floats) -> float | None:
    if first.std() <= 0 or second.std() <= 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Floats) -> Floats:
    """Equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    result: Floats = (last - (counts - 1) / 2)[place]
    return result


def _numbered(names: list[str]) -> Floats:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.float64)


def _under_way(start_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    """Moments at which a transfer begins or ends, and the number in progress from each on."""
    edges_s = np.concatenate([start_s, end_s])
    steps = np.concatenate([np.ones(len(start_s)), -np.ones(len(end_s))])
    order = np.argsort(edges_s, kind="stable")
    return edges_s[order], np.cumsum(steps[order])


def _others_bps(log: _Log) -> Floats:
    edges_s = np.concatenate([log.start_s, log.end_s])
    order = np.argsort(edges_s, kind="stable")
    total_bps = np.cumsum(np.concatenate([log.rate_bps, -log.rate_bps])[order])
    result: Floats = _mean_over(edges_s[order], total_bps, log.start_s, log.end_s) - log.rate_bps
    return result


def _mean_over(at_s: Floats, values: Floats, start_s: Floats, end_s: Floats) -> Floats:
    """The mean from start to end of a step function; its first and last values extend without end."""
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(at_s))])

    def until(moment_s: Floats) -> Floats:
        place = np.clip(np.searchsorted(at_s, moment_s, side="right") - 1, 0, len(at_s) - 1)
        result: Floats = area[place] + values[place] * (moment_s - at_s[place])
        return result

    result: Floats = (until(end_s) - until(start_s)) / (end_s - start_s)
    return result


def _sentence(ranked: tuple[Factor, ...], network_share: float) -> str:
    first = ranked[0]
    most = f"{first.name} explains most of the variance, {first.explained:.0%}"
    if first.explained < LEAST_SHARE:
        most = f"no known factor explains more than {first.explained:.0%} of the variance"
    if network_share >= LEAST_SHARE:
        return f"{most}; the network explains {network_share:.0%} beyond all else, so a circuit may help"
    return (
        f"{most}; the network explains {network_share:.0%} beyond all else, so there is no evidence that a "
        "circuit would help"
    )


NETWORK_PREFIX = "net_"
OF_ALL = {"": "", "hub": " at the hub"}
"""Hosts that take part in every transfer, and the words for them."""
LEAST_KNOWN = 0.5
CLASSES = 10
FEWEST_TRANSFERS = 30
MOST_TRANSFERS = 1_000_000
LEAST_SHARE = 0.25
"""Below this share of the variance more capacity from a circuit would not help."""
