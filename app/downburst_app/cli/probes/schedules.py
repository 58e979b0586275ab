"""`downburst probe schedule`: probes that repeat."""

from typing import Annotated

import typer

from downburst.domain.circuits import Direction
from downburst.domain.probes import ProbeKind, ProbeTransport
from downburst.foundation.errors import BadInput
from downburst.foundation.rates import rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst_app.cli.probes.options import Congestion, Relay, Site, Transport, Way, request

app = typer.Typer(help="Repeat probes.", no_args_is_help=True)


@app.command("add")
def add(  # noqa: PLR0913
    site: Site,
    kind: Annotated[ProbeKind, typer.Argument(help="knee, cbr, soak or stacks.")] = ProbeKind.KNEE,
    *,
    every_h: Annotated[int, typer.Option("--every", min=1, max=744, help="Hours from one to the next.")] = 24,
    window: Annotated[str | None, typer.Option(help="Hours of the day in UTC, such as 2-5 or 22-4.")] = None,
    rate: Annotated[str | None, typer.Option(help="The rate, or the highest of a sweep.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.1, max=604_800, help="Of the probe or each rate.")] = None,
    transport: Transport = ProbeTransport.UDP,
    congestion: Congestion = None,
    direction: Way = Direction.OUT,
    relay: Relay = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Repeat a probe of a site.

    Example: downburst probe schedule add unl.edu knee --every 24 --window 2-5
    """
    first, end = _hours(window)
    wanted = request(
        site, kind, direction, rate=rate, seconds=seconds, transport=transport, congestion=congestion, relay=relay
    ) | {"every_h": every_h, "first_hour": first, "end_hour": end}
    made = HubClient(hub).ask("POST", "v1", "probe-schedules", json=wanted)
    show(made) if as_json else print(
        f"schedule {made['id']}: the first probe of {site} begins from {made['next_at']} on"
    )


@app.command("list")
def list_schedules(
    site: Annotated[
        str | None, typer.Argument(help="Only those of this site.", autocompletion=completion.sites)
    ] = None,
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List the schedules.

    Example: downburst probe schedule list
    """
    found = HubClient(hub).every("v1", "probe-schedules", params=given(site=site))
    if as_json:
        show(found)
        return
    rows = [
        [
            one["id"],
            one["site"],
            one["kind"],
            one["direction"],
            rate_text(max(step["rate_bps"] for step in one["steps"])),
            f"{one['every_h']} h",
            f"{one['first_hour']}-{one['end_hour']} UTC",
            one["next_at"],
        ]
        for one in found
    ]
    columns = ("number", "site", "kind", "direction", "rate", "every", "window", "next")
    table("Schedules of probes", columns, rows, empty="no probe repeats")


@app.command("remove")
def remove(
    number: Annotated[int, typer.Argument(help="Number of the schedule, as listed.", min=1)],
    *,
    hub: HubAddress = DEFAULT_HUB,
) -> None:
    """Remove a schedule; its probes stay.

    Example: downburst probe schedule remove 2
    """
    HubClient(hub).ask("DELETE", "v1", "probe-schedules", str(number))
    print(f"schedule {number} was removed")


def _hours(window: str | None) -> tuple[int, int]:
    if window is None:
        return 0, 24
    first, _, end = window.partition("-")
    if not (first.isdecimal() and end.isdecimal()):
        raise BadInput(f"{window!r} is no window; give hours of the day in UTC, such as 2-5 or 22-4")
    return int(first), int(end)
