"""Builds silences and receivers from requests."""

from dataclasses import replace
from datetime import datetime, timedelta

from downburst.domain.alarms import Silence
from downburst.foundation.errors import BadInput
from downburst.foundation.moments import coming_moment
from downburst.ledger import Transaction
from downburst_api.runtime import Runtime
from downburst_contract.alarms import SilenceNew


async def silence(hub: Runtime, wanted: SilenceNew, *, by: str) -> Silence:
    """Stores a silence: of a single open alarm, or of all of a kind, feed and site."""
    begins, until = window(wanted.begins, wanted.minutes, hub.clock.now())
    if wanted.alarm is None:
        made = Silence(0, until, by, wanted.reason, wanted.kind, wanted.feed, wanted.site, begins)
        return await hub.ledger.write(lambda tx: tx.alerting.silences.add(made))
    if {wanted.kind, wanted.feed, wanted.site} != {None}:
        raise BadInput("an alarm has its kind, feed and site already; leave them out, or leave `alarm` out")
    number, whole = wanted.alarm, Silence(0, until, by, wanted.reason, begins=begins)

    def add(tx: Transaction) -> Silence:
        one = tx.alerting.alarms.find_open(number)
        return tx.alerting.silences.add(
            replace(whole, kind=one.kind, feed=one.feed, site=one.site, alarm_key=one.key)
        )

    return await hub.ledger.write(add)


def window(begins: str | None, minutes: float, now: datetime) -> tuple[datetime | None, datetime]:
    """Begin and end of a silence; the begin is None for one that begins immediately."""
    begin = None if begins is None else coming_moment(begins, now)
    if begin is not None and begin + timedelta(minutes=minutes) <= now:
        raise BadInput("the window is over already; correct `begins` or `minutes`")
    return begin, (begin or now) + timedelta(minutes=minutes)
