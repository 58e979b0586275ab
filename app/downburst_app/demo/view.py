"""The live display of a demonstration: tables on a terminal, a line every few seconds elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from downburst_app.demo.hub import Document
from downburst_app.play.player import PlaySummary


class View:
    """Shows an overview of the hub and the play's progress every `every_s` seconds."""

    def __init__(self, console: Console, *, address: str) -> None:
        self._console = console
        self._address = address
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._began_s = time.monotonic()
        self.every_s = SCREEN_EVERY_S if console.is_terminal else LINE_EVERY_S
        """Seconds between two updates; without a terminal the hub is polled less often."""

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, overview: Document, play: PlaySummary, *, phase: str) -> None:
        """Updates the screen, or writes a line."""
        elapsed_s = time.monotonic() - self._began_s
        head = one_line(overview, play, phase=phase, elapsed_s=elapsed_s)
        if self._live is not None:
            page = Text(f"page: {self._address}   Ctrl-C ends everything", style="bold")
            self._live.update(Group(Text(head), feeds(overview), sites(overview), page), refresh=True)
        else:
            self._console.print(head, highlight=False, soft_wrap=True)


def one_line(overview: Document, play: PlaySummary, *, phase: str, elapsed_s: float) -> str:
    """Time, products, rates and the sites' progress."""
    throughput = overview["throughput"]
    pending = sum(site["behind_products"] or 0 for site in overview["sites"])
    connected = sum(bool(site["connected"]) for site in overview["sites"])
    routes = ", ".join(f"{feed['feed']} {feed['plan']['transport']}" for feed in overview["feeds"] if feed["plan"])
    return (
        f"{elapsed_s:6.1f} s  {phase}: {play.products} products, {play.bytes / 1e6:.1f} MB; "
        f"in {throughput['in_bps'] / 1e6:.1f} Mb/s, out {throughput['out_bps'] / 1e6:.1f} Mb/s; "
        f"{connected}/{len(overview['sites'])} sites, {pending} on the way; {routes}"
    )


def feeds(overview: Document) -> Table:
    """Feeds with rate, fan-out, transport and reason."""
    table = Table(title="Feeds", title_justify="left", expand=True)
    for heading in ("feed", "products", "Mb/s", "fan-out", "transport", "p99 ms", "why"):
        table.add_column(heading, justify="right" if heading in ("products", "Mb/s", "fan-out", "p99 ms") else "left")
    for feed in overview["feeds"]:
        plan = feed["plan"] or {"transport": "-", "reason": "no plan yet"}
        figures = feed["latency"]["distribution_ms"]
        p99, bound = figures.get("p99"), figures.get("bound")
        table.add_row(
            feed["feed"],
            str(feed["products"]),
            f"{feed['rate_bps'] / 1e6:.2f}",
            str(feed["fan_out"]),
            plan["transport"],
            "-" if p99 is None else f"{p99:.1f}" + ("" if bound is None else f" ± {bound:.1f}"),
            plan["reason"].partition("; ")[0],
        )
    return table


def sites(overview: Document) -> Table:
    """Sites with their stored products and backlogs."""
    table = Table(title="Sites", title_justify="left")
    for heading in ("site", "connected", "stored", "behind", "clock offset ms"):
        table.add_column(heading, justify="right" if heading != "site" else "left")
    for site in overview["sites"]:
        offset, bound = site["clock_offset_ms"], site["clock_bound_ms"]
        table.add_row(
            site["site"],
            "yes" if site["connected"] else "no",
            str(site["stored"]),
            "-" if site["behind_products"] is None else str(site["behind_products"]),
            "-" if offset is None or bound is None else f"{offset:+.2f} ± {bound:.2f}",
        )
    return table


SCREEN_EVERY_S = 1.0
LINE_EVERY_S = 5.0
