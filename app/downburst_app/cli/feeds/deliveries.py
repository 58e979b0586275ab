"""`downburst trace` and `downburst deliveries`: the state of a product at each site, and sites' losses."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, measured, milliseconds, minute, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.feeds.bridge_lines import bridge_lines


def trace(  # noqa: PLR0913
    product: Annotated[
        str,
        typer.Argument(help="Product id, FEED:SEQUENCE, path of a received file, or 8 or more digits of its digest."),
    ],
    *,
    feed: Annotated[str | None, typer.Option(help="Look in this feed only.")] = None,
    site: Annotated[str | None, typer.Option(help="Show this site only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of products with the same id.")] = 1,
    before: Annotated[
        int | None, typer.Option(min=1, help="Only products older than this sequence (with --feed).")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show the state of a product at each site, with the reason, and its latency by stage.

    Example: downburst trace nam.t06z.awip1284.grib2

    Example: downburst trace NGRID:4711 --site unl.edu

    Example: downburst trace received/NGRID/00000000000000a1-0000004711_nam.t06z.awip1284.grib2
    """
    wanted = given(product=product, feed=feed, site=site, limit=limit, before=before)
    found = HubClient(hub).ask("GET", "v1", "products", "trace", params=wanted)
    if as_json:
        show(found)
        return
    for one in found["products"]:
        _print_product(one)
    for note in found["notes"]:
        print(f"note: {note}")
    if found["next_before"] is not None:
        print(f"older products may have this name: --before {found['next_before']}")


def why(
    product: Annotated[str, typer.Argument(help="Product id, FEED:SEQUENCE, path of a received file, or digest.")],
    site: Annotated[str, typer.Argument(help="The site that lacks it.", autocompletion=completion.sites)],
    *,
    feed: Annotated[str | None, typer.Option(help="Look in this feed only.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Explain why a product is missing at a site, or when it arrived and what took the time, and what to do.

    A product of WIS2 is followed back to its notification. The parts of its time are listed by size: queue, line,
    TCP, repair, circuit, disk, file, and the clocks' bound.

    Example: downburst why nam.t06z.awip1284.grib2 unl.edu
    """
    wanted = given(product=product, site=site, feed=feed, limit=1)
    found = HubClient(hub).ask("GET", "v1", "products", "trace", params=wanted)["products"][0]
    (delivery,) = found["deliveries"]
    if as_json:
        kept = ("feed", "sequence", "product_id", "stored_at", "kept", "bridged")
        show({name: found[name] for name in kept} | delivery)
        return
    print(f"{found['product_id']} ({found['feed']}:{found['sequence']}), at the hub since {found['stored_at'][:19]}")
    for line in bridge_lines(found):
        print(line)
    print(f"{site}: {delivery['state']}: {delivery['reason']}")
    print(f"-> {delivery['next_action']}")
    for factor in delivery["factors"]:
        print(f"  {_number(factor):>9}  {factor['factor']:<9}  {factor['sentence']}")


def deliveries(  # noqa: PLR0913
    *,
    missing: Annotated[bool, typer.Option("--missing", help="List products that sites will not get.")] = False,
    site: Annotated[str | None, typer.Option(help="Only this site.", autocompletion=completion.sites)] = None,
    feed: Annotated[str | None, typer.Option(help="Only this feed.", autocompletion=completion.feeds)] = None,
    state: Annotated[str | None, typer.Option(help="Only `expired`, or only `rejected`.")] = None,
    begin: Annotated[str | None, typer.Option("--from", help="Since: RFC 3339, or how long ago: 2h.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="End of the range, likewise; now if left out.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of products.")] = 1000,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List products that sites lost: rejected there, or expired from the hub's log before delivery.

    Example: downburst deliveries --missing --site unl.edu --from 1d
    """
    if not missing:
        raise BadInput(
            "a hub keeps no row per delivery; list losses with --missing, or show one product with `downburst trace`"
        )
    wanted = given(site=site, feed=feed, state=state, limit=min(limit, PAGE)) | given(**{"from": begin, "to": end})
    items = list(_items(HubClient(hub), wanted, limit))
    if as_json:
        show(items)
        return
    table(
        "Lost",
        ("site", "feed", "sequence", "state", "at", "product", Further("size")),
        (_lost(item) for item in items),
        wide=wide,
        empty="no losses",
    )


def _items(client: HubClient, wanted: dict[str, Any], limit: int) -> Iterator[dict[str, Any]]:
    """Fetches all pages."""
    left, after = limit, None
    while left > 0:
        page = client.ask("GET", "v1", "deliveries", params=wanted | given(after=after))
        yield from page["items"][:left]
        left -= len(page["items"])
        after = page["next"]
        if after is None:
            return


def _lost(item: dict[str, Any]) -> list[object]:
    product = item["product_id"] or "no longer known"
    return [item["site"], item["feed"], item["sequence"], item["state"], minute(item["at"]), product, item["size"]]


def _print_product(one: dict[str, Any]) -> None:
    print(f"{one['product_id']}  {one['feed']}:{one['sequence']}")
    print(f"  {one['size']} bytes, class {one['class']}, digest {one['digest'][:16]}, log epoch {one['epoch']}")
    print(f"  created   {one['created_at']} by {one['origin']}")
    print(f"  at hub    {one['stored_at']}" + ("" if one["kept"] else ", bytes no longer in the log"))
    for line in bridge_lines(one):
        print(f"  {line}")
    states = ", ".join(f"{count} {state}" for state, count in sorted(one["states"].items()))
    print(f"  sites     {states or 'no site subscribes to this feed'}")
    reasons = ([it["site"], it["state"], it["reason"]] for it in one["deliveries"])
    table("", ("site", "state", "why"), reasons, empty="")
    stages = (_delivery(delivery) for delivery in one["deliveries"] if delivery["timing"]["stages"])
    table("Latency by stage", ("site", *_STAGES.values(), "in all"), stages, empty="")
    for action, sites in _actions(one["deliveries"]).items():
        print(f"  -> {', '.join(sites)}: {action}")


def _delivery(delivery: dict[str, Any]) -> list[object]:
    timing = delivery["timing"]
    stages = {stage["stage"]: (stage["ms"], stage["bound_ms"]) for stage in timing["stages"]}
    if "hub-to-last-byte" in stages:
        stages["transfer"] = stages["hub-to-last-byte"]
    cells = [_time(*stages.get(name, (None, None)), slow=name == timing["slow"]) for name in _STAGES]
    return [delivery["site"], *cells, _time(timing["distribution_ms"], timing["bound_ms"])]


def _number(factor: dict[str, Any]) -> str:
    """The time of a part, or its share without one."""
    if factor["ms"] is not None:
        return milliseconds(factor["ms"])
    return "-" if factor["share"] is None else f"{factor['share'] * 100:.2g} %"


def _actions(listed: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """The sites that need action, by the action."""
    actions: dict[str, list[str]] = {}
    for delivery in listed:
        if not delivery["next_action"].startswith("nothing to do"):
            actions.setdefault(delivery["next_action"], []).append(delivery["site"])
    return actions


def _time(ms: float | None, bound_ms: float | None, *, slow: bool = False) -> str:
    if ms is None:
        return ""
    return measured(ms, bound_ms) + (" !" if slow else "")


_STAGES = {"origin": "to hub", "queue": "queue", "transfer": "line", "store": "disk", "action": "file"}
PAGE = 1000
