"""The page of time-sequence plots: its curves, marks and stalls are at their times, and its texts are escaped."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from downburst.foundation.clock import to_us
from downburst_analyze.output.plots import x_of, y_of
from downburst_app.cli.sites.time_sequence import MINUTES_FROM_US, looks, page
from downburst_contract.tracer import LimitShare, Stall, TracedConnection, TracedSite, Verdict

BEGUN = datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)
VARIABLES = ["total_retrans", "rtt", "bytes_acked"]
VERDICT = Verdict(
    leading="network-loss",
    sentence="In 75 % of the time the network lost packets.",
    seconds=4.0,
    shares=[LimitShare(limit="network-loss", share=0.75), LimitShare(limit="pacing", share=0.25)],
)


class Opened(HTMLParser):
    """The elements of a page; anything that is not closed fails."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "line", "rect", "circle", "polyline"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str, kind: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag and attributes.get("class") == kind]


def at(seconds: float) -> datetime:
    return BEGUN + timedelta(seconds=seconds)


def sample(seconds: float, acked: int | None, resent: int | None = 0) -> list[int | None]:
    return [to_us(at(seconds)), resent, 20_000, acked]


def stall(begun_s: float, until_s: float) -> Stall:
    return Stall(begun_at=at(begun_s), until=at(until_s), waiting_bytes=900, ended=True)


def connection(samples: list[list[int | None]], *stalls: Stall, peer: str = "192.0.2.9:40000") -> TracedConnection:
    verdict = VERDICT if len(samples) > 1 else None
    return TracedConnection(
        local="192.0.2.1:7370", peer=peer, role="session", samples=samples, verdict=verdict, stalls=list(stalls)
    )


def site(*connections: TracedConnection, name: str = "unl.edu", unable: str | None = None) -> TracedSite:
    return TracedSite(
        site=name,
        unable=unable,
        missed_ticks=0,
        damaged=0,
        recorded_since=None,
        recorded_until=None,
        complete=True,
        variables=VARIABLES,
        counters=["total_retrans", "bytes_acked"],
        connections=list(connections),
    )


def test_a_stall_is_drawn_where_and_as_long_as_it_was() -> None:
    drawn = connection([sample(0, 100), sample(2, 300), sample(10, 500)], stall(2.0, 3.04), stall(6.0, 10.0))
    text = page(site(drawn))
    first, second = Opened(text).all("rect", "stall")
    assert (first["data-seconds"], second["data-seconds"]) == ("1.040", "4.000")
    for found, begun_s, length_s in ((first, 2.0, 1.04), (second, 6.0, 4.0)):
        assert float(found["x"] or "") == pytest.approx(x_of(begun_s / 10), abs=0.01)
        assert float(found["width"] or "") == pytest.approx((x_of(1) - x_of(0)) * length_s / 10, abs=0.01)
    assert re.findall(r">([\d.]+ s)</text>", text) == ["1.0 s", "4.0 s"]
    assert "seconds from 2026-01-02 03:04:05.250 UTC on" in text


def test_the_curve_has_the_acknowledged_bytes_and_marks_what_went_again() -> None:
    samples = [sample(0, 1000, 5), sample(1, 1400, 5), sample(2, None, 8), sample(4, 2000, 9)]
    seen = looks(connection(samples), VARIABLES)
    assert [(look.acked_bytes, look.resent) for look in seen] == [(0, 0), (400, 0), (400, 3), (1000, 1)]
    opened = Opened(page(site(connection(samples))))
    (curve,) = opened.all("polyline", "acked")
    places = [float(part) for place in (curve["points"] or "").split() for part in place.split(",")]
    wanted = ((0, 0), (0.25, 0.4), (0.5, 0.4), (1, 1))
    assert places == pytest.approx([part for share, acked in wanted for part in (x_of(share), y_of(acked))], abs=0.05)
    assert [mark["data-segments"] for mark in opened.all("path", "resent")] == ["3", "1"]


def test_a_counter_that_begins_anew_never_takes_the_curve_down() -> None:
    seen = looks(connection([sample(0, 1000, 7), sample(1, 1500, 7), sample(2, 50, 0), sample(3, 90, 1)]), VARIABLES)
    assert [(look.acked_bytes, look.resent) for look in seen] == [(0, 0), (500, 0), (500, 0), (540, 1)]


def test_the_caption_has_verdict_and_shares_and_each_connection_a_figure() -> None:
    samples = [sample(0, 1), sample(1, 2)]
    text = page(site(connection(samples), connection(samples, peer="192.0.2.9:40001")))
    assert text.count("<figure>") == 2
    assert text.count("<p>network-loss: In 75 % of the time the network lost packets.</p>") == 2
    assert "<p>of 4.0 s: network-loss 75%, pacing 25%</p>" in text


@pytest.mark.parametrize("samples", [[], [sample(0, 5)], [sample(0, None)], [[]], [[None, 1, 1, 1]], [[2**70]]])
def test_one_sample_or_none_is_still_a_page(samples: list[list[int | None]]) -> None:
    opened = Opened(page(site(connection(samples))))
    assert len(opened.all("circle", "dot")) == (1 if samples and samples[0] and samples[0][0] else 0)
    assert opened.all("polyline", "acked") == []


def test_an_answer_without_connections_says_so() -> None:
    text = page(site(unable="the kernel does not report sockets"))
    assert "samples are missing: the kernel does not report sockets" in text
    assert "no connection of unl.edu was recorded in this period; nothing is recorded yet" in text
    assert "<figure>" not in text


def test_a_long_period_is_in_minutes() -> None:
    samples = [sample(0, 1), sample(MINUTES_FROM_US / 1e6 + 1, 2)]
    assert "minutes from 2026-01-02" in page(site(connection(samples)))


def test_every_text_is_escaped_and_nothing_is_fetched_or_run() -> None:
    wicked = '"><script src=https://a.example>&'
    verdict = VERDICT.model_copy(update={"sentence": wicked, "leading": wicked})
    drawn = connection([sample(0, 1), sample(1, 2)], stall(0, 1), peer=wicked)
    drawn = drawn.model_copy(update={"verdict": verdict, "role": wicked, "local": wicked})
    text = page(site(drawn, name=wicked, unable=wicked))
    opened = Opened(text)
    assert "script" not in {tag for tag, _ in opened.found}
    assert not {"src", "href", "style", "onload"} & {name for _, attributes in opened.found for name in attributes}
    assert not re.search(r"@import|url\(|<link", text)
    assert "&lt;script src=https://a.example&gt;&amp;" in text


def test_dark_and_light_follow_the_reader() -> None:
    text = page(site())
    assert "color-scheme:light dark" in text
    assert "prefers-color-scheme:dark" in text
