"""`downburst feeds`: a feed with its objective and deadline, the outcomes of its records, and their seconds."""

import json
from typing import Any

import pytest

from downburst_app.cli import main
from downburst_app.cli.feeds import feeds as module

FEED: dict[str, Any] = {
    "feed": "RADAR",
    "class": "grid",
    "retention_hours": 2.0,
    "retention_bytes": 80_000_000_000,
    "objective_ms": 1_000.0,
    "duplicate_rule": "none",
    "durability": "process",
    "max_product_bytes": 10_000_000,
    "ldm_feed_type": None,
    "deadline_ms": 500,
}
OUTCOMES = [
    {
        "site": "unl.edu",
        "stored": 95,
        "duplicates": 0,
        "late_at_hub": 3,
        "late_at_site": 2,
        "expired": 0,
        "rejected": 0,
    }
]
DELAY = {"min_ms": 1.0, "median_ms": 2.5, "p99_ms": 9.0, "max_ms": 11.0, "bound_ms": 0.3, "negative": 0}
SECOND: dict[str, Any] = {
    "site": "unl.edu",
    "second": 1_767_225_600,
    "at": "2026-01-01T00:00:00Z",
    "stored": 95,
    "late_at_hub": 3,
    "late_at_site": 2,
    "lost": 0,
    "reordered": 1,
    "delay": DELAY,
    "jitter_ms": 0.4,
}
ANSWERS: dict[tuple[str, ...], Any] = {
    ("v1", "feeds"): [FEED],
    ("v1", "feeds", "RADAR"): FEED,
    ("v1", "feeds", "RADAR", "catch-ups"): [],
    ("v1", "feeds", "RADAR", "outcomes"): OUTCOMES,
    ("v1", "feeds", "RADAR", "seconds"): [SECOND, SECOND | {"delay": None, "jitter_ms": None}],
    ("v1", "feeds", "EMPTY", "outcomes"): [],
    ("v1", "feeds", "EMPTY", "seconds"): [],
}


class Hub:
    """Answers from memory."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def ask(self, method: str, *path: str, **_request: Any) -> Any:
        assert method == "GET"
        return ANSWERS[path]

    def every(self, *path: str, params: dict[str, Any]) -> Any:
        self.asked.append(params)
        return ANSWERS[path]


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(module, "HubClient", lambda _: hub)
    return hub


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(["feeds", *argv])
    assert not end.value.code
    return capsys.readouterr().out


def test_a_feed_is_shown_with_objective_and_deadline(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", "RADAR")
    assert "1.00 s (p99)" in text
    assert "500.0 ms" in text
    assert json.loads(shown(capsys, "show", "RADAR", "--json")) == FEED


def test_outcomes_are_listed_by_site(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "outcomes", "RADAR")
    (row,) = [line for line in text.splitlines() if "unl.edu" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["unl.edu", "95", "0", "3", "2", "0", "0"]
    assert json.loads(shown(capsys, "outcomes", "RADAR", "--json")) == OUTCOMES
    assert "no site has reported" in shown(capsys, "outcomes", "EMPTY")


def test_seconds_have_counts_and_delays_with_their_bound(capsys: pytest.CaptureFixture[str], hub: Hub) -> None:
    text = shown(capsys, "seconds", "RADAR", "--site", "unl.edu", "--since", "2m", "--wide")
    assert hub.asked == [{"site": "unl.edu", "since": "2m", "limit": 3_600}]
    first, second = (line for line in text.splitlines() if "unl.edu" in line)
    assert "2.5 ms ± 0.3" in first
    assert second.count("not known") == 4
    assert len(json.loads(shown(capsys, "seconds", "RADAR", "--json"))) == 2
    assert "no second is stored" in shown(capsys, "seconds", "EMPTY")
