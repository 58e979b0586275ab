"""What circuits offer: at the measured rate, to those whose ends are good, and what is chosen of it."""

from dataclasses import replace

import pytest

from downburst.circuits import Circuit, CircuitEnd, CircuitState, Direction, Measured
from downburst.model import Leg, Transport
from downburst_scheduler.legs import legs_of
from downburst_scheduler.offers import CircuitOffer, CircuitOffers, without
from downburst_scheduler.options import NO_CIRCUITS, HubInput, Option, SiteInput, options
from downburst_scheduler.planner import Because, Question, Rules, decide
from downburst_scheduler.queueing import Path
from downburst_scheduler.sentences import reason
from factories import SOME_TIME
from unit.scheduler.feeds import steady

M = 1_000_000
ENDS = (CircuitEnd("hub-eth0"), CircuitEnd("a-eth1", "a"), CircuitEnd("b-eth1", "b"))
CIRCUIT = Circuit(17, "r", ENDS, 500 * M, 0, SOME_TIME, None, state=CircuitState.ACTIVE)


def row(site: str = "a", rate: int = 450, circuit: int = 17, **other: str) -> Measured:
    return Measured(circuit, site, Direction.OUT, SOME_TIME, rate * M, 500 * M, **other)  # type: ignore[arg-type]


def static(*sites: SiteInput, hub: HubInput | None = None) -> Option:
    found = options(steady(), sites, hub or HubInput())
    return next(option for option in found if option.transport is Transport.STATIC_CIRCUIT)


def on_circuit(name: str, rate: int = 450, **path: float) -> SiteInput:
    return SiteInput(name, Path(**path), circuit=CircuitOffer(17, rate * M))


def test_a_circuit_is_offered_at_its_measured_rate() -> None:
    offers = CircuitOffers([CIRCUIT], [row("a"), row("b", 430)])
    assert offers.to("a") == CircuitOffer(17, 450 * M)
    assert offers.to("b") == CircuitOffer(17, 430 * M)
    assert (offers.to("c"), offers.why_not("c"), offers.why_not("a")) == (None, None, None)


def test_an_end_that_falls_short_is_not_offered_and_the_others_are() -> None:
    degraded = replace(CIRCUIT, state=CircuitState.DEGRADED, reason="250 Mb/s of 500 Mb/s get to b")
    offers = CircuitOffers([degraded], [row("a"), row("b", 250, sentence="a policer at 250 Mb/s is in the path")])
    assert offers.to("a") is not None
    assert offers.why_not("b") == "b: circuit 17 is degraded: a policer at 250 Mb/s is in the path"


@pytest.mark.parametrize("state", [state for state in CircuitState if state not in ("active", "degraded")])
def test_what_does_not_stand_and_carry_is_not_offered(state: CircuitState) -> None:
    offers = CircuitOffers([replace(CIRCUIT, state=state, reason="so it is")], [row("a")])
    assert offers.to("a") is None
    assert offers.why_not("a") == f"a: circuit 17 is {state}: so it is"


def test_what_was_never_measured_is_not_offered() -> None:
    assert CircuitOffers([CIRCUIT]).to("a") is None


def test_of_two_circuits_the_wider_one_is_offered_and_a_bad_one_does_not_hide_a_good_one() -> None:
    wide = replace(CIRCUIT, number=18)
    down = replace(CIRCUIT, number=19, state=CircuitState.DOWN)
    offers = CircuitOffers([CIRCUIT, wide, down], [row("a", 410), row("a", 440, circuit=18), row("a", circuit=19)])
    assert offers.to("a") == CircuitOffer(18, 440 * M)
    assert offers.why_not("a") is None


def test_other_feeds_leave_less_and_never_nothing() -> None:
    assert without(CircuitOffer(17, 100 * M), 0.0) == CircuitOffer(17, 100 * M)
    assert without(CircuitOffer(17, 100 * M), 50e6).rate_bps == pytest.approx(47.6e6, rel=0.01)
    assert without(CircuitOffer(17, 100 * M), 500e6).rate_bps == 10 * M


