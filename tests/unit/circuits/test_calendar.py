"""The calendar against a brute force that checks every moment, and cases that known systems get wrong."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.domain.circuits import Direction
from downburst_circuits.calendar import FOREVER_US, Calendar, Claim, Closure, NoRoom, Reservation

PORTS = {"hub-eth0": 1000, "unl-eth1": 1000, "ttu-eth1": 500}


def reservation(number: int, begin: int, end: int, out: int, *, back: int = 0, port: str = "hub-eth0") -> Reservation:
    return Reservation(number, begin, end, (Claim(port, out, back),))


def tagged(number: int, begin: int, end: int, *ports: str, first: int = 100, last: int = 101) -> Reservation:
    return Reservation(number, begin, end, tuple(Claim(port, 1, 1, first, last) for port in ports))


def admitted(*reservations: Reservation) -> Calendar:
    calendar = Calendar(PORTS)
    for one in reservations:
        calendar.admit(one)
    return calendar


def busiest_out(calendar: Calendar) -> int:
    """The peak rate that is reserved out of the hub's port in the window of these tests."""
    return calendar._resources["hub-eth0"].levels[Direction.OUT].peak(0, 10)


def tags(reservation: Reservation) -> list[int | None]:
    return [claim.tag for claim in reservation.claims]


def test_windows_that_touch_do_not_meet() -> None:
    assert len(admitted(reservation(1, 0, 10, 600), reservation(2, 10, 20, 600))) == 2


def test_a_window_that_reaches_over_the_edge_is_refused_with_who_is_in_the_way() -> None:
    calendar = admitted(reservation(1, 0, 10, 600))
    with pytest.raises(NoRoom) as refused:
        calendar.admit(reservation(2, 9, 20, 600))
    clash = refused.value.clash
    assert (clash.resource, clash.with_numbers, clash.direction) == ("hub-eth0", (1,), Direction.OUT)
    assert (clash.free_bps, clash.begin_us, clash.end_us) == (400, 9, 10)


def test_two_equal_reservations_at_the_same_moment_count_twice() -> None:
    calendar = admitted(reservation(1, 0, 10, 600))
    with pytest.raises(NoRoom):
        calendar.admit(reservation(2, 0, 10, 600))
    assert len(calendar) == 1


def test_a_rate_that_fills_the_port_exactly_fits() -> None:
    calendar = admitted(reservation(1, 0, 10, 600), reservation(2, 0, 10, 400))
    assert busiest_out(calendar) == 1000
    with pytest.raises(NoRoom):
        calendar.admit(reservation(3, 5, 6, 1))


def test_directions_are_counted_apart() -> None:
    calendar = admitted(reservation(1, 0, 10, 1000, back=0), reservation(2, 0, 10, 0, back=1000))
    with pytest.raises(NoRoom) as refused:
        calendar.admit(reservation(3, 0, 10, 0, back=1))
    assert refused.value.clash.direction is Direction.IN
    assert refused.value.clash.with_numbers == (2,)


def test_a_circuit_that_lasts_until_cancelled_holds_every_later_moment() -> None:
    calendar = admitted(reservation(1, 5, FOREVER_US, 600))
    calendar.admit(reservation(2, 0, 5, 600))
    with pytest.raises(NoRoom):
        calendar.admit(reservation(3, 10**15, FOREVER_US, 600))


def test_what_is_removed_leaves_no_trace() -> None:
    calendar = admitted(reservation(1, 0, 10, 600), reservation(2, 3, 7, 400))
    calendar.remove(1)
    calendar.remove(2)
    assert len(calendar.admit(reservation(3, 0, 10, 1000)).claims) == 1


def test_an_exchange_that_does_not_fit_leaves_what_was_there() -> None:
    calendar = admitted(reservation(1, 0, 10, 500), reservation(2, 0, 10, 300))
    with pytest.raises(NoRoom):
        calendar.exchange(reservation(1, 0, 10, 900))
    assert busiest_out(calendar) == 800
    calendar.exchange(reservation(1, 0, 10, 700))
    assert busiest_out(calendar) == 1000


