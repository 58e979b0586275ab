"""Groups of a feed's sites as parts of a plan: who hears which group at which pace."""

from collections.abc import Sequence
from dataclasses import replace

from downburst.model import Transport
from downburst_scheduler.models.grouping import GroupingRules, Receiver, grouped
from downburst_scheduler.models.parts import GROUP_SHARE_OF_EGRESS, Asked, Part
from downburst_scheduler.models.population import Alike, count_of, names_of
from downburst_scheduler.models.repair import repair_share
from downburst_scheduler.models.transports import multicast


def grouped_sites(
    asked: Asked, members: Sequence[Alike], *, limit_bps: float | None, most: int = 1
) -> tuple[Part, ...]:
    """One group, or the partition by rate with the least mean latency; `limit_bps` is that of a circuit's payload."""
    if most == 1:
        return (_group(asked, members, limit_bps),)
    fastest_bps = _fastest_bps(asked)
    receivers = [_receiver(str(number), one, fastest_bps) for number, one in enumerate(members)]
    receivers.sort(key=lambda one: one.rate_bps)
    rules = GroupingRules(fastest_bps, largest_groups=most)
    found = grouped(receivers, float(asked.arrivals.size_bytes.mean()), rules)
    chosen = [[members[int(number)] for number in group.sites] for group in found]
    return tuple(_group(asked, some, limit_bps) for some in chosen if count_of(some) > 1)


def _receiver(name: str, one: Alike, fastest_bps: float) -> Receiver:
    rate_bps = min(one.facts.access_bps or fastest_bps, fastest_bps)
    return Receiver(name, rate_bps, weight=one.facts.count, count=max(round(one.facts.count), 1))


def _group(asked: Asked, members: Sequence[Alike], limit_bps: float | None) -> Part:
    """At the pace of its slowest member."""
    fastest_bps = _fastest_bps(asked)
    paths = [replace(one.facts, loss=max(one.facts.loss, asked.situation.group_loss)) for one in members]
    rate_bps = min([fastest_bps, *(path.access_bps for path in paths if path.access_bps)])
    if limit_bps is not None and asked.figures:
        again = repair_share(asked.arrivals.size_bytes, [path.loss for path in paths], asked.situation.repair)
        rate_bps = min(rate_bps, limit_bps * (1 + float(again.max(initial=0.0))))
    part = Part(Transport.MULTICAST, names_of(members), rate_bps=rate_bps, limited=rate_bps < fastest_bps)
    if not asked.figures:
        return part
    reserved = limit_bps is not None
    arrivals = asked.for_groups
    outcome = multicast(arrivals, paths, rate_bps=rate_bps, repair=asked.situation.repair, reserved=reserved)
    return replace(part, outcome=outcome)


def _fastest_bps(asked: Asked) -> float:
    return min(asked.situation.multicast_rate_bps, GROUP_SHARE_OF_EGRESS * asked.situation.egress_bps)
