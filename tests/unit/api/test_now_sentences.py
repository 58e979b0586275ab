"""The sentence of the page *Now*, and the words of incidents: pure."""

from datetime import timedelta

import pytest

from downburst.domain.alarms import Alarm, AlarmKind, Severity, Silence
from downburst.domain.faults import Fault
from downburst.foundation.clock import FakeClock
from downburst.live.site_states import SiteStanding, SiteState
from downburst_api.overview.actions import ACTIONS, actions_of
from downburst_api.overview.headline import SiteCounts, site_sentence, sites_sentence, status_out
from downburst_api.overview.incidents import Incident
from downburst_api.overview.wording import (
    capitalised,
    duration_words,
    moment_words,
    sentence_of,
    size_words,
    title_and_cause,
)
from downburst_api.overview.wrong import Wrong
from downburst_contract.now.strip import CellState

NOW = FakeClock().now()


def down(site: str, minutes: float, severity: Severity = Severity.CRITICAL) -> Incident:
    fault = Fault(NOW - timedelta(minutes=minutes), f"{site}: away", site=site, next_step="call it")
    return Incident(Wrong.of(AlarmKind.SITE_DOWN, fault, severity=severity), None, None, f"{site} is down", None)


def other(title: str, severity: Severity = Severity.WARNING, **about: str) -> Incident:
    return Incident(Wrong(Fault(NOW, title, **about), severity), None, None, title, None)


def sentence(*incidents: Incident, sites: SiteCounts | None = None) -> str:
    found: str = status_out(incidents, sites or SiteCounts(within=136, down=1, late=1), NOW)["sentence"]
    return found


def test_the_two_worst_incidents_are_named_and_the_others_counted() -> None:
    late = other("NGRID is late at snu.ac.kr", feed="NGRID", site="snu.ac.kr")
    assert sentence(down("psu.edu", 6)) == "psu.edu has been down for 6 min"
    assert sentence(down("psu.edu", 6), late) == "psu.edu has been down for 6 min; NGRID is late at snu.ac.kr"
    many = (down("psu.edu", 6), late, late, late)
    assert sentence(*many) == "psu.edu has been down for 6 min; NGRID is late at snu.ac.kr; 2 more incidents"
    ended = other("the node ended by signal 9")
    assert sentence(ended, ended, late) == ("The node ended by signal 9; the node ended by signal 9; 1 more incident")


def test_counts_and_a_second_sentence_are_about_all_sites() -> None:
    information = other("HDS is faster than predicted", Severity.INFORMATION)
    found = status_out([down("psu.edu", 6), information], SiteCounts(within=136, down=1, late=1), NOW)
    assert found["detail"] == "136 of 138 sites receive their feeds within the objectives; 1 is down; 1 is late."
    counts = found["counts"]
    assert (counts["critical"], counts["warning"], counts["information"], counts["silenced"]) == (1, 0, 1, 0)
    assert (counts["sites"], counts["within"], counts["down"], counts["late"]) == (138, 136, 1, 1)


def test_information_silenced_incidents_and_past_events_do_not_press() -> None:
    silence = Silence(1, NOW + timedelta(hours=1), "anna", "known")
    fault = Fault(NOW, "the log of NGRID was cut short", "NGRID")
    past = Incident(Wrong(fault, Severity.WARNING, is_over=True), None, None, "the log was cut short", None)
    wrong = Wrong.of(AlarmKind.SITE_DOWN, Fault(NOW, "away", site="a.edu"))
    silenced = Incident(wrong, None, silence, "a.edu is down", None)
    found = status_out([silenced, past, other("x", Severity.INFORMATION)], SiteCounts(within=3), NOW)
    assert found["sentence"] == "All 3 sites receive their feeds within the objectives"
    assert found["detail"] is None
    assert (found["counts"]["warning"], found["counts"]["information"], found["counts"]["silenced"]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("sites", "expected"),
    [
        (SiteCounts(), "No site has received a feed yet"),
        (SiteCounts(within=1), "The only site receives its feeds within the objectives"),
        (SiteCounts(within=138), "All 138 sites receive their feeds within the objectives"),
        (
            SiteCounts(within=137, not_measured=1),
            "137 of 138 sites receive their feeds within the objectives; 1 sent no latency reports",
        ),
        (SiteCounts(not_measured=3), "Of 3 sites, 3 sent no latency reports"),
        (SiteCounts(idle=2, down=1), "Of 3 sites, 1 is down; 2 had nothing to receive in the last 15 min"),
        (SiteCounts(within=1, idle=1), "1 of 2 sites receives its feeds within the objectives; 1 had nothing to "),
    ],
)
def test_a_site_without_a_latency_is_never_within_the_objectives(sites: SiteCounts, expected: str) -> None:
    assert sites_sentence(sites).startswith(expected)