def test_asking_changes_nothing() -> None:
    calendar = admitted(reservation(1, 0, 10, 500))
    calendar.fit(reservation(2, 0, 10, 500))
    calendar.fit_instead(reservation(1, 0, 10, 900))
    assert busiest_out(calendar) == 500


def test_one_tag_serves_all_ends_where_there_is_one() -> None:
    calendar = admitted(tagged(1, 0, 10, "hub-eth0"))
    assert tags(calendar.admit(tagged(2, 0, 10, "hub-eth0", "unl-eth1"))) == [101, 101]


def test_tags_are_translated_where_no_common_one_is_free() -> None:
    calendar = admitted(tagged(1, 0, 10, "hub-eth0", last=100), tagged(2, 0, 10, "unl-eth1", first=101))
    assert tags(calendar.admit(tagged(3, 5, 6, "hub-eth0", "unl-eth1"))) == [101, 100]


def test_a_tag_is_free_again_when_its_window_ends() -> None:
    calendar = admitted(tagged(1, 0, 10, "hub-eth0", last=100))
    assert tags(calendar.admit(tagged(2, 10, 20, "hub-eth0", last=100))) == [100]
    with pytest.raises(NoRoom) as refused:
        calendar.admit(tagged(3, 9, 11, "hub-eth0", last=100))
    assert refused.value.clash.with_numbers in {(1,), (2,)}
    assert refused.value.clash.direction is None


def test_a_tag_that_must_be_is_refused_while_another_circuit_has_it() -> None:
    calendar = admitted(tagged(1, 0, 10, "hub-eth0"))
    fixed = replace(tagged(2, 0, 10, "hub-eth0"), claims=(Claim("hub-eth0", 1, 1, 100, 101, tag=100),))
    with pytest.raises(NoRoom) as refused:
        calendar.admit(fixed)
    assert (refused.value.clash.tag, refused.value.clash.with_numbers) == (100, (1,))


@dataclass
class BruteForce:
    """Checks every moment of a short day."""

    capacities: dict[str, int]
    kept: list[Reservation] = field(default_factory=list)

    def fits(self, wanted: Reservation) -> bool:
        return all(
            sum(self._taken(claim.resource, direction, moment)) + claim.rate_bps(direction)
            <= self.capacities[claim.resource]
            or claim.rate_bps(direction) == 0
            for claim in wanted.claims
            for direction in Direction
            for moment in range(wanted.begin_us, wanted.end_us)
        )

    def _taken(self, port: str, direction: Direction, moment: int) -> list[int]:
        return [
            claim.rate_bps(direction)
            for one in self.kept
            for claim in one.claims
            if claim.resource == port and one.begin_us <= moment < one.end_us
        ]


SIZES = st.sampled_from([0, 100, 250, 500, 500, 1000])
MOMENTS = st.integers(0, 24)


@st.composite
def wishes(draw: st.DrawFn) -> list[tuple[str, Reservation]]:
    """Requests, exchanges and removals; equal sizes and touching edges are likely."""
    done = []
    for number in range(draw(st.integers(1, 16))):
        begin = draw(MOMENTS)
        end = begin + draw(st.integers(1, 8))
        ports = draw(st.lists(st.sampled_from(sorted(PORTS)), min_size=1, max_size=3, unique=True))
        claims = tuple(Claim(port, draw(SIZES), draw(SIZES)) for port in ports)
        what = draw(st.sampled_from(["admit", "admit", "admit", "remove", "exchange"]))
        which = number if what == "admit" else draw(st.integers(0, number))
        done.append((what, Reservation(which, begin, end, claims)))
    return done


@given(wishes())
def test_the_calendar_agrees_with_asking_every_moment(asked: list[tuple[str, Reservation]]) -> None:
    calendar, brute = Calendar(PORTS), BruteForce(dict(PORTS))
    for what, wanted in asked:
        others = [one for one in brute.kept if one.number != wanted.number]
        if what == "remove":
            calendar.remove(wanted.number)
            brute.kept = others
            continue
        before = [one for one in brute.kept if one.number == wanted.number]
        brute.kept = others
        fits = brute.fits(wanted)
        brute.kept = [*others, wanted] if fits else [*others, *before]
        if fits:
            calendar.exchange(wanted)
        else:
            with pytest.raises(NoRoom):
                calendar.exchange(wanted)
    assert len(calendar) == len(brute.kept)


