"""The published cases by the planner: each states its offers, its paths and their congestion control.

The models get the same questions in `test_candidates.py`; here everything that acts on them takes part. In addition,
`analyze` and the planner answer every question alike.
"""

import os
from random import Random

import numpy as np
import pytest

from downburst.domain.plans import Transport
from downburst.domain.tcp.rates import CongestionControl
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.candidates import CircuitOffers, Situation, compare
from downburst_scheduler.models.offers import PAYLOAD_SHARE, CircuitOffer
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.planner import Because, Decision, Memory, Question, Rules, decide, flip_of
from downburst_scheduler.sentences import flip_figures, reason
from unit.scheduler.closed_forms import day_mean_bps
from unit.scheduler.feeds import peaked, sites, steady

CONDUIT = peaked(day_mean_bps(60e9), 33.3e6)
NEXRAD2 = peaked(day_mean_bps(56e9), 7.8e6)
POINT_TO_POINT = CircuitOffers(point_to_point=True, setup_s=60)
FIRST_SEED = int(os.environ.get("DOWNBURST_SEED", "1"))


def settled(arrivals: Arrivals, situation: Situation) -> tuple[Question, Decision]:
    """The planner's decision with its usual patience, after a start on unicast."""
    memory, rules = Memory(), Rules()
    for look in range(rules.agreeing_windows + 1):
        asked = Question(arrivals, situation, now_s=look * 10.0, memory=memory, rules=rules)
        decision = decide(asked)
        memory = decision.memory
    return asked, decision


def test_conduit_to_104_sites_with_1_gbps_of_egress_and_multipoint_offered_goes_by_multicast() -> None:
    both = CircuitOffers(point_to_point=True, multipoint=True, setup_s=60)
    paths = sites(104, round_trip_s=0.04, access_bps=1e9)
    asked, decision = settled(CONDUIT, Situation(paths, egress_bps=1e9, multicast=False, circuits=both))
    assert (decision.transport, decision.because) == (Transport.MULTICAST, Because.CHEAPEST)
    why = {one.transport: one.reason for one in decision.options}
    assert why[Transport.UNICAST] == "it needs 3463 Mb/s in the busiest minute and the hub has 1000 Mb/s"
    assert "would be 16.7% used" in why[Transport.STATIC_CIRCUIT]
    assert "never be given back" in why[Transport.DYNAMIC_CIRCUIT]
    assert "104 sites would cost 578 Mb/s by unicast" in reason(asked, decision)


def test_nexrad2_to_55_sites_without_multipoint_and_egress_goes_by_static_circuits() -> None:
    paths = sites(55, round_trip_s=0.04, access_bps=1e9)
    _, decision = settled(NEXRAD2, Situation(paths, egress_bps=200e6, multicast=False, circuits=POINT_TO_POINT))
    assert decision.transport is Transport.STATIC_CIRCUIT
    assert decision.chosen.outcome is not None
    assert decision.chosen.outcome.utilisation == pytest.approx(0.667, rel=0.01)
    assert [one.transport for one in decision.options if one.feasible] == [Transport.STATIC_CIRCUIT]


def test_nexrad2_to_55_sites_rides_on_reserved_circuits_where_the_routed_egress_is_exhausted() -> None:
    reserved = CircuitOffer(1, int(7.8e6 / PAYLOAD_SHARE))
    paths = [SiteFacts(name=f"s{n}", round_trip_s=0.04, circuit=reserved) for n in range(55)]
    _, decision = settled(NEXRAD2, Situation(paths, egress_bps=200e6, multicast=False))
    assert (decision.transport, len(decision.chosen.circuit_sites)) == (Transport.STATIC_CIRCUIT, 55)


@pytest.mark.parametrize(
    ("loss", "congestion", "transport"),
    [
        pytest.param(0.005, CongestionControl.CUBIC, Transport.STATIC_CIRCUIT, id="0.5 % loss, CUBIC: circuits"),
        pytest.param(0.0, CongestionControl.CUBIC, Transport.UNICAST, id="clean path, CUBIC: unicast"),
        pytest.param(0.005, CongestionControl.BBR, Transport.UNICAST, id="0.5 % loss, BBR: unicast"),
    ],
)
def test_nexrad2_to_5_sites_at_70_ms_with_circuits_on_offer(
    loss: float, congestion: CongestionControl, transport: Transport
) -> None:
    paths = [
        SiteFacts(name=f"s{n}", round_trip_s=0.07, loss=loss, access_bps=1e9, congestion=congestion) for n in range(5)
    ]
    _, decision = settled(NEXRAD2, Situation(paths, egress_bps=1e9, multicast=False, circuits=POINT_TO_POINT))
    assert decision.transport is transport


