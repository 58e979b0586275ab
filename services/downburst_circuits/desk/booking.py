"""Reservations along paths: the claims of a path, the path that has room, and the windows in which there is room."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from downburst.domain.circuits import Direction
from downburst.domain.topology.places import host_key, link_key
from downburst_circuits.calendar import Calendar, Claim, NoRoom, Reservation
from downburst_circuits.desk.network import Hop, Network
from downburst_circuits.desk.paths import INFINITE_BPS, Path, Wish, paths


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request: claims that stand whatever the path is, and the path to look for, if any."""

    number: int
    ends: tuple[Claim, ...]
    """Claims on ports; those on their hosts are added."""
    out_bps: int = 0
    """Rate from the path's begin to its end; `in_bps` the other way."""
    in_bps: int = 0
    wish: Wish | None = None
    """None: there is no path to look for."""


@dataclass(frozen=True, slots=True)
class Booked:
    """A reservation with its tags, and the path that it takes."""

    reservation: Reservation
    path: Path = ()

    def tag(self, hop: Hop) -> int | None:
        """The tag on a hop."""
        key = link_key(hop.link.name)
        return next(claim.tag for claim in self.reservation.claims if claim.resource == key)


@dataclass(frozen=True, slots=True)
class Available:
    """The rates that stay free throughout a window, on the path with the most from its begin to its end."""

    out_bps: int
    in_bps: int
    path: Path = ()


class NoPath(Exception):
    """No path leads from one port to the other, whatever is reserved."""


