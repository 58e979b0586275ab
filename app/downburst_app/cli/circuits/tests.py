"""`downburst circuits tests`: tests with load, which book their rate in the calendar."""

from typing import Annotated, Any

import typer

from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst_app.cli.numbers import real_number

app = typer.Typer(help="List, book and end tests with load.", no_args_is_help=True)


@app.command("list")
def list_tests(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the tests that run, and the last of those that are over.

    Example: downburst circuits tests list
    """
    found = HubClient(hub).ask("GET", "v1", "test-bookings")
    if as_json:
        show(found)
        return
    rows = ([one["number"], one["test"], " - ".join(one["ports"]), _rates(one), one["end"][:19]] for one in found)
    columns = ("", "kind", "ports", "rates", "until (UTC)")
    table("Tests with load", columns, rows, empty="no test is booked; book one: downburst circuits tests book --help")


@app.command("book")
def book_test(  # noqa: PLR0913
    *,
    to: Annotated[str, typer.Option(help="Site at the far end.")],
    rate: Annotated[str, typer.Option(help="To the far end, in Ethernet-frame bits per second: 500M, 1G.")],
    seconds: Annotated[float, real_number(least=0.1, most=86_400, help="Seconds of the test.")],
    rate_back: Annotated[str | None, typer.Option(help="From the far end, in the same units.")] = None,
    near: Annotated[str | None, typer.Option("--from", help="Site at the near end; left out: the hub.")] = None,
    circuit: Annotated[int | None, typer.Option(min=1, help="Circuit inside which the test runs.")] = None,
    kind: Annotated[str, typer.Option(help="Kind of test.")] = "by-hand",
    by: Annotated[str, typer.Option(help="Name of the requester.")] = "operator",
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Book a test from now on. The answer says when it would fit if it has to wait.

    Example: downburst circuits tests book --to unl.edu --rate 500M --seconds 30
    """
    wanted = given(
        rate_in_bps=None if rate_back is None else parse_rate_bps(rate_back),
        near=None if near is None else {"site": near},
        circuit=circuit,
    )
    asked = {"test": kind, "far": {"site": to}, "rate_out_bps": parse_rate_bps(rate), "seconds": seconds, "by": by}
    found = HubClient(hub).ask("POST", "v1", "test-bookings", json=wanted | asked)
    if as_json:
        show(found)
        return
    number = f"test {found['booking']['number']}: " if found["booking"] else "not now: "
    print(f"{number}{found['sentence']}")


@app.command("end")
def end_test(
    number: Annotated[int, typer.Argument(help="Number of the booking.", min=1)], *, hub: HubAddress = DEFAULT_HUB
) -> None:
    """End a booking before its time, as the test is over.

    Example: downburst circuits tests end 2000000001
    """
    HubClient(hub).ask("DELETE", "v1", "test-bookings", str(number))
    print(f"test {number} is over; its rate is free")


def _rates(booking: dict[str, Any]) -> str:
    return f"{rate_text(booking['rate_out_bps'])} out, {rate_text(booking['rate_in_bps'])} in"
