"""`downburst requests`: sites' requests for access."""

from typing import Annotated

import typer

from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, minute, show, table
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(help="Answer requests for access.", no_args_is_help=True)
Number = Annotated[int, typer.Argument(help="Number of the request.")]


@app.command("list")
def list_requests(
    *,
    decided: Annotated[bool, typer.Option("--decided", help="Include answered requests.")] = False,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List pending requests.

    Example: downburst requests list
    """
    found = HubClient(hub).ask("GET", "v1", "access-requests", params={"decided": decided})
    if as_json:
        show(found)
        return
    table(
        "Requests for access",
        ("number", "site", Further("organisation"), "contact", Further("note"), "state", "feeds", "asked"),
        ([*(r[name] for name in _COLUMNS), " ".join(r["feeds"]), minute(r["asked_at"])] for r in found),
        wide=wide,
        empty="no pending requests",
    )


@app.command("approve")
def approve(
    number: Number,
    *,
    allow: Annotated[
        list[str] | None, typer.Option(help="Feed that it may take; repeat for more; the requested ones if left out.")
    ] = None,
    answer: Annotated[str, typer.Option(help="Message for the requester.")] = "",
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Create the requesting site and its user. The page of the request shows the user's invitation.

    Example: downburst requests approve 3 --allow NGRID --allow NEXRAD2
    """
    wanted = given(allow=allow or None) | {"answer": answer}
    made = HubClient(hub).ask("POST", "v1", "access-requests", str(number), "approval", json=wanted)
    show(made) if as_json else print(
        f"site {made['site']} created; its administrator signs in through the page of the request"
    )


@app.command("refuse")
def refuse(
    number: Number,
    answer: Annotated[str, typer.Argument(help="Reason, shown to the requester.")],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Refuse a request, with a reason.

    Example: downburst requests refuse 3 "ask your national hub first"
    """
    made = HubClient(hub).ask("POST", "v1", "access-requests", str(number), "refusal", json={"answer": answer})
    show(made) if as_json else print(f"request {number} of {made['site']} is refused")


_COLUMNS = ("number", "site", "organisation", "contact", "note", "state")
