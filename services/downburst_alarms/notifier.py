"""Notifies receivers of each beginning and end of an alarm, once; one receiver's failure does not affect others."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from downburst.domain.alarms import Alarm, AlarmKind, Receiver, ReceiverKind, Silence
from downburst.foundation.clock import Clock
from downburst.foundation.errors import DownburstError, Failure
from downburst.ledger import Ledger, Transaction
from downburst.supervision import attempt
from downburst_alarms.notices import Teller

Say = Callable[[str, str], Awaitable[None]]


class Notifier:
    """The notices of one hub's alarms."""

    def __init__(self, ledger: Ledger, teller: Teller, *, clock: Clock, say: Say) -> None:
        self._ledger = ledger
        self._teller = teller
        self._clock = clock
        self._say = say
        self._repeated_at: datetime | None = None
        self._unreached: set[tuple[str | None, str]] = set()
        self._told: set[tuple[int, bool]] = set()
        """Notices that were sent and are not yet in the ledger."""
        self.toured_s = clock.monotonic_s()
        """The end of the last round of all receivers, by the monotonic clock."""

    async def tell_as_a_test(self, receiver: Receiver) -> None:
        """Sends a receiver a test alarm; raises the cause of a failure."""
        now = self._clock.now()
        sentence = f"this is a test of the receiver {receiver.name}; no action is needed"
        alarm = Alarm(0, "test", AlarmKind.SITE_DOWN, None, None, "test", sentence, "nothing to do", now)
        try:
            await self._teller.tell(receiver, replace(alarm, ended_at=now), now)
        except Failure as error:
            raise Failure(f"{error.sentence}; correct its address, or repair its server") from error

    async def tell(self) -> None:
        """Notifies receivers of all news that they have not had."""
        now = self._clock.now()
        waiting, receivers, silences, standing = await self._ledger.read(_to_tell)
        silenced = {alarm.number for alarm in waiting if any(one.covers(alarm, now) for one in silences)}
        to_tell = [alarm for alarm in waiting if alarm.number not in silenced and _news(alarm) not in self._told]
        await self._tell_all(receivers, to_tell, now)
        # Even if the write to the ledger fails, no notice is sent twice.
        self._told |= set(map(_news, to_tell))
        noted = [alarm for alarm in waiting if alarm.number not in silenced or alarm.ended_at is not None]
        if noted:
            await self._ledger.write(partial(_note, alarms=noted))
        self._told.clear()
        self.toured_s = self._clock.monotonic_s()
        if self._repeated_at is None or now - self._repeated_at >= REPEAT:
            self._repeated_at = now
            repeated = [one for one in receivers if one.kind is ReceiverKind.ALERTMANAGER]
            await self._tell_all(repeated, [alarm for alarm in standing if alarm.told_at is not None], now)

    async def _tell_all(self, receivers: list[Receiver], alarms: list[Alarm], now: datetime) -> None:
        """Notifies each receiver of its alarms in order; one receiver's failure of any kind leaves others alone."""
        wishes = [(one, [alarm for alarm in alarms if one.wants(alarm)]) for one in receivers]
        await asyncio.gather(*(self._tell_one(one, wanted, now) for one, wanted in wishes if wanted))

    async def _tell_one(self, receiver: Receiver, alarms: list[Alarm], now: datetime) -> None:
        """Stops at the first alarm that can't be delivered, so that other receivers wait for one attempt at most."""
        for alarm in alarms:
            work = partial(self._reach, receiver, alarm, now)
            if not await attempt("alarms.receiver", work, what=f"receiver {receiver.name} of {_owner(receiver)}"):
                return

    async def _reach(self, receiver: Receiver, alarm: Alarm, now: datetime) -> bool:
        who = (receiver.owner, receiver.name)
        retries_s = () if who in self._unreached else RETRIES_S
        for wait_s in (*retries_s, None):
            try:
                await self._teller.tell(receiver, alarm, now)
            except DownburstError as error:
                if wait_s is None:
                    await self._say_unreached(who, error.sentence)
                    return False
                await asyncio.sleep(wait_s)
            else:
                break
        self._unreached.discard(who)
        return True

    async def _say_unreached(self, who: tuple[str | None, str], sentence: str) -> None:
        """Reports it once, until the receiver can be reached."""
        if who not in self._unreached:
            self._unreached.add(who)
            advice = f"correct its address or repair its server, then test it: downburst alarms test {who[1]}"
            await self._say(sentence, advice if who[0] is None else "correct its address, or repair its server")


def _to_tell(tx: Transaction) -> tuple[list[Alarm], list[Receiver], list[Silence], list[Alarm]]:
    receivers = [*tx.alerting.receivers.all(), *tx.alerting.site_receivers.all()]
    return tx.alerting.alarms.to_tell(), receivers, tx.alerting.silences.current(), tx.alerting.alarms.open()


def _note(tx: Transaction, alarms: list[Alarm]) -> None:
    for alarm in alarms:
        tx.alerting.alarms.told(alarm)


def _news(alarm: Alarm) -> tuple[int, bool]:
    """The key of a notice: the alarm, and its beginning or its end."""
    return alarm.number, alarm.ended_at is not None


def _owner(receiver: Receiver) -> str:
    return f"site {receiver.owner}" if receiver.owner is not None else "the hub"


REPEAT = timedelta(seconds=60)
RETRIES_S = (1.0, 4.0)
