"""What could be done for a feed: every transport with its partition of the sites, its price and latency, or why not.

The price of a group counts one unicast copy more than what it sends: that much is kept free for a site that stops
hearing the group, so two sites alone don't make a group worth while.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from downburst.model import Transport
from downburst_scheduler import queueing
from downburst_scheduler.offers import CircuitOffer, rates_bps
from downburst_scheduler.queueing import Path, Prediction
from downburst_scheduler.traffic import Arrivals


@dataclass(frozen=True, slots=True)
class SiteInput:
    """A site that subscribes to the feed and may take it."""

    site: str
    path: Path = field(default_factory=Path)
    no_multicast: str | None = None
    """Why the site can't be in a group, as `<site> ...`; None if it can."""
    circuit: CircuitOffer | None = None
    """The circuit that may carry the feed to it."""
    no_circuit: str | None = None
    """Why its circuit can't, as `<site>: ...`; None if it has none, or a good one."""
    in_group: bool = False
    """Whether the plan in force serves it by multicast."""


@dataclass(frozen=True, slots=True)
class HubInput:
    """What the hub has for this feed."""

    egress_bps: float = 1e9
    """The capacity that other feeds leave."""
    multicast_rate_bps: float = 400e6
    repair_share: float = 0.0
    """Repair bytes over product bytes, as measured on the feed's groups."""
    no_multicast: str | None = None
    """Why the hub offers no groups at all; None if it does."""
    insists: bool = False
    """Whether an operator wants a group even if it gains nothing."""


@dataclass(frozen=True, slots=True)
class Option:
    """One transport for one feed, judged."""

    transport: Transport
    feasible: bool
    reason: str
    multicast_sites: tuple[str, ...] = ()
    unicast_sites: tuple[str, ...] = ()
    circuit_sites: tuple[tuple[str, int], ...] = ()
    """Sites that are served by circuits, each with the number of its own."""
    prediction: Prediction | None = None
    price_bps: float = 0.0
    """What the choice compares: egress, and one copy in reserve if there is a group."""

    @property
    def p99_ms(self) -> float:
        """The predicted p99; zero where nothing is predicted."""
        return self.prediction.p99_ms if self.prediction else 0.0


def options(arrivals: Arrivals, sites: Sequence[SiteInput], hub: HubInput) -> tuple[Option, ...]:
    """All transports; without arrivals there are no predictions."""
    return (
        _unicast(arrivals, sites, hub),
        _multicast(arrivals, sites, hub),
        _static_circuit(arrivals, sites, hub),
        Option(Transport.DYNAMIC_CIRCUIT, feasible=False, reason=NONE_ON_DEMAND),
    )


def _unicast(arrivals: Arrivals, sites: Sequence[SiteInput], hub: HubInput) -> Option:
    names = tuple(site.site for site in sites)
    reason = f"a copy to each of {len(names)} sites" if len(names) != 1 else "one copy to the only site"
    if len(arrivals.at_s) == 0 or not sites:
        return Option(Transport.UNICAST, feasible=True, reason=reason, unicast_sites=names)
    prediction = queueing.unicast(arrivals, _paths(sites), egress_bps=hub.egress_bps)
    overload = _overload(prediction, hub)
    return Option(
        Transport.UNICAST,
        feasible=overload is None,
        reason=overload or reason,
        unicast_sites=names,
        prediction=prediction,
        price_bps=prediction.egress_bps,
    )


def _multicast(arrivals: Arrivals, sites: Sequence[SiteInput], hub: HubInput) -> Option:
    able = [site for site in sites if site.no_multicast is None]
    refusal = hub.no_multicast or _too_few(sites, able)
    if refusal is not None:
        return Option(Transport.MULTICAST, feasible=False, reason=refusal)
    wanting = [site for site in able if not _takes_little(site)]
    if len(wanting) >= SMALLEST_GROUP:
        option = _grouped(arrivals, sites, wanting, hub)
        return option if option.feasible else _grouped(arrivals, sites, able, hub)
    if hub.insists or not _unicast(arrivals, sites, hub).feasible:
        return _grouped(arrivals, sites, able, hub)
    # Those who want little would throw away most of what a group brings them, so nobody gains by their joining.
    reason = f"only {_sites(len(wanting))} of {len(sites)} would keep at least {LITTLE:.0%} of what a group carries"
    return Option(Transport.MULTICAST, feasible=False, reason=reason)


