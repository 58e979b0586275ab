"""The best candidates for the published cases; each states its offers, paths and congestion control."""

import pytest

from downburst.domain.plans import Transport
from downburst.domain.tcp.rates import CongestionControl
from downburst_scheduler.models.candidates import CircuitOffers, Comparison, Situation, compare
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.sizing import Objective
from unit.scheduler.closed_forms import day_mean_bps
from unit.scheduler.feeds import arrivals, ngrid_hour, peaked, steady

CONDUIT = peaked(day_mean_bps(60e9), 33.3e6)
NEXRAD2 = peaked(day_mean_bps(56e9), 7.8e6)
BOTH = CircuitOffers(point_to_point=True, multipoint=True, setup_s=60)
POINT_TO_POINT = CircuitOffers(point_to_point=True, setup_s=60)


def why(found: Comparison, transport: Transport) -> str:
    return next(one.reason for one in found.candidates if one.transport is transport)


def feasible(found: Comparison) -> set[Transport]:
    return {one.transport for one in found.candidates if one.feasible}


def test_example_07_conduit_to_104_sites_with_1_gbps_of_egress_goes_by_multicast_circuit() -> None:
    found = compare(
        CONDUIT,
        Situation([PathFacts(0.04, access_bps=1e9)] * 104, egress_bps=1e9, multicast=False, circuits=BOTH),
    )
    assert found.best.transport is Transport.MULTICAST
    assert why(found, Transport.UNICAST) == "it needs 3463 Mb/s in the busiest minute and the hub has 1000 Mb/s"
    assert "would be 16.7% used" in why(found, Transport.STATIC_CIRCUIT)
    assert "never be given back" in why(found, Transport.DYNAMIC_CIRCUIT)
    assert "multipoint circuit" in found.sentence


def test_example_08_nexrad2_to_55_sites_without_multipoint_and_egress_goes_by_static_circuits() -> None:
    found = compare(
        NEXRAD2,
        Situation([PathFacts(0.04, access_bps=1e9)] * 55, egress_bps=200e6, multicast=False, circuits=POINT_TO_POINT),
    )
    assert found.best.transport is Transport.STATIC_CIRCUIT
    assert found.best.outcome is not None
    assert found.best.outcome.utilisation == pytest.approx(0.667, rel=0.01)
    assert feasible(found) == {Transport.STATIC_CIRCUIT}


def few(loss: float, congestion: CongestionControl = CongestionControl.CUBIC) -> Situation:
    site = PathFacts(0.07, loss, 1e9, congestion=congestion)
    return Situation([site] * 5, egress_bps=1e9, multicast=False, circuits=POINT_TO_POINT)


def test_nexrad2_to_5_far_sites_goes_by_circuits_where_cubic_can_not_stand_the_loss() -> None:
    lossy = compare(NEXRAD2, few(0.005))
    assert lossy.best.transport is Transport.STATIC_CIRCUIT
    assert "70 ms and 0.50% of loss leave cubic 2.87 Mb/s" in why(lossy, Transport.UNICAST)


def test_nexrad2_to_5_far_sites_goes_by_unicast_on_a_clean_path_or_with_bbr() -> None:
    assert compare(NEXRAD2, few(0.0)).best.transport is Transport.UNICAST
    assert compare(NEXRAD2, few(0.005, CongestionControl.BBR)).best.transport is Transport.UNICAST


@pytest.mark.parametrize("sites", [1, 2])
def test_example_09_one_or_two_near_sites_get_copies(sites: int) -> None:
    found = compare(steady(), Situation([PathFacts(0.005, access_bps=1e9)] * sites, circuits=BOTH))
    assert found.best.transport is Transport.UNICAST


def test_many_sites_on_a_network_with_groups_share_a_copy() -> None:
    found = compare(ngrid_hour(), Situation([PathFacts(0.02)] * 8))
    assert found.best.transport is Transport.MULTICAST
    assert "not unicast: it costs" in found.sentence


@pytest.mark.parametrize("case", [CONDUIT, NEXRAD2, steady()])
def test_no_dynamic_circuit_at_a_minute_of_setup(case: object) -> None:
    found = compare(case, Situation([PathFacts()] * 3, circuits=BOTH))  # type: ignore[arg-type]
    assert Transport.DYNAMIC_CIRCUIT not in feasible(found)


def test_a_dynamic_circuit_is_feasible_where_silences_are_long_and_setups_short() -> None:
    bursts = arrivals(*[(hour * 3600.0 + second, 1e6) for hour in range(5) for second in range(60)])
    offers = CircuitOffers(point_to_point=True, setup_s=1, hold_s=10)
    found = compare(bursts, Situation([PathFacts()], circuits=offers, objective=Objective(0.5, 5.0)))
    assert Transport.DYNAMIC_CIRCUIT in feasible(found)


def test_what_misses_the_objective_is_not_best_while_something_meets_it() -> None:
    burst = arrivals(*[(0.0, 1e7)] * 10, (100.0, 1e3))
    sites = [PathFacts(access_bps=1e9)] * 5
    found = compare(burst, Situation(sites, egress_bps=1e9, multicast_rate_bps=12e6, objective=Objective(0.9, 10.0)))
    assert found.best.transport is Transport.UNICAST
    assert "not multicast: p90 would be" in found.sentence


def test_without_anything_feasible_the_least_demand_is_named() -> None:
    found = compare(CONDUIT, Situation([PathFacts()] * 104, egress_bps=1e6, multicast=False))
    assert found.best.transport is Transport.UNICAST
    assert "nothing is feasible" in found.sentence
