"""The report of a demonstration: as JSON for machines, as a table for people."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from rich.table import Table

from downburst_app.demo.checker import Played, SiteVerdict
from downburst_app.demo.hub import Document
from downburst_app.play.player import PlaySummary


@dataclass(frozen=True, slots=True)
class Outcome:
    """The facts at the end: the demonstration's own records, the sites' files, and the hub's figures."""

    scene: str
    played: Sequence[Played]
    verdicts: Sequence[SiteVerdict]
    plans: Mapping[str, Sequence[Document]]
    """Of each feed, oldest first, as from the hub's api."""
    latency: Mapping[str, Document]
    """Of each feed: `distribution_ms` and `end_to_end_ms`."""
    hub_egress_bytes: int
    play: PlaySummary
    wall_s: float
    troubles: Sequence[str] = ()
    """Faults besides the delivery, such as a process that had to be killed."""

    @property
    def unicast_equivalent_bytes(self) -> int:
        """The least product bytes that the hub would have sent with separate copies for each site."""
        return sum(verdict.expected_bytes for verdict in self.verdicts)

    @property
    def good(self) -> bool:
        """True if nothing is missing, duplicated or different, and no fault occurred."""
        return bool(self.verdicts) and all(verdict.good for verdict in self.verdicts) and not self.troubles

    @property
    def complaints(self) -> list[str]:
        """A sentence for each fault."""
        return [verdict.complaint() for verdict in self.verdicts if not verdict.good] + list(self.troubles)


def as_json(outcome: Outcome) -> Document:
    """The document for checks; its members keep their meaning."""
    feeds = [_feed(feed, outcome) for feed in sorted(outcome.plans)]
    return {
        "products": len(outcome.played),
        "bytes": sum(product.size_bytes for product in outcome.played),
        "sites": [_site(verdict) for verdict in outcome.verdicts],
        "feeds": feeds,
        "hub_egress_bytes": outcome.hub_egress_bytes,
        "unicast_equivalent_bytes": outcome.unicast_equivalent_bytes,
        "wall_s": round(outcome.wall_s, 3),
        "scene": outcome.scene,
        "good": outcome.good,
        "complaints": outcome.complaints,
        "plan_changes_in_flight": sum(feed["plan_changes_in_flight"] for feed in feeds),
        "play": {**asdict(outcome.play), "rate_bps": outcome.play.rate_bps},
    }


def feeds_table(report: Document) -> Table:
    """Feeds with their plans and latencies."""
    table = Table(title="Feeds", title_justify="left")
    for heading in ("feed", "products", "MB", "plans", "egress MB", "distribution p50 / p99 / max ms"):
        table.add_column(heading, justify="left" if heading in ("feed", "plans") else "right")
    for feed in report["feeds"]:
        table.add_row(
            feed["feed"],
            str(feed["products"]),
            _megabytes(feed["bytes"]),
            " > ".join(f"{plan['transport']} ({plan['products']})" for plan in feed["plans"]) or "none",
            _megabytes(sum(leg["egress_bytes"] for plan in feed["plans"] for leg in plan["legs"])),
            " / ".join(_number(feed["distribution_ms"].get(name)) for name in ("p50", "p99", "max")),
        )
    return table


def sites_table(report: Document) -> Table:
    """Sites and the check's findings in their directories."""
    table = Table(title="Sites, checked by SHA-256 of every file", title_justify="left")
    for heading in ("site", "expected", "stored", "missing", "duplicates", "mismatched"):
        table.add_column(heading, justify="left" if heading == "site" else "right")
    for site in report["sites"]:
        table.add_row(
            *(str(site[name]) for name in ("site", "expected", "stored", "missing", "duplicates", "mismatched"))
        )
    return table


