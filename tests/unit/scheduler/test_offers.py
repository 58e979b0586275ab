"""Circuit offers: at the measured rate, to sites whose ends are good, and the choice among them."""

from dataclasses import replace

import pytest

from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, CircuitState, Direction, Measured
from downburst.domain.plans import Leg, Transport
from downburst_scheduler.legs import legs_of
from downburst_scheduler.models.candidates import Evaluated, compare
from downburst_scheduler.models.offers import CircuitOffer, CircuitOffers, without
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.planner import Because, Memory, Question, Rules, decide
from downburst_scheduler.sentences import NO_CIRCUITS, reason
from factories import SOME_TIME
from unit.scheduler.feeds import live, steady

M = 1_000_000
ENDS = (CircuitEnd("hub-eth0"), CircuitEnd("a-eth1", "a"), CircuitEnd("b-eth1", "b"))
CIRCUIT = Circuit(17, CircuitRequest("r"), ENDS, 500 * M, 0, SOME_TIME, None, state=CircuitState.ACTIVE)


def row(site: str = "a", rate: int = 450, circuit: int = 17, **other: str) -> Measured:
    return Measured(circuit, site, Direction.OUT, SOME_TIME, rate * M, 500 * M, **other)  # type: ignore[arg-type]


def candidate(transport: Transport, *sites: SiteFacts, egress_bps: float = 1e9) -> Evaluated:
    found = compare(steady(), live(*sites, egress_bps=egress_bps)).candidates
    return next(one for one in found if one.transport is transport)


def static(*sites: SiteFacts, egress_bps: float = 1e9) -> Evaluated:
    return candidate(Transport.STATIC_CIRCUIT, *sites, egress_bps=egress_bps)


def site(name: str, **other: object) -> SiteFacts:
    return SiteFacts(name=name, **other)  # type: ignore[arg-type]


def on_circuit(name: str, rate: int = 450) -> SiteFacts:
    return site(name, circuit=CircuitOffer(17, rate * M))


def test_a_circuit_is_offered_at_its_measured_rate() -> None:
    offers = CircuitOffers([CIRCUIT], [row("a"), row("b", 430)])
    assert offers.to("a") == CircuitOffer(17, 450 * M, sites=2, group_bps=430 * M)
    assert offers.to("b") == CircuitOffer(17, 430 * M, sites=2, group_bps=430 * M)
    assert (offers.group_bps(17), offers.group_bps(18)) == (430 * M, 0)
    assert (offers.to("c"), offers.why_not("c"), offers.why_not("a")) == (None, None, None)


def test_a_circuit_is_offered_to_the_node_at_which_it_begins() -> None:
    offers = CircuitOffers([CIRCUIT], [row("a"), row("b", 250)], [(17, "one")])
    assert offers.to("a", "one") is not None
    assert offers.to("a") is None
    assert offers.why_not("a") == "a: the hub's own node serves it, and circuit 17 begins at the sender one"
    assert offers.why_not("b", "one") == "b: circuit 17 is active"
    assert offers.why_not("b") is None, "no circuit is good there"
    assert offers.group_bps(17) == 450 * M


def test_an_end_that_falls_short_is_not_offered_and_the_others_are() -> None:
    degraded = replace(CIRCUIT, state=CircuitState.DEGRADED, reason="250 Mb/s of 500 Mb/s get to b")
    offers = CircuitOffers([degraded], [row("a"), row("b", 250, sentence="a policer at 250 Mb/s is in the path")])
    assert offers.to("a") is not None
    assert offers.why_not("b") == "b: circuit 17 is degraded: a policer at 250 Mb/s is in the path"
    just_measured = CircuitOffers([CIRCUIT], [row("b", 250, sentence="a policer at 250 Mb/s is in the path")])
    assert just_measured.why_not("b") == "b: circuit 17 carries too little: a policer at 250 Mb/s is in the path"


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
    assert offers.to("a") == CircuitOffer(18, 440 * M, sites=2, group_bps=440 * M)
    assert offers.why_not("a") is None


def test_other_feeds_leave_less_and_never_nothing() -> None:
    assert without(CircuitOffer(17, 100 * M), 0.0) == CircuitOffer(17, 100 * M)
    assert without(CircuitOffer(17, 100 * M), 50e6).rate_bps == pytest.approx(45.8e6, rel=0.01)
    assert without(CircuitOffer(17, 100 * M), 500e6).rate_bps == 10 * M


