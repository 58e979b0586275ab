"""The desk against a brute force that walks every path, tries every tag and looks at every moment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst.domain.circuits import PathOrder, Port
from downburst.domain.topology import Domain, Host, Link, Maintenance, Switch, TagKind, TagRange, Topology
from downburst_circuits.calendar import Calendar, Claim, NoRoom
from downburst_circuits.desk import paths
from downburst_circuits.desk.booking import Booked, Desk, NoPath, Wanted
from downburst_circuits.desk.network import Hop, Network
from downburst_circuits.desk.paths import Path, Wish

DAY = 12
ZERO = datetime(1970, 1, 1, tzinfo=UTC)
PORTS = {name: Port(name, 1000, site) for name, site in (("hub", None), ("unl", "unl"), ("unl2", "unl"))}
ENDS = {"a-1": "a", "a-2": "a", "a-3": "a", "b-1": "b", "b-2": "b", "b-3": "b", "c-1": "c", "c-2": "c", "c-3": "c"}
LINES = [("hub", "a-1"), ("a-2", "b-1"), ("c-1", "a-3"), ("b-2", "c-2"), ("b-3", "unl"), ("c-3", "unl2")]
RATES = st.sampled_from([250, 500, 500, 1000])
ASKED = st.sampled_from([1, 1, 250, 500])
"""Small ones leave room, so that tags are what lacks."""


def windows() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(0, DAY - 1), st.integers(1, 5)).map(lambda one: (one[0], one[0] + one[1]))


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Six lines in two ways between the hub and two ports of one host; equal rates and few tags are likely."""
    tags = st.sampled_from([None, (1, 0), (1, 1), (2, 0)])
    links = []
    for number, (a, z) in enumerate(LINES):
        drawn = draw(tags)
        among = None if drawn is None else TagRange(TagKind.VLAN, drawn[0], drawn[0] + drawn[1])
        cost = draw(st.integers(1, 3))
        links.append(Link(f"line-{number}", a, z, draw(RATES), draw(RATES), among, cost))
    closed = draw(
        st.lists(st.tuples(st.sampled_from(["a", "b", "c", "unl", "nic", "line-1"]), windows()), max_size=2)
    )
    return Topology(
        domains=(Domain("d"),),
        switches=tuple(
            Switch(name, "d", tuple(port for port in ENDS if ENDS[port] == name), translates=draw(st.booleans()))
            for name in ("a", "b", "c")
        ),
        links=tuple(links),
        hosts=(Host("nic", ("unl", "unl2"), draw(RATES)),),
        maintenance=tuple(
            Maintenance(f"work-{number}", (of,), ZERO + begin * TICK, ZERO + end * TICK)
            for number, (of, (begin, end)) in enumerate(closed)
        ),
    )


TICK = timedelta(microseconds=1)


@st.composite
def wanteds(draw: st.DrawFn, number: int) -> Wanted:
    out, back, z = draw(ASKED), draw(ASKED), draw(st.sampled_from(["unl", "unl2"]))
    names = st.sampled_from(["b", "c", "line-1", "line-3"])
    drawn = draw(st.one_of(st.none(), st.tuples(st.sampled_from(["include", "exclude"]), names)))
    wish = Wish("hub", z, draw(st.sampled_from(PathOrder)), **({drawn[0]: frozenset([drawn[1]])} if drawn else {}))
    tagged = (1, 2) if draw(st.booleans()) else (None, None)
    ends = (Claim("hub", out, back, *tagged), Claim(z, back, out))
    return Wanted(number, ends, out, back, wish)


