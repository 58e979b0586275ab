"""The rate that a site's line carries, by what arrives while its group loses packets, and the way to faster rates.

A line of capacity `c` that is sent more than that loses packets, and what arrives is `c`, whatever was sent. The
site's host measures it, with everything else that the line carries. So one lossy rate shows the capacity, and the
site belongs to a group no faster than that. Several seconds have to agree about it: in a stall less arrives. Loss
that hardly falls at a lower rate is noise: repair is for it, and it limits nothing.

A limit ends by a trial: the site goes at a faster rate, and stays there if it loses nothing for some seconds. If it
loses, it goes back, and waits twice as long for the next trial. A line that carried more before is tried sooner. A
site that left its group before anything was measured is tried soonest: in the slowest group that is known, else in
its former one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypedDict


@dataclass(frozen=True, slots=True)
class TrialRules:
    """Times in real seconds, already divided by the time scale."""

    return_s: float = 90.0
    """Until the first trial of a line that carried more before."""
    retry_s: float = 1_800.0
    """Until that of a line that never did."""
    rejoin_s: float = 15.0
    """Until that of a site that left a group unmeasured: longer than its losses count, at any time scale."""
    enabled: bool = True
    """False: losses set no limits."""

    @property
    def longest_s(self) -> float:
        """The longest time between two trials."""
        return LONGEST_RETRIES * self.retry_s


@dataclass(frozen=True, slots=True)
class Point:
    """The loss of a site at about one rate; old packets weigh less."""

    rate_bps: float
    packets: float
    lost: float
    at_s: float
    arrived_bps: float | None = None
    """Everything that arrived at the site in that time; None: it was not measured there."""

    @property
    def loss(self) -> float:
        """The share of lost packets."""
        return self.lost / self.packets

    @property
    def received_bps(self) -> float:
        """What arrived: as measured, or the rate less the loss."""
        return self.rate_bps * (1 - self.loss) if self.arrived_bps is None else self.arrived_bps

    def faded(self, now_s: float) -> "Point":
        """The point with its packets weighed by their age."""
        weight = 0.5 ** ((now_s - self.at_s) / HALF_LIFE_S)
        return replace(self, packets=self.packets * weight, lost=self.lost * weight, at_s=now_s)


@dataclass(frozen=True, slots=True)
class Excess:
    """Losses that were seen and are not judged yet."""

    seconds: tuple[Point, ...]
    """The oldest first."""

    @property
    def at_s(self) -> float:
        """The time of the last one."""
        return self.seconds[-1].at_s

    @property
    def rate_bps(self) -> float:
        """The lowest rate with such a loss."""
        return min(second.rate_bps for second in self.seconds)

    def agreed(self, count: int) -> Point | None:
        """The median of so many last seconds by what arrived, if these agree."""
        last = sorted(self.seconds[-count:], key=lambda second: second.received_bps)
        agree = len(last) == count and last[-1].received_bps <= last[0].received_bps * AGREE
        return last[(count - 1) // 2] if agree else None


@dataclass(frozen=True, slots=True)
class Trial:
    """A faster rate that a site is tried at."""

    target_bps: float
    """Infinite: the fastest group."""
    since_s: float
    clean_s: int = 0
    """Seconds at a faster rate than the limit without loss."""


@dataclass(frozen=True, slots=True)
class Line:
    """The knowledge of one site's line, from the groups of one feed."""

    limit_bps: float | None = None
    """The rate for its group, less than its capacity; None: no limit is known."""
    seen: Point | None = None
    """The loss that set the limit."""
    carried_bps: float = 0.0
    """The highest rate that it was seen to carry without loss."""
    noise: float = 0.0
    """Loss that is independent of the rate."""
    points: tuple[Point, ...] = ()
    excess: Excess | None = None
    left_s: float = -math.inf
    """The time at which the site left a group as too fast."""
    fell_s: float = -math.inf
    """The last time at which it began to carry less than before."""
    retry_at_s: float = math.inf
    backoff_s: float = 0.0
    trial: Trial | None = None

    @property
    def usable_bps(self) -> float | None:
        """The rate at which its group may go; None: as fast as any."""
        if self.trial is None:
            return self.limit_bps
        return self.trial.target_bps if math.isfinite(self.trial.target_bps) else None


class Waits(TypedDict):
    """Fields of a line about its next trial."""

    backoff_s: float
    retry_at_s: float
    fell_s: float


def observed(line: Line, tried: Point, rules: TrialRules) -> Line:
    """The line after a second in which its group was sent at a rate.

    Few packets say nothing, nor does a second in which nothing arrived: that was no line. Without a measurement at
    the site, losses are no word about its line: requests tell not all of them, and copies take a part of it. Where
    more arrives than the group is sent, the line carries the group, and what is beside it causes the losses.
    """
    if tried.packets < TELLING_PACKETS or tried.lost >= tried.packets:
        return line
    is_tolerated = tried.loss <= max(TOLERATED, NOISE_ROOM * line.noise)
    if not is_tolerated and (tried.arrived_bps is None or tried.rate_bps <= tried.arrived_bps):
        return line
    line = replace(line, points=_with(line.points, tried))
    if is_tolerated:
        return _carried(line, tried, rules)
    return _judged(replace(line, excess=_more(line.excess, tried)), tried.at_s, rules)


