"""The options of `downburst analyze` as values of the models."""

from dataclasses import replace
from pathlib import Path

from downburst.domain.tcp.rates import CongestionControl
from downburst.foundation.errors import BadInput
from downburst_analyze import quantities
from downburst_analyze.quantities import duration_s
from downburst_app.cli.analysis.own_days import OwnDays, show_hub
from downburst_app.cli.analysis.view import Options, Sharing, show_file
from downburst_scheduler.models.candidates import CircuitOffers, Situation
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.repair import Repair

__all__ = ["OwnDays", "Sharing", "offers", "options", "path", "show", "sites", "situation"]


def situation(  # noqa: PLR0913 (an option of the command each)
    *,
    sites: list[PathFacts],
    rates: tuple[str, str],
    multicast: bool,
    repair: str,
    order: str,
    circuits: CircuitOffers,
    objective_and_floor: tuple[str, str],
) -> Situation:
    """The hub, its sites and their network; refuses quantities that can't be read.

    `rates` are those of the hub and of the fastest group, both as bits per second with a unit.
    """
    egress, group = rates
    objective, floor = objective_and_floor
    return Situation(
        sites=sites,
        egress_bps=quantities.rate_bps(egress),
        multicast=multicast,
        multicast_rate_bps=quantities.rate_bps(group),
        repair=Repair(repair),
        order=Order(order),
        circuits=circuits,
        objective=quantities.objective(objective),
        floor=Floor.stated(duration_s(floor) * 1e3),
    )


def path(rtt: str, loss: str, congestion: CongestionControl, connections: int) -> PathFacts:
    """The path to a site."""
    round_trip_s, lost = duration_s(rtt), quantities.share(loss)
    return PathFacts(round_trip_s, lost, congestion=congestion, connections=connections)


def sites(count: int, access: str, to_each: PathFacts) -> list[PathFacts]:
    """The paths to all sites, with the rates of their lines."""
    rates = quantities.rates_of_sites(access, count) if access else [None] * count
    return [replace(to_each, access_bps=rate) for rate in rates]


def offers(circuits: str, setup_delay: str, hold: str) -> CircuitOffers:
    """The circuits on offer; refuses an unknown kind."""
    if circuits not in OFFERS:
        raise BadInput(f"{circuits!r} is not an offer of circuits; write one of {', '.join(OFFERS)}")
    point_to_point, multipoint = OFFERS[circuits]
    return CircuitOffers(point_to_point, multipoint, duration_s(setup_delay), duration_s(hold))


def options(  # noqa: PLR0913 (an option of the command each)
    gap: str,
    counters: Path | None,
    html: Path | None,
    sharing: Sharing,
    heavy: str | None,
    *,
    sort: bool,
    as_json: bool,
) -> Options:
    """The way in which results are made and shown; `heavy` in bytes with a unit."""
    heavy_bytes = None if heavy is None else max(quantities.size_bytes(heavy), 1)
    return Options(duration_s(gap), counters, html, sharing, heavy_bytes, sort, as_json)


def show(
    file: Path | None, own: OwnDays | None, columns: str | None, of_hub: Situation, options_given: Options
) -> None:
    """Shows the study of a file, or of a hub's own days."""
    if file is not None and own is None:
        show_file(file, columns, of_hub, options_given)
    elif own is not None and file is None:
        show_hub(own, of_hub, options_given)
    else:
        raise BadInput("name either a FILE, or a feed of a hub with --hub")


OFFERS = {
    "none": (False, False),
    "point-to-point": (True, False),
    "multipoint": (False, True),
    "both": (True, True),
}
