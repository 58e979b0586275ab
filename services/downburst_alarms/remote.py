"""Alarms in a process of their own: they get the hub's facts from the hub, which has receivers tried there."""

from collections.abc import Mapping
from datetime import datetime

from downburst.bus.port import Bus
from downburst.domain.alarms import Receiver
from downburst.ledger import Ledger
from downburst.parts.names import Part
from downburst.parts.questions import Answer, Remote, answers_of
from downburst_alarms.hub_facts import HubFacts, LiveFacts
from downburst_alarms.watch import AlarmWatch


class RemoteFacts:
    """The facts of a hub in another process."""

    def __init__(self, bus: Bus) -> None:
        self._hub = Remote(bus, Part.HUB)

    async def of_hub(self, now: datetime) -> HubFacts:
        """The facts at this moment; raises `PartAway` if the hub is silent."""
        return await self._hub.ask(LiveFacts.of_hub, now=now)


def answers_of_hub(facts: LiveFacts) -> Mapping[str, Answer]:
    """How the hub answers the alarm service."""
    return answers_of(facts, LiveFacts.of_hub)


class ReceiverTests:
    """Where receivers are tried for a hub that leaves alarms to this process."""

    def __init__(self, watch: AlarmWatch, ledger: Ledger) -> None:
        self._watch = watch
        self._ledger = ledger

    async def tell_as_a_test(self, name: str, owner: str | None) -> None:
        """Tells a receiver of an alarm that is none. It is named: its address may hold a secret."""
        await self._watch.tell_as_a_test(await self._receiver(name, owner))

    async def _receiver(self, name: str, owner: str | None) -> Receiver:
        if owner is None:
            return await self._ledger.read(lambda tx: tx.alerting.receivers.one(name))
        return await self._ledger.read(lambda tx: tx.alerting.site_receivers.one(owner, name))


class RemoteAlarms:
    """Alarms as the api of a hub has them that leaves them to another process."""

    def __init__(self, bus: Bus) -> None:
        self._service = Remote(bus, Part.ALARMS)

    async def tell_as_a_test(self, receiver: Receiver) -> None:
        """Tells a receiver that this is a test; raises why it can't."""
        await self._service.ask(ReceiverTests.tell_as_a_test, name=receiver.name, owner=receiver.owner)


def answers_of_watch(watch: AlarmWatch, ledger: Ledger) -> Mapping[str, Answer]:
    """How the alarm service answers the api."""
    return answers_of(ReceiverTests(watch, ledger), ReceiverTests.tell_as_a_test)