class Desk:
    """Questions to a calendar over a network; nothing here changes either."""

    def __init__(self, calendar: Calendar, network: Network) -> None:
        self._calendar = calendar
        self._network = network

    def book(self, wanted: Wanted, begin_us: int, end_us: int) -> Booked:
        """The reservation as it would be admitted; raises `NoRoom`, or `NoPath` if there is none at any time."""
        whole = Reservation(wanted.number, begin_us, end_us, with_hosts(wanted.ends, self._network))
        if wanted.wish is None:
            return Booked(self._calendar.fit(whole))

        def has_room(hop: Hop) -> int | None:
            free_bps = self.free(hop, begin_us, end_us)
            return free_bps[0] if free_bps[0] >= wanted.out_bps and free_bps[1] >= wanted.in_bps else None

        refused: NoRoom | None = None
        for path in islice(paths(self._network, wanted.wish, has_room), PATHS_TRIED):
            try:
                return self._along(path, wanted, whole)
            except NoRoom as error:
                refused = refused or error
        raise refused or self._refusal(wanted, whole)

    def free(self, hop: Hop, begin_us: int, end_us: int) -> tuple[int, int]:
        """The free rate of a hop along the path, and against it."""
        there, back = (
            self._calendar.free_bps(link_key(hop.link.name), direction, begin_us, end_us)
            for direction in (Direction.OUT, Direction.IN)
        )
        return (there, back) if hop.forward else (back, there)

    def fit(self, wanted: Reservation) -> Reservation:
        """The reservation with its tags as it would be admitted; raises `NoRoom`."""
        return self._calendar.fit(wanted)

    def available(self, a: str, z: str, wish: Wish | None, begin_us: int, end_us: int) -> Available:
        """The most that a reservation between two ports could get throughout a window; raises `NoPath`.

        Without a path to look for, the ports and their hosts alone count.
        """
        path: Path | None = ()
        if wish is not None:
            self._check_way(wish)
            path = next(paths(self._network, wish, lambda hop: self.free(hop, begin_us, end_us)[0] or None), None)
        if path is None:
            return Available(0, 0)
        hops = [self.free(hop, begin_us, end_us) for hop in path]
        ends = [self._free_at_end(port, begin_us, end_us) for port in (a, z)]
        # The far end receives what the near end sends.
        widths = [*hops, ends[0], (ends[1][1], ends[1][0])]
        return Available(min(out for out, _ in widths), min(back for _, back in widths), path)

    def opening(self, wanted: Wanted, duration_us: int, first_us: int, last_us: int) -> Booked | None:
        """The earliest reservation that begins at or after `first_us` and at or before `last_us`; None: none does.

        With `last_us` before `first_us`, the latest one between them.
        """
        if wanted.wish is not None:
            self._check_way(wanted.wish)
        starts = _Starts(self._calendar, wanted, with_hosts(wanted.ends, self._network), duration_us)
        step = 1 if last_us >= first_us else -1
        begin_us, low_us, high_us = first_us, min(first_us, last_us), max(first_us, last_us)
        for _ in range(MOST_STARTS):
            blocked = starts.ends_blocked(begin_us)
            if not blocked:
                found, blocked = self._at(wanted, starts, begin_us)
                if found is not None:
                    return found
            later = [edge for pair in blocked for edge in pair if (edge - begin_us) * step > 0]
            if not later:
                return None
            begin_us = min(later) if step > 0 else max(later)
            if not low_us <= begin_us <= high_us:
                return None
        return None

    def nearest(self, wanted: Wanted, begin_us: int, end_us: int, now_us: int) -> Booked | None:
        """The reservation of the same length that begins nearest to a window's begin, and not before `now_us`."""
        length_us = end_us - begin_us
        later = self.opening(wanted, length_us, begin_us, begin_us + HORIZON_US)
        earliest_us = begin_us - (later.reservation.begin_us - begin_us if later else HORIZON_US)
        earlier = self.opening(wanted, length_us, begin_us, max(now_us, earliest_us)) if begin_us > now_us else None
        return earlier or later

    def _at(self, wanted: Wanted, starts: "_Starts", begin_us: int) -> tuple[Booked | None, "list[_Span]"]:
        """The reservation from a moment on, or the spans of starts that are blocked."""
        end_us = begin_us + starts.duration_us
        whole = Reservation(wanted.number, begin_us, end_us, starts.ends)
        blocked: list[_Span] = []
        lacks_tags = False

        def has_room(hop: Hop) -> int | None:
            span = starts.blocked(_claim(hop, wanted), begin_us)
            if span is not None:
                blocked.append(span)
                return None
            return self.free(hop, begin_us, end_us)[0]

        ways: Iterable[Path] = [()]
        if wanted.wish is not None:
            ways = islice(paths(self._network, wanted.wish, has_room), PATHS_TRIED)
        for path in ways:
            try:
                return self._along(path, wanted, whole), []
            except NoRoom:
                lacks_tags = True
        return None, blocked + (starts.tags_given_back(begin_us) if lacks_tags else [])

    def _along(self, path: Path, wanted: Wanted, whole: Reservation) -> Booked:
        claims = (*segmented(whole.claims, path, self._network, wanted),)
        return Booked(self._calendar.fit(replace(whole, claims=claims)), path)

    def _free_at_end(self, port: str, begin_us: int, end_us: int) -> tuple[int, int]:
        """The rate that a port and its host can send and receive."""
        host = self._network.host_of(port)
        names = [port] if host is None else [port, host_key(host)]
        out, back = (
            min(self._calendar.free_bps(name, direction, begin_us, end_us) for name in names)
            for direction in (Direction.OUT, Direction.IN)
        )
        return out, back

    def _refusal(self, wanted: Wanted, whole: Reservation) -> Exception:
        """The clash of the best path of all, with the holders that are in the way there."""
        self._calendar.fit(whole)
        wish = wanted.wish
        for path in islice(paths(self._network, wish, lambda _: INFINITE_BPS), PATHS_TRIED) if wish else ():
            try:
                self._along(path, wanted, whole)
            except NoRoom as error:
                return error
        return NoPath()

    def _check_way(self, wish: Wish) -> None:
        if next(paths(self._network, wish, lambda _: INFINITE_BPS), None) is None:
            raise NoPath


_Span = tuple[int, int]
"""The starts nearest to a blocked one that may do: the one before and the one after."""


