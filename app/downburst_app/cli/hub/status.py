"""`downburst status` and `downburst latency`: the hub's state and latencies."""

from typing import Annotated, Any

import typer

from downburst.domain.alarms import Severity
from downburst.domain.plans import Transport
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, bits, given, measured, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.hub.alarms import silenced
from downburst_app.cli.numbers import real_number


def status(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show problems, feeds, sites and plans.

    Example: downburst status
    """
    seen = HubClient(hub).ask("GET", "v1", "overview")
    if as_json:
        show(seen)
        return
    _show_state(seen["status"], seen["incidents"])
    node = "running" if seen["hub"]["node"]["running"] else "away"
    print(f"{seen['hub']['name']} {seen['hub']['version']}: node {node}, restarts {seen['hub']['node']['restarts']}")
    print(_probes(seen["hub"]["probes"]))
    table(
        "Feeds",
        ("feed", "rate", "sites", "transport", "why"),
        ([f["feed"], bits(f["rate_bps"]), f["fan_out"], *_plan(f["plan"])] for f in seen["feeds"]),
        wide=wide,
        empty="there are no feeds yet; create one: downburst feeds add NGRID --class grid",
    )
    table(
        "Sites",
        ("site", "state", "behind by", Further("stored"), "clock"),
        ([s["site"], _state(s), behind(s), s["stored"], _clock(s)] for s in seen["sites"]),
        wide=wide,
        empty="there are no sites yet; create one: downburst sites add unl.edu",
    )


def latency(  # noqa: PLR0913
    *,
    feed: Annotated[str | None, typer.Option(help="Only this feed.", autocompletion=completion.feeds)] = None,
    site: Annotated[str | None, typer.Option(help="Only this site.", autocompletion=completion.sites)] = None,
    transport: Annotated[Transport | None, typer.Option(help="Only this transport.")] = None,
    minutes: Annotated[int, typer.Option(min=1, help="Length of the period.")] = 60,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show latencies per feed, site and transport.

    Example: downburst latency --feed NGRID --minutes 10
    """
    wanted = given(feed=feed, site=site, transport=transport, minutes=minutes)
    found = HubClient(hub).every("v1", "latency", params=wanted)
    if as_json:
        show(found)
        return
    table(
        f"Latency over {minutes} minutes",
        (
            "feed",
            "site",
            "transport",
            "from",
            Further("count"),
            Further("p50"),
            Further("p95"),
            "p99",
            Further("worst"),
            Further("negative"),
        ),
        (
            [row["feed"], row["site"], row["transport"], row["kind"], row["count"]]
            + [measured(row[name], row["bound"]) for name in ("p50", "p95", "p99", "max")]
            + [row["negative"] or ""]
            for row in found
        ),
        wide=wide,
        empty="no deliveries were reported in this period; extend it with --minutes",
    )


def volume(
    *,
    hours: Annotated[float, real_number(least=0.1, most=8_760, help="Length of the period.")] = 24,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show the volume of each feed: mean and greatest hour, share of all, products an hour.

    Example: downburst volume --hours 168
    """
    found = HubClient(hub).ask("GET", "v1", "volume", params={"minutes": max(1, round(hours * 60))})
    if as_json:
        show(found)
        return
    table(
        f"Volume since {found['since'][:16]}, {found['hours_seen']:.1f} hours",
        ("feed", "MB/hour", "most MB/hour", "share", "products/hour"),
        ([row["feed"], *_volume(row)] for row in found["feeds"]),
        empty="no products came in this period; extend it with --hours",
    )


def _probes(probes: dict[str, str]) -> str:
    failing = [f"{name}: {found}" for name, found in probes.items() if found != "ok"]
    if failing:
        return "! health: " + "; ".join(failing)
    return f"health: {', '.join(probes)} ok"


def _show_state(status: dict[str, Any], incidents: list[dict[str, Any]]) -> None:
    """One sentence, then the incidents, the worst first; silenced ones and past events last, one line each."""
    print(f"{status['sentence']}.")
    if status["detail"]:
        print(status["detail"])
    if incidents:
        print(_counted(status["counts"]))
    for one in incidents:
        aside = silenced(one) or ("over" if one["over"] else "")
        words = " ".join(filter(None, (f"{one['title']}.", one["cause"], one["affected"]["words"])))
        next_step = f"\n  {one['next']}" if one["next"] and not aside else ""
        mark = f"({aside})" if aside else "!"
        print(f"{mark} {one['severity']}, {one['since'][:19]}: {words}{next_step}")


def _counted(counts: dict[str, int]) -> str:
    said = ", ".join(f"{counts[severity]} {severity}" for severity in Severity if counts[severity])
    return "; ".join(filter(None, (said, f"{counts['silenced']} silenced" if counts["silenced"] else "")))


def _volume(row: dict[str, float]) -> list[str]:
    hourly = (f"{row[name] / 1e6:.1f}" for name in ("mean_bytes_per_hour", "max_bytes_per_hour"))
    return [*hourly, f"{100 * row['share']:.1f} %", f"{row['products_per_hour']:.0f}"]


def _plan(plan: dict[str, str] | None) -> list[str]:
    return ["", "no plan yet"] if plan is None else [plan["transport"], plan["reason"]]


def _state(site: dict[str, Any]) -> str:
    """The hub's words, followed by the facts that an operator needs first."""
    if site["connected"] and any(feed.get("trouble") for feed in site["feeds"]):
        return "can't store"
    maintenance = site.get("maintenance")
    working = f", maintenance until {maintenance['until'][:16]}" if maintenance else ""
    return f"{site['state_words']}{working}"


def behind(site: dict[str, Any]) -> str:
    """A site's backlog: products, bytes and the age of the oldest; and its losses."""
    if site["behind_products"] is None:
        return "not known"
    least = "at least " if site["behind_counting"] else ""
    words = f"{least}{site['behind_products']}"
    if site["behind_products"]:
        words += f", {site['behind_bytes'] / 1e6:.1f} MB, {site['behind_s']:.0f} s"
    return words + (f"; lost {site['lost_products']}" if site["lost_products"] else "")


def _clock(site: dict[str, float | None]) -> str:
    offset, bound = site["clock_offset_ms"], site["clock_bound_ms"]
    if offset is None:
        return "not known"
    return f"{offset:+.1f} ms" + ("" if bound is None else f" ± {bound:.1f}")
