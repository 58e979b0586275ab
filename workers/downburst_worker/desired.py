"""The ledger's wishes for a node, sent level-triggered.

At any change in the ledger the whole set is sent again; after a restart of the node everything is sent again. So a
lost message costs time, never correctness.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar, cast

from downburst.domain.ordering.signs import SilencesWatched
from downburst.domain.plans import Plan, Transport
from downburst.domain.receipts import Settled
from downburst.foundation.errors import DownburstError, LedgerAway, NodeAway
from downburst.ledger import Ledger, Transaction
from downburst.settings.hub import Settings
from downburst_worker.accounts import LegAccounts
from downburst_worker.ledger_writer import LedgerWriter
from downburst_worker.messages import backlog_lines, lines, relay_lines, sibling_lines, silence_lines, tcp_lines
from downburst_worker.node import Line, NodeProcess
from downburst_worker.reporter import Reporter

T = TypeVar("T")


class DesiredState:
    """Sends the node the ledger's wishes."""

    def __init__(
        self, settings: Settings, ledger: Ledger, node: NodeProcess, *, writer: LedgerWriter, reporter: Reporter
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._node = node
        self._writer = writer
        self._reporter = reporter
        self._role = reporter.role
        self.accounts = LegAccounts()
        self._unmet: dict[str, Plan] = {}
        """By feed, the plan that the node could not apply because a group's circuit was not up."""
        self._told_profiles: Line = NO_PROFILES
        """The TCP profiles that the node has."""
        self._silences = SilencesWatched(())
        """The scheduler's last wish; the ledger does not have it."""
        self.relays = frozenset[str]()
        """The sites with the record of a relay, as of the last job with all sites."""
        self._applying = asyncio.Lock()
        self._read_last: dict[str, object] = {}
        """By query, the ledger's last answer: a node that is restarted while the ledger is away gets that."""
        self.missed = False
        """True if a change could not be read because the ledger was away."""

    async def apply_at_start(self) -> None:
        """Sends everything to a node that has just started; with sites' positions, from which it follows them."""
        self._told_profiles = NO_PROFILES
        await self._apply_tcp_profiles()
        await self.apply_feeds()
        await self.apply_sites(await self._look_up("positions", lambda tx: tx.measured.settled.all()))
        await self.apply_plans()
        if self._role.takes_in:
            await self._apply_silences()
            await self._apply_upstreams()
            await self._apply_ldm()

    async def apply_all(self) -> None:
        """Sends TCP profiles, feeds, sites and plans."""
        await self._apply_tcp_profiles()
        await self.apply_feeds()
        await self.apply_sites()
        await self.apply_plans()

    async def apply_feeds(self) -> None:
        """Sends the feeds that the node serves."""
        async with self._applying:
            feeds, heads = await self._look_up("feeds", lambda tx: (tx.feeds.all(), tx.measured.log_heads.all()))
            job = lines.feeds_job(self._role.share.own_feeds(feeds), heads)
            self.accounts.name_unicast_legs(feeds)
            answer = await self._open_feeds(job)
            if self._role.takes_in:
                await self._writer.count(heads=lines.opened_heads(answer))

    async def _open_feeds(self, job: Line) -> Line:
        try:
            return await self._node.request("feeds", **job)
        except NodeAway:
            raise
        except DownburstError as error:
            if self._role.takes_in:
                raise
            # The hub may not have begun the feed yet, or the brokers are away: tried again each second.
            _LOG.warning("feeds can't all be opened yet: %s", error.sentence)
            self.missed = True
            return {}

    async def apply_sites(self, stood: list[Settled] | None = None) -> None:
        """Sends all sites with their subscriptions; `stood`: their positions, for a node that has just started."""
        async with self._applying:
            job, self.relays = await self._look_up("sites", _sites_and_relays)
            job = relay_lines.with_tunnels(job, self._settings.multicast.amt_interface)
            if stood is not None:
                job = backlog_lines.with_positions(job, stood)
            await self._node.request("sites", **self._role.share.tell_sites(job))

    async def apply_plans(self) -> None:
        """Sends the newest plan of each feed."""
        plans, feeds = await self._look_up("plans", lambda tx: (tx.planning.plans.all_current(), tx.feeds.all()))
        known = {feed.name for feed in feeds}
        for plan in plans:
            if plan.feed in known:
                await self.apply_plan(plan)

    async def apply_plan(self, plan: Plan) -> None:
        """Sends one plan, reduced to this node's part."""
        self.accounts.adopt(plan)
        self._unmet.pop(plan.feed, None)
        own = self._role.share.own_part(plan)
        if own is None:
            return
        try:
            await self._node.request("plan", **lines.plan_job(own, self._settings.multicast))
        except NodeAway:
            raise
        except DownburstError as error:
            if any(leg.transport is Transport.MULTICAST and leg.circuits for leg in plan.legs):
                self._unmet[plan.feed] = plan
            _LOG.warning("plan %d of %s was refused: %s", plan.version, plan.feed, error.sentence)
            sentence = f"plan {plan.version} of {plan.feed} was refused: {error.sentence}"
            await self._reporter.fault(sentence, feed=plan.feed)

    async def apply_unmet_plans(self) -> None:
        """Applies plans that waited for a circuit, as one is up."""
        for plan in list(self._unmet.values()):
            await self.apply_plan(plan)

    async def connect_upstreams(self) -> None:
        """Has the node connect to the ledger's upstreams; raises the reason if it can't connect to one."""
        async with self._applying:
            upstreams = await self._look_up("upstreams", lambda tx: tx.fleet.upstreams.all())
            await self._node.request("upstreams", **lines.upstreams_job(upstreams))

    async def connect_ldm(self) -> tuple[str, ...]:
        """Has the node request from and serve the ledger's LDMs; raises the failure, else returns its address."""
        async with self._applying:
            sources, accepts = await self._look_up("ldm", lambda tx: (tx.ldm.sources.all(), tx.ldm.accepts.all()))
            answer = await self._node.request("ldm", **lines.ldm_job(sources, accepts, self._settings.ldm))
            return tuple(answer.get("addresses", ()))

    async def apply_tcp_profiles(self) -> None:
        """Sends the whole list of TCP profiles, unless the node has it; raises the reason if it refuses one."""
        async with self._applying:
            profiles = await self._look_up("TCP profiles", lambda tx: tx.fleet.tcp_profiles.all())
            job = tcp_lines.tcp_profiles_job(profiles)
            if job != self._told_profiles:
                await self._node.request("tcp-profiles", **job)
                self._told_profiles = job

    async def watch_silences(self, watched: SilencesWatched) -> None:
        """Has the node that ingests report these silences; raises the reason if it refuses them."""
        if self._role.takes_in:
            self._silences = watched
            await self._node.request("silences", **silence_lines.silences_job(watched))

    async def _apply_silences(self) -> None:
        if not self._silences.holds_us:
            return
        try:
            await self.watch_silences(self._silences)
        except NodeAway:
            raise
        except DownburstError as error:
            await self._reporter.fault(error.sentence)

    async def _apply_tcp_profiles(self) -> None:
        try:
            await self.apply_tcp_profiles()
        except (NodeAway, LedgerAway):
            raise
        except DownburstError as error:
            await self._reporter.fault(error.sentence, next_step="downburst tcp-profiles list")

    async def _apply_upstreams(self) -> None:
        if not await self._look_up("upstreams", lambda tx: tx.fleet.upstreams.all()):
            return
        try:
            await self.connect_upstreams()
        except NodeAway:
            raise
        except DownburstError as error:
            await self._reporter.fault(error.sentence, next_step="downburst upstreams list")

    async def _apply_ldm(self) -> None:
        wanted = await self._look_up("ldm", lambda tx: (tx.ldm.sources.all(), tx.ldm.accepts.all()))
        if not any(wanted) and not self._settings.ldm.listen and not self._settings.ldm.rtstats:
            return
        try:
            await self.connect_ldm()
        except NodeAway:
            raise
        except DownburstError as error:
            await self._reporter.fault(error.sentence, next_step="downburst ldm sources; downburst ldm peers")

    async def _look_up(self, question: str, work: Callable[[Transaction], T]) -> T:
        """The ledger's answer; while it is away, its last one."""
        try:
            self._read_last[question] = found = await self._ledger.read(work)
        except LedgerAway:
            if question not in self._read_last:
                raise
            self.missed = True
            return cast("T", self._read_last[question])
        return found


def _sites_and_relays(tx: Transaction) -> tuple[Line, frozenset[str]]:
    relays = tx.fleet.relays.all()
    job = lines.sites_job(
        tx.sites.all(), tx.enrolment.credentials.usable(), tx.subscriptions.all(), tx.resends.waiting()
    )
    job = sibling_lines.with_siblings(job, tx.fleet.siblings.all())
    return relay_lines.with_ways(job, tx.fleet.ways.all(), relays), frozenset(relay.name for relay in relays)


NO_PROFILES: Line = {"profiles": []}
"""The list of a node that has just started."""
_LOG = logging.getLogger("downburst.agent")
