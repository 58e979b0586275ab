"""The bandwidth calendar: reserved rates and tags of each resource over time.

A resource is a port (by its name alone), a link or a host (`link west-1`, `host unl`). Per resource and direction
the sum of reserved rates is kept as steps over time, so that a query costs one scan of the steps inside its window.
Windows are half-open: one that ends where another begins doesn't overlap it. Instants are whole microseconds and
rates whole bits per second, so that sums are exact.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from downburst.domain.circuits import Direction


@dataclass(frozen=True, slots=True)
class Claim:
    """A reservation's use of one resource."""

    resource: str
    out_bps: int
    """The rate that the port's own host sends at; on a link, the rate from its end `a` to its end `z`."""
    in_bps: int
    first_tag: int | None = None
    """The acceptable tags, from here to `last_tag`; None: the traffic is untagged."""
    last_tag: int | None = None
    tag: int | None = None
    """The required or assigned tag."""
    segment: int | None = None
    """Claims of one segment need the same tag, as nothing between them translates; None: it stands alone."""

    def rate_bps(self, direction: Direction) -> int:
        """Its rate in a direction."""
        return self.out_bps if direction is Direction.OUT else self.in_bps


@dataclass(frozen=True, slots=True)
class Reservation:
    """Claims on some resources for one window: all of them or none."""

    number: int
    begin_us: int
    end_us: int
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Closure:
    """A window in which a resource takes no reservation, as for maintenance."""

    name: str
    begin_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class Clash:
    """The reason for a refusal: the first resource and moment at which the reservation would not fit."""

    resource: str
    with_numbers: tuple[int, ...]
    """The conflicting reservations, by number."""
    direction: Direction | None = None
    """None: tags are exhausted, not bits per second."""
    rate_bps: int = 0
    """The rate of the resource in that direction."""
    free_bps: int = 0
    """The remaining rate at the fullest moment of the window."""
    begin_us: int = 0
    """The fullest moment."""
    end_us: int = 0
    tag: int | None = None
    """The taken tag; None with no direction: all are taken."""
    closure: str | None = None
    """The maintenance that closes the resource from `begin_us` to `end_us`; None: it is open."""


class NoRoom(Exception):
    """A reservation doesn't fit."""

    def __init__(self, clash: Clash) -> None:
        super().__init__(clash)
        self.clash = clash