def left(line: Line, now_s: float, rules: TrialRules) -> Line:
    """The line after its site left a group as too fast: that confirms the losses seen shortly before or after."""
    judged = _judged(replace(line, left_s=now_s), now_s, rules)
    is_unknown = judged.limit_bps is None and judged.noise == line.noise
    if not is_unknown and (line.trial is None or judged.trial is None):
        return judged
    again = not is_unknown or now_s - line.left_s <= STEADY * line.backoff_s
    backoff_s = min(2 * line.backoff_s, rules.longest_s) if again else rules.rejoin_s
    return replace(judged, trial=None, backoff_s=backoff_s, retry_at_s=now_s + backoff_s)


def probed(line: Line, knee_bps: float, now_s: float) -> Line:
    """The line after a sweep of its path: a knee above the limit makes the next trial due."""
    if line.limit_bps is None:
        return line
    known_bps = max(line.limit_bps, line.seen.received_bps if line.seen else 0.0)
    if knee_bps <= known_bps * FASTER:
        return line
    return replace(line, retry_at_s=min(line.retry_at_s, now_s))


def stepped(lines: Mapping[str, Line], now_s: float, rules: TrialRules) -> dict[str, Line]:
    """The lines of a feed's sites with the trials that are due; one at a time, so that most of a group are well.

    A slow site is tried in the next faster group, one of which nothing is known in the slowest. The sites of the
    fastest group are tried together, half as fast again.
    """
    found = {site: _without_verdict(line, now_s, rules) for site, line in lines.items()}
    limits = {site: line.limit_bps for site, line in found.items()}
    due = sorted((line.retry_at_s, site) for site, line in found.items() if line.retry_at_s <= now_s)
    if not due or any(line.trial for line in found.values()):
        return found
    first = due[0][1]
    own_bps = limits[first] or 0.0
    faster = [limit or math.inf for limit in limits.values() if (limit or math.inf) > own_bps * ALIKE]
    tried = [first]
    if not faster:
        tried = [site for site, limit in limits.items() if limit and own_bps <= limit * ALIKE]
    target_bps = min(faster, default=own_bps * RAISE)
    return found | {site: replace(found[site], trial=Trial(target_bps, now_s), excess=None) for site in tried}


def _carried(line: Line, tried: Point, rules: TrialRules) -> Line:
    """After a second without loss: the line is proven to carry the rate, or its trial comes closer to it."""
    # A lower rate without loss is no word against the loss at a higher one.
    excess = line.excess if line.excess and tried.rate_bps * FASTER < line.excess.rate_bps else None
    line = replace(line, excess=excess, carried_bps=max(line.carried_bps, tried.rate_bps))
    if line.trial is None or (line.limit_bps and tried.rate_bps <= line.limit_bps * FASTER):
        return line
    trial = replace(line.trial, clean_s=line.trial.clean_s + 1)
    if trial.clean_s < PROVEN_SECONDS:
        return replace(line, trial=trial)
    if math.isinf(trial.target_bps):
        return replace(line, limit_bps=None, seen=None, trial=None, retry_at_s=math.inf)
    limit_bps = min(trial.target_bps, tried.rate_bps)
    if line.limit_bps is None:
        return _rejoined(line, limit_bps, tried.at_s, rules)
    return replace(line, limit_bps=limit_bps, trial=None, retry_at_s=tried.at_s + rules.retry_s)


def _judged(line: Line, now_s: float, rules: TrialRules) -> Line:
    """After losses: noise, or a limit at what arrived, once enough seconds agree about it."""
    excess = line.excess
    lately = now_s - line.left_s <= LEFT_LATELY_S
    if excess is None or now_s - excess.at_s > LEFT_LATELY_S:
        return line
    needed = CONFIRMED_SECONDS if lately or line.trial else SURE_SECONDS
    if lately and excess.seconds[-1].loss <= PLAUSIBLE:
        needed = 1
    agreed = excess.agreed(needed)
    if agreed is None:
        return line
    if _is_noise(line, excess.rate_bps, agreed, now_s):
        noise = max(line.noise, agreed.loss)
        return replace(line, noise=noise, limit_bps=None, seen=None, excess=None, trial=None, retry_at_s=math.inf)
    limit_bps = agreed.received_bps * MARGIN
    if line.trial is None and line.limit_bps is not None:
        limit_bps = min(limit_bps, line.limit_bps)
    waits = _waits(line, limit_bps, now_s, rules)
    return replace(line, limit_bps=limit_bps, seen=agreed, excess=None, trial=None, **waits)


