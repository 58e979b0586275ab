"""Assignment of feeds and sites to senders: by measured load, with few moves, and one sender for a group.

A feed is kept in one piece while that is fair, because every sender of a feed keeps a copy of it. Existing
assignments stay; only unserved sites move, and whatever makes one sender's load far greater than the others'. A site
with a circuit is served by the sender at which that begins.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from downburst.domain.senders import Assignment

_NOWHERE: Mapping[str, frozenset[str]] = {}
Part = tuple[str, str]
"""A feed at a sender."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A feed and the sites that want it."""

    feed: str
    sites: tuple[str, ...]
    bps: float
    """The rate of the feed to one site, in bits per second."""
    together: bool = False
    """It is sent to a group, by one sender."""

    @property
    def weight(self) -> float:
        """The cost of serving one site; a feed that is silent at the moment counts a little, so that all spread."""
        return max(self.bps, SILENT_BPS)


def place(
    demands: Iterable[Demand],
    senders: Sequence[str],
    current: Iterable[Assignment],
    homes: Mapping[str, frozenset[str]] = _NOWHERE,
) -> list[Assignment]:
    """The new assignments: every wanted feed has a sender for each site, if there is any sender.

    `homes`: by site, the senders with a circuit to it, at work or not.
    """
    if not senders:
        return []
    at_home = {site: here for site, names in homes.items() if (here := names & frozenset(senders))}
    ordered = sorted(demands, key=lambda one: (-one.weight * len(one.sites), one.feed))
    table = _Table(ordered, senders, at_home)
    table.keep(current)
    for demand in table.demands:
        table.complete(demand)
    for _ in range(MOST_MOVES):
        if not table.move_one():
            break
    return table.assignments()


class _Table:
    """The sites of each feed at each sender."""

    def __init__(
        self, demands: Sequence[Demand], senders: Sequence[str], homes: Mapping[str, frozenset[str]]
    ) -> None:
        self.demands = demands
        self._homes = homes
        self._demand: Mapping[str, Demand] = {one.feed: one for one in demands}
        self._senders = sorted(senders)
        self._sites: dict[Part, set[str]] = defaultdict(set)
        self._load: dict[str, float] = dict.fromkeys(self._senders, 0.0)

    def keep(self, current: Iterable[Assignment]) -> None:
        for one in current:
            demand = self._demand.get(one.feed)
            if demand is None or one.sender not in self._load or one.site not in demand.sites:
                continue
            if demand.together or one.sender in self._homes.get(one.site, (one.sender,)):
                self._put(demand, one.sender, {one.site})

    def complete(self, demand: Demand) -> None:
        """Assigns the unserved sites to a sender; all sites if they must be together."""
        if demand.together:
            widest = max(
                self._senders,
                key=lambda name: (
                    sum(name in self._homes.get(site, ()) for site in demand.sites),
                    len(self._sites[demand.feed, name]),
                    -self._load[name],
                ),
            )
            for name in self._senders:
                self._take(demand, name, set(self._sites[demand.feed, name]))
            self._put(demand, widest, set(demand.sites))
            return
        served = {site for name in self._senders for site in self._sites[demand.feed, name]}
        lacking = set(demand.sites) - served
        for site in sorted(lacking & self._homes.keys()):
            self._put(demand, min(self._homes[site], key=lambda name: (self._load[name], name)), {site})
        if lacking := lacking - self._homes.keys():
            self._put(demand, self._for_more_of(demand), lacking)

    def move_one(self) -> bool:
        """Moves one feed, or some of its sites, from the sender with the most load to the one with the least."""
        most = max(self._senders, key=lambda name: (self._load[name], name))
        least = min(self._senders, key=lambda name: (self._load[name], name))
        excess = (self._load[most] - self._load[least]) / 2
        mean = sum(self._load.values()) / len(self._senders)
        if self._load[most] <= mean * UNFAIR or excess < WORTH_BPS:
            return False
        # The largest feed that fits is moved whole, else as many sites of the largest as fit.
        parts = sorted(
            (demand for demand in self.demands if self._free(demand, most) and not demand.together),
            key=lambda demand: (-demand.weight * len(self._free(demand, most)), demand.feed),
        )
        for demand in parts:
            sites = self._free(demand, most)
            if demand.weight * len(sites) <= excess:
                return self._move(demand, most, least, set(sites))
        for demand in parts:
            fit = int(excess // demand.weight)
            if fit:
                return self._move(demand, most, least, set(sorted(self._free(demand, most))[-fit:]))
        return False

    def assignments(self) -> list[Assignment]:
        found = [Assignment(feed, site, name) for (feed, name), sites in self._sites.items() for site in sites]
        return sorted(found)

    def _free(self, demand: Demand, name: str) -> set[str]:
        """The sites of a feed at a sender that no circuit keeps there."""
        return self._sites[demand.feed, name] - self._homes.keys()

    def _for_more_of(self, demand: Demand) -> str:
        """A sender that already has the feed, unless its load is far above that of another one."""
        holders = [name for name in self._senders if self._sites[demand.feed, name]]
        least = min(self._senders, key=lambda name: (self._load[name], name))
        if not holders:
            return least
        holder = min(holders, key=lambda name: (self._load[name], name))
        return holder if self._load[holder] - self._load[least] < WORTH_BPS else least

    def _move(self, demand: Demand, source: str, target: str, sites: set[str]) -> bool:
        self._take(demand, source, sites)
        self._put(demand, target, sites)
        return True

    def _put(self, demand: Demand, name: str, sites: set[str]) -> None:
        self._sites[demand.feed, name] |= sites
        self._load[name] += demand.weight * len(sites)

    def _take(self, demand: Demand, name: str, sites: set[str]) -> None:
        self._sites[demand.feed, name] -= sites
        self._load[name] -= demand.weight * len(sites)


SILENT_BPS = 1_000.0
WORTH_BPS = 1_000_000.0
"""A move costs every site concerned a connection, and the target a copy of the feed."""
UNFAIR = 1.25
"""The ratio to the mean above which a load is too high."""
MOST_MOVES = 4
"""Limit for one round; the next one sees their effect on the load."""
