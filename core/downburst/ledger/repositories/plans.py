"""Plans, pins, legs and the traffic of legs."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from downburst.domain.plans import Candidate, Leg, LegCounters, Pin, Plan, Transport
from downburst.domain.relays.relay import FanOut
from downburst.foundation.bounds import added
from downburst.foundation.clock import Clock
from downburst.foundation.errors import Failure
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.storage.databases import speaks_postgresql
from downburst.ledger.storage.rows import found, key_of, put, put_all, same_key
from downburst.ledger.tables.feeds import leg_counters, legs, pins, plans


class Plans:
    """Plans by feed and version; a version is never written twice."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def current(self, feed: str) -> Plan | None:
        """The newest plan of a feed."""
        newest = select(plans).where(plans.c.feed == feed).order_by(plans.c.version.desc()).limit(1)
        row = self._connection.execute(newest).one_or_none()
        return None if row is None else _plan(row)

    def all_current(self) -> list[Plan]:
        """The newest plan of every feed that ever had one, by feed."""
        newest = select(plans.c.feed, func.max(plans.c.version).label("version")).group_by(plans.c.feed).subquery()
        query = (
            select(plans)
            .join(newest, (plans.c.feed == newest.c.feed) & (plans.c.version == newest.c.version))
            .order_by(plans.c.feed)
        )
        return [_plan(row) for row in self._connection.execute(query)]

    def history(self, feed: str, *, before: int | None = None, limit: int = 100) -> list[Plan]:
        """The plans of a feed with a version below `before`, newest first."""
        query = select(plans).where(plans.c.feed == feed).order_by(plans.c.version.desc()).limit(limit)
        if before is not None:
            query = query.where(plans.c.version < before)
        return [_plan(row) for row in self._connection.execute(query)]

    def append(self, plan: Plan) -> Plan:
        """Stores the plan under the next version of its feed, ignoring its own, and returns it with that version.

        Plans beyond the newest of the feed are removed; the traffic of their legs is summed up.
        """
        before = self._connection.scalar(select(func.max(plans.c.version)).where(plans.c.feed == plan.feed))
        kept = replace(plan, version=(before or 0) + 1)
        self._connection.execute(insert(plans).values(_plan_row(kept)))
        last = kept.version - limits.PLANS_OF_FEED.most
        if last > 0:
            self._connection.execute(delete(plans).where(plans.c.feed == plan.feed, plans.c.version <= last))
            Legs(self._connection).sum_up(plan.feed, through=last)
        return kept

    def annotate(self, plan: Plan) -> None:
        """Updates figures and candidates of an existing plan, corrected by later measurements."""
        row = _plan_row(plan)
        kept = {name: row[name] for name in ("figures", "candidates")}
        change = plans.update().where(same_key(plans, row)).values(**kept)
        self._connection.execute(change)