def test_without_circuits_the_option_says_why() -> None:
    assert static(SiteInput("a")).reason == NO_CIRCUITS
    bad = SiteInput("a", no_circuit="a: circuit 17 is down: cut")
    assert static(bad, SiteInput("b")).reason == "no circuit can be used (a: circuit 17 is down: cut)"


def test_circuits_serve_those_who_have_one_and_the_rest_gets_copies() -> None:
    option = static(on_circuit("a"), SiteInput("b"), on_circuit("c"))
    assert (option.feasible, option.circuit_sites, option.unicast_sites) == (True, (("a", 17), ("c", 17)), ("b",))
    assert option.reason == "2 circuits, 1 site by unicast"


def test_a_circuit_that_is_narrower_than_the_feed_is_infeasible() -> None:
    option = static(on_circuit("a", rate=0))
    assert not option.feasible
    assert "on average and its circuit has" in option.reason


def test_the_prediction_is_that_of_the_circuit_not_of_the_crowded_hub() -> None:
    """What is reserved is not shared with other feeds."""
    crowded = HubInput(egress_bps=20e6)
    own = static(on_circuit("a", rate=100), hub=crowded).prediction
    routed = next(one for one in options(steady(), [SiteInput("a")], crowded) if one.transport is Transport.UNICAST)
    assert own is not None
    assert routed.prediction is not None
    assert own.p99_ms < routed.prediction.p99_ms


def question(*sites: SiteInput, objective_ms: float, hub: HubInput | None = None) -> Question:
    rules = Rules(agreeing_windows=1, dwell_s=0)
    return Question(steady(), sites, hub or HubInput(), objective_ms, now_s=0.0, rules=rules)


def test_a_circuit_is_chosen_where_the_routed_path_misses_the_objective_and_left_when_it_dies() -> None:
    slow = Path(access_bps=200_000.0)
    routed = SiteInput("a", slow)
    probe = question(routed, objective_ms=100_000)
    unicast_ms = decide(probe).option(Transport.UNICAST).p99_ms
    wide = replace(on_circuit("a"), path=Path())
    asked = question(wide, objective_ms=unicast_ms, hub=HubInput(egress_bps=200_000.0))
    decision = decide(asked)
    assert decision.option(Transport.STATIC_CIRCUIT).p99_ms < decision.option(Transport.UNICAST).p99_ms
    gone = replace(wide, circuit=None, no_circuit="a: circuit 17 is down: cut")
    again = replace(
        asked, sites=(gone,), memory=replace(asked.memory, transport=Transport.STATIC_CIRCUIT), look=False
    )
    left = decide(again)
    assert left.transport is not Transport.STATIC_CIRCUIT
    assert left.because is not Because.WAITING
    assert "static-circuit is not possible: no circuit can be used (a: circuit 17 is down: cut)" in reason(
        again, left
    )


def test_at_an_equal_price_a_feed_stays_where_it_is() -> None:
    asked = question(on_circuit("a"), objective_ms=60_000)
    assert decide(asked).transport is Transport.UNICAST
    riding = replace(asked, memory=replace(asked.memory, transport=Transport.STATIC_CIRCUIT))
    assert decide(riding).transport is Transport.STATIC_CIRCUIT
    assert "circuit 17" in reason(riding, decide(riding))


def test_the_leg_names_the_circuit_of_each_site() -> None:
    option = static(on_circuit("c"), SiteInput("b"), on_circuit("a"))
    unicast, riding = legs_of(option, unicast_leg=7, group=None, circuit_leg=9)
    assert unicast == Leg(7, Transport.UNICAST, ("b",))
    assert riding == Leg(9, Transport.STATIC_CIRCUIT, ("a", "c"), circuits=(("a", 17), ("c", 17)))
    alone = legs_of(static(on_circuit("a")), unicast_leg=7, group=None, circuit_leg=9)
    assert [leg.leg for leg in alone] == [9]
