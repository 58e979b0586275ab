"""`downburst plans`: how feeds travel, and why."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from downburst.cli.client import AsJson, HubAddress, HubClient, show, table
from downburst.model import Transport
from downburst.settings import DEFAULT_HUB

app = typer.Typer(help="Show plans and their history; pin a transport.", no_args_is_help=True)
Feed = Annotated[str, typer.Argument(help="Name of the feed.")]


@app.command("list")
def list_plans(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the current plan of every feed.

    Example: downburst plans list
    """
    found = HubClient(hub).ask("GET", "v1", "plans")
    show(found) if as_json else _print("Plans", found, empty="there is no plan yet; plans follow feeds")


@app.command("history")
def history(feed: Feed, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the plans a feed had, newest first.

    Example: downburst plans history NGRID
    """
    found = HubClient(hub).ask("GET", "v1", "feeds", feed, "plans")
    show(found) if as_json else _print(f"Plans of {feed}", found, empty=f"{feed} has no plan yet")


@app.command("pin")
def pin(
    feed: Feed,
    transport: Annotated[Transport, typer.Argument(help="Transport to use.")],
    *,
    by: Annotated[str, typer.Option(help="Who orders it.")] = "operator",
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Order one transport for a feed; used if it is feasible.

    Example: downburst plans pin NGRID unicast --by anna
    """
    made = HubClient(hub).ask("PUT", "v1", "feeds", feed, "pin", json={"transport": transport, "by": by})
    show(made) if as_json else print(f"{feed} is pinned to {transport}")


@app.command("unpin")
def unpin(feed: Feed, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Let the scheduler choose again.

    Example: downburst plans unpin NGRID
    """
    HubClient(hub).ask("DELETE", "v1", "feeds", feed, "pin")
    show({"unpinned": feed}) if as_json else print(f"the scheduler chooses for {feed} again")


def _print(title: str, plans: Iterable[dict[str, Any]], *, empty: str) -> None:
    rows = ([p["feed"], p["version"], p["transport"], _sites(p), p["made_at"][:19], p["reason"]] for p in plans)
    table(title, ("feed", "version", "transport", "sites", "since", "why"), rows, empty=empty)


def _sites(plan: dict[str, Any]) -> int:
    return sum(len(leg["site_names"]) for leg in plan["legs"])
