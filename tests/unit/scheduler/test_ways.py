"""The choice of a site's way: gains, patience, relays that die or disappoint, and the sentences."""

from dataclasses import replace

import pytest

from downburst.domain.tcp.rates import CongestionControl
from downburst_scheduler.models.ways import Connections, DirectWay, RelayWay, Segment, relay_price
from downburst_scheduler.planner import Rules
from downburst_scheduler.way_sentences import way_reason
from downburst_scheduler.ways import DIRECT, WayBecause, WayDecision, WayMemory, WayQuestion, decide_way
from unit.scheduler.test_model_ways import BBR, CUBIC, ONE, RENO, edge_loss, half_and_half

CAMPUS = ("campus",)


def question(control: CongestionControl = CUBIC, **other: object) -> WayQuestion:
    direct, way = edge_loss(control)
    return WayQuestion(**{"direct": direct, "ways": [way]} | other)  # type: ignore[arg-type]


def after_looks(asked: WayQuestion, looks: int = 3, *, every_s: float = 10.0) -> tuple[WayQuestion, WayDecision]:
    """The decision after several looks."""
    decision = decide_way(asked)
    for _ in range(looks - 1):
        asked = replace(asked, memory=decision.memory, now_s=asked.now_s + every_s)
        decision = decide_way(asked)
    return asked, decision


def on_campus(**other: object) -> WayQuestion:
    return question(**{"memory": WayMemory(CAMPUS, 0.0), "now_s": 1_000.0} | other)  # type: ignore[arg-type]


@pytest.mark.parametrize("control", [RENO, CUBIC])
def test_a_relay_that_gains_is_taken_when_three_looks_agree(control: CongestionControl) -> None:
    assert after_looks(question(control), 2)[1].because is WayBecause.WAITING
    asked, decision = after_looks(question(control))
    assert (decision.chain, decision.because) == (CAMPUS, WayBecause.BEST)
    assert decision.predicted_bps == pytest.approx(85e6)
    assert way_reason(asked, decision) == (
        f"by relay campus: 85.0 Mb/s expected (68 ms, 0.00% loss, {control} to relay campus, 2 ms, 0.10% loss, "
        f"{control} to the site), against 6.40 Mb/s by the direct way (70 ms, 0.10% loss, {control}, 1 connection)"
    )


def test_under_bbr_a_relay_that_does_not_help_is_not_taken() -> None:
    asked, decision = after_looks(question(BBR), 10)
    assert (decision.chain, decision.because) == (DIRECT, WayBecause.BEST)
    assert way_reason(asked, decision) == (
        "direct: 100 Mb/s by the direct way (70 ms, loss without effect, bbr, 1 connection), and relay campus would "
        "bring 85.0 Mb/s "
        "(68 ms, loss without effect, bbr to relay campus, 2 ms, loss without effect, bbr to the site)"
    )
    without_line = question(BBR, direct=DirectWay(Segment(BBR, 0.07, 0.001)))
    assert after_looks(without_line, 10)[1].chain == DIRECT, "one unlimited rate is no gain over another"


def test_eight_data_connections_that_win_are_kept() -> None:
    direct, way = half_and_half(RENO)
    alone = WayQuestion(direct, [way])
    assert after_looks(alone)[1].chain == CAMPUS, "one connection against two of half the length"
    eight = replace(direct, connections=Connections(most=8))
    _, decision = after_looks(WayQuestion(eight, [way]), 10)
    assert (decision.chain, decision.direct.connections) == (DIRECT, 8)
    measured = replace(direct, measured_bps=30e6)
    assert after_looks(WayQuestion(measured, [way]), 10)[1].chain == DIRECT


def test_a_relay_whose_session_ends_is_left_at_once_and_taken_again_with_patience() -> None:
    dead = on_campus(ways=[], shut="relay campus has no session with the hub")
    decision = decide_way(dead)
    assert (decision.chain, decision.because, decision.left) == (DIRECT, WayBecause.GONE, CAMPUS)
    assert way_reason(dead, decision) == (
        "direct: relay campus can't be used any more; relay campus has no session with the hub"
    )
    back = question(memory=decision.memory, now_s=1_010.0)
    assert after_looks(back, 3)[1].because is WayBecause.WAITING, "the last change is too near"
    assert after_looks(back, 40)[1].chain == CAMPUS


def test_a_relay_that_brings_less_than_the_direct_way_is_left_and_rests_twice_as_long_each_time() -> None:
    asked = on_campus(measured_bps=4e6)
    decision = decide_way(asked)
    assert (decision.chain, decision.because) == (DIRECT, WayBecause.WORSE)
    assert "relay campus brought 4.00 Mb/s, less than the direct way's 6.40 Mb/s" in way_reason(asked, decision)
    (rest,) = decision.memory.rests
    assert rest.until_s - asked.now_s == 3_600.0
    _, resting = after_looks(question(memory=decision.memory, now_s=1_300.0), 100)
    assert (resting.chain, resting.because) == (DIRECT, WayBecause.RESTING)
    _, again = after_looks(question(memory=decision.memory, now_s=rest.until_s), 3)
    assert again.chain == CAMPUS
    worse = decide_way(on_campus(measured_bps=4e6, memory=again.memory, now_s=10_000.0))
    (rest,) = worse.memory.rests
    assert (rest.until_s - 10_000.0, rest.times) == (7_200.0, 2)