class Calendar:
    """All reservations of all resources."""

    def __init__(self, capacities_bps: Mapping[str, int]) -> None:
        self._resources = {name: _Resource.both_ways(rate_bps) for name, rate_bps in capacities_bps.items()}
        self._kept: dict[int, Reservation] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, number: int) -> bool:
        return number in self._kept

    def capacity(self, resource: str, rate_bps: int, in_bps: int | None = None) -> None:
        """Adds a resource, or changes its capacity; reservations stay. `in_bps` if the directions differ."""
        rates_bps = _Resource.both_ways(rate_bps, in_bps).rates_bps
        self._resources.setdefault(resource, _Resource(rates_bps)).rates_bps = rates_bps

    def forget(self, resource: str) -> None:
        """Drops a resource that no reservation uses."""
        self._resources.pop(resource, None)

    def close(self, resource: str, closures: Iterable[Closure]) -> None:
        """Sets the windows in which a resource takes no new reservation; those that it has stay."""
        self._resources[resource].closures = sorted(closures, key=lambda one: (one.begin_us, one.name))

    def users(self, resource: str) -> list[int]:
        """The reservations on a resource."""
        return sorted(self._resources[resource].reservations) if resource in self._resources else []

    def most_bps(self, resource: str, direction: Direction | None = None) -> int:
        """The most that is reserved on a resource at any moment, in one direction or in either."""
        levels = self._resources[resource].levels
        chosen = levels.values() if direction is None else [levels[direction]]
        return max(level.peak(BEGINNING_US, FOREVER_US) for level in chosen)

    def resources(self) -> list[str]:
        """The keys of all resources."""
        return list(self._resources)

    def reservations(self) -> list[Reservation]:
        """All reservations."""
        return list(self._kept.values())

    def rate_bps(self, resource: str, direction: Direction) -> int:
        """The rate of a resource in a direction."""
        return self._resources[resource].rates_bps[direction]

    def free_bps(self, resource: str, direction: Direction, begin_us: int, end_us: int) -> int:
        """The rate that stays free throughout a window; 0 if the resource is closed in it."""
        found = self._resources[resource]
        if found.closed(begin_us, end_us) is not None:
            return 0
        return max(found.rates_bps[direction] - found.levels[direction].peak(begin_us, end_us), 0)

    def busy(self, claim: Claim, begin_us: int, end_us: int) -> list[tuple[int, int]]:
        """The parts of a window in which the claim's rates don't fit or its resource is closed, by begin."""
        found = self._resources[claim.resource]
        parts = [
            part
            for direction in Direction
            if claim.rate_bps(direction)
            for part in found.levels[direction].above(
                found.rates_bps[direction] - claim.rate_bps(direction), begin_us, end_us
            )
        ]
        closed = [(one.begin_us, one.end_us) for one in found.closures]
        return sorted(parts + [part for part in closed if part[0] < end_us and begin_us < part[1]])

    def tag_windows(self) -> set[tuple[int, int]]:
        """The windows in which any tag is held."""
        held = (windows for resource in self._resources.values() for windows in resource.tags.values())
        return {(begin_us, end_us) for windows in held for begin_us, end_us, _ in windows}

    def fit(self, wanted: Reservation) -> Reservation:
        """The reservation with its tags as it would be admitted, without any change; raises `NoRoom`."""
        for claim in wanted.claims:
            clash = self._resources[claim.resource].clash(wanted, claim)
            if clash is not None:
                raise NoRoom(clash)
        return replace(wanted, claims=self._tagged(wanted))

    def admit(self, wanted: Reservation) -> Reservation:
        """Stores the reservation, with its tags; raises `NoRoom` and changes nothing if it doesn't fit."""
        fitting = self.fit(wanted)
        self.put(fitting)
        return fitting

    def put(self, reservation: Reservation) -> None:
        """Stores a reservation that was admitted before, without a check."""
        self._kept[reservation.number] = reservation
        for claim in reservation.claims:
            if claim.resource in self._resources:
                self._resources[claim.resource].put(reservation, claim)

    def remove(self, number: int) -> Reservation | None:
        """Releases a reservation."""
        gone = self._kept.pop(number, None)
        for claim in gone.claims if gone else ():
            if gone is not None and claim.resource in self._resources:
                self._resources[claim.resource].take_away(gone, claim)
        return gone

    def exchange(self, wanted: Reservation) -> Reservation:
        """Replaces the reservation with the same number; if the new one doesn't fit, the old one stays."""
        before = self.remove(wanted.number)
        try:
            return self.admit(wanted)
        except NoRoom:
            if before is not None:
                self.put(before)
            raise

    def fit_instead(self, wanted: Reservation) -> Reservation:
        """As `exchange`, without any change in either case."""
        before = self.remove(wanted.number)
        try:
            return self.fit(wanted)
        finally:
            if before is not None:
                self.put(before)

    def _tagged(self, wanted: Reservation) -> tuple[Claim, ...]:
        """One tag for all if possible, so that no switch has to translate; else the lowest of each segment."""
        tagged = [claim for claim in wanted.claims if claim.tag is not None or claim.first_tag is not None]
        if all(claim.tag is not None for claim in tagged):
            return wanted.claims
        common = self._common_tag(wanted, tagged)
        if common is not None:
            chosen = dict.fromkeys(map(_segment, tagged), common)
        else:
            chosen = {name: self._lowest_tag(wanted, claims) for name, claims in _segments(tagged).items()}
        return tuple(
            replace(claim, tag=chosen[_segment(claim)]) if claim in tagged else claim for claim in wanted.claims
        )

    def _common_tag(self, wanted: Reservation, claims: Sequence[Claim]) -> int | None:
        """The lowest tag that is acceptable and free at all of the claims; required ones are known to be free."""
        names = [claim.resource for claim in claims if claim.tag is None]
        free = (tag for tag in _acceptable(claims) if not any(self._held(name, tag, wanted) for name in names))
        return next(free, None)

    def _lowest_tag(self, wanted: Reservation, claims: Sequence[Claim]) -> int:
        found = self._common_tag(wanted, claims)
        if found is None:
            names = [claim.resource for claim in claims]
            holders = {self._resources[name].holder(tag, wanted) for name in names for tag in _acceptable(claims)}
            raise NoRoom(Clash(names[0], tuple(sorted(holder for holder in holders if holder is not None))))
        return found

    def _held(self, resource: str, tag: int, wanted: Reservation) -> bool:
        return self._resources[resource].holder(tag, wanted) is not None


