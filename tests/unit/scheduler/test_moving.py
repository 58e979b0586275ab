"""The savings if sites that keep their LDM ran a node."""

from dataclasses import replace

import pytest

from downburst.domain.plans import Transport
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.moving import Moving, moving_of
from downburst_scheduler.planner import Question, decide
from unit.scheduler.feeds import ngrid_hour
from unit.scheduler.test_planner import question


def with_ldm(asked: Question, count: int) -> Question:
    """The same question, but the first `count` sites keep their LDM."""
    found = [site for site in asked.situation.sites if isinstance(site, SiteFacts)]
    staying = [replace(site, keeps_ldm=True, no_multicast=f"{site.name} keeps its LDM") for site in found[:count]]
    return replace(asked, situation=replace(asked.situation, sites=(*staying, *found[count:])))


def test_sites_that_keep_ldm_cost_a_copy_each_until_they_move() -> None:
    everybody = decide(question(8, ngrid_hour())).chosen.outcome
    asked = with_ldm(question(8, ngrid_hour()), 3)
    decision = decide(asked)
    moving = moving_of(asked, decision)
    assert moving is not None
    assert (moving.sites, moving.of, moving.transport) == (3, 8, Transport.MULTICAST)
    assert decision.chosen.outcome is not None
    assert everybody is not None
    assert moving.saved_bps == pytest.approx(decision.chosen.outcome.egress_bps - everybody.egress_bps)
    assert moving.saved_bps > 30e6, "three copies of 13 Mb/s"
    assert moving.sentence.startswith(
        "3 of 8 sites keep LDM and can't join a group; as nodes all would use multicast"
    )
    assert moving.figures["ldm_sites"] == 3


def test_a_lone_ldm_saves_nothing_by_moving() -> None:
    asked = with_ldm(question(1, ngrid_hour()), 1)
    moving = moving_of(asked, decide(asked))
    assert moving is not None
    assert moving.saved_bps == pytest.approx(0)
    assert "1 of 1 sites keeps LDM" in moving.sentence
    assert "with receipts" in moving.sentence


def test_without_ldm_or_traffic_there_is_nothing_to_say() -> None:
    asked = question(3, ngrid_hour())
    assert moving_of(asked, decide(asked)) is None


def test_more_egress_is_no_saving() -> None:
    assert Moving(1, 2, Transport.UNICAST, -5.0).figures["ldm_moved_saves_bps"] == 0
