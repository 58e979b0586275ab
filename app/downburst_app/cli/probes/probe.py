"""`downburst probe`: measurements of the paths to sites with test packets, which never cost a product its time."""

from typing import Annotated

import typer

from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, minute, show, table
from downburst_app.cli.probes import ceilings, kinds, schedules
from downburst_app.cli.probes.options import Number, Site
from downburst_app.cli.probes.tables import print_probe
from downburst_app.cli.probes.words import headline
from downburst_app.cli.sites.site_path import rows as path_rows

app = typer.Typer(help="Measure the paths to sites; products come first.", no_args_is_help=True)
for command in (kinds.knee, kinds.cbr, kinds.soak, kinds.stacks):
    app.command(command.__name__)(command)
app.add_typer(schedules.app, name="schedule")
app.command("ceiling")(ceilings.ceiling)


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
    site: Annotated[
        str | None, typer.Argument(help="Only those of this site.", autocompletion=completion.sites)
    ] = None,
    *,
    kind: Annotated[str | None, typer.Option(help="knee, cbr, soak or stacks.")] = None,
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
    rows = [[one["id"], one["site"], minute(one["requested_at"]), headline(one)] for one in found]
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
        print_probe(client, found)


@app.command("stop")
def stop(number: Number, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Stop a probe; its results until then stay.

    Example: downburst probe stop 7
    """
    found = HubClient(hub).ask("DELETE", "v1", "probes", str(number))
    show(found) if as_json else print(headline(found) if found["ended_at"] else f"probe {number} ends in a moment")
