"""`downburst plans what-if`: other conditions of a feed as text for people and as a document for programs."""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import httpx
import pytest

from downburst.domain.plans import OtherConditions, WhatIf
from downburst_app.cli import main
from downburst_contract.plans import WhatIf as Shape
from downburst_scheduler.planner import Question, Rules
from downburst_scheduler.what_if.trying import Inputs, try_other
from unit.scheduler.feeds import live, sites, steady

QUESTION = Question(steady(), live(*sites(5)), now_s=0.0, rules=Rules())
COPIES = OtherConditions(sites=104, egress_bps=200e6, objective_ms=5_000.0)


def tried(other: OtherConditions = COPIES) -> WhatIf:
    return try_other("NGRID", Inputs(QUESTION, QUESTION.arrivals, 0.0), other)


@dataclass
class Hub:
    answer: WhatIf = field(default_factory=tried)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        self.asked.append((method, url.partition("/v1/")[2], given.get("json")))
        content = Shape.model_validate(self.answer).model_dump(mode="json")
        return httpx.Response(200, json=content, request=httpx.Request(method, url))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    stand_in = Hub()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    monkeypatch.setenv("COLUMNS", "120")
    return stand_in


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(end.value.code or 0)


def test_options_are_sent_with_their_units(hub: Hub) -> None:
    options = ("--sites", "104", "--egress", "200M", "--objective", "5s", "--setup", "10s")
    assert run("plans", "what-if", "NGRID", *options, "--traffic", "busiest") == 0
    assert run("plans", "what-if", "NGRID", "--objective", "250ms") == 0
    given = {"sites": 104, "egress_bps": 200_000_000, "objective_ms": 5_000.0, "setup_s": 10.0, "traffic": "busiest"}
    assert hub.asked == [
        ("POST", "feeds/NGRID/what-if", given),
        ("POST", "feeds/NGRID/what-if", {"objective_ms": 250.0, "traffic": "now"}),
    ]


def test_the_choice_its_figures_and_its_flips_are_shown(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plans", "what-if", "NGRID", "--sites", "104") == 0
    out = capsys.readouterr().out
    first, sentence, *_ = out.splitlines()
    assert first == "NGRID with 104 sites, 200 Mb/s of egress, an objective of 5 s: multicast instead of unicast"
    assert sentence.startswith("multicast: 104 sites would cost")
    multicast = hub.answer.then.candidates[0]
    assert f"{multicast.predicted_p99_ms:.3g}" in out
    (flip,) = [one for one in hub.answer.flips if one.condition == "sites"]
    assert f"at {flip.at}: unicast" in out
    assert "objective, p99" in out
    assert "circuit set-up" not in out, "no offer reaches a site"
    assert "played: 600 products in 300 s, 1.6 Mb/s on average" in out
    assert "note: 99 sites more are taken to be like the present ones" in out


def test_a_search_that_ended_early_is_said_to_be_one(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.answer = replace(hub.answer, flips=(), complete=False)
    assert run("plans", "what-if", "NGRID") == 0
    assert "not searched to the end" in capsys.readouterr().out


def test_programs_get_the_whole_answer(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plans", "what-if", "NGRID", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tried"] == asdict(hub.answer.tried)
    assert found["then"]["candidates"][0]["transport"] == "multicast"


@pytest.mark.parametrize("wrong", [("--objective", "5"), ("--egress", "200"), ("--sites", "0"), ("--setup", "soon")])
def test_values_without_a_unit_or_out_of_bounds_are_refused(hub: Hub, wrong: tuple[str, str]) -> None:
    assert run("plans", "what-if", "NGRID", *wrong) == 2
    assert hub.asked == []
