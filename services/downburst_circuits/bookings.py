"""The booking desk of tests: whatever measures with load asks here for its rate and seconds first.

A booking is in the calendar like a reservation, so neither a circuit nor another test gets its rate meanwhile. Tests
take seconds and are asked for again, so they are kept in memory alone.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar

from downburst.domain.circuits import STANDING, Circuit, CircuitRequest
from downburst.domain.probes.checks import MOST_BPS, MOST_SOAK_S
from downburst.domain.topology.bookings import BookedTest, BookingAnswer, KindOfTest, WantedTest
from downburst.foundation.clock import Clock, from_us, to_us
from downburst.foundation.errors import (
    AlreadyThere,
    BadInput,
    CircuitConflict,
    DownburstError,
    LimitReached,
    NotFound,
)
from downburst.foundation.rates import rate_text
from downburst_circuits.calendar import NoRoom
from downburst_circuits.desk.booking import Booked, NoPath, Wanted
from downburst_circuits.desk.circuits import hops_of, wanted_of
from downburst_circuits.questions import no_path
from downburst_circuits.register import Register
from downburst_circuits.requests import check_rates, conflict, moment_text, resolved

T = TypeVar("T")


class BookingDesk:
    """Bookings of one hub's tests."""

    def __init__(self, register: Register, clock: Clock) -> None:
        self._register = register
        self._clock = clock
        self._kinds = {BY_HAND.name: BY_HAND, PROBE.name: PROBE}
        self._numbers = count(1)
        self._running = register.holders.tests
        self._past: deque[BookedTest] = deque(maxlen=MOST_SHOWN)

    def add_kind(self, kind: KindOfTest) -> None:
        """Registers a kind of test; its program does so at its start, and again after a restart."""
        known = self._kinds.setdefault(kind.name, kind)
        if known != kind:
            raise AlreadyThere(f"there is another kind of test called {kind.name}; choose a different name")

    async def book(self, wanted: WantedTest) -> BookingAnswer:
        """Grants a test its rate for its seconds from now on, or says when to ask again; a refusal is raised."""
        self._check(wanted)
        self._sweep()
        if len(self._running) >= MOST_RUNNING:
            raise LimitReached(f"{MOST_RUNNING} tests are booked, the most at a time; wait until some are over")
        if wanted.circuit is not None:
            return self._within(wanted, wanted.circuit)
        return self._beside(wanted, await self._ends(wanted))

    async def release(self, number: int) -> None:
        """Ends a booking before its time, as the test is over."""
        if number not in self._running:
            raise NotFound(f"there is no running test {number}; it may be over already")
        booking = self._running[number]
        now = self._clock.now()
        self._over(replace(booking, end=min(booking.end, max(now, booking.begin))))

    async def booked(self) -> list[BookedTest]:
        """The running tests and the last of those that are over, newest first."""
        self._sweep()
        return sorted((*self._running.values(), *self._past), key=lambda one: one.number, reverse=True)

    @contextmanager
    def train(self, wanted: WantedTest, circuit: Circuit) -> Iterator[None]:
        """Books a circuit's own measurement inside it while the block runs; that waits for no other test."""
        self._check(wanted)
        self._sweep()
        booking = self._granted(_inside(wanted, circuit), self._clock.now())
        try:
            yield
        finally:
            if booking.number in self._running:
                self._over(replace(booking, end=self._clock.now()))

    def cleared(self, place: Callable[[], T], *, for_good: bool) -> T:
        """The result of `place`; tests that give way to circuits end for good if it lacks their rate.

        The refusal that names them is raised where their rate does not suffice, and they run on.
        """
        try:
            return place()
        except CircuitConflict as refused:
            with self.stepping_aside(refused, for_good=for_good):
                return place()

    @contextmanager
    def stepping_aside(self, refusal: DownburstError, *, for_good: bool) -> Iterator[None]:
        """Frees the rate of tests that a refusal of a circuit names, if their kind gives way to circuits.

        They have ended afterwards, or run on if that is not meant for good, or if the block fails nevertheless.
        """
        listed = refusal.extra.get("tests")
        named = [one["test"] for one in listed] if isinstance(listed, list) else []
        running = [self._running[number] for number in named if number in self._running]
        aside = [one for one in running if self._kinds[one.wanted.kind].yields]
        places = [self._register.calendar.remove(-one.number) for one in aside]
        over = False
        try:
            yield
            over = for_good
        finally:
            for booking, place in zip(aside, places, strict=True):
                if over:
                    self._over(replace(booking, end=max(self._clock.now(), booking.begin)))
                elif place is not None:
                    self._register.calendar.put(place)

    def _check(self, wanted: WantedTest) -> None:
        kind = self._kinds.get(wanted.kind)
        if kind is None:
            known = ", ".join(sorted(self._kinds)) or "none"
            raise NotFound(f"there is no kind of test {wanted.kind!r}; known are: {known}")
        if not (math.isfinite(wanted.seconds) and 0 < wanted.seconds <= kind.most_s):
            raise BadInput(f"a test of kind {kind.name} takes {kind.most_s:g} s at most; give less")
        rates_bps = wanted.rate_out_bps, wanted.rate_in_bps
        if min(rates_bps) < 0 or not 0 < max(rates_bps) <= kind.most_bps:
            raise BadInput(f"a test of kind {kind.name} sends at most {rate_text(kind.most_bps)}; give less")

    def _within(self, wanted: WantedTest, number: int) -> BookingAnswer:
        """Uses a circuit's own reservation, in which one test runs at a time."""
        circuit = self._register.open.get(number)
        if circuit is None or circuit.state not in STANDING:
            raise BadInput(f"circuit {number} is not up, so no test can run inside it; ask for one beside circuits")
        if wanted.rate_out_bps > circuit.rate_out_bps or wanted.rate_in_bps > circuit.rate_in_bps:
            raise BadInput(f"circuit {number} has less than the rate of this test; ask for less")
        other = next((one for one in self._running.values() if one.wanted.circuit == number), None)
        if other is not None:
            return _waits(other.end, f"a test of kind {other.wanted.kind} runs inside circuit {number}")
        return _grant(self._granted(_inside(wanted, circuit), self._clock.now()))

    async def _ends(self, wanted: WantedTest) -> Circuit:
        """The test in the form of a circuit without a number."""
        begin = self._clock.now()
        ends = resolved((wanted.near, wanted.far), await self._register.known())
        request, end = CircuitRequest(f"test {wanted.kind}"), begin + timedelta(seconds=wanted.seconds)
        circuit = Circuit(0, request, ends, wanted.rate_out_bps, wanted.rate_in_bps, begin, end)
        # A test may send in one direction alone.
        check_rates(replace(circuit, rate_out_bps=wanted.rate_out_bps or wanted.rate_in_bps), self._register.ports)
        return circuit

    def _beside(self, wanted: WantedTest, circuit: Circuit) -> BookingAnswer:
        """Takes free rate of ports, hosts and links."""
        register = self._register
        asked = wanted_of(circuit, register.ports, register.network)
        asked = replace(asked, number=-(FIRST_NUMBER + next(self._numbers)))
        begin_us = to_us(circuit.begin)
        length_us = round(wanted.seconds * 1e6)
        try:
            booked = register.desk.book(asked, begin_us, begin_us + length_us)
        except NoPath:
            raise no_path(circuit) from None
        except NoRoom as refused:
            return self._later(asked, length_us, begin_us, conflict(circuit, refused.clash, register.holders))
        near, far = circuit.ends
        register.calendar.put(booked.reservation)
        return _grant(self._granted(replace(wanted, near=near, far=far), circuit.begin, booked))

    def _later(self, asked: Wanted, length_us: int, begin_us: int, refusal: Exception) -> BookingAnswer:
        """The next moment with room within a day; raises the refusal if there is none."""
        last_us = begin_us + round(LONGEST_WAIT.total_seconds() * 1e6)
        later = self._register.desk.opening(asked, length_us, begin_us, last_us)
        if later is None:
            raise refusal
        return _waits(from_us(later.reservation.begin_us), str(refusal))

    def _granted(self, wanted: WantedTest, begin: datetime, booked: Booked | None = None) -> BookedTest:
        number = -booked.reservation.number if booked else FIRST_NUMBER + next(self._numbers)
        end = begin + timedelta(seconds=wanted.seconds)
        path = hops_of(booked.path, booked) if booked else ()
        booking = self._running[number] = BookedTest(number, wanted, begin, end, path)
        return booking

    def _sweep(self) -> None:
        now = self._clock.now()
        for booking in [one for one in self._running.values() if one.end <= now]:
            self._over(booking)

    def _over(self, booking: BookedTest) -> None:
        del self._running[booking.number]
        self._register.calendar.remove(-booking.number)
        self._past.append(booking)


def _inside(wanted: WantedTest, circuit: Circuit) -> WantedTest:
    """The test with the circuit's ends."""
    far = next((end for end in circuit.ends[1:] if end.site == wanted.far.site), circuit.ends[1])
    return replace(wanted, near=circuit.ends[0], far=far)


def _grant(booking: BookedTest) -> BookingAnswer:
    return BookingAnswer(f"the test may run until {moment_text(booking.end)}", booking)


def _waits(begin: datetime, why: str) -> BookingAnswer:
    return BookingAnswer(f"{why}; the test fits from {moment_text(begin)} on", begin=begin)


CIRCUIT_TRAIN = "circuit-train"
FIRST_NUMBER = 2_000_000_000
"""Bookings are numbered above circuits, and in the calendar below zero."""
LONGEST_WAIT = timedelta(days=1)
MOST_RUNNING = 1_000
MOST_SHOWN = 200
BY_HAND = KindOfTest("by-hand", "somebody's own test, such as iperf3 between two hosts", 10**15, 3_600)
PROBE = KindOfTest("probe", "measures the path to a site", MOST_BPS, MOST_SOAK_S, yields=True)
