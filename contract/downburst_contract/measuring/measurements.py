"""Measurements by perfSONAR's test points, as their archiver posts them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from downburst.domain import measurements
from downburst.domain.measurements import MOST_ADDRESSES, Unit
from downburst_contract.base import Answer, Shape

_Name = Annotated[str, Field(max_length=63)]


class TestPointWanted(Shape):
    """A perfSONAR host whose results this hub takes."""

    __test__ = False

    point: _Name
    addresses: Annotated[list[Annotated[str, Field(max_length=253)]], Field(min_length=1, max_length=MOST_ADDRESSES)]
    """The names and addresses under which the host stands in results."""
    site: _Name | None = None
    """The site at which it stands; null: none, as at the hub."""

    def to_model(self) -> measurements.TestPoint:
        """The test point; refuses impossible names and addresses."""
        return measurements.TestPoint(self.point, tuple(self.addresses), self.site)

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}


class TestPoint(Answer):
    """A test point."""

    __test__ = False

    point: str
    addresses: list[str]
    site: str | None
    created_at: datetime | None

    @classmethod
    def of(cls, point: measurements.TestPoint) -> Self:
        """The test point for clients."""
        return cls(point=point.name, addresses=list(point.addresses), site=point.site, created_at=point.created_at)


class AddedTestPoint(TestPoint):
    """A test point with its token, which is shown this once."""

    token: str
    archive_path: str
    """The path to which its archiver posts results."""


class Archived(Answer):
    """The fate of a result: a refused one is kept with the reason."""

    taken: bool
    reason: str
    """The reason for which there is no figure; empty if there is one."""


class PathFigure(Answer):
    """The figure of a result."""

    value: float
    """The median of delays, the mean of round trips or of a rate."""
    unit: Unit
    error: float | None
    """The most that the figure is wrong, in its unit; null: not known."""
    lost_share: float | None
    more: Mapping[str, float]
    note: str
    """A sentence where the figure is not to be taken as it stands."""

    @classmethod
    def of(cls, figure: measurements.Figure) -> Self:
        """The figure for clients."""
        return cls.model_validate(figure)


class PathMeasurement(Answer):
    """One result of a test point."""

    number: int
    point: str
    at: datetime
    """The start of the run."""
    kind: str
    """The type of the test by pScheduler's names: latency, latencybg, rtt, throughput."""
    source: str
    """The host from which packets went; empty: the result does not name it."""
    destination: str
    source_site: str | None
    destination_site: str | None
    run: str
    """The name of the run at the test point."""
    figure: PathFigure | None
    refused: str
    """The reason for which there is no figure; empty if there is one."""

    @classmethod
    def of(cls, measured: measurements.Measurement) -> Self:
        """The measurement for clients."""
        values: dict[str, Any] = {name: getattr(measured, name) for name in cls.model_fields if name != "figure"}
        return cls(**values, figure=None if measured.figure is None else PathFigure.of(measured.figure))