@dataclass
class BruteForce:
    """The rules once more, without indexes: a moment, a path and a tag at a time."""

    topology: Topology
    kept: list[Booked]

    def best(self, wanted: Wanted, begin: int, end: int) -> tuple[int, int] | None:
        """The measure of the best path with room; None: none has."""
        fitting = [path for path in self.paths(wanted) if self.fits(wanted, path, begin, end)]
        return min((self.measure(wanted, path, begin, end) for path in fitting), default=None)

    def paths(self, wanted: Wanted) -> Iterator[Path]:
        assert wanted.wish is not None
        wish = wanted.wish
        for path in self._walk("hub", wish.z, ["hub"]):
            names = {name for hop in path for name in (hop.link.name, hop.to)}
            if wish.include <= names and not wish.exclude & names:
                yield path

    def _walk(self, at: str, goal: str, visited: list[str]) -> Iterator[Path]:
        if at == goal:
            yield ()
        elif at not in PORTS or at == "hub":
            for link in self.topology.links:
                for near, far, forward in ((link.a, link.z, True), (link.z, link.a, False)):
                    to = ENDS.get(far, far)
                    if ENDS.get(near, near) == at and to not in visited:
                        for rest in self._walk(to, goal, [*visited, to]):
                            yield (Hop(link, to, forward=forward), *rest)

    def measure(self, wanted: Wanted, path: Path, begin: int, end: int) -> tuple[int, int]:
        assert wanted.wish is not None
        if wanted.wish.order is PathOrder.SHORTEST:
            return sum(hop.link.cost for hop in path), len(path)
        if wanted.wish.order is PathOrder.FEWEST_HOPS:
            return len(path), len(path)
        frees = [self._capacity(hop, hop.forward) - self._most(hop, begin, end) for hop in path]
        return -min(frees), len(path)

    def fits(self, wanted: Wanted, path: Path, begin: int, end: int) -> bool:
        wish = wanted.wish
        assert wish is not None
        used = {"hub": (wanted.out_bps, wanted.in_bps), wish.z: (wanted.in_bps, wanted.out_bps)}
        used["host nic"] = used[wish.z]
        for hop in path:
            rates = (wanted.out_bps, wanted.in_bps)
            used[f"link {hop.link.name}"] = rates if hop.forward else rates[::-1]
        names = {hop.link.name for hop in path} | {hop.to for hop in path} | {"nic"}
        closed = [one for one in self.topology.maintenance if set(one.of) & names]
        for moment in range(begin, end):
            if any(one.begin <= ZERO + moment * TICK < one.end for one in closed):
                return False
            for key, rates in used.items():
                if any(rates[way] + self._taken(key, way, moment) > self._limit(key, way) for way in (0, 1)):
                    return False
        return self._tags_fit(wanted, path, begin, end)

    def _limit(self, key: str, way: int) -> int:
        link = next((one for one in self.topology.links if f"link {one.name}" == key), None)
        if link is not None:
            return (link.az_bps, link.za_bps)[way]
        return self.topology.hosts[0].nic_bps if key == "host nic" else PORTS[key].rate_bps

    def _taken(self, key: str, way: int, moment: int) -> int:
        claims = (claim for claim in self._standing(moment) if claim.resource == key)
        return sum((claim.out_bps, claim.in_bps)[way] for claim in claims)

    def _standing(self, moment: int) -> Iterator[Claim]:
        for one in self.kept:
            if one.reservation.begin_us <= moment < one.reservation.end_us:
                yield from one.reservation.claims

    def _capacity(self, hop: Hop, forward: bool) -> int:
        return hop.link.az_bps if forward else hop.link.za_bps

    def _most(self, hop: Hop, begin: int, end: int) -> int:
        way = 0 if hop.forward else 1
        return max(self._taken(f"link {hop.link.name}", way, moment) for moment in range(begin, end))

    def _tags_fit(self, wanted: Wanted, path: Path, begin: int, end: int) -> bool:
        places: list[tuple[str, range]] = []
        translated: list[bool] = []
        if wanted.ends[0].first_tag is not None:
            places.append(("hub", range(1, 3)))
            translated.append(False)
        may_change = False
        for hop in path:
            if hop.link.tags is not None:
                places.append((f"link {hop.link.name}", range(hop.link.tags.first, hop.link.tags.last + 1)))
                translated.append(may_change)
                may_change = False
            may_change = may_change or next(
                (one.translates for one in self.topology.switches if one.name == hop.to), False
            )
        free = [[tag for tag in tags if self._tag_is_free(key, tag, begin, end)] for key, tags in places]
        return any(
            all(translated[at] or chosen[at] == chosen[at - 1] for at in range(1, len(chosen)))
            for chosen in product(*free)
        )

    def _tag_is_free(self, key: str, tag: int, begin: int, end: int) -> bool:
        return not any(
            claim.resource == key and claim.tag == tag
            for moment in range(begin, end)
            for claim in self._standing(moment)
        )


