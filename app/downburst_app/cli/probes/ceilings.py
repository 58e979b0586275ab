"""`downburst probe ceiling`: the most that probes of a site may send."""

from typing import Annotated, Any

import typer

from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show, table


def ceiling(
    site: Annotated[str, typer.Argument(help="Name of the site.", autocompletion=completion.sites)],
    *,
    rate: Annotated[str | None, typer.Option(help="The highest rate, such as 500M; 0k forbids probes.")] = None,
    gigabytes: Annotated[float | None, typer.Option("--gigabytes", min=0, max=9e6, help="The most in a day.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove the ceiling of your side.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show the ceilings of a site's probes, or set that of your side: the site's, or the operator's.

    Example: downburst probe ceiling unl.edu

    Example: downburst probe ceiling unl.edu --rate 500M --gigabytes 5
    """
    client, place = HubClient(hub), ("v1", "sites", site, "probe-ceiling")
    if none or rate is not None or gigabytes is not None:
        wanted: dict[str, Any] = (
            {}
            if none
            else {
                "rate_bps": None if rate is None else parse_rate_bps(rate),
                "bytes_per_day": None if gigabytes is None else round(gigabytes * 1e9),
            }
        )
        found = client.ask("PUT", *place, json=wanted)
    else:
        found = client.ask("GET", *place)
    if as_json:
        show(found)
        return
    rows = [[one["side"], _rate(one), _bytes(one["bytes_per_day"]), one["set_by"]] for one in found["ceilings"]]
    if all(one["bytes_per_day"] is None for one in found["ceilings"]):
        rows.append(["hubs without another", "none", _bytes(found["default_bytes_per_day"]), ""])
    rows.append(["used today", "", _bytes(found["used_bytes"]), ""])
    table(f"Ceilings of probes of {site}", ("side", "rate", "bytes a day", "set by"), rows, empty="")


def _rate(one: dict[str, Any]) -> str:
    return "none" if one["rate_bps"] is None else rate_text(one["rate_bps"])


def _bytes(value: int | None) -> str:
    return "none" if value is None else f"{value / 1e9:.3g} GB"
