"""The saving if LDM sites ran a node: LDM only takes copies, whatever the transport of the others."""

from dataclasses import dataclass, replace

from downburst.domain.plans import Transport
from downburst_scheduler.figures.wording import megabits
from downburst_scheduler.models.candidates import best_of, evaluate
from downburst_scheduler.models.parts import asked_of
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.planner import Decision, Question
from downburst_scheduler.sentences import Figure


@dataclass(frozen=True, slots=True)
class Moving:
    """The sites of a feed that use LDM, and the feed's transport if they did not."""

    sites: int
    of: int
    transport: Transport
    saved_bps: float
    """Mean egress of the hub, less than now; negative if it would be more."""

    @property
    def sentence(self) -> str:
        """For the reason of a plan."""
        who = f"{self.sites} of {self.of} sites {'keeps' if self.sites == 1 else 'keep'} LDM and can't join a group"
        if self.saved_bps < WORTH_SAYING_BPS:
            return f"{who}; as nodes they would cost as much, with receipts and repair"
        return f"{who}; as nodes all would use {self.transport}, which saves {megabits(self.saved_bps)}"

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures by name; units are in the names."""
        return {
            "ldm_sites": self.sites,
            "ldm_moved_transport": self.transport.value,
            "ldm_moved_saves_bps": max(self.saved_bps, 0.0),
        }


def moving_of(question: Question, decision: Decision) -> Moving | None:
    """The effect of moving; None if no site uses LDM, or the traffic is unknown."""
    sites = question.situation.sites
    staying = sum(1 for site in sites if isinstance(site, SiteFacts) and site.keeps_ldm)
    if not staying or decision.chosen.outcome is None:
        return None
    as_nodes = tuple(_as_node(site) if isinstance(site, SiteFacts) else site for site in sites)
    moved = replace(question.situation, sites=as_nodes)
    best = best_of(evaluate(asked_of(question.arrivals, moved)), moved.objective)
    if best.outcome is None:
        return None
    saved_bps = decision.chosen.outcome.egress_bps - best.outcome.egress_bps
    return Moving(staying, len(sites), best.transport, saved_bps)


def _as_node(site: SiteFacts) -> SiteFacts:
    if not site.keeps_ldm:
        return site
    return replace(site, keeps_ldm=False, no_multicast=None, no_circuit_group=None, unheard=False)


WORTH_SAYING_BPS = 1_000.0
