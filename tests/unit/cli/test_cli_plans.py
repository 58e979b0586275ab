"""`downburst plans show`: a stored plan as text for people and as a document for programs."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from fastapi.encoders import jsonable_encoder

from downburst.domain.plans import Plan, leg_figure
from downburst.settings.multicast import MulticastSettings
from downburst_api.plans.shapes import plan_out
from downburst_app.cli import main
from downburst_scheduler.legs import group_leg, legs_of
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.planner import Question, Rules, decide, flip_of
from downburst_scheduler.sentences import flip_figures, reason
from unit.scheduler.feeds import live, sites, steady


@dataclass
class Hub:
    plans: list[dict[str, Any]]
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        self.asked.append((method, url.partition("/v1/")[2], given.get("params")))
        return httpx.Response(200, json=self.plans, request=httpx.Request(method, url))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    stand_in = Hub([made()])
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    monkeypatch.setenv("COLUMNS", "400")
    return stand_in


def made() -> dict[str, Any]:
    """The API's document of a plan that the planner made for five sites and a steady feed."""
    question = Question(steady(), live(*sites(5)), now_s=0.0, rules=Rules(agreeing_windows=1))
    decision = decide(question)
    leg = group_leg(2, MulticastSettings(), rate_bps=50_000_000)
    plan = Plan(
        feed="NGRID",
        version=3,
        legs=legs_of(decision.chosen, unicast_leg=1, groups=(leg,)),
        reason=reason(question, decision),
        made_at=datetime(2026, 1, 1, 12, tzinfo=UTC),
        candidates=decision.candidates,
        figures=flip_figures(flip_of(question, decision)),
        pinned=False,
    )
    told: dict[str, Any] = json.loads(json.dumps(jsonable_encoder(plan_out(plan, []))))
    return told


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(end.value.code or 0)


def test_every_candidate_is_shown_best_first_and_what_would_flip_the_choice(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plans", "show", "NGRID", "--wide") == 0
    assert hub.asked == [("GET", "feeds/NGRID/plans", {"limit": 1})]
    out = capsys.readouterr().out
    assert out.startswith("NGRID, plan 3 of 2026-01-01T12:00:00: multicast: 5 sites would cost")
    assert hub.plans[0]["flip"] in out
    rows = [line for line in out.splitlines() if line.startswith("│")]
    order = ["multicast", "unicast", "static-circuit", "dynamic-circuit"]
    assert [row.strip("│ ").split()[0] for row in rows[: len(order)]] == order
    unicast = hub.plans[0]["candidates"][1]
    assert f"{unicast['egress_bps'] / 1e6:.3g}" in rows[1]
    assert "no circuit is reserved to its sites" in rows[2]


def test_transports_that_are_not_there_are_below_with_their_reasons(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.plans[0]["figures"] |= {"not_considered_rdma": "this host has no RDMA device", "mean_bps": 5.0}
    assert run("plans", "show", "NGRID") == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    row = rows[len(hub.plans[0]["candidates"])]
    assert [cell.strip() for cell in row.split("│")[1:3]] == ["rdma", "not considered"]
    assert "this host has no RDMA device" in row


def test_programs_get_the_whole_plan(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plans", "show", "NGRID", "--json") == 0
    assert json.loads(capsys.readouterr().out) == hub.plans[0]


def test_a_dry_run_says_what_it_would_be(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.plans[0]["would_be"] = "unicast"
    assert run("plans", "show", "NGRID") == 0
    assert "dry run: it would be unicast" in capsys.readouterr().out


def test_a_feed_without_a_plan_has_none(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.plans.clear()
    assert run("plans", "show", "NGRID") == 0
    assert capsys.readouterr().out == "NGRID has no plan yet\n"
    assert run("plans", "show", "NGRID", "--json") == 0
    assert json.loads(capsys.readouterr().out) is None


def test_the_time_of_the_machines_is_shown_or_said_to_be_unknown(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plans", "show", "NGRID") == 0
    assert "the machines' processing time is not measured yet" in capsys.readouterr().out
    floor = Floor(71.0, 110.0, 240.0, 30.0, "unl.edu", 75.0, 1_500)
    hub.plans[0] = json.loads(json.dumps(jsonable_encoder(plan_out(replace(PLAN, figures=floor.figures()), []))))
    assert hub.plans[0]["floor"]["p99_ms"] == 240.0
    assert run("plans", "show", "NGRID") == 0
    assert (
        "the machines' processing time in each prediction: p50 71 ms, p99 240 ms, the hub of that p50 30 ms; slowest "
        "is unl.edu, p50 75 ms (measured at 1500 small deliveries)"
    ) in capsys.readouterr().out


def test_groups_are_shown_with_rates_and_latencies_as_planned_and_as_they_were(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    leg = replace(group_leg(2, MulticastSettings(), rate_bps=19_000_000), sites=("unl.edu", "iem.edu"))
    figures = {"predicted_p99_ms": 840.0, "measured_p99_ms": 790.0, "paced_bps": 18e6}
    plan = replace(PLAN, legs=(leg,), figures={leg_figure(2, name): value for name, value in figures.items()})
    hub.plans[0] = json.loads(json.dumps(jsonable_encoder(plan_out(plan, []))))
    assert figures.items() <= hub.plans[0]["groups"][0].items()
    assert hub.plans[0]["figures"] == {}, "they are those of the legs"
    assert run("plans", "show", "NGRID", "--wide") == 0
    out = capsys.readouterr().out
    assert "Groups by rate" in out
    row = next(line for line in out.splitlines() if "iem.edu unl.edu" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")][:6] == ["2", "2", "19", "18", "840", "790"]


PLAN = Plan("NGRID", 1, (), "", datetime(2026, 1, 1, 12, tzinfo=UTC))
