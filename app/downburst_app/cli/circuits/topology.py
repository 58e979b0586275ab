"""`downburst topology`: the network that circuits cross, and questions to its calendar."""

from typing import Annotated, Any

import typer

from downburst.domain.circuits import PathOrder
from downburst.foundation.errors import BadInput
from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.numbers import A_YEAR_MINUTES, real_number

app = typer.Typer(
    help="Show the network that circuits cross, close parts of it, and ask for free windows and rates.",
    no_args_is_help=True,
)
To = Annotated[str, typer.Option(help="Site at the far end, or one of its ports.")]
HubPort = Annotated[str | None, typer.Option(help="The hub's port; left out: its only one.")]
Ways = Annotated[list[str] | None, typer.Option(help="Link or switch that the path must pass; repeat for more.")]
Not = Annotated[list[str] | None, typer.Option(help="Link or switch that it must not pass; repeat for more.")]
Name = Annotated[str, typer.Argument(help="Name of the window of maintenance.")]


@app.command("show")
def show_topology(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show the links with their rates and tags, and the windows of maintenance.

    Example: downburst topology show
    """
    found = HubClient(hub).ask("GET", "v1", "topology")
    if as_json:
        show(found)
        return
    of_switches = {port: switch["name"] for switch in found["switches"] for port in switch["ports"]}
    table(
        "Links (a to z, z to a; frame bits per second)",
        ("link", "a", "z", "a to z", "z to a", Further("tags"), Further("cost")),
        (_link(link, of_switches) for link in found["links"]),
        wide=wide,
        empty="there are no links yet; declare some under `topology` in a file: downburst apply -f hub.yaml",
    )
    for host in found["hosts"]:
        print(f"host {host['name']}: {', '.join(host['ports'])}, {rate_text(host['nic_bps'])} in each direction")
    for window in found["maintenance"]:
        print(f"maintenance {window['name']} of {', '.join(window['of'])}: {window['begin']} to {window['end']}")


@app.command("export")
def export_topology(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Print the topology in the form that `downburst apply` takes.

    Example: downburst topology export > network.yaml
    """
    import yaml  # type: ignore[import-untyped]

    from downburst_app.cli.configuration import network

    document = {"topology": network.topology(HubClient(hub).ask("GET", "v1", "topology"))}
    show(document) if as_json else print(yaml.safe_dump(document, sort_keys=False, width=120), end="")


@app.command("close")
def close(  # noqa: PLR0913
    name: Name,
    *,
    of: Annotated[list[str], typer.Option(help="Link, switch, host or port; repeat for more.")],
    begin: Annotated[str, typer.Option(help="RFC 3339 with an offset: 2026-03-01T06:00:00Z.")],
    end: Annotated[str, typer.Option(help="RFC 3339 with an offset.")],
    reason: Annotated[str, typer.Option(help="Shown to people.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Dry run: only show the result.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Close parts of the network for a window of maintenance; they take no new reservation in it.

    Example: downburst topology close fibre-work --of west --begin 2026-03-01T06:00:00Z --end 2026-03-01T08:00:00Z
    """
    window = {"name": name, "of": of, "begin": begin, "end": end, "reason": reason}
    made = _put(HubClient(hub), name, [window], dry_run=dry_run)
    if as_json:
        show(made)
        return
    print(f"{'it would close' if dry_run else 'closed'}: {', '.join(of)} from {begin} to {end}")
    if made["affected"]:
        print(f"circuits with a window in a maintenance: {', '.join(map(str, made['affected']))}; they stay")


@app.command("reopen")
def reopen(name: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a window of maintenance.

    Example: downburst topology reopen fibre-work
    """
    made = _put(HubClient(hub), name, [], dry_run=False)
    show(made) if as_json else print(f"maintenance {name} removed")


@app.command("window")
def find_window(  # noqa: PLR0913
    *,
    to: To,
    rate: Annotated[str, typer.Option(help="To the site, in Ethernet-frame bits per second: 2G.")],
    minutes: Annotated[float, real_number(least=0.01, most=A_YEAR_MINUTES, help="Length of the window.")],
    rate_back: Annotated[str | None, typer.Option(help="From the site, in the same units.")] = None,
    first: Annotated[str, typer.Option(help="Earliest begin: now, +2h, or RFC 3339 with an offset.")] = "now",
    last: Annotated[str, typer.Option(help="Latest begin.")] = "+30d",
    port: HubPort = None,
    order: Annotated[PathOrder, typer.Option(help="Measure of paths.")] = PathOrder.SHORTEST,
    include: Ways = None,
    exclude: Not = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Find the first window with room for a circuit; ends with 1 if none begins in time. Nothing is reserved.

    Example: downburst topology window --to unl.edu --rate 2G --minutes 45
    """
    asked = given(port=port, include=include, exclude=exclude) | {"to": to, "order": order.value}
    asked |= {"rate_out_bps": parse_rate_bps(rate), "minutes": minutes, "first": first, "last": last}
    if rate_back is not None:
        asked["rate_in_bps"] = parse_rate_bps(rate_back)
    found = HubClient(hub).ask("POST", "v1", "topology", "window", json=asked)
    show(found) if as_json else _say(found["sentence"], (found["found"] or {}).get("path"))
    if found["found"] is None:
        raise typer.Exit(1)


@app.command("rate")
def find_rate(  # noqa: PLR0913
    *,
    to: To,
    begin: Annotated[str, typer.Option(help="now, +2h, or RFC 3339 with an offset.")] = "now",
    end: Annotated[str, typer.Option(help="RFC 3339, or +2h (counted from the begin).")],
    port: HubPort = None,
    order: Annotated[PathOrder, typer.Option(help="Measure of paths.")] = PathOrder.WIDEST,
    include: Ways = None,
    exclude: Not = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show the rate that is free throughout a window. Nothing is reserved.

    Example: downburst topology rate --to unl.edu --begin +1h --end +2h
    """
    asked = given(port=port, include=include, exclude=exclude) | {"to": to, "order": order.value}
    found = HubClient(hub).ask("POST", "v1", "topology", "rate", json=asked | {"begin": begin, "end": end})
    show(found) if as_json else _say(found["sentence"], found["path"])


def _put(client: HubClient, name: str, windows: list[dict[str, Any]], *, dry_run: bool) -> Any:
    """The answer to a topology with these windows of one name in place of the present one."""
    present = client.ask("GET", "v1", "topology")
    others = [one for one in present["maintenance"] if one["name"] != name]
    if not windows and len(others) == len(present["maintenance"]):
        raise BadInput(f"there is no maintenance {name!r}; `downburst topology show` lists all")
    body = present | {"maintenance": [*others, *windows]}
    return client.ask("PUT", "v1", "topology", json=body, params={"dry_run": True} if dry_run else None)


def _link(link: dict[str, Any], of_switches: dict[str, str]) -> list[object]:
    ends = [f"{of_switches[port]} ({port})" if port in of_switches else port for port in (link["a"], link["z"])]
    tags = link["tags"]
    shown = "none" if tags is None else f"{tags['kind']} {tags['first']}-{tags['last']}"
    return [link["name"], *ends, rate_text(link["az_bps"]), rate_text(link["za_bps"]), shown, link["cost"]]


def _say(sentence: str, path: list[dict[str, Any]] | None) -> None:
    print(sentence)
    if path:
        hops = (hop["link"] if hop["tag"] is None else f"{hop['link']} (tag {hop['tag']})" for hop in path)
        print(f"path: {', '.join(hops)}")
