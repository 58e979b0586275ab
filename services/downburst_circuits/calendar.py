"""The bandwidth calendar: reserved rates and tags of each port over time.

Per port and direction the sum of reserved rates is kept as steps over time, so that a query costs one scan of the
steps inside its window. Windows are half-open: one that ends where another begins doesn't overlap it. Instants are
whole microseconds and rates whole bits per second, so that sums are exact.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from downburst.domain.circuits import Direction


@dataclass(frozen=True, slots=True)
class Claim:
    """A reservation's use of one port."""

    port: str
    out_bps: int
    """The rate that the port's own host sends at."""
    in_bps: int
    first_vlan: int | None = None
    """The acceptable tags, from here to `last_vlan`; None: the traffic is untagged."""
    last_vlan: int | None = None
    vlan: int | None = None
    """The required or assigned tag."""

    def rate_bps(self, direction: Direction) -> int:
        """Its rate in a direction."""
        return self.out_bps if direction is Direction.OUT else self.in_bps


@dataclass(frozen=True, slots=True)
class Reservation:
    """Claims on some ports for one window."""

    number: int
    begin_us: int
    end_us: int
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Clash:
    """The reason for a refusal: the first port and moment at which the reservation would not fit."""

    port: str
    with_numbers: tuple[int, ...]
    """The conflicting reservations, by number."""
    direction: Direction | None = None
    """None: tags are exhausted, not bits per second."""
    free_bps: int = 0
    """The remaining rate at the fullest moment of the window."""
    begin_us: int = 0
    """The fullest moment."""
    end_us: int = 0
    vlan: int | None = None
    """The taken tag; None with no direction: all are taken."""


class NoRoom(Exception):
    """A reservation doesn't fit."""

    def __init__(self, clash: Clash) -> None:
        super().__init__(clash)
        self.clash = clash


class Calendar:
    """All reservations of all ports."""

    def __init__(self, capacities_bps: Mapping[str, int]) -> None:
        self._ports = {name: _PortCalendar(rate_bps) for name, rate_bps in capacities_bps.items()}
        self._kept: dict[int, Reservation] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, number: int) -> bool:
        return number in self._kept

    def capacity(self, port: str, rate_bps: int) -> None:
        """Adds a port, or changes its capacity; reservations stay."""
        self._ports.setdefault(port, _PortCalendar(rate_bps)).rate_bps = rate_bps

    def forget_port(self, port: str) -> None:
        """Drops a port that no reservation uses."""
        self._ports.pop(port, None)

    def users(self, port: str) -> list[int]:
        """The reservations on a port."""
        return sorted(self._ports[port].reservations) if port in self._ports else []

    def most_bps(self, port: str) -> int:
        """The most that is reserved on a port at any moment, in either direction."""
        levels = self._ports[port].levels.values()
        return max(level.peak(BEGINNING_US, FOREVER_US) for level in levels)

    def fit(self, wanted: Reservation) -> Reservation:
        """The reservation with its tags as it would be admitted, without any change; raises `NoRoom`."""
        for claim in wanted.claims:
            clash = self._ports[claim.port].clash(wanted, claim)
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
            if claim.port in self._ports:
                self._ports[claim.port].put(reservation, claim)

    def remove(self, number: int) -> Reservation | None:
        """Releases a reservation."""
        gone = self._kept.pop(number, None)
        for claim in gone.claims if gone else ():
            if gone is not None and claim.port in self._ports:
                self._ports[claim.port].take_away(gone, claim)
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
        """One tag for all ends if possible, so that no switch has to translate; else the lowest of each."""
        open_claims = [claim for claim in wanted.claims if claim.vlan is None and claim.first_vlan is not None]
        if not open_claims:
            return wanted.claims
        common = self._common_tag(wanted, open_claims)
        return tuple(
            replace(claim, vlan=common or self._lowest_tag(wanted, claim)) if claim in open_claims else claim
            for claim in wanted.claims
        )

    def _common_tag(self, wanted: Reservation, claims: Iterable[Claim]) -> int | None:
        ranges = [(claim.first_vlan or 0, claim.last_vlan or 0) for claim in claims]
        names = [claim.port for claim in claims]
        for vlan in range(max(first for first, _ in ranges), min(last for _, last in ranges) + 1):
            if all(self._ports[name].holder(vlan, wanted) is None for name in names):
                return vlan
        return None

    def _lowest_tag(self, wanted: Reservation, claim: Claim) -> int:
        port = self._ports[claim.port]
        tags = range(claim.first_vlan or 0, (claim.last_vlan or 0) + 1)
        found = next((vlan for vlan in tags if port.holder(vlan, wanted) is None), None)
        if found is None:
            holders = {port.holder(vlan, wanted) for vlan in tags}
            raise NoRoom(Clash(claim.port, tuple(sorted(holder for holder in holders if holder is not None))))
        return found


@dataclass(slots=True)
class _PortCalendar:
    rate_bps: int
    levels: dict[Direction, "_Levels"] = field(default_factory=lambda: {each: _Levels() for each in Direction})
    tags: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """By tag the windows that hold it, in order; they never overlap."""
    reservations: dict[int, tuple[Reservation, Claim]] = field(default_factory=dict)

    def clash(self, wanted: Reservation, claim: Claim) -> Clash | None:
        for direction in Direction:
            peak_bps = self.levels[direction].peak(wanted.begin_us, wanted.end_us)
            if claim.rate_bps(direction) and peak_bps + claim.rate_bps(direction) > self.rate_bps:
                return self._full(wanted, claim, direction, peak_bps)
        if claim.vlan is not None:
            holder = self.holder(claim.vlan, wanted)
            if holder is not None:
                return Clash(claim.port, (holder,), vlan=claim.vlan)
        return None

    def holder(self, vlan: int, wanted: Reservation) -> int | None:
        """The holder of the tag at some moment of the window."""
        held = self.tags.get(vlan, [])
        before_end = bisect_left(held, (wanted.end_us,))
        # Windows of one tag don't overlap, so only the last one before the end can reach into it.
        return held[before_end - 1][2] if before_end and held[before_end - 1][1] > wanted.begin_us else None

    def put(self, reservation: Reservation, claim: Claim) -> None:
        self._shift(reservation, claim, 1)
        self.reservations[reservation.number] = (reservation, claim)
        if claim.vlan is not None:
            window = (reservation.begin_us, reservation.end_us, reservation.number)
            insort(self.tags.setdefault(claim.vlan, []), window)

    def take_away(self, reservation: Reservation, claim: Claim) -> None:
        self._shift(reservation, claim, -1)
        del self.reservations[reservation.number]
        if claim.vlan is not None:
            held = self.tags[claim.vlan]
            held.remove((reservation.begin_us, reservation.end_us, reservation.number))
            if not held:
                del self.tags[claim.vlan]

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
        free_bps = max(self.rate_bps - peak_bps, 0)
        return Clash(claim.port, tuple(sorted(there)), direction, free_bps, begin_us, end_us)


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