def test_without_circuits_the_option_says_why() -> None:
    assert static(site("a")).reason == NO_CIRCUITS
    bad = site("a", no_circuit="a: circuit 17 is down: cut")
    assert static(bad, site("b")).reason == "no circuit can be used (a: circuit 17 is down: cut)"


def test_circuits_serve_those_who_have_one_and_the_rest_gets_copies() -> None:
    option = static(on_circuit("a"), site("b"), on_circuit("c"))
    assert (option.feasible, option.circuit_sites, option.unicast_sites) == (True, (("a", 17), ("c", 17)), ("b",))
    assert option.reason == "2 circuits, 1 site by unicast"


def test_a_circuit_that_is_narrower_than_the_feed_is_no_use() -> None:
    option = static(on_circuit("a", rate=1))
    assert not option.feasible
    assert "on average and its circuit has" in option.reason


def test_who_has_a_narrow_circuit_gets_copies_beside_those_who_ride() -> None:
    option = static(on_circuit("a", rate=1), on_circuit("b"))
    assert (option.circuit_sites, option.unicast_sites) == ((("b", 17),), ("a",))
    assert option.reason.startswith("circuit 17, 1 site by unicast (a takes 1.60 Mb/s on average and its circuit has")


def test_the_prediction_is_that_of_the_circuit_not_of_the_crowded_hub() -> None:
    """A reserved rate is not shared with other feeds."""
    own = static(on_circuit("a", rate=100), egress_bps=20e6)
    routed = candidate(Transport.UNICAST, site("a"), egress_bps=20e6)
    assert 0 < own.quantile_ms(0.99) < routed.quantile_ms(0.99)


def question(*sites: SiteFacts, memory: Memory, objective_s: float = 60.0, egress_bps: float = 1e9) -> Question:
    situation = live(*sites, objective=Objective(0.99, objective_s), egress_bps=egress_bps)
    return Question(steady(), situation, now_s=0.0, memory=memory, rules=Rules(agreeing_windows=1, dwell_s=0))


STARTED = Memory(chosen_at_s=-1e9)
RIDING = Memory(Transport.STATIC_CIRCUIT, chosen_at_s=-1e9)


def test_a_circuit_is_chosen_where_the_routed_port_is_full() -> None:
    decision = decide(question(on_circuit("a"), memory=STARTED, egress_bps=1e6))
    assert (decision.transport, decision.because) == (Transport.STATIC_CIRCUIT, Because.CHEAPEST)
    assert "the hub has 1.00 Mb/s" in decision.option(Transport.UNICAST).reason


def test_a_circuit_that_dies_is_left_at_once_and_no_change_is_counted() -> None:
    patient = Rules(agreeing_windows=99, dwell_s=1e9, changes_per_day=0, dry_run=True)
    gone = site("a", no_circuit="a: circuit 17 is down: cut")
    asked = replace(question(gone, memory=RIDING), rules=patient, look=False, mistrust="its predictions are wrong")
    left = decide(asked)
    assert (left.transport, left.because, left.memory.changed_at_s) == (Transport.UNICAST, Because.FALLBACK, ())
    why = "fallback, static-circuit is no longer possible (no circuit can be used (a: circuit 17 is down: cut))"
    assert why in reason(asked, left)


def test_at_an_equal_price_a_feed_stays_where_it_is() -> None:
    assert decide(question(on_circuit("a"), memory=STARTED)).transport is Transport.UNICAST
    riding = question(on_circuit("a"), memory=RIDING)
    assert decide(riding).transport is Transport.STATIC_CIRCUIT
    assert "circuit 17" in reason(riding, decide(riding))


def test_the_leg_names_the_circuit_of_each_site() -> None:
    option = static(on_circuit("c"), site("b"), on_circuit("a"))
    unicast, riding = legs_of(option, unicast_leg=7, circuit_leg=9)
    assert unicast == Leg(7, Transport.UNICAST, ("b",))
    assert riding == Leg(9, Transport.STATIC_CIRCUIT, ("a", "c"), circuits=(("a", 17), ("c", 17)))
    alone = legs_of(static(on_circuit("a")), unicast_leg=7, circuit_leg=9)
    assert [leg.leg for leg in alone] == [9]