class _Starts:
    """The starts at which a claim has no room for a duration, computed once per claim."""

    def __init__(self, calendar: Calendar, wanted: Wanted, ends: tuple[Claim, ...], duration_us: int) -> None:
        self._calendar = calendar
        self._wanted = wanted
        self.ends = ends
        self.duration_us = duration_us
        self._blocked: dict[Claim, list[_Span]] = {}
        self._before: list[int] | None = None
        self._after: list[int] = []

    def blocked(self, claim: Claim, begin_us: int) -> _Span | None:
        """The open interval of starts around a blocked one; None: the claim has room from that start on."""
        spans = self._blocked.get(claim)
        if spans is None:
            spans = self._blocked[claim] = self._spans(claim)
        at = bisect_right(spans, (begin_us, -INFINITE_BPS)) - 1
        return spans[at] if at >= 0 and spans[at][0] < begin_us < spans[at][1] else None

    def ends_blocked(self, begin_us: int) -> list[_Span]:
        """The spans around a start at which a port or host has no room."""
        return [span for claim in self.ends if (span := self.blocked(claim, begin_us)) is not None]

    def tags_given_back(self, begin_us: int) -> list[_Span]:
        """The nearest starts before and after one at which another tag may be free."""
        if self._before is None:
            windows = self._calendar.tag_windows()
            self._before = sorted({before_us - self.duration_us for before_us, _ in windows})
            self._after = sorted({after_us for _, after_us in windows})
        earlier, later = bisect_left(self._before, begin_us), bisect_right(self._after, begin_us)
        nearest = [*self._before[max(earlier - 1, 0) : earlier], *self._after[later : later + 1]]
        return [(start_us, start_us) for start_us in nearest]

    def _spans(self, claim: Claim) -> list[_Span]:
        """Starts that are blocked: later than a busy part's begin less the duration, and before its end."""
        merged: list[_Span] = []
        for begin_us, end_us in self._calendar.busy(claim, -INFINITE_BPS, INFINITE_BPS):
            first_us = begin_us - self.duration_us
            if merged and first_us < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end_us))
            else:
                merged.append((first_us, end_us))
        return merged


def with_hosts(ends: Iterable[Claim], network: Network) -> tuple[Claim, ...]:
    """The claims on ports, and those on their hosts; of a host with several of the ports their sum."""
    claims = list(ends)
    hosts: dict[str, tuple[int, int]] = {}
    for claim in claims:
        host = network.host_of(claim.resource)
        if host is not None:
            out_bps, in_bps = hosts.get(host_key(host), (0, 0))
            hosts[host_key(host)] = out_bps + claim.out_bps, in_bps + claim.in_bps
    return (*claims, *(Claim(key, out_bps, in_bps) for key, (out_bps, in_bps) in hosts.items()))


def segmented(ends: Iterable[Claim], path: Path, network: Network, wanted: Wanted) -> Iterator[Claim]:
    """All claims of a reservation; those between two switches that translate need one tag."""
    segment, last = 0, len(path) - 1
    of_ends = {wanted.wish.a: 0} if wanted.wish else {}
    for number, hop in enumerate(path):
        yield replace(_claim(hop, wanted), segment=segment)
        segment += number < last and network.translates(hop.to)
    of_ends |= {wanted.wish.z: segment} if wanted.wish else {}
    for claim in ends:
        yield replace(claim, segment=of_ends.get(claim.resource, claim.segment))


def _claim(hop: Hop, wanted: Wanted) -> Claim:
    rates = (wanted.out_bps, wanted.in_bps) if hop.forward else (wanted.in_bps, wanted.out_bps)
    tags = hop.link.tags
    return Claim(link_key(hop.link.name), *rates, tags.first if tags else None, tags.last if tags else None)


PATHS_TRIED = 64
MOST_STARTS = 20_000
HORIZON_US = 366 * 24 * 3_600_000_000