def test_two_near_sites_at_a_low_rate_get_copies() -> None:
    both = CircuitOffers(point_to_point=True, multipoint=True, setup_s=60)
    _, decision = settled(steady(), Situation(sites(2, round_trip_s=0.005, access_bps=1e9), circuits=both))
    assert decision.transport is Transport.UNICAST


@pytest.mark.parametrize("arrivals", [CONDUIT, NEXRAD2, steady()], ids=["CONDUIT", "NEXRAD2", "low rate"])
def test_no_dynamic_circuit_at_a_minute_of_setup_for_any_of_them(arrivals: Arrivals) -> None:
    both = CircuitOffers(point_to_point=True, multipoint=True, setup_s=60)
    _, decision = settled(arrivals, Situation(sites(5), circuits=both))
    assert not decision.option(Transport.DYNAMIC_CIRCUIT).feasible


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 40))
def test_analyze_and_the_planner_decide_the_same_on_the_same_input(seed: int) -> None:
    arrivals, situation = drawn(Random(seed))
    decision = settled(arrivals, situation)[1]
    assert decision.transport is compare(arrivals, situation).best.transport, (
        f"replay: DOWNBURST_SEED={seed} pytest -k same_input"
    )


def drawn(random: Random) -> tuple[Arrivals, Situation]:
    """Any feed and any hub."""
    numbers = np.random.default_rng(random.randrange(2**32))
    count = random.randrange(20, 300)
    at_s = np.sort(numbers.uniform(0, 300, count))
    arrivals = Arrivals(at_s, numbers.lognormal(np.log(50e3), 1.5, count), 300.0)
    wanted = [
        SiteFacts(
            name=f"s{number}",
            round_trip_s=random.choice([0.0, 0.02, 0.1]),
            loss=random.choice([0.0, 0.0, 1e-3, 0.02]),
            access_bps=random.choice([None, 2e6, 1e8]),
            share=random.choice([1.0, 1.0, 0.2]),
            no_multicast=random.choice([None, None, None, f"s{number} is deaf"]),
        )
        for number in range(random.choice([1, 2, 3, 5, 40]))
    ]
    offers = CircuitOffers(random.random() < 0.3, random.random() < 0.3, setup_s=random.choice([1.0, 60.0]))
    return arrivals, Situation(
        wanted,
        egress_bps=random.choice([2e6, 2e7, 1e9]),
        multicast=random.random() < 0.8,
        multicast_rate_bps=random.choice([2e6, 4e8]),
        circuits=offers,
        objective=Objective(0.99, random.choice([0.2, 2.0, 30.0])),
    )


def test_the_one_input_that_would_flip_the_choice_is_named_and_flips_it() -> None:
    situation = Situation(sites(5, round_trip_s=0.02))
    asked, decision = settled(steady(), situation)
    flipped = flip_of(asked, decision)
    assert flipped is not None
    assert flipped.sentence == "unicast at 1 site instead of 5 sites"
    assert settled(steady(), Situation(sites(1, round_trip_s=0.02)))[1].transport is flipped.transport
    assert flip_figures(flipped)["flip"] == "it would be unicast at 1 site instead of 5 sites"


def test_a_hub_that_is_nearly_full_is_flipped_by_a_little_less_egress() -> None:
    """As long as both fit, two copies are cheaper than a group with one copy in reserve."""
    asked, decision = settled(steady(), Situation(sites(2), egress_bps=3.5e6))
    flipped = flip_of(asked, decision)
    assert decision.transport is Transport.UNICAST
    assert flipped is not None
    assert (flipped.name, flipped.transport) in [("egress", Transport.MULTICAST), ("traffic", Transport.MULTICAST)]
    assert flipped.then == pytest.approx(flipped.now, rel=0.15)


@pytest.mark.all
def test_loss_flips_copies_into_circuits() -> None:
    paths = [SiteFacts(name=f"s{n}", round_trip_s=0.07, loss=0.0002, access_bps=1e9) for n in range(5)]
    asked, decision = settled(NEXRAD2, Situation(paths, multicast=False, circuits=POINT_TO_POINT))
    flipped = flip_of(asked, decision)
    assert decision.transport is Transport.UNICAST
    assert flipped is not None
    assert flipped.transport is Transport.STATIC_CIRCUIT


def test_what_nothing_can_flip_has_no_flip() -> None:
    alone = Situation(sites(1), no_multicast="multicast is switched off")
    asked, decision = settled(steady(), alone)
    assert flip_of(asked, decision) is None
