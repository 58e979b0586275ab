"""The number of senders for a load: it rises immediately, falls late and one by one, and stays within the bounds."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from downburst.fleet.sizing import FILL, WINDOW_S, Sizing
from downburst.settings.fleet import FleetSettings

EACH_BPS = 1e8
SETTINGS = FleetSettings(at_least=1, at_most=5, sender_bps=EACH_BPS, shrink_after_s=600)


def load(sizing: Sizing, senders: float, *, from_s: int, seconds: int) -> list[int]:
    """The wanted number of senders in each second of a load that fills `senders` senders."""
    wanted = []
    for now_s in range(from_s, from_s + seconds):
        sizing.sent(int(senders * EACH_BPS * FILL / 8), now_s=now_s)
        wanted.append(sizing.look(now_s))
    return wanted


def test_nothing_sent_takes_the_least() -> None:
    assert Sizing(SETTINGS).look(0) == 1


def test_more_is_wanted_as_soon_as_the_window_says_so() -> None:
    wanted = load(Sizing(SETTINGS), 2.5, from_s=0, seconds=int(WINDOW_S))
    assert wanted[-1] == 3
    assert wanted == sorted(wanted)


def test_fewer_are_wanted_one_by_one_and_late() -> None:
    sizing = Sizing(SETTINGS)
    assert load(sizing, 3.5, from_s=0, seconds=100)[-1] == 4
    wanted = load(sizing, 0.5, from_s=100, seconds=2_000)
    shrunk_at = [wanted.index(senders) for senders in (3, 2, 1)]
    assert shrunk_at[0] >= SETTINGS.shrink_after_s
    assert [late - early for early, late in itertools.pairwise(shrunk_at)] == [SETTINGS.shrink_after_s] * 2


def test_a_pause_shorter_than_that_takes_nobody_away() -> None:
    sizing = Sizing(SETTINGS)
    load(sizing, 3.5, from_s=0, seconds=100)
    wanted = load(sizing, 0.1, from_s=100, seconds=500) + load(sizing, 3.5, from_s=600, seconds=700)
    assert set(wanted) == {4}


@given(st.lists(st.tuples(st.floats(0, 50), st.integers(1, 400)), max_size=12))
def test_bounds_hold_and_steps_down_are_single(course: list[tuple[float, int]]) -> None:
    sizing, now_s, before = Sizing(SETTINGS), 0, SETTINGS.at_least
    for senders, seconds in course:
        for wanted in load(sizing, senders, from_s=now_s, seconds=seconds):
            assert SETTINGS.at_least <= wanted <= SETTINGS.at_most
            assert wanted >= before - 1
            before = wanted
        now_s += seconds