def test_a_relay_that_brings_less_than_predicted_and_more_than_the_direct_way_is_kept() -> None:
    asked = on_campus(measured_bps=40e6)
    decision = decide_way(asked)
    assert (decision.chain, decision.because) == (CAMPUS, WayBecause.BEST)
    assert way_reason(asked, decision).endswith("; measured 40.0 Mb/s since")


def test_a_better_relay_must_gain_a_fifth_and_chains_have_a_segment_more() -> None:
    direct, _ = edge_loss(RENO)
    direct = replace(direct, line_bps=None)
    slow = RelayWay(CAMPUS, (Segment(RENO, 0.03, 0.0005), Segment(RENO, 0.04, 0.0005)))
    alike = RelayWay(
        ("near", "campus"), (*slow.segments[:1], Segment(RENO, 0.036, 0.0005), Segment(RENO, 0.004, 0.0))
    )
    standing = WayMemory(CAMPUS, 0.0)
    measured_bps = relay_price(slow, direct).rate_bps
    asked = WayQuestion(direct, [slow, alike], measured_bps=measured_bps, memory=standing, now_s=1_000.0)
    assert after_looks(asked, 10)[1].chain == CAMPUS
    short = replace(alike, segments=(*slow.segments[:1], Segment(RENO, 0.03, 0.0005), Segment(RENO, 0.01, 0.0)))
    asked, decision = after_looks(replace(asked, ways=[slow, short]), 3)
    assert decision.chain == ("near", "campus")
    assert way_reason(asked, decision).startswith("by relays near and campus: ")
    assert "cubic" not in way_reason(asked, decision)


def test_a_relay_in_use_is_not_left_for_losses_of_its_own_bursts_while_no_products_wait() -> None:
    direct, _ = edge_loss(RENO)
    burst = RelayWay(CAMPUS, (Segment(RENO, 0.068, 0.0143), Segment(RENO, 0.002, 0.001)))
    asked = WayQuestion(direct, [burst], memory=WayMemory(CAMPUS, 0.0), now_s=1_000.0)
    _, decision = after_looks(asked, 10)
    assert (decision.predicted_bps or 0.0) < (decision.direct.rate_bps or 0.0)
    assert (decision.chain, decision.because) == (CAMPUS, WayBecause.BEST)
    waiting = replace(asked, measured_bps=(decision.direct.rate_bps or 0.0) / 2)
    assert after_looks(waiting, 1)[1].because is WayBecause.WORSE


def test_a_dry_run_only_tells_and_still_leaves_a_dead_relay() -> None:
    dry = Rules(dry_run=True)
    asked, decision = after_looks(question(rules=dry), 5)
    assert (decision.chain, decision.because) == (DIRECT, WayBecause.WOULD)
    assert way_reason(asked, decision).endswith("; dry run: the site would go by relay campus")
    assert decide_way(on_campus(ways=[], rules=dry)).chain == DIRECT


@pytest.mark.parametrize(
    ("direct", "says"),
    [
        (Segment(CUBIC), "the round trip of the direct way is not known yet"),
        (Segment(CUBIC, 0.07), "the loss of the direct way is not known yet"),
    ],
)
def test_unknown_values_are_named_and_change_nothing(direct: Segment, says: str) -> None:
    asked, decision = after_looks(question(direct=DirectWay(direct, ONE)), 5)
    assert (decision.chain, decision.because) == (DIRECT, WayBecause.UNKNOWN)
    assert says in way_reason(asked, decision)


def test_a_core_without_measurements_is_named() -> None:
    direct, way = edge_loss(CUBIC)
    unknown = replace(way, segments=(Segment(CUBIC), way.segments[1]))
    asked, decision = after_looks(WayQuestion(direct, [unknown]), 5)
    assert (decision.chain, decision.because) == (DIRECT, WayBecause.UNKNOWN)
    assert "the round trip between hub and relay campus is not known yet" in way_reason(asked, decision)
    few = replace(way, segments=(Segment(CUBIC, 0.068, 0.0, assumed_clean=True), way.segments[1]), estimated=True)
    asked, decision = after_looks(WayQuestion(direct, [few]))
    assert decision.chain == CAMPUS
    assert "68 ms, loss not known and counted as none, cubic to relay campus" in way_reason(asked, decision)
    assert "to the site by estimate)" in way_reason(asked, decision)


def test_a_site_without_an_open_relay_is_told_the_reason() -> None:
    asked = question(ways=[], shut="relay campus is not granted IDS, which unl.edu takes")
    decision = decide_way(asked)
    assert (decision.chain, decision.because) == (DIRECT, WayBecause.NO_RELAY)
    assert way_reason(asked, decision) == "direct: relay campus is not granted IDS, which unl.edu takes"


def test_old_facts_are_told_with_their_age() -> None:
    direct, way = edge_loss(CUBIC)
    asked = WayQuestion(replace(direct, age_s=7_200.0), [way], memory=WayMemory(CAMPUS, 0.0), now_s=1_000.0)
    assert "1 connection, 2 h ago)" in way_reason(asked, decide_way(asked))
