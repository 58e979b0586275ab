"""Why a feed goes as it goes, in at most 60 characters: the clause beside its transport in a list.

The kind of reason and the candidates of the plan decide it, not its sentence, which may be any length.
"""

from downburst.deliveries.stages import duration
from downburst.domain.plans import Candidate, Plan, Transport
from downburst.foundation.rates import rate_text

LONGEST = 60
"""Characters of a clause; longer ones do not fit beside the chip of a row."""


def clause_of(plan: Plan) -> str:
    """The deciding figure of a plan, or the rule that decided."""
    because = str(plan.figures.get("because", ""))
    if because == "would-change":
        return f"dry run: it would change to {plan.figures.get('would_be')}"
    return RULES.get(because) or _by_figures(plan, because)


def _by_figures(plan: Plan, because: str) -> str:
    options = {one.transport: one for one in plan.candidates}
    chosen = options.get(plan.transport)
    if chosen is None or chosen.egress_bps is None:
        return "not measured yet"
    if because == "least-bad":
        return "no transport is possible; this one is the least bad"
    if because == "fastest" and chosen.predicted_p99_ms is not None:
        return f"over the objective, but the fastest: p99 {duration(chosen.predicted_p99_ms)}"
    if chosen.transport is Transport.UNICAST:
        return _of_unicast(chosen, options.get(Transport.MULTICAST), plan.figures.get("objective_ms"))
    return _instead_of_unicast(chosen, options.get(Transport.UNICAST))


def _of_unicast(chosen: Candidate, multicast: Candidate | None, objective_ms: object) -> str:
    copies_bps = chosen.egress_bps or 0.0
    if multicast is None or multicast.egress_bps is None or not multicast.feasible:
        return f"{rate_text(copies_bps)} of copies; no group is possible"
    p99_ms = multicast.predicted_p99_ms
    if isinstance(objective_ms, int | float) and p99_ms is not None and p99_ms > objective_ms:
        return f"a group would miss the objective: p99 {duration(p99_ms)}"
    saved_bps = copies_bps - multicast.egress_bps
    if saved_bps <= 0:
        return f"{rate_text(copies_bps)} of copies; a group would save nothing"
    return f"a group would save only {rate_text(saved_bps)}"


def _instead_of_unicast(chosen: Candidate, unicast: Candidate | None) -> str:
    spent_bps = chosen.egress_bps or 0.0
    if unicast is None or unicast.egress_bps is None:
        return f"{rate_text(spent_bps)} for all sites"
    if spent_bps < unicast.egress_bps:
        return f"{rate_text(spent_bps)}, by unicast {rate_text(unicast.egress_bps)}"
    if chosen.predicted_p99_ms is None or unicast.predicted_p99_ms is None:
        return f"{rate_text(spent_bps)}, as by unicast"
    return f"p99 {duration(chosen.predicted_p99_ms)}, by unicast {duration(unicast.predicted_p99_ms)}"


RULES = {
    "no-sites": "no site subscribes to the feed",
    "no-traffic": "no product measured yet",
    "quiet": "no product came, so the choice stays",
    "pinned": "pinned by an operator",
    "pin-infeasible": "the pinned transport is not possible, so this one stays",
    "fallback": "the transport before is not possible any more",
    "waiting": "another transport is preferred; its change waits",
    "budget-spent": "another is preferred; the changes of the day are used",
    "mistrusted": "another is preferred, but predictions do not hold",
}
"""By the planner's kind of reason: clauses that need no figure."""
