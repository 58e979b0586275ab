"""Alarms in a separate process: the hub sends it facts, and forwards tests of receivers to it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from downburst.bus.port import Bus
from downburst.domain.alarms import Receiver
from downburst.domain.events import SiteProgress
from downburst.ledger import Ledger
from downburst.live.state import SiteSession
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


class ToldFacts:
    """The facts that the hub sends: a healthy hub has thousands of paths that no rule applies to."""

    def __init__(self, facts: LiveFacts) -> None:
        self._facts = facts

    async def of_hub(self, now: datetime) -> HubFacts:
        """The facts at this moment, without paths and backlogs in good order."""
        facts = await self._facts.of_hub(now)
        return replace(
            facts,
            sessions={site: _told(session) for site, session in facts.sessions.items()},
            backlogs={site: backlog for site, backlog in facts.backlogs.items() if backlog.lacks},
        )


def answers_of_hub(facts: LiveFacts) -> Mapping[str, Answer]:
    """The hub's answers to the alarm service."""
    return answers_of(ToldFacts(facts), LiveFacts.of_hub)


def _told(session: SiteSession) -> SiteSession:
    worth = {feed: progress for feed, progress in session.progress.items() if _is_looked_at(progress)}
    return replace(session, progress=worth, streams=None)


def _is_looked_at(progress: SiteProgress) -> bool:
    return bool(
        progress.pending
        or progress.trouble
        or progress.action_failed
        or progress.linked
        or progress.heartbeat_waits_us is not None
    )


class ReceiverTests:
    """Tests receivers for a hub that leaves alarms to this process."""

    def __init__(self, watch: AlarmWatch, ledger: Ledger) -> None:
        self._watch = watch
        self._ledger = ledger

    async def tell_as_a_test(self, name: str, owner: str | None) -> None:
        """Sends a receiver a test alarm. The request has the receiver's name, as its address may hold a secret."""
        await self._watch.tell_as_a_test(await self._receiver(name, owner))

    async def _receiver(self, name: str, owner: str | None) -> Receiver:
        if owner is None:
            return await self._ledger.read(lambda tx: tx.alerting.receivers.one(name))
        return await self._ledger.read(lambda tx: tx.alerting.site_receivers.one(owner, name))


class RemoteAlarms:
    """Alarms for the api of a hub that leaves them to another process."""

    def __init__(self, bus: Bus) -> None:
        self._service = Remote(bus, Part.ALARMS)

    async def tell_as_a_test(self, receiver: Receiver) -> None:
        """Sends a receiver a test notice; raises the cause of a failure."""
        await self._service.ask(ReceiverTests.tell_as_a_test, name=receiver.name, owner=receiver.owner)


def answers_of_watch(watch: AlarmWatch, ledger: Ledger) -> Mapping[str, Answer]:
    """The alarm service's answers to the api."""
    return answers_of(ReceiverTests(watch, ledger), ReceiverTests.tell_as_a_test)
