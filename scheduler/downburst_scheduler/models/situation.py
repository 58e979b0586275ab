"""The inputs of a comparison of transports beside the arrivals: sites, the hub, offers, the objective and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from downburst.domain.plans import Transport
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.models.offers import CircuitOffer, DemandOffer, RelayOffer
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.repair import Repair
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.models.sweeps import Sweep


@dataclass(frozen=True, slots=True)
class SiteFacts(PathFacts):
    """A site that takes the feed: its path, its name, and its restrictions."""

    name: str = ""
    no_multicast: str | None = None
    """The reason why the site can't be in a group, as `<site> ...`; None if it can."""
    unheard: bool = False
    """True if it has never received a group, and so gets copies until it does."""
    circuit: CircuitOffer | None = None
    """A working circuit that is reserved to it."""
    no_circuit_group: str | None = None
    """The reason why it can't be in a group on its circuit, as `<site> ...`; None if it can."""
    no_circuit: str | None = None
    """The reason why its circuit can't be used, as `<site>: ...`; None if it has none, or a good one."""
    demand: DemandOffer | None = None
    """The offer under which a circuit to the site can be ordered."""
    relay: RelayOffer | None = None
    """A connected relay before the site that may hand out the feed."""
    no_relay_group: str | None = None
    """The reason why it can't be in a group of its relay, as `<site> ...`; None if it can."""
    keeps_ldm: bool = False
    """True if it is served by LDM, which takes only copies and on no circuit."""
    in_group: bool = False
    """True if the plan in force serves it by multicast."""
    tunnel: bool = False
    """True if it receives groups from an AMT relay, which sends a copy through its tunnel."""
    sweep: Sweep | None = None
    """The last sweep of its path; it limits groups in the routed network."""
    lossy: str = ""
    """The losses that set its access rate, as `<site> ...`; empty: an operator set it, or there is none."""


@dataclass(frozen=True, slots=True)
class CircuitOffers:
    """Offers of providers for this hub, beside reserved circuits."""

    point_to_point: bool = False
    multipoint: bool = False
    setup_s: float = 60.0
    hold_s: float = 60.0
    none: str = "no point-to-point circuits are offered"
    """The reason why there is no circuit, if there is none."""
    not_on_demand: str | None = None
    """The reason why a dynamic circuit is unavailable in any case; None if it is available."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs relative to a bit per second of the hub's egress, which costs 1."""

    circuit: float = 1.0
    """A bit per second of a circuit while it is up: at 1 an hour of 1 Gb/s costs as much as 450 GB of egress."""
    unwanted: float = 0.5
    """A bit per second that a group brings to a site that did not request it."""
    tunnel: float = 1.0
    """A bit per second that an AMT relay sends."""
    miss_bps: float = 1e12
    """Missing an objective by its full limit; the default outweighs any egress."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured over predicted latency of a transport, a factor for its next predictions."""

    p50: float = 1.0
    p99: float = 1.0

    def at(self, share: float) -> float:
        """The factor of a quantile."""
        return self.p99 if share >= TAIL else self.p50


@dataclass(frozen=True, slots=True)
class Situation:
    """All inputs about the hub and the sites for a comparison."""

    sites: Sequence[PathFacts] = ()
    """Plain paths are sites without names or peculiarities."""
    egress_bps: float = 1e9
    """The free rate of the hub's routed port for this feed."""
    multicast: bool = True
    """True if the network carries groups to the sites without a circuit."""
    no_multicast: str | None = None
    """The reason why the hub makes no groups at all; None if it does."""
    multicast_rate_bps: float = 400e6
    group_loss: float = 0.0
    """Measured loss of the feed's groups; a member's own loss counts if it is higher."""
    insists_on_multicast: bool = False
    """True if an operator wants a group even without a benefit."""
    headers: bool = False
    """True if all overhead of products counts, up to frames on the link, as rates of links are stated."""
    repair: Repair = Repair.CODED
    order: Order = Order.FIRST_COME
    circuits: CircuitOffers = field(default_factory=CircuitOffers)
    objective: Objective = field(default_factory=Objective)
    costs: Costs = field(default_factory=Costs)
    calibration: Mapping[Transport, Calibration] = field(default_factory=dict)
    floor: Floor = field(default_factory=Floor)
    """The same for every transport: the machines' own time."""


TAIL = 0.9
"""Quantiles from here on belong to the tail."""