def test_a_site_s_own_sentence() -> None:
    assert site_sentence("psu.edu", SiteCounts(within=1)) == "psu.edu receives its feeds within the objectives"
    assert site_sentence("psu.edu", SiteCounts(down=1)) == "psu.edu is down"
    assert site_sentence("psu.edu", SiteCounts(not_measured=1)) == "psu.edu sent no latency reports"
    assert site_sentence("psu.edu", SiteCounts()) == "psu.edu has not received a feed yet"


def test_unread_history_counts_as_not_measured() -> None:
    counted = SiteCounts.of([CellState.UNREAD, CellState.NO_REPORT, CellState.WITHIN, CellState.NOTHING])
    assert (counted.not_measured, counted.within, counted.idle, counted.sites) == (2, 1, 1, 4)


def test_titles_name_the_subject_and_causes_are_sentences() -> None:
    fault = Fault(NOW, "psu.edu: away since x: the site ended", site="psu.edu")
    wrong = Wrong.of(AlarmKind.SITE_DOWN, fault)
    away = SiteStanding(SiteState.AWAY, NOW, "the site ended")
    assert title_and_cause(wrong, away) == ("psu.edu is down", "The site ended.")
    assert title_and_cause(wrong, SiteStanding(SiteState.AWAY)) == ("psu.edu is down", None)
    assert title_and_cause(wrong, SiteStanding(SiteState.NEVER_ENROLLED)) == ("psu.edu has never enrolled", None)
    reported = "NGRID reaches snu.ac.kr late: p99 49.2 s in 15 min, objective 30.0 s"
    late = Wrong.of(AlarmKind.OBJECTIVE, Fault(NOW, reported, "NGRID", "snu.ac.kr"))
    assert title_and_cause(late) == ("NGRID is late at snu.ac.kr", "p99 is 49.2 s in 15 min, the objective 30.0 s.")
    circuit = Wrong.of(AlarmKind.CIRCUIT, Fault(NOW, "circuit 7 is down: no light", site="a.edu"), subject="7")
    assert title_and_cause(circuit) == ("circuit 7 is down", "No light.")
    plain = Wrong(Fault(NOW, "the LDM at x sends nothing; this source brings no HDS"), Severity.CRITICAL)
    assert title_and_cause(plain) == ("the LDM at x sends nothing", "This source brings no HDS.")


def test_words_of_figures() -> None:
    lengths = [timedelta(seconds=length) for length in (-3, 119, 120, 7_199, 7_200, 200_000)]
    assert [duration_words(one) for one in lengths] == ["0 s", "119 s", "2 min", "119 min", "2 h", "2 days"]
    sizes = [size_words(size) for size in (7, 2_770_000_000, 27_700_000, 999_000)]
    assert sizes == ["7 B", "2.77 GB", "27.7 MB", "999 kB"]
    assert moment_words(NOW, NOW) == "00:00"
    assert moment_words(NOW + timedelta(days=1), NOW) == "2026-01-02 00:00"


def test_names_and_commands_keep_their_spelling() -> None:
    assert sentence_of("the site ended") == "The site ended."
    assert sentence_of("downburst circuits show 7") == "downburst circuits show 7"
    assert capitalised("psu.edu is down") == "psu.edu is down"
    assert capitalised("hub has gone", {"hub"}) == "hub has gone"
    assert capitalised("NGRID is silent") == "NGRID is silent"


@pytest.mark.parametrize("kind", AlarmKind)
def test_an_incident_has_at_most_two_actions_and_each_has_its_target(kind: AlarmKind) -> None:
    for about in ({}, {"site": "a.edu"}, {"feed": "NGRID"}, {"site": "a.edu", "feed": "NGRID"}):
        for subject in ("", "7", "not a number"):
            actions = actions_of(Wrong.of(kind, Fault(NOW, "x", **about), subject=subject))
            assert len(actions) <= 2
            assert all(any(one[name] is not None for name in ("site", "feed", "circuit")) for one in actions)
    assert len(ACTIONS.get(kind, ())) <= 2


def test_an_incident_begins_with_its_fault_even_if_the_alarm_came_later() -> None:
    alarm = Alarm(1, "k", AlarmKind.SITE_DOWN, None, "a.edu", "", "away", "call", NOW)
    one = down("a.edu", 6)
    assert Incident(one.wrong, alarm, None, "x", None).since == NOW - timedelta(minutes=6)