def _waits(line: Line, limit_bps: float, now_s: float, rules: TrialRules) -> "Waits":
    """The wait for the next trial after a loss; the more often it was in vain, the longer."""
    wait_s, fell_s = line.backoff_s, line.fell_s
    if line.trial is not None and line.limit_bps is not None:
        improved = limit_bps > line.limit_bps * FASTER
        wait_s = wait_s if improved else min(2 * wait_s, rules.longest_s)
    elif line.limit_bps is not None and (limit_bps * FASTER >= line.limit_bps or now_s - fell_s <= wait_s):
        # A better value of the same limit.
        return {"backoff_s": wait_s, "retry_at_s": line.retry_at_s, "fell_s": fell_s}
    elif line.carried_bps <= limit_bps * FASTER:
        wait_s = rules.retry_s
    else:
        again = now_s - fell_s <= STEADY * wait_s
        wait_s, fell_s = min(2 * wait_s, rules.longest_s) if again else rules.return_s, now_s
    return {"backoff_s": wait_s, "retry_at_s": now_s + wait_s, "fell_s": fell_s}


def _is_noise(line: Line, rate_bps: float, agreed: Point, now_s: float) -> bool:
    """True if the loss at this rate hardly fell since a faster one: that of a full line would have."""
    if agreed.loss > MOST_NOISE:
        return False
    for point in line.points:
        before = point.faded(now_s)
        if before.rate_bps < rate_bps * FASTER or before.packets < TELLING_PACKETS:
            continue
        expected = max(1 - before.received_bps / rate_bps, 0.0)
        if (expected + before.loss) / 2 < agreed.loss <= before.loss * NOISE_ROOM:
            return True
    return False


def _without_verdict(line: Line, now_s: float, rules: TrialRules) -> Line:
    """A trial that saw no traffic at a faster rate ends; the next one is not later for it."""
    if line.trial is None or now_s - line.trial.since_s < TRIAL_ENDS_S:
        return line
    if line.limit_bps is None:
        return _rejoined(line, line.trial.target_bps, now_s, rules)
    return replace(line, trial=None, excess=None, retry_at_s=now_s + line.backoff_s)


def _rejoined(line: Line, rate_bps: float, now_s: float, rules: TrialRules) -> Line:
    """The line of a site that came back to a group before it was ever measured.

    It stays there, and is soon tried at a faster rate: perhaps its host stood still, and its line is fast.
    """
    if math.isinf(rate_bps):
        return replace(line, trial=None, excess=None, retry_at_s=math.inf)
    wait_s = max(line.backoff_s, rules.return_s)
    return replace(line, limit_bps=rate_bps, trial=None, excess=None, backoff_s=wait_s, retry_at_s=now_s + wait_s)


def _more(excess: Excess | None, tried: Point) -> Excess:
    """The losses with another one; of two rates in one second the one with more packets counts."""
    before = [one for one in excess.seconds if tried.at_s - one.at_s <= FORGOTTEN_S] if excess else []
    if before and tried.at_s <= before[-1].at_s:
        tried = max(before.pop(), tried, key=lambda one: one.packets)
    return Excess((*before[-(SURE_SECONDS - 1) :], tried))


def _with(points: tuple[Point, ...], tried: Point) -> tuple[Point, ...]:
    """The points with another second, which joins one at about the same rate; few rates are kept."""
    near = next((one for one in points if abs(math.log(one.rate_bps / tried.rate_bps)) < SAME_RATE), None)
    rest = [one for one in points if one is not near]
    if near is not None:
        before = near.faded(tried.at_s)
        tried = replace(tried, packets=before.packets + tried.packets, lost=before.lost + tried.lost)
    return (*rest[-(MOST_POINTS - 1) :], tried)


TELLING_PACKETS = 100
TOLERATED = 0.03
"""Loss that repair is for; the rate of a leg follows above 2 %."""
MARGIN = 0.95
"""The rest of a line is for repairs, requests and other sessions."""
SURE_SECONDS = 3
"""A stall of a machine loses packets in one or two seconds, at no steady rate."""
CONFIRMED_SECONDS = 2
"""The same for a site that has just left its group, or is tried at a faster rate."""
PLAUSIBLE = 0.95
"""With more loss, the leave of a site may be that of one that stopped, and one second is no measure of its line."""
AGREE = 1.25
"""A thread that wakes late by 20 ms shifts the ends of the shortest measurement by a tenth each."""
LEFT_LATELY_S = 10.0
"""A site leaves when repair falls behind, some seconds after the losses."""
FORGOTTEN_S = 60.0
FASTER = 1.1
ALIKE = 1.25
RAISE = 1.5
PROVEN_SECONDS = 4
TRIAL_ENDS_S = 60.0
LONGEST_RETRIES = 8
STEADY = 8
"""A line that was well for so many times the wait begins with the first one again."""
NOISE_ROOM = 1.5
MOST_NOISE = 0.2
"""With more, the node takes the site off its leg in any case."""
HALF_LIFE_S = 60.0
SAME_RATE = 0.05
MOST_POINTS = 12
