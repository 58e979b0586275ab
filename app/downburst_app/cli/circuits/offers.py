"""`downburst circuits offers`: circuits that the scheduler may order."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.circuits.records import Kind
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, given, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.numbers import A_DAY_S, real_number

if TYPE_CHECKING:
    from downburst_contract.ordering import CircuitOfferWanted

app = typer.Typer(help="List, set and remove offers: circuits that the scheduler may order.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the offer, for example campus.", autocompletion=completion.offers)]


@app.command("list")
def list_offers(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the offers with their measured set-up times and the use of today's budgets.

    Example: downburst circuits offers list
    """
    found = HubClient(hub).ask("GET", "v1", "circuit-offers")
    if as_json:
        show(found)
        return
    table(
        "Offers of circuits (budgets from midnight UTC)",
        (
            "offer",
            Further("provider"),
            Further("hub port"),
            "ports",
            "rates",
            Further("price"),
            "set-up",
            Further("hold"),
            "hours today",
            "orders today",
        ),
        map(_row, found["offers"]),
        wide=wide,
        empty="there are no offers; add one: downburst circuits offers set campus --hub-port ae1 --port unl-ae1 "
        "--rate 500M",
    )


@app.command("set")
def set_offer(  # noqa: PLR0913
    offer: Name,
    *,
    hub_port: Annotated[str | None, typer.Option(help="The hub's port, or that of a relay.")] = None,
    port: Annotated[list[str] | None, typer.Option(help="Port of a site or further relay; repeat.")] = None,
    rate: Annotated[list[str] | None, typer.Option(help="Rate that can be ordered: 500M, 1G; repeat.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="Name of a provider; linux (the default): the hub's own nodes.")
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(help="Cost of a reserved bit relative to one sent; default: scheduler.circuit_cost."),
    ] = None,
    setup_s: Annotated[
        float | None,
        real_number(least=0, most=A_DAY_S, help="Set-up time that the provider states, in seconds; 60 by default."),
    ] = None,
    least_hold_s: Annotated[
        float | None,
        real_number(least=0, most=A_DAY_S, help="Shortest time for which a circuit is ordered, in seconds."),
    ] = None,
    circuit_hours_a_day: Annotated[
        str | None, typer.Option(help="Most reserved hours a day, over all circuits; none: no limit.")
    ] = None,
    orders_a_day: Annotated[str | None, typer.Option(help="Most orders a day; none: no limit.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Add an offer, or change the given values of one.

    Example: downburst circuits offers set campus --hub-port ae1 --port unl-ae1 --rate 100M --rate 500M --setup-s 1

    Example: downburst circuits offers set campus --circuit-hours-a-day 8 --orders-a-day none

    Example: downburst circuits offers set core --hub-port depot-eth1 --port campus-eth1 --rate 500M
    """
    wanted = given(
        hub_port=hub_port,
        ports=port,
        rates_bps=sorted({parse_rate_bps(text) for text in rate}) if rate else None,
        provider=provider,
        setup_s=setup_s,
        least_hold_s=least_hold_s,
    )
    wanted |= _cleared(
        price=_number(price, "default"),
        circuit_hours_a_day=_number(circuit_hours_a_day, "none"),
        orders_a_day=_number(orders_a_day, "none"),
    )
    made = OFFERS.put(HubClient(hub), offer, wanted)
    show(made) if as_json else print(_sentence(made))


@app.command("remove")
def remove_offer(offer: Name, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove an offer; the scheduler orders no more circuits under it, and its orders stay readable.

    Example: downburst circuits offers remove campus
    """
    effect = "No circuit is ordered under it from now on."
    OFFERS.remove(HubClient(hub), offer, effect, yes=yes, as_json=as_json)


def _number(text: str | None, word: str) -> float | int | str | None:
    """A number of an option; `word` stands for null, and is returned as it is."""
    if text is None or text == word:
        return text and NULL
    try:
        return int(text) if text.isdigit() else _finite(float(text))
    except ValueError:
        raise BadInput(f"{text!r} is not a number; give one, or {word}") from None


def _finite(value: float | None) -> float | None:
    """The value; refuses one that JSON has no form for."""
    if value is not None and not math.isfinite(value):
        raise BadInput(f"{value} is not a number of a definite size; give another one")
    return value


def _cleared(**options: float | str | None) -> dict[str, Any]:
    """The options that are set, with null for those that clear a value."""
    return {name: None if value == NULL else value for name, value in given(**options).items()}


def _sentence(offer: dict[str, Any]) -> str:
    rates = ", ".join(map(rate_text, offer["rates_bps"]))
    return (
        f"offer {offer['offer']}: {rates} from {offer['hub_port']} to {', '.join(offer['ports'])} "
        f"by {offer['provider']}, {_budget(offer)}"
    )


def _budget(offer: dict[str, Any]) -> str:
    hours, orders = offer["circuit_hours_a_day"], offer["orders_a_day"]
    parts = [None if hours is None else f"{hours:g} circuit-hours", None if orders is None else f"{orders:,} orders"]
    said = " and ".join(part for part in parts if part)
    return f"at most {said} a day" if said else "without a limit a day"


def _row(offer: dict[str, Any]) -> list[object]:
    measured, used = offer["measured"], offer["used_today"]
    setup = (
        f"{offer['setup_s']:g} s stated"
        if measured is None
        else f"{measured['median_s']:.3g} s, p90 {measured['p90_s']:.3g} s"
    )
    return [
        *(offer["offer"], offer["provider"], offer["hub_port"], " ".join(offer["ports"])),
        ", ".join(map(rate_text, offer["rates_bps"])),
        "default" if offer["price"] is None else f"{offer['price']:g}",
        setup,
        f"{offer['least_hold_s']:g} s",
        _of(f"{used['circuit_hours']:.3g}", offer["circuit_hours_a_day"]),
        _of(f"{used['orders']:,}", offer["orders_a_day"]),
    ]


def _of(used: str, most: float | None) -> str:
    return used if most is None else f"{used} of {most:g}"


def _wanted() -> "type[CircuitOfferWanted]":
    from downburst_contract.ordering import CircuitOfferWanted

    return CircuitOfferWanted


OFFERS = Kind(
    "offer",
    "circuit-offers",
    _wanted,
    {"--hub-port": "hub_port", "--port": "ports", "--rate": "rates_bps"},
)
NULL = "null"
"""The value of an option that clears a limit; no number reads so."""