def _grouped(arrivals: Arrivals, sites: Sequence[SiteInput], members: Sequence[SiteInput], hub: HubInput) -> Option:
    inside = {site.site for site in members}
    rest = [site for site in sites if site.site not in inside]
    option = Option(
        Transport.MULTICAST,
        feasible=True,
        reason=_partition(len(members), rest),
        multicast_sites=tuple(site.site for site in members),
        unicast_sites=tuple(site.site for site in rest),
    )
    if len(arrivals.at_s) == 0:
        return option
    return _priced(option, arrivals, members, rest, hub)


def _priced(
    option: Option, arrivals: Arrivals, members: Sequence[SiteInput], rest: Sequence[SiteInput], hub: HubInput
) -> Option:
    rate_bps = min(hub.multicast_rate_bps, GROUP_SHARE_OF_EGRESS * hub.egress_bps)
    group = queueing.multicast(arrivals, _paths(members), rate_bps=rate_bps, repair_share=hub.repair_share)
    prediction = group
    if rest:
        left_bps = max(hub.egress_bps - rate_bps, (1 - GROUP_SHARE_OF_EGRESS) * hub.egress_bps)
        copies = queueing.unicast(arrivals, _paths(rest), egress_bps=left_bps)
        prediction = queueing.together(group, len(members), copies, len(rest))
    refusal = _overload(prediction, hub)
    if group.egress_bps > rate_bps:
        refusal = f"it carries {megabits(group.egress_bps)} on average and the group's rate is {megabits(rate_bps)}"
    return Option(
        option.transport,
        feasible=refusal is None,
        reason=refusal or option.reason,
        multicast_sites=option.multicast_sites,
        unicast_sites=option.unicast_sites,
        prediction=prediction,
        price_bps=prediction.egress_bps + arrivals.mean_bps,
    )


def _static_circuit(arrivals: Arrivals, sites: Sequence[SiteInput], hub: HubInput) -> Option:
    """One circuit to each site that has a good one; the others get copies over the routed path."""
    offers = {site.site: site.circuit for site in sites if site.circuit is not None}
    if not offers:
        return Option(Transport.STATIC_CIRCUIT, feasible=False, reason=_no_circuit(sites))
    served = [site for site in sites if site.circuit is not None]
    rest = [site for site in sites if site.circuit is None]
    option = Option(
        Transport.STATIC_CIRCUIT,
        feasible=True,
        reason=_circuits(offers, rest),
        unicast_sites=tuple(site.site for site in rest),
        circuit_sites=tuple((name, offer.circuit) for name, offer in offers.items()),
    )
    if len(arrivals.at_s) == 0:
        return option
    narrow = next((site for site in served if _fuller_than(arrivals, site)), None)
    if narrow is not None:
        return replace(option, feasible=False, reason=_too_narrow(arrivals, narrow))
    prediction = queueing.unicast(arrivals, _on_circuits(served), egress_bps=rates_bps(offers))
    if rest:
        left_bps = max(hub.egress_bps - rates_bps(offers), (1 - GROUP_SHARE_OF_EGRESS) * hub.egress_bps)
        copies = queueing.unicast(arrivals, _paths(rest), egress_bps=left_bps)
        prediction = queueing.together(prediction, len(served), copies, len(rest))
    refusal = _overload(prediction, hub)
    return replace(
        option,
        feasible=refusal is None,
        reason=refusal or option.reason,
        prediction=prediction,
        price_bps=prediction.egress_bps,
    )