class Pins:
    """Transports chosen by an operator."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> dict[str, Pin]:
        """Every pin, by feed."""
        return {pin.feed: pin for pin in map(_pin, self._connection.execute(select(pins)))}

    def find(self, feed: str) -> Pin | None:
        """The pin of a feed, if it has one."""
        row = self._connection.execute(select(pins).where(pins.c.feed == feed)).one_or_none()
        return None if row is None else _pin(row)

    def set(self, feed: str, transport: Transport, *, by: str) -> Pin:
        """Pins the feed to a transport."""
        before = self.find(feed)
        pin = Pin(feed=feed, transport=transport, by=by, at=self._clock.now())
        put(self._connection, pins, asdict(pin))
        self._audit.record("pin", feed, "changed" if before else "added", before=before, after=pin)
        return pin

    def remove(self, feed: str) -> bool:
        """Lets the scheduler choose again; returns True if there was a pin."""
        before = self.find(feed)
        if before is None:
            return False
        self._connection.execute(delete(pins).where(pins.c.feed == feed))
        self._audit.record("pin", feed, "removed", before=before)
        return True


class Legs:
    """Numbers of legs, and the traffic under each."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def allocate(self, feed: str) -> int:
        """Returns a number that no leg ever had; the database keeps the counter, so only the newest rows are kept."""
        key = self._connection.execute(insert(legs).values(feed=feed)).inserted_primary_key
        if key is None:
            raise Failure("the ledger gave no number to a leg; check the database")
        number = int(key[0])
        self._connection.execute(delete(legs).where(legs.c.leg <= number - limits.LEGS.most))
        return number

    def sum_up(self, feed: str, *, through: int) -> None:
        """Adds the traffic of legs under old plans, up to the given version, to a row for each transport."""
        old = (leg_counters.c.feed == feed) & leg_counters.c.version.between(SUMMED_UP + 1, through)
        rows = [_counters(row) for row in self._connection.execute(select(leg_counters).where(old))]
        numbers = {transport: number for number, transport in enumerate(Transport)}
        self._connection.execute(delete(leg_counters).where(old))
        for row in rows:
            self.count([replace(row, version=SUMMED_UP, leg=numbers[row.transport])])

    def count(self, counted: Iterable[LegCounters]) -> None:
        """Adds counts to the traffic of the legs under the same plan version."""
        rows = [asdict(more) for more in counted]
        if speaks_postgresql(self._connection):
            # Several nodes of a hub add to the same rows.
            self._connection.execute(select(func.pg_advisory_xact_lock(COUNT_LOCK)))
        known = {key: dict(row._mapping) for key, row in found(self._connection, leg_counters, rows).items()}
        for row in rows:
            before = known.get(key_of(leg_counters, row))
            if before is not None:
                row |= {name: added(row[name], before[name]) for name in _ADDED}
                row["sites"] = max(row["sites"], before["sites"])
            known[key_of(leg_counters, row)] = row
        put_all(self._connection, leg_counters, rows)

    def counters(self, feed: str | None = None) -> list[LegCounters]:
        """The traffic of legs, by feed, plan version and leg."""
        query = select(leg_counters).order_by(leg_counters.c.feed, leg_counters.c.version, leg_counters.c.leg)
        if feed is not None:
            query = query.where(leg_counters.c.feed == feed)
        return [_counters(row) for row in self._connection.execute(query)]

    def totals(self) -> LegCounters:
        """The sum of the traffic of all legs, as one row without a feed."""
        sums = [func.coalesce(func.sum(leg_counters.c[name]), 0).label(name) for name in _ADDED]
        row = self._connection.execute(select(*sums)).one()
        values = {name: int(value) for name, value in row._mapping.items()}
        return LegCounters(feed="", version=0, leg=0, transport=Transport.UNICAST, **values)


def _plan(row: Row[Any]) -> Plan:
    return Plan(
        feed=row.feed,
        version=row.version,
        made_at=row.made_at,
        reason=row.reason,
        pinned=row.pinned,
        legs=tuple(_leg(leg) for leg in row.legs),
        candidates=tuple(_candidate(candidate) for candidate in row.candidates),
        figures=row.figures,
    )


def _plan_row(plan: Plan) -> dict[str, Any]:
    return {
        "feed": plan.feed,
        "version": plan.version,
        "made_at": plan.made_at,
        "reason": plan.reason,
        "pinned": plan.pinned,
        "legs": [asdict(leg) for leg in plan.legs],
        "candidates": [asdict(candidate) for candidate in plan.candidates],
        "figures": dict(plan.figures),
    }


def _leg(values: dict[str, Any]) -> Leg:
    circuits = tuple((site, number) for site, number in values.get("circuits", ()))
    read = {"transport": Transport(values["transport"]), "sites": tuple(values["sites"]), "circuits": circuits}
    return Leg(**values | read | {"fan_out": FanOut(values.get("fan_out", FanOut.GROUP))})


def _candidate(values: dict[str, Any]) -> Candidate:
    return Candidate(**values | {"transport": Transport(values["transport"])})


def _pin(row: Row[Any]) -> Pin:
    return Pin(feed=row.feed, transport=Transport(row.transport), by=row.by, at=row.at)


def _counters(row: Row[Any]) -> LegCounters:
    values = dict(row._mapping)
    return LegCounters(**values | {"transport": Transport(values["transport"])})


COUNT_LOCK = 7_371
SUMMED_UP = 0
"""The version that stands for removed plans; plans have numbers from 1 on."""
_ADDED = (
    "products",
    "product_bytes",
    "egress_bytes",
    "repair_bytes",
    "control_bytes",
    "unicast_equivalent_bytes",
)
