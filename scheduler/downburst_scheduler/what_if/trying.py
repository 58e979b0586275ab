"""Other conditions tried on the inputs of the live planner."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from downburst.domain.plans import Conditions, Judgement, OtherConditions, TrafficSpan, Transport, WhatIf
from downburst.foundation.errors import NothingToCompare
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import sites_of
from downburst_scheduler.planner import Decision, Question, decide
from downburst_scheduler.sentences import reason, swept_rates
from downburst_scheduler.what_if.conditions import today_of, under
from downburst_scheduler.what_if.flips import flips_of


@dataclass(frozen=True, slots=True)
class Inputs:
    """The live planner's inputs for a feed, and its busiest arrivals of the last day."""

    question: Question
    busiest: Arrivals
    busiest_age_s: float
    """The time since the end of these arrivals."""

    def of(self, traffic: TrafficSpan) -> tuple[Question, float]:
        """The question about these arrivals, and the time since their begin."""
        if traffic is TrafficSpan.NOW:
            return self.question, self.question.arrivals.span_s
        return replace(self.question, arrivals=self.busiest), self.busiest_age_s + self.busiest.span_s


def try_other(
    feed: str, inputs: Inputs, other: OtherConditions, *, may_search: Callable[[], bool] = lambda: True
) -> WhatIf:
    """The planner's decision today and under other conditions, with the values at which it flips.

    These are searched as long as `may_search` says so.
    """
    _need_figures(feed, inputs, other)
    question, begun_s_ago = inputs.of(other.traffic)
    today, asked = today_of(question), under(question, other)
    decision, tried = decide(asked), today_of(asked)

    def choose(there: OtherConditions) -> Transport:
        return decide(under(question, there)).transport

    flips, complete = flips_of(tried, other, decision.transport, choose, may_go_on=may_search)
    return WhatIf(
        feed=feed,
        today=today,
        tried=tried,
        traffic=other.traffic,
        products=len(question.arrivals.at_s),
        span_s=question.arrivals.span_s,
        mean_bps=question.arrivals.mean_bps,
        begun_s_ago=begun_s_ago,
        now=judged(inputs.question, decide(inputs.question)),
        then=judged(asked, decision),
        flips=flips,
        complete=complete,
        notes=tuple(_notes(inputs.question, today, other)),
    )


def judged(question: Question, decision: Decision) -> Judgement:
    """A decision in the form of a plan."""
    sentence = "; ".join([reason(question, decision), *swept_rates(decision)])
    return Judgement(decision.transport, sentence, decision.candidates)


def _need_figures(feed: str, inputs: Inputs, other: OtherConditions) -> None:
    """Raises the reason why there is nothing to compare."""
    if not inputs.question.sites:
        raise NothingToCompare(
            f"no site takes {feed}, so no path is known to compare transports on; add a subscription first: "
            f"downburst subscriptions add SITE {feed}"
        )
    question, _ = inputs.of(other.traffic)
    if len(question.arrivals.at_s) == 0:
        when = (
            f"in the last {question.arrivals.span_s:.0f} s" if question.arrivals.span_s else "since the hub started"
        )
        instead = ", or try its busiest minutes of the last day" if len(inputs.busiest.at_s) else ""
        raise NothingToCompare(f"no product of {feed} came {when}; try again after the next products{instead}")


def _notes(question: Question, today: Conditions, other: OtherConditions) -> list[str]:
    notes = []
    if other.sites is not None and other.sites > today.sites:
        more = sites_of(other.sites - today.sites)
        notes.append(f"{more} more are taken to be like the present ones, without reserved circuits")
    if other.sites is not None and other.sites < today.sites:
        notes.append(f"{other.sites} of the {today.sites} sites are taken, in an order that is always the same")
    if other.setup_s is not None and today.setup_s is None:
        notes.append("no offer of circuits on demand reaches a site, so the set-up time has no effect")
    if question.pin is not None:
        notes.append(f"the feed is pinned by {question.pin.by}, and the pin holds under other conditions as well")
    if question.mistrust is not None:
        notes.append(question.mistrust)
    return notes
