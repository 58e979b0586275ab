"""`downburst probe`: measurements of the paths to sites with test packets, which never cost a product its time."""

import sys
import time
from typing import Annotated, Any

import typer

from downburst.domain.circuits import Direction
from downburst.foundation.errors import BadInput, Failure
from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.hub import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst_app.cli.numbers import A_DAY_S, real_number
from downburst_app.cli.probes import ceilings, schedules
from downburst_app.cli.probes.words import headline, hours_table, steps_table
from downburst_app.cli.sites.site_path import rows as path_rows

app = typer.Typer(help="Measure the paths to sites; products come first.", no_args_is_help=True)
app.add_typer(schedules.app, name="schedule")
app.command("ceiling")(ceilings.ceiling)
Site = Annotated[str, typer.Argument(help="Name of the site, for example unl.edu.")]
Number = Annotated[int, typer.Argument(help="Number of the probe, as listed.", min=1)]
Way = Annotated[Direction, typer.Option("--direction", help="out: from the hub to the site; in: from the site.")]
PacketBytes = Annotated[int, typer.Option("--packet", min=64, max=1_472, help="Bytes in a datagram.")]
Patience = Annotated[
    float, real_number("--patience", least=0, most=A_DAY_S, help="Seconds to wait for free rate at most.")
]
Relay = Annotated[
    str | None, typer.Option("--from", help="The relay of the site's session as the near end; else hub or sender.")
]
Start = Annotated[
    bool,
    typer.Option("--no-wait", help="Only ask for it; follow it with `downburst probe show`."),
]