def _on_circuits(served: Sequence[SiteInput]) -> list[Path]:
    """Paths that are as wide as their circuits, whatever else the routed path carries."""
    wide = [(site.path, site.circuit.payload_bps) for site in served if site.circuit is not None]
    return [replace(path, access_bps=min(rate_bps, path.access_bps or rate_bps)) for path, rate_bps in wide]


def _fuller_than(arrivals: Arrivals, site: SiteInput) -> bool:
    return site.circuit is not None and arrivals.mean_bps * site.path.share > site.circuit.payload_bps


def _too_narrow(arrivals: Arrivals, site: SiteInput) -> str:
    rate = megabits(site.circuit.payload_bps if site.circuit else 0.0)
    mean = megabits(arrivals.mean_bps * site.path.share)
    return f"{site.site} takes {mean} on average and its circuit has {rate} left for products"


def _no_circuit(sites: Sequence[SiteInput]) -> str:
    bad = [site.no_circuit for site in sites if site.no_circuit is not None]
    told = [*bad[:3], *([f"and {len(bad) - 3} more"] if len(bad) > 3 else [])]
    return f"no circuit can be used ({'; '.join(told)})" if told else NO_CIRCUITS


def _circuits(offers: Mapping[str, CircuitOffer], rest: Sequence[SiteInput]) -> str:
    count = f"{len(offers)} circuits" if len(offers) != 1 else f"circuit {next(iter(offers.values())).circuit}"
    why = [site.no_circuit for site in rest if site.no_circuit is not None]
    told = f" ({'; '.join(why[:3])})" if why else ""
    return f"{count}, {_sites(len(rest))} by unicast{told}" if rest else count


def _takes_little(site: SiteInput) -> bool:
    """A member leaves later than an outsider would join, so that a share near the limit moves nobody."""
    return site.path.share < (LITTLE_FOR_A_MEMBER if site.in_group else LITTLE)


def _too_few(sites: Sequence[SiteInput], able: Sequence[SiteInput]) -> str | None:
    if len(able) >= SMALLEST_GROUP:
        return None
    unable = [site.no_multicast for site in sites if site.no_multicast is not None]
    told = [*unable[:3], *([f"and {len(unable) - 3} more"] if len(unable) > 3 else [])]
    why = f" ({', '.join(told)})" if told else ""
    return f"a group needs at least {SMALLEST_GROUP} sites that can join and there {_are(len(able))}{why}"


def _partition(members: int, rest: Sequence[SiteInput]) -> str:
    group = f"one group of {members} sites"
    if not rest:
        return group
    why = [site.no_multicast or f"{site.site} takes {site.path.share:.0%} of the feed" for site in rest]
    told = [*why[:3], *([f"and {len(why) - 3} more"] if len(why) > 3 else [])]
    return f"{group}, {_sites(len(rest))} by unicast ({', '.join(told)})"


def _overload(prediction: Prediction, hub: HubInput) -> str | None:
    if prediction.egress_bps <= hub.egress_bps:
        return None
    need, have = megabits(prediction.egress_bps), megabits(hub.egress_bps)
    return f"it needs {need} of egress on average and {have} are free"


def _paths(sites: Sequence[SiteInput]) -> list[Path]:
    return [site.path for site in sites]


def megabits(rate_bps: float) -> str:
    """A rate for people, with three significant digits."""
    value, unit = (rate_bps / 1e6, "Mb/s") if rate_bps >= 1e5 else (rate_bps / 1e3, "kb/s")
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def _sites(count: int) -> str:
    return "1 site" if count == 1 else f"{count} sites"


def _are(count: int) -> str:
    return {0: "is none", 1: "is 1"}.get(count, f"are {count}")


NO_CIRCUITS = "no circuit is reserved to its sites"
NONE_ON_DEMAND = "this version makes no circuits on demand"
SMALLEST_GROUP = 2
LITTLE = 0.3
LITTLE_FOR_A_MEMBER = 0.2
GROUP_SHARE_OF_EGRESS = 0.9
"""A group paced at more than this share of what is free would starve everything else."""
