"""`downburst publishers`: products of feeds that this hub announces to WIS2."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.bridges.passwords import password_in, set_publisher_password
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, given, minute, show, table
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(help="Announce products of feeds to WIS2, and serve them.", no_args_is_help=True)
app.command("password")(set_publisher_password)
Publisher = Annotated[
    str, typer.Argument(help="Name of the publisher, for example synop.", autocompletion=completion.publishers)
]


@app.command("list")
def list_publishers(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the publishers with the state of their brokers.

    Example: downburst publishers list
    """
    found = HubClient(hub).ask("GET", "v1", "publishers")
    if as_json:
        show(found)
        return
    table(
        "publishers",
        ("publisher", "feed", "broker", Further("waiting"), "announced", "refused", Further("expired"), "behind"),
        (_line(one) for one in found),
        wide=wide,
        empty="this hub publishes nothing to WIS2: downburst publishers add NAME --help",
    )


@app.command("show")
def show_publisher(
    publisher: Publisher, *, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False
) -> None:
    """Show a publisher: its topic, the state of its broker, and the last products.

    Example: downburst publishers show synop
    """
    client = HubClient(hub)
    found = client.ask("GET", "v1", "publishers", publisher)
    products = client.ask("GET", "v1", "publishers", publisher, "products")
    if as_json:
        show(found | {"products": products})
        return
    print(f"{publisher}: {found['feed']} as {found['centre']}, topic {found['topic']}")
    print(f"  broker {found['broker']['url']}: {_broker(found)}")
    if refusal := found["products"]["refusal"]:
        print(f"  last refusal: {refusal}")
    newest = sorted(products, key=lambda one: one["made_at"], reverse=True)[:SHOWN]
    table(
        "products",
        ("at", "data id", Further("kind"), "step", "reason"),
        ([minute(one["made_at"]), one["data_id"], one["kind"], one["step"], one["reason"]] for one in newest),
        wide=wide,
        empty="nothing has been announced yet",
    )


