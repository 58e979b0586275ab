"""`downburst circuits leaves`: sites that join or leave a circuit to several sites."""

from typing import Annotated, Any

import typer

from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.circuits.ports import tag_range
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, given, show

app = typer.Typer(help="Add and remove sites of a multipoint circuit.", no_args_is_help=True)
Number = Annotated[int, typer.Argument(help="Number of the circuit.", min=1, autocompletion=completion.circuits)]
Site = Annotated[str, typer.Argument(help="Name of the site.", autocompletion=completion.sites)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Dry run: only show the result.")]
By = Annotated[str, typer.Option(help="Name of the requester; stored with the circuit.")]


@app.command("add")
def add_leaf(  # noqa: PLR0913
    number: Number,
    site: Site,
    *,
    port: Annotated[str | None, typer.Option(help="The site's port; left out: its only one.")] = None,
    vlan: Annotated[str | None, typer.Option(help="Acceptable tags at that port: 100-199.")] = None,
    address: Annotated[str | None, typer.Option(help="Declared circuits: the address of the new end.")] = None,
    by: By = "operator",
    dry_run: DryRun = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Add a site; feeds ride to it when probes have passed, and the other sites go on.

    Example: downburst circuits leaves add 17 wisc.edu
    """
    tags = {} if vlan is None else dict(zip(("first_vlan", "last_vlan"), tag_range(vlan), strict=True))
    wanted = given(port=port, address=address) | tags | {"site": site, "by": by}
    params = {"dry_run": True} if dry_run else {}
    found = HubClient(hub).ask("POST", "v1", "circuits", str(number), "leaves", json=wanted, params=params)
    _say(found, as_json=as_json, dry_run=dry_run)


@app.command("remove")
def remove_leaf(  # noqa: PLR0913
    number: Number,
    site: Site,
    *,
    by: By = "operator",
    dry_run: DryRun = False,
    yes: Yes = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Remove a site; feeds to it take the routed path, and the other sites go on.

    Example: downburst circuits leaves remove 17 wisc.edu
    """
    confirm(f"Remove {site} from circuit {number}? Its feeds take the routed path.", yes=yes or dry_run)
    params = {"by": by} | ({"dry_run": True} if dry_run else {})
    found = HubClient(hub).ask("DELETE", "v1", "circuits", str(number), "leaves", site, params=params)
    _say(found, as_json=as_json, dry_run=dry_run)


def _say(circuit: dict[str, Any], *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        show(circuit)
        return
    tried = "dry run, nothing was changed: " if dry_run else ""
    print(f"{tried}circuit {circuit['circuit']} to {', '.join(circuit['sites'])}: {circuit['state']}")
