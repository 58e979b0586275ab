"""Measurements in the ledger: test points, runs that come twice, and the sites of their ends."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.measurements import Figure, Measurement, TestPoint, Unit
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, BadInput, NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories.audit import Changes
from factories import SOME_TIME

UNL = TestPoint("unl", ("PS.unl.edu", "192.0.2.7"), "unl.edu")
FIGURE = Figure(42_100.0, Unit.MICROSECONDS, 820.0, 0.02, {"max_us": 55_250.0}, "")
FOUND = Measurement("unl", SOME_TIME, "latency", "ps.unl.edu", "ps.hub.edu", "run-1", FIGURE)


@pytest.fixture
def pointed(tx: Transaction) -> Transaction:
    tx.sites.add(Site("unl.edu"))
    tx.measured.points.add(UNL, "a" * 64)
    return tx


def test_a_test_point_comes_back_and_goes_with_its_measurements(pointed: Transaction, clock: FakeClock) -> None:
    kept = replace(UNL, created_at=clock.now())
    assert kept.addresses == ("ps.unl.edu", "192.0.2.7")
    assert pointed.measured.points.all() == [kept] == [pointed.measured.points.one("unl")]
    assert pointed.measured.points.with_token("a" * 64) == kept
    assert pointed.measured.points.with_token("b" * 64) is None
    assert pointed.measured.measurements.add(FOUND)
    pointed.measured.points.remove("unl")
    assert pointed.measured.measurements.newest() == []
    with pytest.raises(NotFound, match="measurements points list"):
        pointed.measured.points.remove("unl")
    actions = [change.action for change in pointed.access.audit.page(Changes(kind="test point"))]
    assert actions == ["removed", "added"]


def test_a_test_point_of_a_removed_site_stays_without_one(pointed: Transaction) -> None:
    pointed.measured.measurements.add(FOUND)
    pointed.sites.remove("unl.edu")
    assert pointed.measured.points.one("unl").site is None
    assert pointed.measured.measurements.newest()[0].source_site is None


@pytest.mark.parametrize(
    ("wanted", "error", "said"),
    [
        (replace(UNL, addresses=("other.edu",)), AlreadyThere, "a test point 'unl' already"),
        (TestPoint("other", ("PS.UNL.EDU",)), AlreadyThere, "the address ps.unl.edu is of the test point 'unl'"),
        (TestPoint("other", ("other.edu",), "nowhere"), NotFound, "no site 'nowhere'"),
    ],
)
def test_impossible_test_points_are_refused(
    pointed: Transaction, wanted: TestPoint, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        pointed.measured.points.add(wanted, "b" * 64)


@pytest.mark.parametrize("values", [("Bad Name", ("a.edu",)), ("a", ()), ("a", ("http://x/",)), ("a", ("b",) * 17)])
def test_impossible_values_of_test_points_are_refused(values: tuple[str, tuple[str, ...]]) -> None:
    with pytest.raises(BadInput):
        TestPoint(*values)


def test_results_end_with_their_retention(pointed: Transaction) -> None:
    for hours in (0, 1, 2):
        later = replace(FOUND, run=f"run-{hours}", at=SOME_TIME + timedelta(hours=hours))
        assert pointed.measured.measurements.add(later)
    pointed.measured.measurements.forget_before(SOME_TIME + timedelta(hours=1))
    assert [one.run for one in pointed.measured.measurements.newest()] == ["run-2", "run-1"]


def test_a_run_is_stored_once(pointed: Transaction) -> None:
    assert pointed.measured.measurements.add(FOUND)
    assert not pointed.measured.measurements.add(replace(FOUND, kind="rtt"))
    refused = replace(FOUND, run="run-2", figure=None, refused="the test failed")
    assert pointed.measured.measurements.add(refused)
    newest, oldest = pointed.measured.measurements.newest()
    assert oldest == replace(FOUND, number=oldest.number, source_site="unl.edu")
    assert newest == replace(refused, number=newest.number, source_site="unl.edu")
    assert pointed.measured.measurements.newest(before=newest.number) == [oldest]
    assert pointed.measured.measurements.newest(point="other") == []


def test_ends_are_at_the_sites_whose_test_points_have_their_addresses(pointed: Transaction) -> None:
    pointed.sites.add(Site("other.edu"))
    pointed.measured.measurements.add(FOUND)
    pointed.measured.measurements.add(replace(FOUND, run="run-2", source="ps.hub.edu", destination="192.0.2.7"))
    pointed.measured.measurements.add(replace(FOUND, run="run-3", source="x.edu", destination="y.edu"))
    ends = [(one.source_site, one.destination_site) for one in pointed.measured.measurements.newest(site="unl.edu")]
    assert ends == [(None, "unl.edu"), ("unl.edu", None)]
    assert pointed.measured.measurements.newest(site="other.edu") == []
    # A test point that is added later gives earlier results their site.
    pointed.measured.points.add(TestPoint("hub", ("ps.hub.edu",), "other.edu"), "b" * 64)
    assert len(pointed.measured.measurements.newest(site="other.edu")) == 2
