"""Paths through a network, the best first; pure.

The search grows partial paths, the most promising first, by a bound on the measure of any completion that an exact
search from the goal gives (A*: Hart, Nilsson and Raphael 1968). It therefore yields complete paths in the order of
their measures, and the first one that has room and tags is the best of all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from downburst.domain.circuits import PathOrder
from downburst_circuits.desk.network import Hop, Network


@dataclass(frozen=True, slots=True)
class Wish:
    """A path to look for."""

    a: str
    z: str
    order: PathOrder = PathOrder.SHORTEST
    include: frozenset[str] = frozenset()
    """Links and switches that it must pass."""
    exclude: frozenset[str] = frozenset()
    """Links and switches that it must not pass."""


Path = tuple[Hop, ...]
Width = Callable[[Hop], int | None]
"""The free rate of a hop in b/s; None: it can't be used."""
Measure = tuple[int, int]
_After = Callable[[Measure, Hop], Measure | None]


@dataclass(order=True, slots=True)
class _Partial:
    bound: Measure
    to_go: int
    """Minus its hops: of equal bounds the longest goes on first, which reaches the goal without its siblings."""
    names: tuple[str, ...]
    number: int
    measure: Measure = field(compare=False)
    at: str = field(compare=False)
    path: Path = field(compare=False)


def paths(network: Network, wish: Wish, width: Width) -> Iterator[Path]:
    """The usable paths without a repeated vertex, the best first; gives up after `MOST_PARTIALS` partial ones.

    A short first search asks for the widths of few links. Only if that ends early are all of them asked for.
    """
    known: dict[tuple[str, bool], int | None] = {}
    given: set[tuple[str, ...]] = set()
    for is_exact, most in ((False, QUICK_PARTIALS), (True, MOST_PARTIALS)):
        if wish.order is PathOrder.WIDEST and not is_exact:
            continue
        search = _Search(network, wish, _Rest(network, wish, width, known, is_exact=is_exact))
        for path in search.found(most):
            names = tuple(hop.link.name for hop in path)
            if names not in given:
                given.add(names)
                yield path
        if search.is_over:
            return


class _Search:
    """The growth of partial paths."""

    def __init__(self, network: Network, wish: Wish, rest: "_Rest") -> None:
        self._network = network
        self._wish = wish
        self._rest = rest
        self._numbers = count()
        self._waiting: list[_Partial] = []
        _push(self._waiting, rest, _Partial(NOTHING, 0, (), next(self._numbers), rest.start, wish.a, ()))

    @property
    def is_over(self) -> bool:
        """True if there are no further paths."""
        return not self._waiting

    def found(self, most: int) -> Iterator[Path]:
        """Complete paths, the best first, from at most so many partial ones."""
        for _ in range(most):
            if not self._waiting:
                return
            partial = heappop(self._waiting)
            if partial.at != self._wish.z:
                self._grow(partial)
            elif _passes(partial.path, self._wish):
                yield partial.path

    def _grow(self, partial: _Partial) -> None:
        for hop in _onward(self._network, partial, self._wish):
            grown = self._rest.after(partial.measure, hop)
            if grown is not None:
                names, path = (*partial.names, hop.link.name), (*partial.path, hop)
                more = _Partial(NOTHING, -grown[1], names, next(self._numbers), grown, hop.to, path)
                _push(self._waiting, self._rest, more)


class _Rest:
    """Measures of hops, and bounds on the rest of the way from each vertex to the goal.

    Exact bounds count usable links alone; others count all links, so that they are the same for every window.
    """

    def __init__(
        self,
        network: Network,
        wish: Wish,
        width: Width,
        known: dict[tuple[str, bool], int | None],
        *,
        is_exact: bool,
    ) -> None:
        self._network = network
        self._wish = wish
        self._width = width
        self._known = known
        self.start: Measure = (-INFINITE_BPS, 0) if wish.order is PathOrder.WIDEST else NOTHING
        self._best = self._from_goal(self.start, self.after) if is_exact else self._distances()
        self._hops = self._best
        if wish.order is PathOrder.WIDEST:
            self._hops = self._from_goal(NOTHING, self._one_more)

    def after(self, measure: Measure, hop: Hop) -> Measure | None:
        """The measure of a way with one more hop; None if that can't be used."""
        width = self._wide(hop)
        if width is None:
            return None
        if self._wish.order is PathOrder.WIDEST:
            return max(measure[0], -width), measure[1] + 1
        return self._longer(measure, hop)

    def bound(self, measure: Measure, vertex: str) -> Measure | None:
        """The best measure of any completion from a vertex; None if the goal can't be reached from it."""
        rest = self._best.get(vertex)
        if rest is None:
            return None
        if self._wish.order is not PathOrder.WIDEST:
            return measure[0] + rest[0], measure[1] + rest[1]
        # A narrower way may have fewer hops than the widest, so the fewest of all are the bound.
        return max(measure[0], rest[0]), measure[1] + self._hops[vertex][1]

    def _longer(self, measure: Measure, hop: Hop) -> Measure:
        return measure[0] + (hop.link.cost if self._wish.order is PathOrder.SHORTEST else 1), measure[1] + 1

    def _one_more(self, measure: Measure, hop: Hop) -> Measure | None:
        return None if self._wide(hop) is None else (measure[0] + 1, measure[1] + 1)

    def _wide(self, hop: Hop) -> int | None:
        """The width of a hop, asked for once."""
        key = hop.link.name, hop.forward
        if key not in self._known:
            is_out = hop.link.name in self._wish.exclude or hop.to in self._wish.exclude
            self._known[key] = None if is_out else self._width(hop)
        return self._known[key]

    def _distances(self) -> dict[str, Measure]:
        key = self._wish.order, self._wish.z
        if key not in self._network.distances:
            self._network.distances[key] = self._from_goal(NOTHING, self._longer)
        return self._network.distances[key]

    def _from_goal(self, start: Measure, after: _After) -> dict[str, Measure]:
        best: dict[str, Measure] = {}
        waiting: list[tuple[Measure, str]] = [(start, self._wish.z)]
        while waiting:
            measure, vertex = heappop(waiting)
            if vertex in best:
                continue
            best[vertex] = measure
            carries = vertex == self._wish.z or self._network.passes(vertex)
            for hop in self._network.hops(vertex) if carries else ():
                grown = after(measure, Hop(hop.link, vertex, forward=not hop.forward))
                if grown is not None and hop.to not in best:
                    heappush(waiting, (grown, hop.to))
        return best


def _push(waiting: list[_Partial], rest: _Rest, partial: _Partial) -> None:
    bound = rest.bound(partial.measure, partial.at)
    if bound is not None:
        partial.bound = bound
        heappush(waiting, partial)


def _onward(network: Network, partial: _Partial, wish: Wish) -> Iterator[Hop]:
    visited = {wish.a, *(hop.to for hop in partial.path)}
    for hop in network.hops(partial.at):
        if hop.to not in visited and (hop.to == wish.z or network.passes(hop.to)):
            yield hop


def _passes(path: Path, wish: Wish) -> bool:
    return wish.include <= {name for hop in path for name in (hop.link.name, hop.to)}


NOTHING: Measure = (0, 0)
INFINITE_BPS = 2**62
QUICK_PARTIALS = 50
MOST_PARTIALS = 20_000