@app.command("add")
def add_publisher(  # noqa: PLR0913
    publisher: Publisher,
    *,
    feed: Annotated[
        str, typer.Option(help="The feed whose products are announced.", autocompletion=completion.feeds)
    ],
    centre: Annotated[str, typer.Option(help="Your centre-id, such as us-unidata; -test at its end is for tests.")],
    topic: Annotated[str, typer.Option(help="Below origin/a/wis2/CENTRE/data/, such as core/weather/….")],
    metadata_id: Annotated[str, typer.Option(help="Of the dataset, such as urn:wmo:md:us-unidata:synop.")],
    broker: Annotated[str, typer.Option(help="Your own broker: mqtts://HOST[:PORT] or wss://HOST/PATH.")],
    base_url: Annotated[str, typer.Option(help="The address under which others reach this hub, https://….")],
    user: Annotated[str | None, typer.Option(help="User at the broker; everyone if left out.")] = None,
    password_file: Annotated[Path | None, typer.Option(help="File with that user's password.")] = None,
    pattern: Annotated[str, typer.Option(help="Products whose ids match are announced.")] = ".*",
    media_type: Annotated[str | None, typer.Option(help="Such as application/bufr.")] = None,
    by_heading: Annotated[bool, typer.Option("--gateway", help="Topics end with the headings of bulletins.")] = False,
    republishes: Annotated[bool, typer.Option("--republish", help="Announce what came by WIS2 too.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Prepare the products of a feed for WIS2. Look at the preview, then switch it on.

    Example: downburst publishers add synop --feed 'IDS|DDPLUS' --pattern '^SM' --centre us-unidata
    --topic core/weather/surface-based-observations/synop --metadata-id urn:wmo:md:us-unidata:synop
    --broker mqtts://broker.example --user node --password-file secret --base-url https://hub.example
    """
    signed_in = given(user=user, password=password_in(password_file))
    wanted = given(
        publisher=publisher,
        feed=feed,
        centre=centre,
        topic=topic,
        metadata_id=metadata_id,
        broker={"url": broker} | signed_in,
        base_url=base_url,
        pattern=pattern,
        media_type=media_type,
        by_heading=by_heading,
        republishes=republishes,
    )
    made = HubClient(hub).ask("POST", "v1", "publishers", json=wanted)
    if as_json:
        show(made)
        return
    print(f"publisher {publisher} added, and off; look at a notification: downburst publishers preview {publisher}")


@app.command("describe")
def describe(  # noqa: PLR0913
    publisher: Publisher,
    *,
    title: Annotated[str, typer.Option(help="As catalogues show it.")],
    description: Annotated[str, typer.Option(help="The data, in a few sentences.")],
    organization: Annotated[str, typer.Option(help="Your organization.")],
    email: Annotated[str, typer.Option(help="Its address of mail.")],
    website: Annotated[str, typer.Option(help="Its site, https://….")],
    country: Annotated[str, typer.Option(help="ISO 3166, such as USA.")],
    keywords: Annotated[list[str], typer.Option("--keyword", help="Repeat: at least three.")],
    begin: Annotated[str, typer.Option(help="The time of the first data, such as 2026-11-01T00:00:00Z.")],
    bounds: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option(help="West, south, east, north."),
    ] = None,
    license_url: Annotated[
        str | None, typer.Option("--license", help="Its address; recommended data need one.")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """State the facts for the record of discovery, which is announced each day.

    Example: downburst publishers describe synop --title Synops --description 'Of ships.' --organization Unidata
    --email a@unidata.example --website https://unidata.example --country USA --keyword synop --keyword ship
    --keyword surface --begin 2026-11-01T00:00:00Z
    """
    dataset = given(
        title=title,
        description=description,
        organization=organization,
        email=email,
        website=website,
        country=country,
        keywords=keywords,
        begin=begin,
        bounds=None if bounds is None else list(bounds),
        license_url=license_url,
    )
    changed = HubClient(hub).ask("PATCH", "v1", "publishers", publisher, json={"dataset": dataset})
    show(changed) if as_json else print(f"the record of {publisher} is {changed['dataset']!r}")


@app.command("preview")
def preview(publisher: Publisher, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show the notification of the newest product that matches, as it would be sent.

    Example: downburst publishers preview synop
    """
    found = HubClient(hub).ask("POST", "v1", "publishers", publisher, "preview")
    if as_json:
        show(found)
    elif found["notification"] is None:
        print(f"{found['product_id']} would not be announced: {found['reason']}")
    else:
        print(f"topic {found['topic']}")
        print(json.dumps(found["notification"], indent=2, ensure_ascii=False))
        print(f"switch it on: downburst publishers switch {publisher} --on")


@app.command("switch")
def switch_publisher(
    publisher: Publisher,
    on: Annotated[bool, typer.Option("--on/--off", help="On: it begins with the next product. Off: it stays there.")],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Switch a publisher on or off.

    Example: downburst publishers switch synop --on
    """
    changed = HubClient(hub).ask("PATCH", "v1", "publishers", publisher, json={"enabled": on})
    show(changed) if as_json else print(f"publisher {publisher} is switched {'on' if on else 'off'}")


@app.command("withdraw")
def withdraw(
    publisher: Publisher,
    data_id: Annotated[str, typer.Argument(help="As `publishers show` lists it.")],
    *,
    yes: Yes = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Announce that data are withdrawn, and serve them no more; the product stays in its feed.

    Example: downburst publishers withdraw synop us-unidata/synop/SMVX52+TJSJ+291200
    """
    confirm(f"Withdraw {data_id}? Caches of WIS2 delete it.", yes=yes)
    path = ("v1", "publishers", publisher, "withdraw")
    found = HubClient(hub).ask("POST", *path, json={"data_id": data_id})
    show(found) if as_json else print(f"the withdrawal of {data_id} is announced")


@app.command("remove")
def remove_publisher(
    publisher: Publisher, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False
) -> None:
    """Remove a publisher; its products stay in their feed, and are served no more.

    Example: downburst publishers remove synop
    """
    confirm(f"Remove publisher {publisher}? Links that it has announced end.", yes=yes)
    HubClient(hub).ask("DELETE", "v1", "publishers", publisher)
    show({"removed": publisher}) if as_json else print(f"publisher {publisher} removed")


def _line(one: dict[str, Any]) -> list[Any]:
    return [one["publisher"], one["feed"], _broker(one), *(one["products"][step] for step in (*STEPS, "behind"))]


def _broker(one: dict[str, Any]) -> str:
    if not one["enabled"]:
        return "off"
    broker = one["broker"]
    return (
        f"connected since {minute(broker['connected_at'])}" if broker["connected_at"] else f"away: {broker['fault']}"
    )


STEPS = ("waiting", "announced", "refused", "expired")
SHOWN = 20
