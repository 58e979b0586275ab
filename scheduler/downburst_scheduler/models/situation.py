"""What a comparison of transports depends on beside the arrivals: sites, the hub, offers, the objective and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from downburst.domain.plans import Transport
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.models.offers import CircuitOffer
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.repair import Repair
from downburst_scheduler.models.sizing import Objective


@dataclass(frozen=True, slots=True)
class SiteFacts(PathFacts):
    """A site that takes the feed: its path, its name, and what it can't do."""

    name: str = ""
    no_multicast: str | None = None
    """Why the site can't be in a group, as `<site> ...`; None if it can."""
    unheard: bool = False
    """Whether it has yet to hear a group for the first time, and so gets copies until it does."""
    circuit: CircuitOffer | None = None
    """A circuit that is reserved to it and carries."""
    no_circuit_group: str | None = None
    """Why it can't be in a group on its circuit, as `<site> ...`; None if it can."""
    no_circuit: str | None = None
    """Why its circuit can't be used, as `<site>: ...`; None if it has none, or a good one."""
    keeps_ldm: bool = False
    """Whether an LDM asks for it, which takes copies alone and on no circuit."""
    in_group: bool = False
    """Whether the plan in force serves it by multicast."""


@dataclass(frozen=True, slots=True)
class CircuitOffers:
    """What providers have for this hub, beside circuits that are reserved."""

    point_to_point: bool = False
    multipoint: bool = False
    setup_s: float = 60.0
    hold_s: float = 60.0
    none: str = "no point-to-point circuits are offered"
    """Why there is no circuit, where there is none."""
    not_on_demand: str | None = None
    """Why a dynamic circuit can't be had whatever it would do; None if it can."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What counts beside a bit per second of the hub's egress, which costs 1."""

    circuit: float = 1.0
    """A bit per second of a circuit while it is up: at 1 an hour of 1 Gb/s costs as much as 450 GB of egress."""
    unwanted: float = 0.5
    """A bit per second that a group brings to a site that did not ask for it."""
    miss_bps: float = 1e12
    """An objective that is missed by once its limit; the default puts it before any egress."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured over predicted latency of a transport, by which its next predictions are multiplied."""

    p50: float = 1.0
    p99: float = 1.0

    def at(self, share: float) -> float:
        """The factor of a quantile."""
        return self.p99 if share >= TAIL else self.p50


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything about the hub and the sites that a comparison depends on."""

    sites: Sequence[PathFacts] = ()
    """Plain paths are sites without names or peculiarities."""
    egress_bps: float = 1e9
    """What the hub's routed port has left for this feed."""
    multicast: bool = True
    """Whether the network carries groups to the sites without a circuit."""
    no_multicast: str | None = None
    """Why the hub makes no groups at all; None if it does."""
    multicast_rate_bps: float = 400e6
    group_loss: float = 0.0
    """Of the feed's groups as measured; a member's own loss counts where it is higher."""
    insists_on_multicast: bool = False
    """Whether an operator wants a group even if it gains nothing."""
    headers: bool = False
    """Whether what is sent for products counts, up to frames on the link, as rates of links are stated."""
    repair: Repair = Repair.CODED
    order: Order = Order.FIRST_COME
    circuits: CircuitOffers = field(default_factory=CircuitOffers)
    objective: Objective = field(default_factory=Objective)
    costs: Costs = field(default_factory=Costs)
    calibration: Mapping[Transport, Calibration] = field(default_factory=dict)
    floor: Floor = field(default_factory=Floor)
    """The same for every transport: it is the machines' own time."""


TAIL = 0.9
"""Quantiles from here on are of the tail."""
