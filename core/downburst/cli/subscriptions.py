"""`downburst subscriptions`: what sites want."""

from typing import Annotated

import typer

from downburst.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst.settings import DEFAULT_HUB

app = typer.Typer(help="List, add and remove subscriptions.", no_args_is_help=True)


@app.command("list")
def list_subscriptions(
    site: Annotated[str | None, typer.Argument(help="Only those of this site.")] = None,
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List subscriptions.

    Example: downburst subscriptions list unl.edu
    """
    path = ("v1", "subscriptions") if site is None else ("v1", "sites", site, "subscriptions")
    found = HubClient(hub).ask("GET", *path)
    if as_json:
        show(found)
        return
    table(
        "Subscriptions",
        ("id", "site", "feed", "pattern", "not"),
        ([wish["id"], wish["site"], wish["feed"], wish["pattern"], wish["not_pattern"]] for wish in found),
        empty="there is no subscription yet; make one: downburst subscriptions add SITE FEED",
    )


@app.command("add")
def add_subscription(
    site: Annotated[str, typer.Argument(help="Name of the site.")],
    feed: Annotated[str, typer.Argument(help="Name of the feed.")],
    *,
    pattern: Annotated[
        str | None, typer.Option(help="Regular expression on the product id; all if left out.")
    ] = None,
    not_pattern: Annotated[str | None, typer.Option(help="What matches this is left out.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Subscribe a site to the products of a feed whose id matches.

    Example: downburst subscriptions add unl.edu 'IDS|DDPLUS' --pattern '^W[A-Z]US'
    """
    wanted = {"feed": feed} | given(pattern=pattern, not_pattern=not_pattern)
    made = HubClient(hub).ask("POST", "v1", "sites", site, "subscriptions", json=wanted)
    show(made) if as_json else print(f"subscription {made['id']}: {site} takes {feed} matching {made['pattern']}")


@app.command("remove")
def remove_subscription(
    subscription: Annotated[int, typer.Argument(help="Its id, as listed.")],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """End a subscription.

    Example: downburst subscriptions remove 3
    """
    HubClient(hub).ask("DELETE", "v1", "subscriptions", str(subscription))
    show({"removed": subscription}) if as_json else print(f"subscription {subscription} removed")