@app.command("knee")
def knee(  # noqa: PLR0913
    site: Site,
    *,
    highest: Annotated[str | None, typer.Option(help="Highest rate, such as 1G; else the access rate.")] = None,
    steps: Annotated[int, typer.Option(min=2, max=64, help="Rates from a tenth of the highest one on.")] = 10,
    step_s: Annotated[float, real_number("--seconds", least=0.1, most=60, help="Seconds of each rate.")] = 1.0,
    direction: Way = Direction.OUT,
    relay: Relay = None,
    packet_bytes: PacketBytes = 1_200,
    patience_s: Patience = 60.0,
    no_wait: Start = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Find the highest rate that a path carries without loss: the usable multicast rate.

    Example: downburst probe knee unl.edu

    Example: downburst probe knee unl.edu --highest 1G --steps 20 --seconds 2 --direction in

    Example: downburst probe knee unl.edu --from omaha-relay
    """
    wanted: dict[str, Any] = {
        "site": site,
        "kind": "knee",
        "direction": direction.value,
        "steps": steps,
        "seconds": step_s,
    }
    wanted |= {"packet_bytes": packet_bytes, "patience_s": patience_s}
    wanted |= given(rate_bps=None if highest is None else parse_rate_bps(highest), relay=relay)
    _run(HubClient(hub), wanted, wait=not no_wait, as_json=as_json)


@app.command("cbr")
def cbr(  # noqa: PLR0913
    site: Site,
    *,
    rate: Annotated[str, typer.Option(help="The rate, such as 100M, in bits per second of Ethernet frames.")],
    seconds: Annotated[float, real_number("--seconds", least=0.1, most=3_600, help="Its duration.")] = 10.0,
    direction: Way = Direction.OUT,
    relay: Relay = None,
    packet_bytes: PacketBytes = 1_200,
    patience_s: Patience = 60.0,
    no_wait: Start = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Send at one rate: one-way delay, jitter, loss, and the delay's excess after each loss.

    Example: downburst probe cbr unl.edu --rate 100M --seconds 30
    """
    wanted: dict[str, Any] = {
        "site": site,
        "kind": "cbr",
        "direction": direction.value,
        "rate_bps": parse_rate_bps(rate),
    }
    wanted |= {"seconds": seconds, "packet_bytes": packet_bytes, "patience_s": patience_s}
    wanted |= given(relay=relay)
    _run(HubClient(hub), wanted, wait=not no_wait, as_json=as_json)


@app.command("soak")
def soak(  # noqa: PLR0913
    site: Site,
    *,
    rate: Annotated[str, typer.Option(help="The rate, such as 10M, in bits per second of Ethernet frames.")],
    hours: Annotated[float, real_number("--hours", least=0.01, most=168, help="Its duration.")] = 24.0,
    direction: Way = Direction.OUT,
    relay: Relay = None,
    packet_bytes: PacketBytes = 1_200,
    patience_s: Patience = 60.0,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Send at one rate for hours to days, and report each hour; it continues after an interruption and says so.

    Example: downburst probe soak unl.edu --rate 10M --hours 24
    """
    wanted: dict[str, Any] = {
        "site": site,
        "kind": "soak",
        "direction": direction.value,
        "rate_bps": parse_rate_bps(rate),
    }
    wanted |= {"seconds": hours * 3_600, "packet_bytes": packet_bytes, "patience_s": patience_s}
    wanted |= given(relay=relay)
    _run(HubClient(hub), wanted, wait=wait, as_json=as_json)


@app.command("path")
def path(site: Site, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show all that is known of a site's path: session, rates, losses, circuits, clock, and the last probes.

    Example: downburst probe path unl.edu
    """
    client = HubClient(hub)
    found = client.ask("GET", "v1", "sites", site, "path")
    probes = client.ask("GET", "v1", "probes", params={"site": site, "limit": 5})
    knees = client.ask("GET", "v1", "probes", params={"site": site, "kind": "knee", "state": "done", "limit": 1})
    if as_json:
        show({"path": found, "last_knee": knees[0] if knees else None, "probes": probes})
        return
    last = headline(knees[0]) if knees else "not measured: downburst probe knee " + site
    listed = [*path_rows(found), ["last knee", last]]
    listed += [[f"probe {one['id']}", headline(one)] for one in probes]
    table(f"Path to {site}", ("", ""), listed, empty="")


@app.command("list")
def list_probes(
    site: Annotated[str | None, typer.Argument(help="Only those of this site.")] = None,
    *,
    kind: Annotated[str | None, typer.Option(help="knee, cbr or soak.")] = None,
    state: Annotated[str | None, typer.Option(help="waiting, running, done, refused, stopped or failed.")] = None,
    since: Annotated[str | None, typer.Option(help="Requested since: RFC 3339, or how long ago.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List the newest probes.

    Example: downburst probe list unl.edu --kind knee --since 30d
    """
    wanted = given(site=site, kind=kind, state=state, since=since)
    found = HubClient(hub).ask("GET", "v1", "probes", params=wanted)
    if as_json:
        show(found)
        return
    rows = [[one["id"], one["site"], one["requested_at"], headline(one)] for one in found]
    table("Probes", ("number", "site", "requested", "outcome"), rows, empty="there are no probes")


@app.command("show")
def show_probe(number: Number, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show a probe with each of its rates; of a soak, each hour.

    Example: downburst probe show 7
    """
    client = HubClient(hub)
    found = client.ask("GET", "v1", "probes", str(number))
    if as_json:
        show(found)
    else:
        _print(client, found)


@app.command("stop")
def stop(number: Number, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Stop a probe; its results until then stay.

    Example: downburst probe stop 7
    """
    found = HubClient(hub).ask("DELETE", "v1", "probes", str(number))
    show(found) if as_json else print(headline(found) if found["ended_at"] else f"probe {number} ends in a moment")


def _run(client: HubClient, wanted: dict[str, Any], *, wait: bool, as_json: bool) -> None:
    made = client.ask("POST", "v1", "probes", json=wanted)
    if wait:
        made = _followed(client, made)
    if as_json:
        show(made)
    elif wait:
        _print(client, made)
    else:
        print(
            f"probe {made['id']} of {made['site']} waits for its turn; follow it: downburst probe show {made['id']}"
        )
    if wait and made["state"] == "refused":
        raise BadInput(f"probe {made['id']} was refused: {made['reason']}")
    if wait and made["state"] != "done":
        raise Failure(f"probe {made['id']} is {made['state']}: {made['reason']}")


def _followed(client: HubClient, probe: dict[str, Any]) -> dict[str, Any]:
    """Waits for the end, with each news on standard error."""
    said = ""
    while probe["ended_at"] is None:
        news = f"probe {probe['id']} is {probe['state']}" + (f": {probe['reason']}" if probe["reason"] else "")
        if news != said:
            print(news, file=sys.stderr)
            said = news
        time.sleep(LOOK_S)
        probe = client.ask("GET", "v1", "probes", str(probe["id"]))
    return probe


def _print(client: HubClient, probe: dict[str, Any]) -> None:
    print(f"probe {probe['id']} of {probe['site']}: {headline(probe)}")
    for gap in probe["gaps"]:
        print(f"interrupted from {gap['since']} to {gap['until'] or 'now'}: {gap['reason']}")
    if probe["result"] is None:
        return
    steps_table(probe)
    if probe["kind"] == "soak":
        hours_table(client, probe)
    for one in probe["result"]["excess"] or ():
        back = (
            f"back after {one['recovery_us'] / 1e3:.1f} ms" if one["recovery_us"] is not None else "it never returned"
        )
        print(f"{one['lost']} lost at {one['at_us'] / 1e6:.3f} s: {one['excess_us'] / 1e3:.1f} ms late, {back}")
    lag_us = probe["result"]["sender_lag_us"]
    print(f"the sender was up to {lag_us / 1e3:.2f} ms behind its schedule; highest rate {_highest(probe)}")


def _highest(probe: dict[str, Any]) -> str:
    return rate_text(max(step["rate_bps"] for step in probe["steps"]))


LOOK_S = 0.3
