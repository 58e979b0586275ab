"""`downburst subscriptions`: sites' subscriptions to feeds."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput, DownburstError, Failure
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.completion import Site
from downburst_app.cli.numbers import A_YEAR_S, real_number

app = typer.Typer(help="List, add and remove subscriptions.", no_args_is_help=True)


@app.command("list")
def list_subscriptions(
    site: Annotated[
        str | None, typer.Argument(help="Only those of this site.", autocompletion=completion.sites)
    ] = None,
    *,
    wide: Wide = False,
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
        ("id", "site", "feed", "pattern", "not", Further("order"), Further("at most")),
        (
            [
                *(wish[name] for name in ("id", "site", "feed", "pattern", "not_pattern")),
                f"holds {wish['hold_s']:g} s" if wish["in_order"] else "order of arrival",
                "-" if wish["max_age_s"] is None else f"{wish['max_age_s']:g} s old",
            ]
            for wish in found
        ),
        wide=wide,
        empty="there are no subscriptions yet; create one: downburst subscriptions add SITE FEED",
    )


@app.command("add")
def add_subscription(  # noqa: PLR0913
    site: Site,
    feeds: Annotated[list[str], typer.Argument(help="Names of the feeds.", autocompletion=completion.feeds)],
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
    """Subscribe a site to products of feeds: the same products of each.

    A feed that is refused hinders no other one; the exit code is then that of the refusal.

    Example: downburst subscriptions add unl.edu 'IDS|DDPLUS' --pattern '^W[A-Z]US'

    Example: downburst subscriptions add unl.edu NEXRAD2 NGRID --start 6h --in-order
    """
    wanted = given(pattern=pattern, not_pattern=not_pattern, hold_s=hold_s, max_age_s=max_age_s, start=start)
    if in_order or hold_s is not None:
        wanted["in_order"] = True
    named = list(dict.fromkeys(feeds))
    made, refusals = _added(HubClient(hub), site, named, wanted)
    if as_json and (made or len(named) > 1):
        show(made[0] if len(named) == 1 else made)
    for one in made if not as_json else ():
        print(f"subscription {one['id']}: {site} takes {one['feed']} matching {one['pattern']}")
    if refusals:
        raise _refusal(len(made), refusals)


@app.command("remove")
def remove_subscription(
    subscription: Annotated[int, typer.Argument(help="Its id, as listed.", autocompletion=completion.subscriptions)],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """End a subscription.

    Example: downburst subscriptions remove 3
    """
    HubClient(hub).ask("DELETE", "v1", "subscriptions", str(subscription))
    show({"removed": subscription}) if as_json else print(f"subscription {subscription} removed")


def _added(
    client: HubClient, site: str, feeds: Iterable[str], wanted: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, DownburstError]]:
    """The subscriptions that were made, and the errors of the other feeds."""
    made: list[dict[str, Any]] = []
    refusals: dict[str, DownburstError] = {}
    for feed in feeds:
        try:
            made.append(client.ask("POST", "v1", "sites", site, "subscriptions", json={"feed": feed} | wanted))
        except DownburstError as error:
            refusals[feed] = error
    return made, refusals


def _refusal(made: int, refusals: dict[str, DownburstError]) -> DownburstError:
    """One error for all; that of a single feed stays as it is."""
    errors = list(refusals.values())
    if made == 0 and len(errors) == 1:
        return errors[0]
    sentences = "; ".join(f"{feed}: {error.sentence}" for feed, error in refusals.items())
    text = f"{made} of {made + len(errors)} subscriptions were added; not {sentences}"
    # A hub that is away or fails counts more than bad input: the command may be repeated.
    failed = any(error.exit_code != BadInput.exit_code for error in errors)
    return Failure(text) if failed else BadInput(text)