def _segment(claim: Claim) -> object:
    return claim.resource if claim.segment is None else claim.segment


def _segments(claims: Iterable[Claim]) -> dict[object, list[Claim]]:
    found: dict[object, list[Claim]] = {}
    for claim in claims:
        found.setdefault(_segment(claim), []).append(claim)
    return found


def _acceptable(claims: Iterable[Claim]) -> range:
    """The tags that all of the claims accept; a claim with a required tag accepts no other."""
    ranges = [
        (claim.first_tag or 0, claim.last_tag or 0) if claim.tag is None else (claim.tag,) * 2 for claim in claims
    ]
    return range(max(first for first, _ in ranges), min(last for _, last in ranges) + 1)


@dataclass(slots=True)
class _Resource:
    rates_bps: Mapping[Direction, int]
    levels: dict[Direction, "_Levels"] = field(default_factory=lambda: {each: _Levels() for each in Direction})
    tags: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """By tag the windows that hold it, in order; they never overlap."""
    reservations: dict[int, tuple[Reservation, Claim]] = field(default_factory=dict)
    closures: list[Closure] = field(default_factory=list)

    @classmethod
    def both_ways(cls, out_bps: int, in_bps: int | None = None) -> "_Resource":
        return cls({Direction.OUT: out_bps, Direction.IN: out_bps if in_bps is None else in_bps})

    def clash(self, wanted: Reservation, claim: Claim) -> Clash | None:
        closed = self.closed(wanted.begin_us, wanted.end_us)
        if closed is not None:
            window = max(closed.begin_us, wanted.begin_us), min(closed.end_us, wanted.end_us)
            return Clash(claim.resource, (), begin_us=window[0], end_us=window[1], closure=closed.name)
        for direction in Direction:
            peak_bps = self.levels[direction].peak(wanted.begin_us, wanted.end_us)
            rate_bps = claim.rate_bps(direction)
            if rate_bps and peak_bps + rate_bps > self.rates_bps[direction]:
                return self._full(wanted, claim, direction, peak_bps)
        if claim.tag is not None:
            holder = self.holder(claim.tag, wanted)
            if holder is not None:
                return Clash(claim.resource, (holder,), tag=claim.tag)
        return None

    def closed(self, begin_us: int, end_us: int) -> Closure | None:
        """The first closure that reaches into a window."""
        reaching = (one for one in self.closures if one.begin_us < end_us and begin_us < one.end_us)
        return next(reaching, None)

    def holder(self, tag: int, wanted: Reservation) -> int | None:
        """The holder of the tag at some moment of the window."""
        held = self.tags.get(tag, [])
        before_end = bisect_left(held, (wanted.end_us,))
        # Windows of one tag don't overlap, so only the last one before the end can reach into it.
        return held[before_end - 1][2] if before_end and held[before_end - 1][1] > wanted.begin_us else None

    def put(self, reservation: Reservation, claim: Claim) -> None:
        self._shift(reservation, claim, 1)
        self.reservations[reservation.number] = (reservation, claim)
        if claim.tag is not None:
            window = (reservation.begin_us, reservation.end_us, reservation.number)
            insort(self.tags.setdefault(claim.tag, []), window)

    def take_away(self, reservation: Reservation, claim: Claim) -> None:
        self._shift(reservation, claim, -1)
        del self.reservations[reservation.number]
        if claim.tag is not None:
            held = self.tags[claim.tag]
            held.remove((reservation.begin_us, reservation.end_us, reservation.number))
            if not held:
                del self.tags[claim.tag]

    def _shift(self, reservation: Reservation, claim: Claim, sign: int) -> None:
        for direction in Direction:
            self.levels[direction].add(reservation.begin_us, reservation.end_us, sign * claim.rate_bps(direction))

    def _full(self, wanted: Reservation, claim: Claim, direction: Direction, peak_bps: int) -> Clash:
        begin_us, end_us = self.levels[direction].first_at_least(peak_bps, wanted.begin_us, wanted.end_us)
        there = [
            number
            for number, (kept, taken) in self.reservations.items()
            if kept.begin_us < end_us and begin_us < kept.end_us and taken.rate_bps(direction)
        ]
        rate_bps = self.rates_bps[direction]
        free_bps = max(rate_bps - peak_bps, 0)
        return Clash(claim.resource, tuple(sorted(there)), direction, rate_bps, free_bps, begin_us, end_us)


