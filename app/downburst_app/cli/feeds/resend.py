"""`downburst resend`, `downburst resends`: resends of stored products to a site."""

import time
from typing import Annotated, Any

import typer

from downburst.foundation.errors import Failure
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, minute, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.numbers import A_YEAR_S, real_number

app = typer.Typer(help="List, follow and cancel resends.", no_args_is_help=True)
Number = Annotated[int, typer.Argument(help="Number of the resend, as listed.", autocompletion=completion.resends)]


def resend(  # noqa: PLR0913
    *,
    site: Annotated[str, typer.Option(help="The site that gets the products again.")],
    feed: Annotated[str, typer.Option(help="The feed.")],
    from_at: Annotated[str, typer.Option("--from", help="Stored at the hub since: RFC 3339, or how long ago.")],
    to_at: Annotated[str | None, typer.Option("--to", help="... until then; now if left out.")] = None,
    pattern: Annotated[str | None, typer.Option(help="Regular expression on the product id; else all.")] = None,
    not_pattern: Annotated[str | None, typer.Option(help="Exclude products that match this.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the site has everything.")] = False,
    limit_s: Annotated[
        float, real_number("--limit", least=0, most=A_YEAR_S, help="Seconds to wait at most.")
    ] = 3600.0,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Send products in the hub's log to a site again.

    They use only capacity that live products leave. Every product is delivered once, to the files and programs
    there too, whether the site has it or not. If the site is offline, the resend continues when it reconnects.

    Example: downburst resend --site unl.edu --feed NGRID --from 2h --to 90m

    Example: downburst resend --site unl.edu --feed 'IDS|DDPLUS' --from 2026-01-31T06:00:00Z --pattern '^W' --wait
    """
    wanted = {"site": site, "feed": feed, "from": from_at}
    wanted |= given(to=to_at, pattern=pattern, not_pattern=not_pattern)
    client = HubClient(hub)
    made = client.ask("POST", "v1", "resends", json=wanted)
    if wait:
        made = _waited(client, made["id"], limit_s)
    show(made) if as_json else print(_sentence(made))


@app.command("list")
def list_resends(
    site: Annotated[
        str | None, typer.Option(help="Only those to this site.", autocompletion=completion.sites)
    ] = None,
    *,
    feed: Annotated[
        str | None, typer.Option(help="Only those of this feed.", autocompletion=completion.feeds)
    ] = None,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List the newest resends; a subscription that began in the past is among them.

    Example: downburst resends list --site unl.edu
    """
    found = HubClient(hub).ask("GET", "v1", "resends", params=given(site=site, feed=feed))
    if as_json:
        show(found)
        return
    columns = ("id", "site", "feed", "kind", "from", "to", "pattern", "state", "products", "expired")
    table(
        "Resends",
        [Further(name) if name in FURTHER else name for name in columns],
        ([minute(one[name]) if name in ("from", "to") else one[name] for name in columns] for one in found),
        wide=wide,
        empty="there are no resends yet: downburst resend --site SITE --feed FEED --from 2h",
    )


@app.command("wait")
def wait_for(
    number: Number,
    *,
    limit_s: Annotated[
        float, real_number("--limit", least=0, most=A_YEAR_S, help="Seconds to wait at most.")
    ] = 3600.0,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Wait until a resend is finished.

    Example: downburst resends wait 7
    """
    ended = _waited(HubClient(hub), number, limit_s)
    show(ended) if as_json else print(_sentence(ended))


@app.command("cancel")
def cancel(number: Number, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Cancel a resend; delivered products stay.

    Example: downburst resends cancel 7
    """
    ended = HubClient(hub).ask("DELETE", "v1", "resends", str(number))
    show(ended) if as_json else print(_sentence(ended))


def _waited(client: HubClient, number: int, limit_s: float) -> dict[str, Any]:
    ends = time.monotonic() + limit_s
    while True:
        found: dict[str, Any] = client.ask("GET", "v1", "resends", str(number))
        if found["state"] != "waiting":
            return found
        if time.monotonic() >= ends:
            raise Failure(
                f"resend {number} to {found['site']} is not finished after {limit_s:g} s; it continues by "
                f"itself: downburst resends wait {number}"
            )
        time.sleep(LOOK_S)


def _sentence(resend: dict[str, Any]) -> str:
    what = f"resend {resend['id']}: {resend['feed']} from {resend['from']} to {resend['to']} to {resend['site']}"
    if resend["state"] == "waiting":
        return f"{what} continues by itself; follow it: downburst resends wait {resend['id']}"
    lost = f", {resend['expired']} had left the hub's log" if resend["expired"] else ""
    return f"{what} is {resend['state']}: {resend['products']} products, {resend['bytes']} bytes{lost}"


LOOK_S = 0.5
FURTHER = frozenset({"kind", "from", "to", "pattern"})
