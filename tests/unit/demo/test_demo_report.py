"""The report's shape and figures, which checks outside this repository read."""

import json
from io import StringIO

from rich.console import Console

from downburst_app.demo.checker import Played, SiteVerdict
from downburst_app.demo.report import Outcome, as_json, closing_words, feeds_table, sites_table
from downburst_app.play.player import PlaySummary


def leg(transport: str, *, sites: int, products: int, size_bytes: int, egress_bytes: int) -> dict[str, object]:
    return {
        "leg": 1,
        "transport": transport,
        "sites": sites,
        "products": products,
        "bytes": size_bytes,
        "egress_bytes": egress_bytes,
        "repair_bytes": 0,
        "control_bytes": 0,
    }


def outcome(*verdicts: SiteVerdict, troubles: tuple[str, ...] = ()) -> Outcome:
    plans = [
        {
            "transport": "unicast",
            "reason": "no traffic measured yet",
            "made_at": "2026-01-01T00:00:00Z",
            "version": 1,
            "legs": [leg("unicast", sites=5, products=10, size_bytes=1_000, egress_bytes=1_100)],
        },
        {
            "transport": "multicast",
            "reason": "5 sites",
            "made_at": "2026-01-01T00:00:10+00:00",
            "version": 2,
            "legs": [leg("multicast", sites=5, products=2, size_bytes=200, egress_bytes=230)],
        },
    ]
    idle = {
        **plans[0],
        "made_at": "2025-12-31T23:00:00Z",
        "legs": [leg("unicast", sites=1, products=0, size_bytes=0, egress_bytes=9)],
    }
    began = 1_767_225_600.0
    return Outcome(
        scene="test",
        played=[Played("NGRID", 100, began + at_s) for at_s in (0.0, 1.0, 9.9, 10.0)],
        verdicts=verdicts or (SiteVerdict("site-1", 4, 400, 4),),
        plans={"NGRID": [idle, idle, *plans], "QUIET": []},
        latency={
            "NGRID": {"distribution_ms": {"p50": 1.5, "p95": 2.0, "p99": None, "max": 3.0}, "end_to_end_ms": {}}
        },
        hub_egress_bytes=1_330,
        play=PlaySummary(products=4, bytes=400, wall_s=2.0),
        wall_s=12.5,
        troubles=troubles,
    )


def test_the_promised_members_are_there_and_survive_json() -> None:
    report = json.loads(json.dumps(as_json(outcome())))
    assert report["products"] == 4
    assert report["bytes"] == 400
    assert report["hub_egress_bytes"] == 1_330
    assert report["unicast_equivalent_bytes"] == 400
    assert report["wall_s"] == 12.5
    assert (
        report["sites"][0].items()
        >= {"site": "site-1", "expected": 4, "stored": 4, "duplicates": 0, "mismatched": 0}.items()
    )
    feed = report["feeds"][0]
    assert feed["feed"] == "NGRID"
    assert feed["distribution_ms"]["p50"] == 1.5
    assert feed["plans_without_products"] == 2
    assert [(plan["transport"], plan["from"], plan["products"]) for plan in feed["plans"]] == [
        ("unicast", "2026-01-01T00:00:00Z", 3),
        ("multicast", "2026-01-01T00:00:10+00:00", 1),
    ]


def test_a_leg_counts_each_product_once_whatever_its_transport() -> None:
    legs = [plan["legs"][0] for plan in as_json(outcome())["feeds"][0]["plans"]]
    assert [(found["products"], found["bytes"], found["egress_bytes"]) for found in legs] == [
        (2, 200, 1_100),
        (2, 200, 230),
    ]
    assert legs[0]["sent_products"] == 10


def test_a_change_counts_as_in_flight_only_between_products() -> None:
    assert as_json(outcome())["plan_changes_in_flight"] == 1
    only_before = outcome()
    object.__setattr__(only_before, "played", list(only_before.played)[:3])
    assert as_json(only_before)["plan_changes_in_flight"] == 0


def test_anything_wrong_makes_the_outcome_bad() -> None:
    good = SiteVerdict("site-1", 1, 1, 1)
    assert outcome(good).good
    key = ("NGRID", "x")
    for bad in (
        SiteVerdict("site-2", 1, 1, 0, missing=(key,)),
        SiteVerdict("site-2", 1, 1, 1, duplicates=(key,)),
        SiteVerdict("site-2", 1, 1, 0, mismatched=(key,)),
        SiteVerdict("site-2", 1, 1, 1, strays=("y",)),
    ):
        assert not outcome(good, bad).good
        assert as_json(outcome(good, bad))["complaints"] == [bad.complaint()]
    assert not outcome(good, troubles=("site-1 did not end cleanly",)).good


def test_people_read_the_same_figures() -> None:
    report = as_json(outcome(SiteVerdict("site-9", 4, 40_000, 3, missing=(("NGRID", "lost"),))))
    screen = StringIO()
    Console(file=screen, width=400).print(feeds_table(report), sites_table(report), *closing_words(report))
    text = screen.getvalue()
    assert "unicast (3) > multicast (1)" in text
    assert "site-9" in text
    assert "multicast saved 97 %" in text
    assert "changed its plan 1 times while products flowed" in text
    assert "WRONG: site-9: 1 missing (NGRID: lost)" in text