def closing_words(report: Document) -> list[str]:
    """The traffic, multicast's saving, and the verdict."""
    play = report["play"]
    lines = [
        f"{report['products']} products, {_megabytes(report['bytes'])} MB, "
        f"played at {play['rate_bps'] / 1e6:.1f} Mb/s; late by {play['slip_p50_s']:.3f} s (median), "
        f"{play['slip_p99_s']:.3f} s (p99), {play['slip_max_s']:.3f} s (worst)",
        _cost(egress_bytes=report["hub_egress_bytes"], equivalent_bytes=report["unicast_equivalent_bytes"]),
    ]
    if report["plan_changes_in_flight"]:
        lines.append(f"the scheduler changed its plan {report['plan_changes_in_flight']} times while products flowed")
    else:
        lines.append("the scheduler changed no plan while products flowed; the reasons are in the report")
    return lines + [f"WRONG: {complaint}" for complaint in report["complaints"]]


def _cost(*, egress_bytes: int, equivalent_bytes: int) -> str:
    words = (
        f"the hub sent {_megabytes(egress_bytes)} MB, with all overhead; "
        f"a copy for each site is {_megabytes(equivalent_bytes)} MB without any"
    )
    if 0 < egress_bytes < equivalent_bytes:
        words += f": multicast saved {100 * (1 - egress_bytes / equivalent_bytes):.0f} %"
    return words


def _site(verdict: SiteVerdict) -> Document:
    return {
        "site": verdict.site,
        "expected": verdict.expected,
        "stored": verdict.stored,
        "duplicates": len(verdict.duplicates),
        "mismatched": len(verdict.mismatched) + len(verdict.strays),
        "missing": len(verdict.missing),
        "expected_bytes": verdict.expected_bytes,
    }


def _feed(feed: str, outcome: Outcome) -> Document:
    played = [product for product in outcome.played if product.feed == feed]
    every_plan = _plans(outcome.plans[feed], played)
    plans = [plan for plan in every_plan if _carried(plan)]
    latency = outcome.latency.get(feed, {})
    return {
        "feed": feed,
        "plans": plans,
        "distribution_ms": latency.get("distribution_ms", {}),
        "end_to_end_ms": latency.get("end_to_end_ms", {}),
        "plans_without_products": len(every_plan) - len(plans),
        "products": len(played),
        "bytes": sum(product.size_bytes for product in played),
        "plan_changes_in_flight": sum(
            before["transport"] != after["transport"] and before["products"] > 0 and after["products"] > 0
            for before, after in pairwise(plans)
        ),
    }


def _plans(plans: Sequence[Document], played: Sequence[Played]) -> list[Document]:
    """Plans with the products first sent while each was in force."""
    begins = [_timestamp(plan["made_at"]) for plan in plans]
    counts = [0] * len(plans)
    for product in played:
        in_force = sum(begin <= product.at_s for begin in begins)
        if plans:
            counts[max(in_force - 1, 0)] += 1
    return [_plan(plan, products) for plan, products in zip(plans, counts, strict=True)]


def _timestamp(text: str) -> float:
    instant = datetime.fromisoformat(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def _carried(plan: Document) -> bool:
    """True if a product was first sent, or a leg sent anything, under the plan."""
    return plan["products"] > 0 or any(leg["sent_products"] > 0 for leg in plan["legs"])


def _plan(plan: Document, products: int) -> Document:
    return {
        "transport": plan["transport"],
        "reason": plan["reason"],
        "from": plan["made_at"],
        "products": products,
        "legs": [_leg(leg) for leg in plan["legs"]],
        "version": plan["version"],
        "figures": plan.get("figures", {}),
        "candidates": plan.get("candidates", []),
    }


def _leg(leg: Document) -> Document:
    """A leg's figures, with each product counted once for any number of sites.

    The hub counts a unicast product once for each site; those counts are in `sent_products` and `sent_bytes`.
    """
    copies = max(leg["sites"], 1) if leg["transport"] != "multicast" else 1
    return {
        "transport": leg["transport"],
        "sites": leg["sites"],
        "products": round(leg["products"] / copies),
        "bytes": round(leg["bytes"] / copies),
        "egress_bytes": leg["egress_bytes"],
        "repair_bytes": leg["repair_bytes"],
        "control_bytes": leg["control_bytes"],
        "sent_products": leg["products"],
        "sent_bytes": leg["bytes"],
    }


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.2f}"


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.1f}"
