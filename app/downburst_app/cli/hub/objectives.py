"""`downburst objectives`: the latency that a feed must meet, at all sites and at single ones."""

from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, milliseconds, show, table
from downburst_app.cli.numbers import real_number

app = typer.Typer(help="List and set latency objectives of feeds.", no_args_is_help=True)
FeedName = Annotated[str, typer.Argument(help="Name of the feed.", autocompletion=completion.feeds)]
SiteName = Annotated[str | None, typer.Option("--site", help="At this site, in place of the feed's own.")]


@app.command("list")
def list_objectives(
    *,
    feed: Annotated[str | None, typer.Option(help="Only this feed.", autocompletion=completion.feeds)] = None,
    site: Annotated[str | None, typer.Option(help="Only objectives at this site.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List the objectives of feeds, and those of feeds at single sites.

    Example: downburst objectives list --feed NGRID
    """
    client = HubClient(hub)
    feeds = [] if site is not None else client.every("v1", "feeds")
    wide = [_of_feed(one) for one in feeds if feed in (None, one["feed"])]
    found = wide + client.every("v1", "objectives", params=given(feed=feed, site=site))
    found.sort(key=lambda one: (one["feed"], one["site"] or ""))
    if as_json:
        show(found)
        return
    table(
        "Objectives",
        ("feed", "site", "latency", "share of deliveries", "over"),
        (
            [one["feed"], one["site"] or "all", milliseconds(one["objective_ms"]), _share(one), _span(one)]
            for one in found
        ),
        empty="no objectives; set one: downburst objectives set NGRID 500",
    )


@app.command("set")
def set_objective(  # noqa: PLR0913
    feed: FeedName,
    objective_ms: Annotated[
        float, typer.Argument(min=0.001, max=86_400_000, metavar="MS", help="Milliseconds, hub's log to site's log.")
    ],
    *,
    site: SiteName = None,
    quantile: Annotated[
        float | None, real_number(least=0.0001, most=0.9999, help="Share of deliveries that has to meet it (--site).")
    ] = None,
    minutes: Annotated[
        float | None, real_number(least=0.01, most=1_440, help="Minutes over which it is judged (--site).")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Set the latency objective of a feed, at all sites or at one, for the scheduler and alarms.

    Example: downburst objectives set NGRID 500

    Example: downburst objectives set NGRID 2000 --site unl.edu --quantile 0.95 --minutes 30
    """
    client = HubClient(hub)
    if site is not None:
        wanted = {"objective_ms": objective_ms} | given(quantile=quantile, minutes=minutes)
        kept = client.ask("PUT", "v1", "feeds", feed, "objectives", site, json=wanted)
    elif quantile is None and minutes is None:
        kept = _of_feed(client.ask("PATCH", "v1", "feeds", feed, json={"objective_ms": objective_ms}))
    else:
        raise BadInput(
            "--quantile and --minutes belong to objectives of single sites; name one with --site, or set "
            "alarms.objective_quantile and alarms.objective_minutes for all"
        )
    where = f" at {site}" if site is not None else ""
    show(kept) if as_json else print(f"{feed}{where} has an objective of {milliseconds(objective_ms)}")


@app.command("remove")
def remove_objective(
    feed: FeedName,
    *,
    site: Annotated[str, typer.Option("--site", help="Site of the objective.")],
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Remove the objective of a feed at a site: the feed's own applies there again.

    Example: downburst objectives remove NGRID --site unl.edu
    """
    HubClient(hub).ask("DELETE", "v1", "feeds", feed, "objectives", site)
    removed = {"removed": f"{feed}/{site}"}
    show(removed) if as_json else print(f"{feed} at {site}: objective removed; the feed's own applies")


def _of_feed(feed: dict[str, Any]) -> dict[str, Any]:
    """A feed's own objective in the form of an objective for a single site."""
    own = {"objective": feed["feed"], "feed": feed["feed"], "site": None, "objective_ms": feed["objective_ms"]}
    return own | {"quantile": None, "minutes": None}


def _share(objective: dict[str, Any]) -> str:
    return "as set for alarms" if objective["quantile"] is None else f"{objective['quantile']:.2%}"


def _span(objective: dict[str, Any]) -> str:
    return "as set for alarms" if objective["minutes"] is None else f"{objective['minutes']:g} min"