def desk_of(topology: Topology, kept: Sequence[Booked] = ()) -> tuple[Calendar, Desk]:
    topology.check(PORTS)
    calendar, network = Calendar({name: port.rate_bps for name, port in PORTS.items()}), Network(topology, PORTS)
    network.put_into(calendar)
    for one in kept:
        calendar.put(one.reservation)
    return calendar, Desk(calendar, network)


def booked(desk: Desk, wanted: Wanted, begin: int, end: int) -> Booked | None:
    try:
        return desk.book(wanted, begin, end)
    except (NoRoom, NoPath):
        return None


@st.composite
def days(draw: st.DrawFn) -> tuple[Topology, list[tuple[Wanted, tuple[int, int]]]]:
    topology = draw(topologies())
    return topology, [(draw(wanteds(number)), draw(windows())) for number in range(draw(st.integers(1, 8)))]


@settings(max_examples=150, deadline=None)
@given(days(), st.sampled_from([0, 2, paths.QUICK_PARTIALS]))
def test_the_desk_books_what_a_brute_force_would_book(
    day: tuple[Topology, list[tuple[Wanted, tuple[int, int]]]], quick: int
) -> None:
    """Also if the short first search ends early."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(paths, "QUICK_PARTIALS", quick)
        _book_all(*day)


def _book_all(topology: Topology, asked: list[tuple[Wanted, tuple[int, int]]]) -> None:
    calendar, desk = desk_of(topology)
    brute = BruteForce(topology, [])
    for wanted, (begin, end) in asked:
        best = brute.best(wanted, begin, end)
        found = booked(desk, wanted, begin, end)
        assert (found is None) == (best is None)
        if found is not None:
            assert brute.measure(wanted, found.path, begin, end) == best
            assert brute.fits(wanted, found.path, begin, end)
            calendar.put(found.reservation)
            brute.kept.append(found)


@settings(max_examples=100, deadline=None)
@given(days(), st.integers(1, 5), st.integers(0, DAY), st.data())
def test_an_opening_is_the_first_start_and_the_last_one_that_a_brute_force_finds(
    day: tuple[Topology, list[tuple[Wanted, tuple[int, int]]]], length: int, begin: int, data: st.DataObject
) -> None:
    topology, asked = day
    calendar, desk = desk_of(topology)
    brute = BruteForce(topology, [])
    for one, (first, last) in asked:
        found = booked(desk, one, first, last)
        if found is not None:
            calendar.put(found.reservation)
            brute.kept.append(found)
    wanted = data.draw(wanteds(100))
    starts = [start for start in range(-6, 30) if brute.best(wanted, start, start + length) is not None]
    later = min((start for start in starts if start >= begin), default=None)
    earlier = max((start for start in starts if start <= begin), default=None)
    try:
        forwards = desk.opening(wanted, length, begin, 25)
        backwards = desk.opening(wanted, length, begin, -6)
    except NoPath:
        assert not starts
        return
    assert (forwards.reservation.begin_us if forwards else None) == later
    if begin > -6:
        assert (backwards.reservation.begin_us if backwards else None) == earlier
    nearest = min(starts, key=lambda start: (abs(start - begin), start), default=None)
    chosen = desk.nearest(wanted, begin, begin + length, -6)
    assert (chosen.reservation.begin_us if chosen else None) == nearest
