"""`downburst feeds`: the streams of a hub."""

from typing import Annotated, Any

import typer

from downburst.domain.feeds import DuplicateRule, Durability, FeedClass
from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import (
    AsJson,
    HubAddress,
    HubClient,
    Yes,
    confirm,
    given,
    measured,
    milliseconds,
    minute,
    show,
    table,
)
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.numbers import A_DAY_S, A_YEAR_HOURS, real_number

app = typer.Typer(help="List, add, change and remove feeds.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the feed, for example NGRID.", autocompletion=completion.feeds)]
Class = Annotated[FeedClass | None, typer.Option("--class", help="Priority of the feed.")]
Hours = Annotated[
    float | None, real_number(least=0.001, most=A_YEAR_HOURS, help="Hours that products are kept at the hub.")
]
Size = Annotated[int | None, typer.Option(help="Bytes that products may take at the hub.")]
Objective = Annotated[
    float | None, real_number(least=0.001, most=1_000 * A_DAY_S, help="Latency objective of deliveries, in ms (p99).")
]
Rule = Annotated[DuplicateRule | None, typer.Option(help="Key by which two products are duplicates.")]
Survives = Annotated[Durability | None, typer.Option(help="Failures that an acknowledged product survives.")]
LdmType = Annotated[str | None, typer.Option(help="LDM's feed types of its products, such as NGRID.")]
LdmPattern = Annotated[
    str | None, typer.Option(help="Regular expression on the identifiers of these types; all if left out.")
]
Deadline = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=1_000 * A_DAY_S,
        help="Drop and count products that can't be at a site within this time, in ms; 0: an ordinary feed again.",
    ),
]
Largest = Annotated[int | None, typer.Option(help="Largest product, in bytes.")]


