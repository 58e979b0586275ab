"""Schedules of probes: adds the due ones as waiting probes."""

from contextlib import suppress
from datetime import datetime, timedelta

from downburst.domain.probes import ProbeSchedule
from downburst.foundation.errors import LimitReached
from downburst.ledger import Transaction


def add_due(tx: Transaction, now: datetime) -> None:
    """Adds a probe for each due schedule, and sets the times of the next ones."""
    for schedule in tx.measured.probing.schedules.all():
        if schedule.next_at > now:
            continue
        if schedule.open_at(now.hour):
            # At the limit those before it still wait, and one more would measure the same.
            with suppress(LimitReached):
                tx.measured.probing.probes.add(schedule.request, schedule=schedule.id)
        tx.measured.probing.schedules.due_again(schedule.id, following(schedule, now))


def any_due(tx: Transaction, now: datetime) -> bool:
    """True if a schedule is due."""
    return any(schedule.next_at <= now for schedule in tx.measured.probing.schedules.all())


def following(schedule: ProbeSchedule, now: datetime) -> datetime:
    """The time of the next probe: a period after the last one, or the window's next begin."""
    if not schedule.open_at(now.hour):
        hours = next(hour for hour in range(1, 25) if schedule.open_at((now.hour + hour) % 24))
        return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=hours)
    period = timedelta(hours=schedule.every_h)
    missed = (now - schedule.next_at) // period
    return schedule.next_at + (missed + 1) * period
