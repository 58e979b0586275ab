"""The study of a hub's own last days: products of a feed, or their transfers to sites."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import typer

from downburst.foundation.errors import BadInput
from downburst.settings.hub import load_settings
from downburst_analyze.counters import Counters, counters
from downburst_analyze.transfers.deliveries import conditions, minutes_of
from downburst_app.cli.analysis.hub_feed import HubFeed, piece
from downburst_app.cli.analysis.terminal import Share, Step, progress
from downburst_app.cli.analysis.view import Options, Shown, View
from downburst_app.cli.client import connected
from downburst_scheduler.models.candidates import Situation


@dataclass(frozen=True, slots=True)
class OwnDays:
    """A part of a hub's records."""

    address: str
    feed: str
    days: float
    transfers: bool
    """The transfers of products to sites instead of the products."""
    newest: int
    """Products whose transfers are asked for, one request each."""
    data_dir: Path | None = None
    """The hub's data directory, if it is on this machine."""


def show_hub(asked: OwnDays, situation: Situation, options: Options) -> None:
    """Asks the hub with a progress line, then shows the result."""
    source = {"hub": asked.address, "feed": asked.feed, "days": asked.days}
    view = View(asked.feed, source, situation, options)
    with connected(asked.address, option="--at") as hub, progress() as (share, step):
        feed = HubFeed(hub, asked.feed, days=asked.days)
        if asked.transfers or options.heavy_bytes is not None:
            shown = _transfers(asked, feed, view, heavy_bytes=options.heavy_bytes, share=share, step=step)
        else:
            shown = _products(asked, feed, view, step)
    shown()


def _products(asked: OwnDays, feed: HubFeed, view: View, step: Step) -> Shown:
    step("asking for products")
    products = feed.products(MOST_PRODUCTS)
    if len(products) < FEWEST_PRODUCTS:
        raise BadInput(
            f"the hub's log knows {len(products)} products of {asked.feed} of {_days(asked)}, and a rate requires "
            f"{FEWEST_PRODUCTS}; give more with --days, or a recording"
        )
    if len(products) == MOST_PRODUCTS:
        typer.echo(f"note: of the products of this time only the newest {MOST_PRODUCTS} are studied", err=True)
    return view.products([piece(products)], step)


def _transfers(
    asked: OwnDays, feed: HubFeed, view: View, *, heavy_bytes: int | None, share: Share, step: Step
) -> Shown:
    step("asking for transfers")
    deliveries = feed.deliveries(feed.products(asked.newest), share)
    if not deliveries:
        raise BadInput(
            f"no receipt of {asked.feed} of {_days(asked)} has the stamps of a transfer; give more days with --days, "
            "and check with `downburst trace` that sites get its products"
        )
    if heavy_bytes is not None:
        return view.pairs(minutes_of(deliveries), heavy_bytes)
    return view.transfers((one.transfer for one in deliveries), conditions(deliveries), _hub_counters(asked))


def _hub_counters(asked: OwnDays) -> Mapping[str, Counters]:
    """The counters that the node of a hub on this machine recorded; none elsewhere."""
    if asked.data_dir is None and urlsplit(asked.address).hostname not in LOOPBACK:
        return {}
    directory = load_settings(data_dir=asked.data_dir).node_dir / "counters"
    if not directory.is_dir():
        return {}
    try:
        found = counters(directory)
    except BadInput as error:
        typer.echo(f"note: the hub's own counters are left out: {error.sentence}", err=True)
        return {}
    return {host: seen for host, seen in found.items() if host == HUB}


def _days(asked: OwnDays) -> str:
    return f"the last {asked.days:g} days"


LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
HUB = "hub"
MOST_PRODUCTS = 200_000
FEWEST_PRODUCTS = 2
