"""`downburst plans`: the transports of feeds, with reasons."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from downburst.domain.plans import NOT_CONSIDERED, Transport
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, minute, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.feeds.what_if import what_if

app = typer.Typer(help="Show plans and their history; pin a transport.", no_args_is_help=True)
app.command("what-if")(what_if)
Feed = Annotated[str, typer.Argument(help="Name of the feed.", autocompletion=completion.feeds)]


@app.command("list")
def list_plans(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the current plan of every feed.

    Example: downburst plans list
    """
    found = HubClient(hub).ask("GET", "v1", "plans")
    show(found) if as_json else _print("Plans", found, wide=wide, empty="there are no plans yet; each feed gets one")


@app.command("show")
def show_plan(feed: Feed, *, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show the plan of a feed: every transport that was compared, and changes that would flip the choice.

    Example: downburst plans show NGRID
    """
    found = HubClient(hub).ask("GET", "v1", "feeds", feed, "plans", params={"limit": 1})
    if as_json:
        show(found[0] if found else None)
    elif found:
        _print_plan(found[0], wide=wide)
    else:
        print(f"{feed} has no plan yet")


@app.command("history")
def history(feed: Feed, *, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List all plans of a feed, newest first.

    Example: downburst plans history NGRID
    """
    found = HubClient(hub).ask("GET", "v1", "feeds", feed, "plans")
    show(found) if as_json else _print(f"Plans of {feed}", found, wide=wide, empty=f"{feed} has no plan yet")


@app.command("pin")
def pin(
    feed: Feed,
    transport: Annotated[Transport, typer.Argument(help="Transport to use.")],
    *,
    by: Annotated[str, typer.Option(help="Name of the operator; stored with the pin.")] = "operator",
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Pin a feed to one transport; refused if the feed can't use it.

    Example: downburst plans pin NGRID unicast --by anna
    """
    made = HubClient(hub).ask("PUT", "v1", "feeds", feed, "pin", json={"transport": transport, "by": by})
    show(made) if as_json else print(f"{feed} is pinned to {transport}")


@app.command("unpin")
def unpin(feed: Feed, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Let the scheduler choose again.

    Example: downburst plans unpin NGRID
    """
    HubClient(hub).ask("DELETE", "v1", "feeds", feed, "pin")
    show({"unpinned": feed}) if as_json else print(f"the scheduler chooses the transport of {feed} again")


def _print(title: str, plans: Iterable[dict[str, Any]], *, wide: bool, empty: str) -> None:
    rows = ([p["feed"], p["version"], p["transport"], _sites(p), minute(p["made_at"]), p["reason"]] for p in plans)
    table(title, ("feed", "version", "transport", "sites", "since", "why"), rows, wide=wide, empty=empty)


def _print_plan(plan: dict[str, Any], *, wide: bool) -> None:
    print(f"{plan['feed']}, plan {plan['version']} of {plan['made_at'][:19]}: {plan['reason']}")
    if plan["would_be"]:
        print(f"dry run: it would be {plan['would_be']}")
    if plan["flip"]:
        print(plan["flip"])
    print(_floor(plan.get("floor")))
    head = (
        "transport",
        "possible",
        Further("predicted p50 ms"),
        "predicted p99 ms",
        Further("egress Mb/s"),
        Further("circuits Mb/s"),
        Further("score Mb/s"),
        "why",
    )
    rows = [*map(_compared, plan["candidates"]), *_not_considered(plan["figures"])]
    table("Compared, best first", head, rows, wide=wide, empty="nothing was compared")
    if plan["groups"]:
        table("Groups by rate", GROUP_HEAD, map(_group, plan["groups"]), wide=wide, empty="")


def _floor(floor: dict[str, Any] | None) -> str:
    """The machines' own time, equal for every transport."""
    if floor is None:
        return "the machines' processing time is not measured yet; predictions exclude it"
    said = (
        f"the machines' processing time in each prediction: p50 {floor['p50_ms']:.3g} ms, p99 "
        f"{floor['p99_ms']:.3g} ms"
    )
    hub_ms, site = floor["hub_p50_ms"], floor["slowest_site"]
    said += "" if hub_ms is None else f", the hub of that p50 {hub_ms:.3g} ms"
    said += "" if site is None else f"; slowest is {site}, p50 {floor['slowest_site_p50_ms']:.3g} ms"
    return f"{said} (measured at {floor['deliveries']} small deliveries)"


def _compared(one: dict[str, Any]) -> list[object]:
    rates = (one[name] for name in ("egress_bps", "reserved_bps", "score_bps"))
    latencies = (one[name] for name in ("predicted_p50_ms", "predicted_p99_ms"))
    return [
        one["transport"],
        "yes" if one["feasible"] else "no",
        *("" if value is None else f"{value:.3g}" for value in latencies),
        *("" if value is None else f"{value / 1e6:.3g}" for value in rates),
        one["reason"],
    ]


def _group(group: dict[str, Any]) -> list[object]:
    """A group: its rates in the plan and as last sent, and its p99 as predicted and as measured."""
    rates = (group[name] for name in ("rate_bps", "paced_bps"))
    latencies = (group[name] for name in ("predicted_p99_ms", "measured_p99_ms"))
    return [
        group["leg"],
        len(group["site_names"]),
        *("" if value is None else f"{value / 1e6:.3g}" for value in rates),
        *("" if value is None else f"{value:.3g}" for value in latencies),
        " ".join(sorted(group["site_names"])),
    ]


def _not_considered(figures: dict[str, Any]) -> Iterator[list[object]]:
    """Transports that are not there, with the reason found on the scheduler's host."""
    for name, reason in sorted(figures.items()):
        if name.startswith(NOT_CONSIDERED):
            yield [name.removeprefix(NOT_CONSIDERED), "not considered", *[""] * 5, reason]


def _sites(plan: dict[str, Any]) -> int:
    return sum(len(leg["site_names"]) for leg in plan["legs"])


GROUP_HEAD = (
    "leg",
    "sites",
    "planned Mb/s",
    Further("sent Mb/s"),
    Further("predicted p99 ms"),
    "measured p99 ms",
    "which",
)