class _Levels:
    """A sum over time in steps: level i holds from moment i to the next one. Equal neighbours are one step."""

    def __init__(self) -> None:
        self._moments = [BEGINNING_US]
        self._levels = [0]

    def add(self, begin_us: int, end_us: int, rate_bps: int) -> None:
        if rate_bps == 0:
            return
        first, last = self._cut(begin_us), self._cut(end_us)
        self._levels[first:last] = [level + rate_bps for level in self._levels[first:last]]
        self._join(last)
        self._join(first)

    def peak(self, begin_us: int, end_us: int) -> int:
        first, last = self._inside(begin_us, end_us)
        return max(self._levels[first:last])

    def first_at_least(self, level: int, begin_us: int, end_us: int) -> tuple[int, int]:
        """The first interval of a window in which the sum is that high, cut to the window."""
        first, last = self._inside(begin_us, end_us)
        found = next(index for index in range(first, last) if self._levels[index] >= level)
        following = self._moments[found + 1] if found + 1 < len(self._moments) else end_us
        return max(self._moments[found], begin_us), min(following, end_us)

    def above(self, level: int, begin_us: int, end_us: int) -> list[tuple[int, int]]:
        """The steps of a window in which the sum is higher than a level, cut to the window."""
        first, last = self._inside(begin_us, end_us)
        edges = [begin_us, *self._moments[first + 1 : last], end_us]
        return [(edges[at], edges[at + 1]) for at, sum_bps in enumerate(self._levels[first:last]) if sum_bps > level]

    def _inside(self, begin_us: int, end_us: int) -> tuple[int, int]:
        return bisect_right(self._moments, begin_us) - 1, bisect_left(self._moments, end_us)

    def _cut(self, moment_us: int) -> int:
        """The index of the step that begins at a moment; inserts one if necessary."""
        index = bisect_left(self._moments, moment_us)
        if index == len(self._moments) or self._moments[index] != moment_us:
            self._moments.insert(index, moment_us)
            self._levels.insert(index, self._levels[index - 1])
        return index

    def _join(self, index: int) -> None:
        if index and self._levels[index] == self._levels[index - 1]:
            del self._moments[index], self._levels[index]


BEGINNING_US = -(2**62)
FOREVER_US = 2**62
"""The end of a window without a set end."""
