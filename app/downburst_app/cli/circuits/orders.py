"""`downburst circuits orders` and `order`: the account of the scheduler's orders."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from downburst.foundation.rates import rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, milliseconds, show, table
from downburst_app.cli.columns import Further, Wide

OrderNumber = Annotated[int, typer.Argument(help="Number of the order.", min=1)]


def list_orders(  # noqa: PLR0913
    *,
    offer: Annotated[str | None, typer.Option(help="Only under this offer.")] = None,
    feed: Annotated[str | None, typer.Option(help="Only for this feed.")] = None,
    site: Annotated[str | None, typer.Option(help="Only to this site.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of orders.")] = 50,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List orders of circuits on demand, newest first.

    Example: downburst circuits orders --feed NGRID --limit 20
    """
    asked = given(offer=offer, feed=feed, site=site) | {"limit": limit}
    found = HubClient(hub).ask("GET", "v1", "circuit-orders", params=asked)
    if as_json:
        show(found)
        return
    table(
        "Orders of circuits on demand (times in UTC)",
        (
            "",
            "offer",
            "feed",
            "site",
            Further("rate"),
            "step",
            Further("ordered"),
            Further("set-up"),
            Further("used"),
            "outcome",
        ),
        map(_row, found["orders"]),
        wide=wide,
        empty="no circuit was ordered; the scheduler orders under offers: downburst circuits offers list",
    )


def show_order(number: OrderNumber, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show an order with its reason, its times and its outcome.

    Example: downburst circuits order 12
    """
    found = HubClient(hub).ask("GET", "v1", "circuit-orders", str(number))
    if as_json:
        show(found)
        return
    table(f"Order {number}", ("", ""), _lines(found), empty="")


def _row(order: dict[str, Any]) -> list[object]:
    return [
        *(order["order"], order["offer"], order["feed"], order["site"], rate_text(order["rate_bps"])),
        *(order["step"], _second(order["ordered_at"]), _setup(order), _used(order), order["outcome"]),
    ]


def _lines(order: dict[str, Any]) -> Iterator[list[object]]:
    yield ["offer", order["offer"]]
    yield ["for", f"{order['feed']} to {order['site']} at {rate_text(order['rate_bps'])}"]
    yield ["reason", order["reason"]]
    yield ["step", order["step"]]
    yield ["circuit", "none" if order["circuit"] is None else order["circuit"]]
    yield ["ordered", _second(order["ordered_at"])]
    yield ["up", _setup(order) and f"{_second(order['up_at'])}, {_setup(order)} after the order"]
    yield ["released", _second(order["released_at"])]
    yield ["ended", _second(order["ended_at"])]
    yield ["window ends", _second(order["until"])]
    yield ["used", _used(order)]
    yield ["products", order["products"]]
    yield ["latency gained", milliseconds(order["gained_ms"])]
    yield ["outcome", order["outcome"]]


def _setup(order: dict[str, Any]) -> str:
    return "" if order["setup_s"] is None else f"{order['setup_s']:.3g} s"


def _used(order: dict[str, Any]) -> str:
    return "" if order["used_share"] is None else f"{order['used_share']:.0%}"


def _second(moment: str | None) -> str:
    """A time to the second."""
    return "" if moment is None else moment[:19].replace("T", " ")
