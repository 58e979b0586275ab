"""Measurements of test points; ends are shown with the sites whose test points have their addresses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select

from downburst.domain.measurements import Figure, Measurement, Unit
from downburst.ledger.storage import limits
from downburst.ledger.tables.measurements import measurements, test_points


class Measurements:
    """Results, newest first; of each test point the newest are kept."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, measured: Measurement) -> bool:
        """Stores a result; false: the run is stored already."""
        is_of_run = (
            measurements.c.point == measured.point,
            measurements.c.run == measured.run,
            measurements.c.at == measured.at,
        )
        limits.lock(self._connection, limits.MEASUREMENTS_OF_POINT.name, measured.point)
        if self._connection.scalar(select(measurements.c.number).where(*is_of_run)) is not None:
            return False
        limits.MEASUREMENTS_OF_POINT.make_room(
            self._connection,
            measurements,
            measurements.c.point == measured.point,
            by=measurements.c.number,
            holder=measured.point,
        )
        self._connection.execute(insert(measurements).values(_row(measured)))
        return True

    def newest(
        self, *, site: str | None = None, point: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[Measurement]:
        """The newest results, with numbers below `before`; `site`: those with an end there."""
        sites = self._sites()
        query = select(measurements).order_by(measurements.c.number.desc()).limit(limit)
        if site is not None:
            of_site = [address for address, name in sites.items() if name == site]
            query = query.where(or_(measurements.c.source.in_(of_site), measurements.c.destination.in_(of_site)))
        if point is not None:
            query = query.where(measurements.c.point == point)
        if before is not None:
            query = query.where(measurements.c.number < before)
        return [_measured(row, sites) for row in self._connection.execute(query)]

    def forget_before(self, instant: datetime) -> None:
        """Deletes results that were measured before this instant."""
        self._connection.execute(delete(measurements).where(measurements.c.at < instant))

    def _sites(self) -> dict[str, str]:
        """The sites of addresses, by the test points that are known now."""
        found = self._connection.execute(select(test_points.c.addresses, test_points.c.site))
        return {address: row.site for row in found if row.site is not None for address in row.addresses}


def _row(measured: Measurement) -> dict[str, Any]:
    figure = measured.figure
    return {
        "point": measured.point,
        "run": measured.run,
        "at": measured.at,
        "kind": measured.kind,
        "source": measured.source,
        "destination": measured.destination,
        "value": figure and figure.value,
        "unit": figure and figure.unit.value,
        "error": figure and figure.error,
        "lost_share": figure and figure.lost_share,
        "more": dict(figure.more) if figure else {},
        "note": figure.note if figure else "",
        "refused": measured.refused,
    }


def _measured(row: Row[Any], sites: Mapping[str, str]) -> Measurement:
    figure = None
    if row.value is not None:
        figure = Figure(row.value, Unit(row.unit), row.error, row.lost_share, row.more, row.note)
    return Measurement(
        row.point,
        row.at,
        row.kind,
        row.source,
        row.destination,
        row.run,
        figure,
        row.refused,
        row.number,
        sites.get(row.source),
        sites.get(row.destination),
    )
