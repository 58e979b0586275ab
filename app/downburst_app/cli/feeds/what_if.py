"""`downburst plans what-if`: the planner's choice for a feed under other conditions."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from downburst.domain.plans import TrafficSpan
from downburst.foundation.moments import duration_s
from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show, table
from downburst_app.cli.columns import Further, Wide


def what_if(  # noqa: PLR0913
    feed: Annotated[str, typer.Argument(help="Name of the feed.", autocompletion=completion.feeds)],
    *,
    sites: Annotated[int | None, typer.Option(min=1, max=500, help="Number of sites that take the feed.")] = None,
    egress: Annotated[
        str | None, typer.Option(help="Egress of the hub that is free for the feed, such as 200M or 1G.")
    ] = None,
    objective: Annotated[str | None, typer.Option(help="Latency objective, such as 5s or 250ms.")] = None,
    setup: Annotated[str | None, typer.Option(help="Set-up time of circuits on demand, such as 10s.")] = None,
    traffic: Annotated[
        TrafficSpan, typer.Option(help="Arrivals: the present ones, or the busiest minutes of the last day.")
    ] = TrafficSpan.NOW,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show the planner's choice for a feed under other conditions; nothing is changed.

    The same functions decide as for the plan in force, on the feed's own arrivals. Conditions without an option stay
    as today. The values at which the choice flips are listed for each condition.

    Example: downburst plans what-if NGRID --sites 104

    Example: downburst plans what-if NGRID --egress 200M --objective 5s --setup 10s --traffic busiest
    """
    given = {
        "sites": sites,
        "egress_bps": None if egress is None else parse_rate_bps(egress),
        "objective_ms": None if objective is None else duration_s(objective) * 1e3,
        "setup_s": None if setup is None else duration_s(setup),
    }
    wanted = {name: value for name, value in given.items() if value is not None} | {"traffic": traffic.value}
    found = HubClient(hub).ask("POST", "v1", "feeds", feed, "what-if", json=wanted)
    show(found) if as_json else _print(found, wide=wide)


def _print(found: dict[str, Any], *, wide: bool) -> None:
    now, then = found["now"]["transport"], found["then"]["transport"]
    kept = f"still {then}" if then == now else f"{then} instead of {now}"
    print(f"{found['feed']} with {_conditions(found['tried'])}: {kept}")
    print(found["then"]["sentence"])
    head = ("transport", "possible", "predicted p99 ms", "egress Mb/s", Further("score Mb/s"), Further("why"))
    table("Compared, best first", head, map(_compared, found["then"]["candidates"]), wide=wide, empty="")
    table("Flips", ("condition", "today", "tried", "flips"), _flips(found), wide=wide, empty="")
    played = f"{found['products']} products in {found['span_s']:.0f} s, {rate_text(found['mean_bps'])} on average"
    print(f"played: {played}, begun {found['begun_s_ago']:.0f} s ago")
    for note in found["notes"]:
        print(f"note: {note}")


def _conditions(tried: dict[str, Any]) -> str:
    count = "1 site" if tried["sites"] == 1 else f"{tried['sites']} sites"
    return f"{count}, {rate_text(tried['egress_bps'])} of egress, an objective of {_value('objective_ms', tried)}"


def _compared(one: dict[str, Any]) -> list[object]:
    rates = (one[name] for name in ("egress_bps", "score_bps"))
    p99_ms = one["predicted_p99_ms"]
    return [
        one["transport"],
        "yes" if one["feasible"] else "no",
        "" if p99_ms is None else f"{p99_ms:.3g}",
        *("" if value is None else f"{value / 1e6:.3g}" for value in rates),
        one["reason"],
    ]


def _flips(found: dict[str, Any]) -> Iterator[list[object]]:
    for condition, title in TITLES.items():
        if found["today"][condition] is None:
            continue
        flips = [_flip(one) for one in found["flips"] if one["condition"] == condition]
        none = "none found" if found["complete"] else "not searched to the end"
        yield [title, _value(condition, found["today"]), _value(condition, found["tried"]), ", ".join(flips) or none]


def _flip(one: dict[str, Any]) -> str:
    return f"at {_text(one['condition'], one['at'])}: {one['transport']}"


def _value(condition: str, conditions: dict[str, Any]) -> str:
    return _text(condition, conditions[condition])


def _text(condition: str, value: float) -> str:
    match condition:
        case "sites":
            return f"{value:.0f}"
        case "egress_bps":
            return rate_text(value)
        case "objective_ms":
            return f"{value / 1e3:.3g} s" if value >= LEAST_SECOND_MS else f"{value:.3g} ms"
        case _:
            return f"{value:.3g} s"


TITLES = {
    "sites": "sites",
    "egress_bps": "free egress",
    "objective_ms": "objective, p99",
    "setup_s": "circuit set-up",
}
LEAST_SECOND_MS = 1_000
