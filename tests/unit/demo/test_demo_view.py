"""The display of a running demonstration, on a terminal and in a log."""

from io import StringIO
from typing import Any

from rich.console import Console

from downburst_app.demo.view import View
from downburst_app.play.player import PlaySummary

PLAN = {"transport": "multicast", "reason": "5 sites would cost 61.5 Mb/s by unicast"}


def overview() -> dict[str, Any]:
    latency = {"distribution_ms": {"p99": 12.34}, "end_to_end_ms": {}}
    feed = {"feed": "NGRID", "products": 42, "rate_bps": 12.3e6, "fan_out": 5, "latency": latency}
    site = {"site": "site-1", "stored": 41, "behind_products": 1, "clock_offset_ms": 0.5, "clock_bound_ms": 0.02}
    return {
        "throughput": {"in_bps": 12.3e6, "out_bps": 13.1e6},
        "feeds": [
            {**feed, "plan": PLAN},
            {**feed, "feed": "QUIET", "plan": None, "latency": {"distribution_ms": {"p99": None}}},
        ],
        "sites": [
            {**site, "connected": True},
            {**site, "site": "site-2", "connected": False, "behind_products": None, "clock_offset_ms": None},
        ],
    }


def shown(*, terminal: bool) -> str:
    screen = StringIO()
    console = Console(file=screen, force_terminal=terminal, width=160)
    with View(console, address="http://127.0.0.1:7371") as showing:
        showing.show(overview(), PlaySummary(products=42, bytes=9_800_000), phase="playing")
    return screen.getvalue()


def test_a_terminal_shows_feeds_with_the_reason_and_sites() -> None:
    text = shown(terminal=True)
    for part in ("NGRID", "multicast", "5 sites would cost", "12.3", "no plan yet", "site-2", "+0.50 ± 0.02", "7371"):
        assert part in text


def test_elsewhere_a_line_is_written() -> None:
    text = shown(terminal=False)
    assert text.count("playing: 42 products, 9.8 MB; in 12.3 Mb/s, out 13.1 Mb/s; 1/2 sites, 1 on the way") == 1
    assert "NGRID multicast" in text
    assert "━" not in text