@app.command("list")
def list_feeds(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the feeds.

    Example: downburst feeds list
    """
    found = HubClient(hub).ask("GET", "v1", "feeds")
    if as_json:
        show(found)
        return
    table(
        "Feeds",
        ("feed", "class", "kept", "objective", "deadline", Further("duplicate key"), Further("LDM")),
        (
            [
                f["feed"],
                f["class"],
                _kept(f),
                milliseconds(f["objective_ms"]),
                _deadline_text(f),
                f["duplicate_rule"],
                f["ldm_feed_type"],
            ]
            for f in found
        ),
        wide=wide,
        empty="there are no feeds yet; create one: downburst feeds add NGRID --class grid",
    )


@app.command("show")
def show_feed(feed: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show a feed with its objective, its deadline, and the last streams by which sites caught up together.

    Example: downburst feeds show RADAR
    """
    client = HubClient(hub)
    found = client.ask("GET", "v1", "feeds", feed)
    if as_json:
        show(found)
        return
    values = {
        "class": found["class"],
        "kept": _kept(found),
        "objective": f"{milliseconds(found['objective_ms'])} (p99)",
        "deadline": _deadline_text(found),
        "duplicate key": found["duplicate_rule"],
        "durability": found["durability"],
        "largest product": f"{found['max_product_bytes'] / 1e6:g} MB",
        "LDM": found["ldm_feed_type"],
    }
    table(f"Feed {feed}", ("property", "value"), values.items(), empty="")
    if caught_up := client.ask("GET", "v1", "feeds", feed, "catch-ups"):
        rows = ([minute(one["at"]), one["state"], len(one["sites"]), one["sentence"]] for one in caught_up)
        table("Sites that caught up together", ("at", "state", "sites", "result"), rows, empty="")


@app.command("add")
def add_feed(  # noqa: PLR0913
    feed: Name,
    *,
    feed_class: Class = None,
    retention_hours: Hours = None,
    retention_bytes: Size = None,
    objective_ms: Objective = None,
    duplicate_rule: Rule = None,
    durability: Survives = None,
    max_product_bytes: Largest = None,
    ldm_feed_type: LdmType = None,
    ldm_pattern: LdmPattern = None,
    deadline_ms: Deadline = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Create a feed.

    Example: downburst feeds add NGRID --class grid --retention-hours 2
    """
    wanted = given(
        **{"class": feed_class},
        retention_hours=retention_hours,
        retention_bytes=retention_bytes,
        objective_ms=objective_ms,
        duplicate_rule=duplicate_rule,
        durability=durability,
        max_product_bytes=max_product_bytes,
        ldm_feed_type=ldm_feed_type,
        ldm_pattern=ldm_pattern,
    ) | _deadline(deadline_ms)
    made = HubClient(hub).ask("POST", "v1", "feeds", json={"feed": feed} | wanted)
    show(made) if as_json else print(f"feed {made['feed']} created: {made['class']}, kept {_kept(made)}")


@app.command("set")
def set_feed(  # noqa: PLR0913
    feed: Name,
    *,
    feed_class: Class = None,
    retention_hours: Hours = None,
    retention_bytes: Size = None,
    objective_ms: Objective = None,
    duplicate_rule: Rule = None,
    durability: Survives = None,
    max_product_bytes: Largest = None,
    ldm_feed_type: LdmType = None,
    ldm_pattern: LdmPattern = None,
    deadline_ms: Deadline = None,
    no_ldm: Annotated[bool, typer.Option("--no-ldm", help="LDMs neither bring nor get its products.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Change properties of a feed; others stay.

    Example: downburst feeds set NGRID --objective-ms 3000
    """
    wanted = given(
        **{"class": feed_class},
        retention_hours=retention_hours,
        retention_bytes=retention_bytes,
        objective_ms=objective_ms,
        duplicate_rule=duplicate_rule,
        durability=durability,
        max_product_bytes=max_product_bytes,
        ldm_feed_type=ldm_feed_type,
        ldm_pattern=ldm_pattern,
    ) | _deadline(deadline_ms)
    if no_ldm and (ldm_feed_type or ldm_pattern):
        raise BadInput("--no-ldm excludes --ldm-feed-type and --ldm-pattern; leave one out")
    wanted |= {"ldm_feed_type": None, "ldm_pattern": None} if no_ldm else {}
    if not wanted:
        raise BadInput("nothing to change was given; `downburst feeds set --help` shows what there is")
    changed = HubClient(hub).ask("PATCH", "v1", "feeds", feed, json=wanted)
    show(changed) if as_json else print(f"feed {feed} changed")


@app.command("outcomes")
def list_outcomes(feed: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List what became of a feed's products at each site: for a feed with a deadline, how many were in time.

    Example: downburst feeds outcomes RADAR
    """
    found = HubClient(hub).ask("GET", "v1", "feeds", feed, "outcomes")
    if as_json:
        show(found)
        return
    columns = ("site", "stored", "duplicates", "late_at_hub", "late_at_site", "expired", "rejected")
    table(
        f"Products of {feed} by site",
        [name.replace("_", " ") for name in columns],
        ([row[name] for name in columns] for row in found),
        empty="no site has reported on the feed yet",
    )


@app.command("seconds")
def list_seconds(
    feed: Name,
    *,
    site: Annotated[str | None, typer.Option(help="Only this site.", autocompletion=completion.sites)] = None,
    since: Annotated[str, typer.Option(help="RFC 3339, or how long ago: 10m; an hour is kept.")] = "10m",
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List the seconds of a feed with a deadline: records by outcome, reordering, delay and jitter at each site.

    Example: downburst feeds seconds RADAR --site unl.edu --since 2m
    """
    wanted = given(site=site, since=since, limit=3_600)
    found = HubClient(hub).every("v1", "feeds", feed, "seconds", params=wanted)
    if as_json:
        show(found)
        return
    counts = ("stored", "late_at_hub", "late_at_site", "lost", "reordered")
    table(
        f"Seconds of {feed} by site",
        (
            "second",
            "site",
            "stored",
            Further("late at hub"),
            Further("late at site"),
            "lost",
            Further("reordered"),
            Further("delay, median"),
            "p99",
            Further("worst"),
            Further("jitter"),
        ),
        (
            [one["at"], one["site"], *(one[name] for name in counts), *_delays(one), milliseconds(one["jitter_ms"])]
            for one in found
        ),
        wide=wide,
        empty="no second is stored: the feed has no deadline, or no site reported on it in this time",
    )


@app.command("remove")
def remove_feed(feed: Name, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a feed, its products and the subscriptions to it.

    Example: downburst feeds remove NGRID
    """
    confirm(f"Remove feed {feed}, its products and the subscriptions to it?", yes=yes)
    HubClient(hub).ask("DELETE", "v1", "feeds", feed)
    show({"removed": feed}) if as_json else print(f"feed {feed} removed, and the subscriptions to it")


def _deadline(deadline_ms: int | None) -> dict[str, Any]:
    return {} if deadline_ms is None else {"deadline_ms": deadline_ms or None}


def _deadline_text(feed: dict[str, Any]) -> str:
    return "none" if feed["deadline_ms"] is None else milliseconds(feed["deadline_ms"])


def _delays(second: dict[str, Any]) -> list[str]:
    """Median, p99 and worst delay."""
    delay = second["delay"] or {"bound_ms": None}
    return [measured(delay.get(name), delay["bound_ms"]) for name in ("median_ms", "p99_ms", "max_ms")]


def _kept(feed: dict[str, Any]) -> str:
    return f"{feed['retention_hours']:g} h, {feed['retention_bytes'] / 1e9:g} GB"
