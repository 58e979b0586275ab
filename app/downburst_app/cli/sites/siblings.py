"""`downburst siblings`: repair between sites."""

from typing import Annotated, Any

import typer

from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.foundation.sizes import size_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table

app = typer.Typer(
    help="Let sites give each other products that one of them lacks; show the bytes saved.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(help="Name of the site, for example unl.edu.", autocompletion=completion.sites)]


@app.command("list")
def list_siblings(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the sites that exchange products, with the bytes that the hub did not have to send.

    Example: downburst siblings list
    """
    found = HubClient(hub).every("v1", "siblings")
    if as_json:
        show(found)
        return
    table(
        "Siblings",
        ("site", "address", "uploads at most", "a day", "taken from siblings"),
        ([one["site"], *_exchange(one["exchange"]), size_text(one["saved_bytes"])] for one in found),
        empty="no sites exchange products; switch it on for two of them: downburst siblings on unl.edu",
    )


@app.command("show")
def show_siblings(site: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show the exchange of a site, and by feed what siblings gave to it.

    Example: downburst siblings show unl.edu
    """
    found = HubClient(hub).ask("GET", "v1", "sites", site, "siblings")
    if as_json:
        show(found)
        return
    address, rate, day = _exchange(found["exchange"])
    print(f"site {site}: {address}" + (f"; uploads at most {rate}, {day} a day" if found["exchange"] else ""))
    rows = ([one["feed"], f"{one['products']:,}", size_text(one["bytes"])] for one in found["saved"])
    table("Taken from siblings", ("feed", "products", "bytes"), rows, empty="siblings have given nothing yet")


@app.command("on")
def switch_on(
    site: Name,
    *,
    address: Annotated[
        str | None, typer.Option(help="HOST:PORT at which siblings reach it; its session's address if left out.")
    ] = None,
    upload: Annotated[
        str | None, typer.Option(help="The most that it gives to all siblings together, such as 80M.")
    ] = None,
    gigabytes: Annotated[
        float | None, typer.Option("--gigabytes", min=0, max=9e6, help="The most that it gives in a day (UTC).")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Let a site give products to siblings and take from them, with exactly these values.

    The site learns the addresses of its siblings, and they learn its address. Its receiver must run with
    --siblings-listen, and its firewall must admit the siblings to that port.

    Example: downburst siblings on unl.edu --address ldm.unl.edu:7380 --upload 80M --gigabytes 50
    """
    body = given(
        address=address,
        upload_bytes_per_second=None if upload is None else parse_rate_bps(upload) // 8,
        upload_bytes_per_day=None if gigabytes is None else round(gigabytes * 1e9),
    )
    kept = HubClient(hub).ask("PUT", "v1", "sites", site, "siblings", json=body)
    if as_json:
        show(kept)
        return
    print(f"site {site} exchanges products with its siblings; it learns their addresses, and they learn its address")


@app.command("off")
def switch_off(site: Name, *, hub: HubAddress = DEFAULT_HUB) -> None:
    """End the exchange of a site: running transfers end within a second.

    Example: downburst siblings off unl.edu
    """
    HubClient(hub).ask("DELETE", "v1", "sites", site, "siblings")
    print(f"site {site} exchanges nothing with other sites")


def _exchange(one: dict[str, Any] | None) -> tuple[str, str, str]:
    if one is None:
        return "off", "", ""
    rate = rate_text(one["upload_bytes_per_second"] * 8)
    return one["address"] or "address of its session", rate, size_text(one["upload_bytes_per_day"])
