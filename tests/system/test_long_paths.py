"""The gain of connections and of TCP profiles on a long path that loses packets, on a wire that runs in real time."""

from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.path_trials import LongPath, learned, rate_over_edge, rate_with, windows_until_taken_back

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

LOSSY = LongPath(round_trip_ms=70, loss=0.001)
FAR = LongPath(round_trip_ms=80, loss=0.0001)


@pytest.fixture(autouse=True)
def _lab() -> None:
    needs("root", "netns", "veth", "bridge", "tun")


def gain_of_eight(directory: Path, congestion: str) -> float:
    one, eight = (
        rate_with(directory / str(number), LOSSY, congestion=congestion, connections=number, seconds=8)
        for number in (1, 8)
    )
    print(f"{congestion}: {eight / 1e6:.1f} Mb/s by eight connections, {one / 1e6:.1f} by one")
    return eight / one


def test_eight_connections_carry_five_times_as_much_where_loss_is_taken_for_congestion(tmp_path: Path) -> None:
    assert gain_of_eight(tmp_path, "reno") >= 5


def gain_of_a_relay(directory: Path, congestion: str) -> float:
    without, by_relay = (
        rate_over_edge(directory / str(relayed), congestion=congestion, relayed=relayed, connections=1, seconds=8)
        for relayed in (False, True)
    )
    print(f"{congestion}: {by_relay / 1e6:.1f} Mb/s by a relay, {without / 1e6:.1f} without")
    return by_relay / without


def test_a_relay_before_a_lossy_edge_carries_five_times_as_much_where_loss_is_taken_for_congestion(
    tmp_path: Path,
) -> None:
    assert gain_of_a_relay(tmp_path, "reno") >= 5


@pytest.mark.nightly
def test_a_relay_carries_four_times_as_much_by_cubic(tmp_path: Path) -> None:
    assert gain_of_a_relay(tmp_path, "cubic") >= 4


@pytest.mark.nightly
def test_a_relay_changes_little_where_the_rate_comes_from_a_model_of_the_path(tmp_path: Path) -> None:
    assert 0.95 <= gain_of_a_relay(tmp_path, "bbr") <= 1.1


@pytest.mark.nightly
def test_eight_connections_gain_little_where_the_rate_comes_from_a_model_of_the_path(tmp_path: Path) -> None:
    assert gain_of_eight(tmp_path, "bbr") < 1.3


@pytest.mark.nightly
def test_the_node_learns_a_profile_that_doubles_the_rate_of_one_connection(tmp_path: Path) -> None:
    found = learned(tmp_path, FAR, congestion="reno", seconds=8)
    print(found)
    assert found.after_bps >= 2 * found.before_bps


@pytest.mark.nightly
def test_a_profile_that_halves_the_rate_is_taken_back_within_two_windows(tmp_path: Path) -> None:
    assert windows_until_taken_back(tmp_path, FAR, congestion="bbr") <= 2
