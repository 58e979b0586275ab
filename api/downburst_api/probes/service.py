"""Probes as clients request them: rates that are left out are filled in, and all is checked."""

from collections.abc import Sequence
from datetime import timedelta

from downburst.domain.access import Caller
from downburst.domain.probes import Probe, ProbeKind, ProbeRequest, ProbeSchedule, ProbeStep, ProbeTransport
from downburst.domain.probes.ceilings import BYTES_PER_DAY, CeilingSide, ProbeCeiling, day_of
from downburst.domain.probes.checks import LEAST_BPS, check_request, check_schedule, stack_trials, sweep
from downburst.domain.probes.signs import ProbesChanged
from downburst.domain.probes.trials import CONTROLS, Trial
from downburst.foundation.errors import BadInput, NotFound
from downburst.ledger import Transaction
from downburst_api.runtime import Runtime
from downburst_contract.paths import probes as shapes


async def add(hub: Runtime, wanted: shapes.ProbeNew, caller: Caller) -> Probe:
    """Stores a waiting probe, and wakes the part that runs it."""
    request = await _request(hub, wanted, caller)
    kept = await hub.ledger.write(lambda tx: tx.measured.probing.probes.add(request))
    hub.bus.publish(ProbesChanged())
    return kept


async def stop(hub: Runtime, number: int, caller: Caller) -> Probe:
    """Asks for the end of a probe; one that has ended stays as it is."""
    found = await hub.ledger.write(lambda tx: tx.measured.probing.probes.ask_to_stop(number, caller.name))
    hub.bus.publish(ProbesChanged())
    return found


async def one(hub: Runtime, number: int, site: str | None) -> Probe:
    """The probe; `site`: only if it is one of this site, to which administrators of sites are limited."""
    found = await hub.ledger.read(lambda tx: tx.measured.probing.probes.one(number))
    if site not in (None, found.request.site):
        raise NotFound(f"there is no probe {number}; `downburst probe list` shows the newest")
    return found


async def add_schedule(hub: Runtime, wanted: shapes.ProbeScheduleNew, caller: Caller) -> ProbeSchedule:
    """Stores a schedule, whose first probe is due now or at the window's next begin."""
    request = await _request(hub, wanted, caller)
    schedule = ProbeSchedule(0, request, wanted.every_h, hub.clock.now(), wanted.first_hour, wanted.end_hour)
    check_schedule(schedule)
    kept = await hub.ledger.write(lambda tx: tx.measured.probing.schedules.add(schedule))
    hub.bus.publish(ProbesChanged())
    return kept


async def ceilings(hub: Runtime, site: str) -> shapes.ProbeCeilings:
    """The ceilings of a site's probes, with the use of today."""
    begin = day_of(hub.clock.now())

    def read(tx: Transaction) -> shapes.ProbeCeilings:
        probing = tx.measured.probing
        name = tx.sites.one(site).name
        return shapes.ProbeCeilings(
            site=name,
            ceilings=[shapes.ProbeCeiling.model_validate(one) for one in probing.ceilings.of(name)],
            default_bytes_per_day=BYTES_PER_DAY,
            used_bytes=probing.probes.used_bytes(name, begin),
        )

    return await hub.ledger.read(read)


async def set_ceiling(hub: Runtime, site: str, wanted: shapes.ProbeCeilingWanted, caller: Caller) -> None:
    """Sets the ceiling of the caller's side: the site's, or the operator's."""
    side = CeilingSide.OPERATOR if caller.site is None else CeilingSide.SITE

    def write(tx: Transaction) -> None:
        name = tx.sites.one(site).name
        ceiling = ProbeCeiling(name, side, wanted.rate_bps, wanted.bytes_per_day, caller.name)
        tx.measured.probing.ceilings.put(ceiling)

    await hub.ledger.write(write)
    hub.bus.publish(ProbesChanged())


