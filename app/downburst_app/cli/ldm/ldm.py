"""`downburst ldm`: LDM upstreams of this hub, and its LDM downstreams."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, milliseconds, show, table
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(help="Request products from LDMs, let hosts push, and list connected LDMs.", no_args_is_help=True)
Feeds = Annotated[str, typer.Argument(help="LDM's feed types, for example NGRID or 'IDS|DDPLUS'.")]


@app.command("sources")
def list_sources(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List LDM sources, with the state of each LDM.

    Example: downburst ldm sources
    """
    found = HubClient(hub).ask("GET", "v1", "ldm", "sources")
    if as_json:
        show(found)
        return
    table(
        "LDM sources",
        ("source", Further("requests"), "upstream", "state", "stored", Further("known"), Further("skipped")),
        ([*_who(one), *_upstream(link)] for one in found for link in one["state"]),
        wide=wide,
        empty="no LDM sources: downburst ldm ask NAME FEEDS HOST",
    )
    for one in (one for one in found if not one["has_feeds"]):
        print(
            f"{one['source']}: not all of {one['feeds']} has a feed here; "
            "its products are skipped: downburst feeds add NAME --ldm-feed-type TYPE"
        )


@app.command("ask")
def ask(  # noqa: PLR0913
    source: Annotated[str, typer.Argument(help="Name of the source here.")],
    feeds: Feeds,
    upstreams: Annotated[
        list[str], typer.Argument(help="HOST[:PORT] of LDMs that have them, the preferred one first.")
    ],
    *,
    pattern: Annotated[str, typer.Option(help="Regular expression on identifiers to request.")] = ".*",
    max_age_s: Annotated[
        int, typer.Option(help="Maximum age in seconds; older products are neither requested nor accepted.")
    ] = 3600,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Request products from LDMs, into the feeds that have their feed types. Several LDMs cause no duplicates.

    Example: downburst ldm ask unidata NGRID idd.unidata.ucar.edu idd.unl.edu
    """
    wanted = {
        "source": source,
        "feeds": feeds,
        "upstreams": upstreams,
        "pattern": pattern,
        "max_age_s": max_age_s,
    }
    made = HubClient(hub).ask("POST", "v1", "ldm", "sources", json=wanted)
    show(made) if as_json else print(f"LDM source {source} added; see its state: downburst ldm sources")


@app.command("forget")
def forget(
    source: Annotated[str, typer.Argument(help="Name of the source here.", autocompletion=completion.ldm_sources)],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Remove an LDM source; its products stay.

    Example: downburst ldm forget unidata
    """
    HubClient(hub).ask("DELETE", "v1", "ldm", "sources", source)
    show({"removed": source}) if as_json else print(f"LDM source {source} removed")


@app.command("peers")
def peers(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the LDMs that are connected to this hub, and their progress.

    LDM has no receipts: "answered" counts the products that a peer had processed at its last answer.

    Example: downburst ldm peers
    """
    found = HubClient(hub).ask("GET", "v1", "ldm", "peers")
    if as_json:
        show(found)
        return
    where = ", ".join(found["addresses"])
    print(f"LDMs connect to {where}" if where else "no port is open for LDMs: setting ldm.listen, such as [::]:388")
    table(
        "Connections",
        (
            "host",
            "site",
            "what",
            Further("class"),
            Further("sent"),
            "answered",
            Further("at"),
            Further("not acknowledged"),
        ),
        (_peer(one) for one in found["peers"]),
        wide=wide,
        empty="no LDM is connected",
    )


@app.command("accept")
def accept(
    feeds: Feeds,
    host: Annotated[str, typer.Argument(help="Matches the host's name in lower case, or its address.")],
    *,
    pattern: Annotated[str, typer.Option(help="Regular expression on identifiers to accept.")] = ".*",
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Let hosts push products, as ldmsend, pqsend and rtstats do.

    Example: downburst ldm accept EXP '^ldm\\.example\\.edu$' --pattern '^rtstats'
    """
    wanted = {"feeds": feeds, "pattern": pattern, "host": host}
    made = HubClient(hub).ask("POST", "v1", "ldm", "accepts", json=wanted)
    show(made) if as_json else print(f"hosts that match {host} may push {feeds}, as number {made['id']}")


@app.command("accepts")
def list_accepts(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List hosts that may push, with their feed types.

    Example: downburst ldm accepts
    """
    found = HubClient(hub).ask("GET", "v1", "ldm", "accepts")
    if as_json:
        show(found)
        return
    rows = ([one["id"], one["feeds"], one["pattern"], one["host"]] for one in found)
    table("Accepted", ("number", "feeds", "pattern", "host"), rows, empty="no host may push: downburst ldm accept")


@app.command("refuse")
def refuse(
    number: Annotated[int, typer.Argument(help="The number from downburst ldm accepts.")],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Withdraw the permission to push.

    Example: downburst ldm refuse 1
    """
    HubClient(hub).ask("DELETE", "v1", "ldm", "accepts", str(number))
    show({"removed": number}) if as_json else print(f"accept {number} removed")


@app.command("reports")
def reports(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List latencies at hosts that this hub does not run, from their latest rtstats lines.

    They depend on the clocks of those hosts and of the products' origins, which are not compared.

    Example: downburst ldm reports
    """
    found = HubClient(hub).ask("GET", "v1", "ldm", "reports")
    if as_json:
        show(found)
        return
    table(
        "Reports of the last hour of each",
        ("host", "feed type", Further("way"), "products", "mean latency, not corrected", Further("newest")),
        (
            [
                *(one["host"], one["feed"], one["path"], one["products"]),
                milliseconds(one["mean_latency_s"] * 1e3),
                f"{datetime.fromtimestamp(one['at_us'] / 1e6, UTC):%Y-%m-%d %H:%M:%S}",
            ]
            for one in found
        ),
        wide=wide,
        empty="no host pushes rtstats lines: downburst ldm accept EXP HOST --pattern '^rtstats'",
    )


def _who(one: dict[str, Any]) -> list[str]:
    asked = one["feeds"] if one["pattern"] == ".*" else f"{one['feeds']} {one['pattern']}"
    return [one["source"], asked]


def _upstream(link: dict[str, Any]) -> list[Any]:
    state = f"connected, {link['mode']}" if link["connected"] else f"away: {link.get('reason') or 'not reported yet'}"
    return [link["upstream"], state, *(link.get(name, "") for name in ("stored", "duplicates", "passed_over"))]


def _peer(one: dict[str, Any]) -> list[Any]:
    what = f"{one['what']} {one['mode']}".strip() or "asking"
    at = one["answered_us"]
    when = "" if at is None else f"{datetime.fromtimestamp(at / 1e6, UTC):%H:%M:%S}"
    pushes = one["what"] == "hiya"
    sent = f"{one['pushed']} taken" if pushes else one["products"]
    return [
        one["peer"] or one["address"],
        one["site"],
        what,
        one["class"],
        sent,
        "" if pushes else one["answered"],
        when,
        "" if pushes else f"{one['unacknowledged_bytes']} B",
    ]