@given(st.lists(st.tuples(MOMENTS, st.integers(1, 8), st.integers(100, 103), st.integers(0, 3)), max_size=30))
def test_no_two_windows_that_overlap_have_one_tag(asked: list[tuple[int, int, int, int]]) -> None:
    calendar = Calendar({"hub-eth0": 10**6, "unl-eth1": 10**6})
    kept: list[Reservation] = []
    for number, (begin, length, first, width) in enumerate(asked):
        wanted = tagged(number, begin, begin + length, "hub-eth0", "unl-eth1", first=first, last=first + width)
        try:
            kept.append(calendar.admit(wanted))
        except NoRoom as refused:
            # A port may refuse only if every tag in the range is taken.
            taken = {
                claim.tag
                for one in kept
                for claim in one.claims
                if claim.resource == refused.clash.resource and one.begin_us < begin + length and begin < one.end_us
            }
            assert taken.issuperset(range(first, first + width + 1))
    for one in kept:
        for other in kept:
            if one.number < other.number and one.begin_us < other.end_us and other.begin_us < one.end_us:
                assert not set(zip(("h", "u"), tags(one), strict=True)) & set(
                    zip(("h", "u"), tags(other), strict=True)
                )


def test_a_link_has_a_rate_of_its_own_in_each_direction() -> None:
    calendar = Calendar({})
    calendar.capacity("link west", 1000, 100)
    calendar.admit(reservation(1, 0, 10, 900, back=100, port="link west"))
    with pytest.raises(NoRoom) as refused:
        calendar.admit(reservation(2, 5, 15, 100, back=1, port="link west"))
    assert (refused.value.clash.direction, refused.value.clash.free_bps) == (Direction.IN, 0)
    calendar.admit(reservation(3, 10, 15, 1000, back=100, port="link west"))


def test_a_closed_resource_takes_nothing_in_its_window_and_keeps_its_reservations() -> None:
    calendar = admitted(reservation(1, 0, 20, 100))
    calendar.close("hub-eth0", [Closure("fibre-work", 10, 12)])
    with pytest.raises(NoRoom) as refused:
        calendar.admit(reservation(2, 8, 14, 100))
    assert refused.value.clash.closure == "fibre-work"
    assert (refused.value.clash.begin_us, refused.value.clash.end_us) == (10, 12)
    calendar.admit(reservation(2, 8, 10, 100))
    calendar.admit(reservation(3, 12, 14, 100))
    assert len(calendar) == 3


def test_a_segment_has_one_tag_and_segments_are_translated_only_if_needed() -> None:
    def through(number: int) -> Reservation:
        places = (("hub-eth0", 1), ("unl-eth1", 1), ("ttu-eth1", 2))
        claims = tuple(Claim(port, 1, 1, 100, 102, segment=segment) for port, segment in places)
        return Reservation(number, 0, 10, claims)

    calendar = admitted(tagged(1, 0, 10, "ttu-eth1", first=100, last=100))
    assert tags(calendar.admit(through(2))) == [101, 101, 101]
    calendar.admit(tagged(3, 0, 10, "hub-eth0", first=100, last=100))
    assert tags(calendar.admit(through(4))) == [102, 102, 102]
    calendar.remove(4)
    calendar.admit(tagged(5, 0, 10, "unl-eth1", first=102, last=102))
    with pytest.raises(NoRoom) as refused:
        calendar.admit(through(6))
    assert refused.value.clash.with_numbers == (2, 3, 5)


def test_the_busy_parts_of_a_window_are_those_without_room() -> None:
    calendar = admitted(reservation(1, 0, 10, 600), reservation(2, 20, 30, 1000))
    calendar.close("hub-eth0", [Closure("work", 40, 50)])
    claim = Claim("hub-eth0", 500, 0)
    assert calendar.busy(claim, 5, 45) == [(5, 10), (20, 30), (40, 50)]
    assert calendar.busy(claim, 10, 20) == []
    assert calendar.free_bps("hub-eth0", Direction.OUT, 5, 15) == 400
    assert calendar.free_bps("hub-eth0", Direction.OUT, 30, 41) == 0
