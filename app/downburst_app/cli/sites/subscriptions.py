"""`downburst subscriptions`: sites' subscriptions to feeds."""

from typing import Annotated

import typer

from downburst.settings.hub import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst_app.cli.numbers import A_YEAR_S, real_number

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
        ("id", "site", "feed", "pattern", "not", "order", "at most"),
        (
            [
                *(wish[name] for name in ("id", "site", "feed", "pattern", "not_pattern")),
                f"holds {wish['hold_s']:g} s" if wish["in_order"] else "order of arrival",
                "-" if wish["max_age_s"] is None else f"{wish['max_age_s']:g} s old",
            ]
            for wish in found
        ),
        empty="there are no subscriptions yet; create one: downburst subscriptions add SITE FEED",
    )


@app.command("add")
def add_subscription(  # noqa: PLR0913
    site: Annotated[str, typer.Argument(help="Name of the site.")],
    feed: Annotated[str, typer.Argument(help="Name of the feed.")],
    *,
    pattern: Annotated[
        str | None, typer.Option(help="Regular expression on the product id; all if left out.")
    ] = None,
    not_pattern: Annotated[str | None, typer.Option(help="Exclude products that match this.")] = None,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Show live products to local software in the order of their sequences.")
    ] = False,
    hold_s: Annotated[
        float | None,
        real_number(
            "--hold", least=0, most=3_600, help="Seconds that a missing product holds back later ones; 2 if left out."
        ),
    ] = None,
    max_age_s: Annotated[
        float | None,
        real_number(
            "--max-age",
            least=0.001,
            most=A_YEAR_S,
            help="Maximum age in the hub, in seconds; older products are not sent.",
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="Also deliver products stored since then: RFC 3339, or how long ago: 2h.")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Subscribe a site to products of a feed.

    Example: downburst subscriptions add unl.edu 'IDS|DDPLUS' --pattern '^W[A-Z]US'

    Example: downburst subscriptions add unl.edu NEXRAD2 --start 6h --in-order
    """
    wanted = {"feed": feed} | given(
        pattern=pattern, not_pattern=not_pattern, hold_s=hold_s, max_age_s=max_age_s, start=start
    )
    if in_order or hold_s is not None:
        wanted["in_order"] = True
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