async def _request(hub: Runtime, wanted: shapes.ProbeNew, caller: Caller) -> ProbeRequest:
    trials = _trials(wanted)
    request = ProbeRequest(
        wanted.site,
        wanted.kind,
        wanted.direction,
        await _steps(hub, wanted, trials),
        wanted.packet_bytes,
        wanted.patience_s,
        caller.name,
        ProbeTransport.TCP if trials else wanted.transport,
        wanted.congestion,
        trials,
        relay=wanted.relay,
    )
    check_request(request)
    if request.relay is not None:
        await hub.ledger.read(lambda tx: _check_relay(tx, request))
    return request


def _trials(wanted: shapes.ProbeNew) -> tuple[Trial, ...]:
    if wanted.kind is not ProbeKind.STACKS:
        if wanted.stacks is not None:
            raise BadInput(f"a {wanted.kind} compares no stacks; leave them out, or ask for the kind stacks")
        return ()
    return stack_trials(
        wanted.stacks or CONTROLS, seconds=wanted.seconds or TRIAL_S, reverse_traffic=wanted.reverse_traffic
    )


def _check_relay(tx: Transaction, request: ProbeRequest) -> None:
    known = [relay.name for relay in tx.fleet.relays.all()]
    if request.relay not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise BadInput(f"there is no relay {request.relay!r}; those of this hub are: {listed}")
    if request.relay == request.site:
        raise BadInput(f"{request.site} is the relay itself; leave the relay out to probe between the hub and it")


async def _steps(hub: Runtime, wanted: shapes.ProbeNew, trials: Sequence[Trial]) -> tuple[ProbeStep, ...]:
    if wanted.kind is ProbeKind.KNEE:
        highest_bps = await _highest_bps(
            hub, wanted, "the sweep needs its highest rate; give rate_bps (--highest 1G)"
        )
        return sweep(max(highest_bps, 10 * LEAST_BPS), steps=wanted.steps, step_s=wanted.seconds or 1.0)
    if wanted.kind is ProbeKind.STACKS:
        limit_bps = await _highest_bps(hub, wanted, "the flows need a limit; give rate_bps (--rate 1G)")
        return (ProbeStep(limit_bps, sum(trial.duration_ms for trial in trials)),)
    await hub.ledger.read(lambda tx: tx.sites.one(wanted.site))
    if wanted.rate_bps is None:
        raise BadInput(f"a {wanted.kind} has one rate, and none was given; give rate_bps (--rate 100M)")
    seconds = wanted.seconds or (10.0 if wanted.kind is ProbeKind.CBR else 3_600.0)
    return (ProbeStep(wanted.rate_bps, round(timedelta(seconds=seconds) / timedelta(milliseconds=1))),)


async def _highest_bps(hub: Runtime, wanted: shapes.ProbeNew, needs: str) -> int:
    """The requested rate, else the highest known one of the path; refuses the request where neither is there."""
    known_bps = await _known_bps(hub, wanted.site)
    rate_bps = wanted.rate_bps or known_bps
    if rate_bps is None:
        raise BadInput(
            f"nothing is known of the path to {wanted.site}, so {needs}, or the site's access rate: "
            "downburst sites set"
        )
    return rate_bps


async def _known_bps(hub: Runtime, site: str) -> int | None:
    """The access rate of a site, else that of its widest port, else twice the rate that its connections reached."""
    found, ports = await hub.ledger.read(lambda tx: (tx.sites.one(site), tx.ports.all()))
    if found.access_rate_bps:
        return round(found.access_rate_bps)
    own = [port.rate_bps for port in ports if port.site == site]
    tcp = hub.live.paths.of(site).tcp
    measured_bps = round(2 * tcp.rate_bps) if tcp is not None and tcp.rate_bps else None
    return max(own, default=measured_bps)


TRIAL_S = 10.0
"""Long enough for a flow to leave its slow start at round trips of the whole world."""
